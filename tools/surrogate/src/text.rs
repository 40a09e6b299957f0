//! The summary of a table on the terminal.

use crate::Surrogate;
use crate::fit::{MEAN_GOAL, P99_GOAL};
use crate::table::Spread;
use hybridsim_report::figures::number;
use std::fmt::Write;

/// The knots of each table, and its errors on loads it was not fitted to.
pub fn terminal(surrogate: &Surrogate) -> String {
    let mut out =
        format!("{}: errors on loads that the tables were not fitted to\n\n", surrogate.title);
    let heads = [
        "state", "knots", "loads", "mean %", "median", "9 of 10", "p99 %", "median", "9 of 10",
        "repeated",
    ];
    let mut row = |cells: [String; 10]| {
        let [state, rest @ ..] = cells;
        let _ = write!(out, "{state:<12}");
        for cell in rest {
            let _ = write!(out, "{cell:>10}");
        }
        out.push('\n');
    };
    row(heads.map(str::to_owned));
    for (name, tables) in &surrogate.states {
        let judged = &tables.judged;
        let percent = |value: f64| number(100.0 * value);
        let spread = |it: &Spread| [it.mean, it.median, it.p90].map(percent);
        let [mean, mean_median, mean_p90] = spread(&judged.mean);
        let [p99, p99_median, p99_p90] = spread(&judged.p99);
        row([
            name.clone(),
            (tables.closed.knots() + tables.open.knots()).to_string(),
            judged.loads.to_string(),
            mean,
            mean_median,
            mean_p90,
            p99,
            p99_median,
            p99_p90,
            percent(judged.p99_repeated.mean),
        ]);
    }
    out.push('\n');
    for (name, tables) in &surrogate.states {
        let judged = &tables.judged;
        let largest = number(100.0 * judged.mean.max);
        let _ = writeln!(out, "{name}: largest error of a mean {largest} %: {}", judged.worst);
        if judged.mean.mean > MEAN_GOAL || judged.p99.mean > P99_GOAL {
            let _ = writeln!(
                out,
                "{name}: the errors are above {} % of means or {} % of p99; raise --knots or \
                 --requests, or narrow the ranges",
                number(100.0 * MEAN_GOAL),
                number(100.0 * P99_GOAL)
            );
        }
    }
    out
}
