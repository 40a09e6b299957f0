//! A sweep as a table: one row per point, with its values and results.

use super::{Outcome, Point};
use hybridsim_observe::RunResults;

/// A figure of a row: its column, and how it is read from results. Units last in the name.
type Column = (&'static str, fn(&RunResults) -> Option<f64>);

const COLUMNS: &[Column] = &[
    ("requests", |run| Some(run.requests as f64)),
    ("mean_us", |run| run.latency_ns.all.mean.map(micros)),
    ("p50_us", |run| run.latency_ns.all.p50.map(|ns| micros(ns as f64))),
    ("p99_us", |run| run.latency_ns.all.p99.map(|ns| micros(ns as f64))),
    ("p999_us", |run| run.latency_ns.all.p999.map(|ns| micros(ns as f64))),
    ("read_mean_us", |run| run.latency_ns.read.mean.map(micros)),
    ("write_mean_us", |run| run.latency_ns.write.mean.map(micros)),
    ("iops", |run| run.throughput.iops),
    ("bytes_per_s", |run| run.throughput.bytes_per_s),
    ("energy_j", |run| run.totals.energy_j),
    ("erases", |run| run.totals.erases.map(|erases| erases as f64)),
    ("write_amplification", |run| run.totals.write_amplification),
    ("hit_ratio", |run| run.totals.hit_ratio),
    ("simulated_s", |run| Some(run.simulated_ns as f64 / 1e9)),
    ("wall_s", |run| Some(run.wall_s)),
];

/// The terminal shows these.
const SHOWN: &[&str] =
    &["mean_us", "p99_us", "iops", "energy_j", "erases", "write_amplification", "hit_ratio"];

fn micros(ns: f64) -> f64 {
    ns / 1e3
}

/// Names of all columns: the keys that vary, the figures, fingerprint and error.
pub fn columns(keys: &[&str]) -> Vec<String> {
    let figures = COLUMNS.iter().map(|(name, _)| *name);
    keys.iter().copied().chain(figures).chain(["fingerprint", "error"]).map(str::to_owned).collect()
}

/// The table as comma-separated values (RFC 4180); a figure that does not apply is empty.
pub fn csv(keys: &[&str], rows: &[(&Point, &Outcome)]) -> String {
    let mut writer = csv::Writer::from_writer(Vec::new());
    let wrote = "memory can be written";
    writer.write_record(columns(keys)).expect(wrote);
    for (point, outcome) in rows {
        let mut fields: Vec<String> = point.values.iter().map(|value| bare(value)).collect();
        match outcome {
            Outcome::Done(run) => {
                let figure = |(_, read): &Column| read(run).map(|value| value.to_string());
                fields.extend(COLUMNS.iter().map(|column| figure(column).unwrap_or_default()));
                fields.extend([run.fingerprint.clone(), String::new()]);
            }
            Outcome::Failed(reason) => {
                fields.extend(COLUMNS.iter().map(|_| String::new()));
                let first = reason.lines().next().unwrap_or_default();
                fields.extend([String::new(), first.to_owned()]);
            }
        }
        writer.write_record(fields).expect(wrote);
    }
    String::from_utf8(writer.into_inner().expect(wrote)).expect("only text was written")
}

/// The table as JSON: a list of objects with the varied keys under `set`, and `results` or
/// `error`.
pub fn json(keys: &[&str], rows: &[(&Point, &Outcome)]) -> String {
    let row = |(point, outcome): &(&Point, &Outcome)| {
        let set: serde_json::Map<String, serde_json::Value> = keys
            .iter()
            .zip(&point.values)
            .map(|(key, value)| ((*key).to_owned(), typed(value)))
            .collect();
        match outcome {
            Outcome::Done(run) => serde_json::json!({ "set": set, "results": run }),
            Outcome::Failed(reason) => serde_json::json!({ "set": set, "error": reason }),
        }
    };
    let rows: Vec<serde_json::Value> = rows.iter().map(row).collect();
    serde_json::to_string_pretty(&rows).expect("results can be written as JSON")
}

/// A value as it is in TOML: a number, a flag, a list; what is none of them is text.
fn typed(value: &str) -> serde_json::Value {
    let parsed = format!("v = {value}").parse::<toml::Table>().ok();
    let plain = |value: &toml::Value| match value {
        toml::Value::Datetime(_) => None,
        // Infinity and NaN are no JSON.
        toml::Value::Float(number) if !number.is_finite() => None,
        value => serde_json::to_value(value).ok(),
    };
    parsed.and_then(|table| plain(table.get("v")?)).unwrap_or_else(|| bare(value).into())
}

/// A TOML string without its quotes; anything else as it is.
fn bare(value: &str) -> String {
    value.trim_matches('"').to_owned()
}

/// The table for reading; columns that are empty everywhere are left out.
pub fn terminal(keys: &[&str], rows: &[(&Point, &Outcome)]) -> String {
    let figures: Vec<&Column> = COLUMNS
        .iter()
        .filter(|(name, _)| SHOWN.contains(name))
        .filter(|(_, read)| {
            rows.iter()
                .any(|(_, outcome)| matches!(outcome, Outcome::Done(run) if read(run).is_some()))
        })
        .collect();
    let end = |key: &str| key.rsplit('.').next().unwrap_or_default().to_owned();
    // Two components may have a key of the same name.
    let last = |key: &&str| match keys.iter().filter(|other| end(other) == end(key)).count() {
        1 => end(key),
        _ => (*key).to_owned(),
    };
    let mut lines: Vec<Vec<String>> = Vec::with_capacity(rows.len() + 1);
    let names = figures.iter().map(|(name, _)| (*name).to_owned());
    lines.push(keys.iter().map(last).chain(names).collect());
    for (point, outcome) in rows {
        let mut line: Vec<String> = point.values.iter().map(|value| bare(value)).collect();
        match outcome {
            Outcome::Done(run) => line.extend(figures.iter().map(|(name, read)| {
                // A percentile needs at least ten requests beyond it.
                let value = read(run).filter(|_| *name != "p99_us" || measured(run) >= 1000);
                value.map_or_else(|| "-".to_owned(), hybridsim_report::figures::number)
            })),
            Outcome::Failed(reason) => {
                line.push(format!("failed: {}", reason.lines().next().unwrap_or_default()));
            }
        }
        lines.push(line);
    }
    aligned(&lines, keys.len()) + &warnings(rows)
}

fn measured(run: &RunResults) -> u64 {
    run.latency_ns.all.count
}

/// Maximum number of different warnings shown.
const WARNINGS_MAX: usize = 8;

/// The warnings of all runs, each once.
fn warnings(rows: &[(&Point, &Outcome)]) -> String {
    let mut found: Vec<(&str, usize)> = Vec::new();
    for (_, outcome) in rows {
        let Outcome::Done(run) = outcome else { continue };
        for warning in &run.warnings {
            match found.iter_mut().find(|(text, _)| text == warning) {
                Some((_, count)) => *count += 1,
                None => found.push((warning, 1)),
            }
        }
    }
    let mut out = String::new();
    for (at, (text, count)) in found.iter().enumerate().take(WARNINGS_MAX) {
        let head = if at == 0 { "\nWarnings\n" } else { "" };
        out += &format!("{head}  {}. {text} ({count} of {} points)\n", at + 1, rows.len());
    }
    if found.len() > WARNINGS_MAX {
        out += &format!("  and {} more, in --json\n", found.len() - WARNINGS_MAX);
    }
    out
}

/// Names to the left, figures to the right. A row that is cut short does not widen its columns.
fn aligned(lines: &[Vec<String>], names: usize) -> String {
    let count = lines.first().map_or(0, Vec::len);
    let width = |at: usize| {
        let whole = lines.iter().filter(|line| line.len() == count || at < names);
        whole.filter_map(|line| line.get(at)).map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..count).map(width).collect();
    let mut out = String::new();
    for line in lines {
        let cells: Vec<String> = line
            .iter()
            .enumerate()
            .map(|(at, cell)| match at < names || line.len() < count {
                true => format!("{cell:<width$}", width = widths[at]),
                false => format!("{cell:>width$}", width = widths[at]),
            })
            .collect();
        out.push_str(cells.join("  ").trim_end());
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn varied_values_keep_their_type_in_json() {
        let check = |value: &str, expect: serde_json::Value| assert_eq!(typed(value), expect);
        check("0.07", json!(0.07));
        check("32", json!(32));
        check("true", json!(true));
        check("\"10ms\"", json!("10ms"));
        check("10ms", json!("10ms"));
        check("fifo", json!("fifo"));
        check("[1, 2]", json!([1, 2]));
        check("{ kind = \"page\" }", json!({ "kind": "page" }));
        check("inf", json!("inf"));
        check("1979-05-27", json!("1979-05-27"));
    }
}
