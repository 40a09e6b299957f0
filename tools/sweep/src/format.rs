//! A table as comma-separated values, as JSON, and for the terminal.

use super::table::{Cell, Column, Row, Table};
use hybridsim_report::figures::number;
use hybridsim_report::json::pretty;
use serde_json::{Map, Value, json};

impl Table<'_> {
    /// Comma-separated values (RFC 4180); a statistic that does not apply is empty. With several
    /// seeds each is followed by half the width of its confidence interval.
    pub fn csv(&self) -> String {
        let mut writer = csv::Writer::from_writer(Vec::new());
        let wrote = "memory can be written";
        let is_repeated = self.seeds() > 1;
        let columns = self.columns.iter().flat_map(|column| {
            let interval = is_repeated.then(|| format!("{}_ci95", column.name));
            [column.name.clone()].into_iter().chain(interval)
        });
        let seeds = is_repeated.then(|| "seeds".to_owned());
        let ends = ["fingerprint", "error"].map(str::to_owned);
        let head = self.keys.iter().cloned().chain(columns).chain(seeds).chain(ends);
        writer.write_record(head).expect(wrote);
        for row in &self.rows {
            let values = row.point.values.iter().map(|value| bare(value));
            let shown = |value: Option<f64>| value.map(|value| value.to_string());
            let cells = row.cells.iter().flat_map(|cell| {
                let mean = shown(cell.as_ref().map(|cell| cell.estimate.mean));
                let half = shown(cell.as_ref().and_then(|cell| cell.estimate.half_width));
                let interval = is_repeated.then(|| half.unwrap_or_default());
                [mean.unwrap_or_default()].into_iter().chain(interval)
            });
            let seeds = is_repeated.then(|| row.outcomes.len().to_string());
            let prints: Vec<&str> = row.results().map(|run| run.fingerprint.as_str()).collect();
            let error = row.error().and_then(|reason| reason.lines().next()).unwrap_or_default();
            let ends = [prints.join(" "), error.to_owned()];
            writer.write_record(values.chain(cells).chain(seeds).chain(ends)).expect(wrote);
        }
        String::from_utf8(writer.into_inner().expect(wrote)).expect("only text was written")
    }

    /// A list of objects with the varied keys under `set`, and `results` or `error`. With several
    /// seeds `results` is a list, and `statistics` has means and intervals.
    pub fn json(&self) -> String {
        let is_repeated = self.seeds() > 1;
        let row = |row: &Row<'_>| {
            let values = self.keys.iter().zip(&row.point.values);
            let set: Map<String, Value> =
                values.map(|(key, value)| (key.clone(), typed(value))).collect();
            match row.error() {
                Some(reason) => json!({ "set": set, "error": reason }),
                None if is_repeated => json!({
                    "set": set,
                    "results": row.results().collect::<Vec<_>>(),
                    "statistics": self.statistics(row),
                }),
                None => json!({ "set": set, "results": row.results().next() }),
            }
        };
        let rows: Vec<Value> = self.rows.iter().map(row).collect();
        pretty(&rows)
    }

    fn statistics(&self, row: &Row<'_>) -> Map<String, Value> {
        let known = self.columns.iter().zip(&row.cells);
        let known = known.filter_map(|(column, cell)| Some((column, cell.as_ref()?)));
        let one = |(column, cell): (&Column, &Cell)| {
            let value = json!({
                "mean": cell.estimate.mean,
                "ci95": cell.estimate.half_width,
                "within_noise_of_first": cell.is_noise,
            });
            (column.name.clone(), value)
        };
        known.map(one).collect()
    }

    /// For reading; columns that are empty everywhere are left out.
    pub fn terminal(&self) -> String {
        let has_values = |at: usize| self.rows.iter().any(|row| row.cells[at].is_some());
        let shown: Vec<usize> = (0..self.columns.len())
            .filter(|&at| self.columns[at].is_shown && has_values(at))
            .collect();
        let mut lines: Vec<Vec<String>> = Vec::with_capacity(self.rows.len() + 1);
        let names = shown.iter().map(|&at| self.columns[at].name.clone());
        lines.push(self.keys.iter().map(|key| self.short(key)).chain(names).collect());
        for row in &self.rows {
            let mut line: Vec<String> = row.point.values.iter().map(|value| bare(value)).collect();
            match row.error() {
                None => line.extend(shown.iter().map(|&at| self.cell(row, at))),
                Some(reason) => {
                    line.push(format!("failed: {}", reason.lines().next().unwrap_or_default()));
                }
            }
            lines.push(line);
        }
        let legend = match (self.seeds(), lines.concat().iter().any(|cell| cell.ends_with('~'))) {
            (1, _) => String::new(),
            (seeds, noise) => {
                let noise = if noise { "; ~ within noise of the first row" } else { "" };
                format!("\nmean over {seeds} seeds +- 95 % confidence interval{noise}\n")
            }
        };
        aligned(&lines, self.keys.len()) + &legend + &self.warnings()
    }

    fn cell(&self, row: &Row<'_>, at: usize) -> String {
        // A percentile needs at least ten requests beyond it.
        let is_known = self.columns[at].name != "p99_us" || row.measured() >= 1000;
        let Some(cell) = row.cells[at].as_ref().filter(|_| is_known) else { return "-".to_owned() };
        let half = cell.estimate.half_width.map(|half| format!(" +-{}", number(half)));
        let noise = if cell.is_noise == Some(true) { " ~" } else { "" };
        format!("{}{}{noise}", number(cell.estimate.mean), half.unwrap_or_default())
    }

    /// The last part of a key, unless two components have a key of that name.
    fn short(&self, key: &str) -> String {
        let end = |key: &str| key.rsplit('.').next().unwrap_or_default().to_owned();
        match self.keys.iter().filter(|other| end(other) == end(key)).count() {
            1 => end(key),
            _ => key.to_owned(),
        }
    }
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
pub(crate) fn bare(value: &str) -> String {
    value.trim_matches('"').to_owned()
}

const WARNINGS_MAX: usize = 8;

/// The words of `text` but for its numbers, which differ from point to point. Names such as `d1`
/// stay.
fn without_numbers(text: &str) -> Vec<&str> {
    let is_number = |word: &str| {
        let number = word.trim_matches(['(', ')', ',', ';', ':']);
        number.starts_with(|first: char| first.is_ascii_digit()) && number.parse::<f64>().is_ok()
    };
    text.split_whitespace().filter(|word| !is_number(word)).collect()
}

impl Table<'_> {
    /// The warnings of all runs, each once, with the numbers of the first that has it.
    fn warnings(&self) -> String {
        let runs = || self.rows.iter().flat_map(|row| row.results());
        let points: usize = self.rows.iter().map(|row| row.outcomes.len()).sum();
        let mut found: Vec<(&str, usize)> = Vec::new();
        for run in runs() {
            for warning in &run.warnings {
                let same = |text: &str| without_numbers(text) == without_numbers(warning);
                match found.iter_mut().find(|(text, _)| same(text)) {
                    Some((_, count)) => *count += 1,
                    None => found.push((warning, 1)),
                }
            }
        }
        let mut out = String::new();
        for (at, (text, count)) in found.iter().enumerate().take(WARNINGS_MAX) {
            let head = if at == 0 { "\nWarnings\n" } else { "" };
            out += &format!("{head}  {}. {text} ({count} of {} points)\n", at + 1, points);
        }
        if found.len() > WARNINGS_MAX {
            out += &format!("  and {} more, in --json\n", found.len() - WARNINGS_MAX);
        }
        out
    }
}

/// Names to the left, figures to the right. The row of a failed point does not widen its columns.
fn aligned(lines: &[Vec<String>], names: usize) -> String {
    let count = lines.first().map_or(0, Vec::len);
    let width = |at: usize| {
        let whole = lines.iter().filter(|line| line.len() == count || at < names);
        whole.filter_map(|line| line.get(at)).map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..count).map(width).collect();
    // When all rows failed, their reasons are in a column of no other row.
    let width_of = |at: usize| widths.get(at).copied().unwrap_or(0);
    let mut out = String::new();
    for line in lines {
        let cells: Vec<String> = line
            .iter()
            .enumerate()
            .map(|(at, cell)| match at < names || line.len() != count {
                true => format!("{cell:<width$}", width = width_of(at)),
                false => format!("{cell:>width$}", width = width_of(at)),
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
    fn a_table_of_failures_has_no_figures() {
        let line = |cells: &[&str]| cells.iter().map(|&cell| cell.to_owned()).collect();
        let lines = [line(&["key"]), line(&["a value", "failed: too large"])];
        assert_eq!(aligned(&lines, 1), "key\na value  failed: too large\n");
    }

    #[test]
    fn warnings_that_differ_in_a_number_are_one() {
        let same = |one: &str, other: &str| without_numbers(one) == without_numbers(other);
        assert!(same("only 30 requests (2 times): few", "only 2000 requests (1 times): few"));
        assert!(same("about 67 % of the data, 1.5 % more", "about 8 % of the data, 22 % more"));
        assert!(!same("67 % of the reads of d1", "67 % of the reads of d2"));
        assert!(!same("no number", "67 % of it"));
    }

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
