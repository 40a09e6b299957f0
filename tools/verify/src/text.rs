//! Checks and their outcomes for reading.

use crate::{Check, Outcome};
use hybridsim_report::figures::number;

const WIDTH: usize = 10;

fn name_width<'n>(names: impl Iterator<Item = &'n str>) -> usize {
    names.map(str::len).max().unwrap_or(0)
}

fn percent(share: f64) -> String {
    if share == 0.0 { "exact".to_owned() } else { format!("{} %", share * 100.0) }
}

/// A line for each check: its name, what it compares, and the oracle.
pub fn list(checks: &[&Check]) -> String {
    let width = name_width(checks.iter().map(|check| check.name));
    let line = |check: &&Check| {
        let Check { name, quantity, oracle, tolerance, .. } = check;
        format!("{name:<width$}  {quantity}: {oracle}; {}\n", percent(*tolerance))
    };
    checks.iter().map(line).collect()
}

/// The outcomes as a table.
pub fn table(outcomes: &[Outcome]) -> String {
    let width = name_width(outcomes.iter().map(|outcome| outcome.check));
    let head = ["simulated", "oracle", "difference", "tolerance"];
    let head: String = head.iter().map(|title| format!("  {title:>WIDTH$}")).collect();
    let rows: String = outcomes.iter().map(|outcome| row(outcome, width)).collect();
    let failed = outcomes.iter().filter(|outcome| !outcome.ok).count();
    let checks = outcomes.len();
    let end = match failed {
        0 => format!("all {checks} checks hold"),
        _ => format!("{failed} of {checks} checks failed"),
    };
    format!("{:<width$}{head}  {:<6}  quantity\n{rows}{end}\n", "check", "")
}

fn row(outcome: &Outcome, width: usize) -> String {
    let figure = |value: Option<f64>| value.map_or_else(|| "–".to_owned(), number);
    let difference = match outcome.difference {
        Some(0.0) => "0".to_owned(),
        Some(share) => format!("{:+.2} %", share * 100.0),
        None => "–".to_owned(),
    };
    let verdict = if outcome.ok { "ok" } else { "FAILED" };
    let (simulated, oracle) = (figure(outcome.simulated), figure(outcome.oracle));
    // The error of a run may have several lines.
    let error = outcome.error.as_ref().and_then(|error| error.lines().next());
    let error = error.map_or_else(String::new, |error| format!(": {error}"));
    format!(
        "{:<width$}  {simulated:>WIDTH$}  {oracle:>WIDTH$}  {difference:>WIDTH$}  \
         {:>WIDTH$}  {verdict:<6}  {}{error}\n",
        outcome.check,
        percent(outcome.tolerance),
        outcome.quantity
    )
}
