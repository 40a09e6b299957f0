//! The summary of a table on the terminal.

use crate::Surrogate;
use crate::bench::WRITTEN_SHARE;
use crate::fit::{MEAN_GOAL, P99_GOAL};
use crate::table::ErrorSummary;
use hybridsim_report::figures::number;
use std::fmt::Write;

/// The knots of each table, and its errors on loads it was not fitted to.
pub fn terminal(surrogate: &Surrogate) -> String {
    let mut out =
        format!("{}: errors on loads that the tables were not fitted to\n\n", surrogate.title);
    let heads = [
        "state", "knots", "loads", "mean %", "median", "p90", "p99 %", "median", "p90", "repeated",
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
    let percent = |value: f64| number(100.0 * value);
    let spread = |it: &Option<ErrorSummary>| {
        it.map_or([const { String::new() }; 3], |it| [it.mean, it.median, it.p90].map(percent))
    };
    for (name, tables) in &surrogate.states {
        let validation = &tables.validation;
        let [mean, mean_median, mean_p90] = spread(&validation.mean);
        let [p99, p99_median, p99_p90] = spread(&validation.p99);
        let [repeated, ..] = spread(&validation.p99_repeated);
        let knots = (tables.closed.knots() + tables.open.knots()).to_string();
        let loads = validation.loads.to_string();
        let name = name.clone();
        row([name, knots, loads, mean, mean_median, mean_p90, p99, p99_median, p99_p90, repeated]);
    }
    out.push('\n');
    let depth = surrogate
        .states
        .values()
        .filter_map(|it| it.closed.load.last().copied())
        .fold(0.0, f64::max);
    if depth > surrogate.queue_depth as f64 {
        let _ = writeln!(
            out,
            "Of {depth} requests outstanding the host submits {} at a time ([host] queue_depth).",
            surrogate.queue_depth
        );
    }
    for (name, tables) in &surrogate.states {
        if !tables.holds_data {
            let _ = writeln!(
                out,
                "{name}: some reads find nothing written, and do not access flash; --states fresh \
                 fills it first"
            );
        }
        if tables.written_share > WRITTEN_SHARE {
            let _ = writeln!(
                out,
                "{name}: a load writes up to {} % of the capacity, and so changes the state of \
                 the devices; a larger system or smaller sizes change it less",
                percent(tables.written_share)
            );
        }
        let validation = &tables.validation;
        let Some((mean, p99)) = validation.mean.zip(validation.p99) else {
            let _ = writeln!(out, "{name}: not validated, as each load is one that was fitted to");
            continue;
        };
        let largest = percent(mean.max);
        let _ = writeln!(out, "{name}: largest error of a mean {largest} %: {}", validation.worst);
        if mean.mean > MEAN_GOAL || p99.mean > P99_GOAL {
            let _ = writeln!(
                out,
                "{name}: the errors are above {} % of means or {} % of p99; raise --knots or \
                 --requests, or narrow the ranges",
                percent(MEAN_GOAL),
                percent(P99_GOAL)
            );
        }
    }
    out
}
