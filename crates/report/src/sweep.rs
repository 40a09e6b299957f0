//! A parameter sweep as one self-contained HTML file: small multiples, sensitivities and the Pareto
//! front. `hybridsim-sweep` computes the data.

use crate::document::Document;
use crate::figures;
use minijinja::context;
use serde::Serialize;

const DOCUMENT: Document<'_> = Document {
    template: include_str!("../assets/sweep.html"),
    styles: &[include_str!("../assets/sweep.css")],
    scripts: &[
        include_str!("../assets/figure.js"),
        include_str!("../assets/lines.js"),
        include_str!("../assets/maps.js"),
        include_str!("../assets/bars.js"),
        include_str!("../assets/theme.js"),
        include_str!("../assets/sweep.js"),
    ],
};

/// Contents of the page.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Sweep {
    /// The scenario.
    pub title: String,
    /// Sentences above the table.
    pub notes: Vec<String>,
    /// The file with the same figures; empty without one.
    pub data_file: String,
    /// Seeds per combination.
    pub seeds: usize,
    pub keys: Vec<Key>,
    pub columns: Vec<Column>,
    pub rows: Vec<Row>,
}

/// A key that varies.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Key {
    pub name: String,
    /// The values of the key, in the order of the plan.
    pub values: Vec<String>,
}

/// A statistic.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Column {
    /// The name, which ends with the unit of its values.
    pub name: String,
    /// The name in words, without a unit that the values are shown with.
    pub title: String,
    /// The mark of an objective of a search.
    pub is_objective: bool,
    /// Whether the metric has charts; it is always in the table.
    pub is_shown: bool,
    /// Whether more is better.
    pub more_is_better: bool,
    /// The bound asked for: the most, or the least where more is better.
    pub bound: Option<f64>,
    /// Change of the metric along each key.
    pub effects: Vec<Effect>,
}

/// By how much a statistic changes along a key, averaged over the values of all others.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Effect {
    /// The key, as an index.
    pub key: usize,
    /// The values with the smallest and the largest mean.
    pub least: Level,
    pub most: Level,
    /// Their difference, relative to the mean over all values.
    pub share: f64,
    /// Whether the difference is within noise.
    pub noise: bool,
}

/// The mean at one value of a key.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Level {
    /// The value, as an index.
    pub value: usize,
    pub mean: f64,
}

/// A combination.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// The point's value of each key, as an index.
    pub at: Vec<usize>,
    /// By column.
    pub cells: Vec<Option<Cell>>,
    pub error: Option<String>,
    /// Bounds that it does not meet.
    pub unmet: Vec<String>,
    /// The mark of the best row of a search, or of those on its Pareto front.
    pub best: bool,
}

/// A statistic of a combination.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Cell {
    pub mean: f64,
    /// Half the width of its 95 % confidence interval.
    pub half: Option<f64>,
    /// Whether its difference from the first combination is within noise.
    pub noise: bool,
}

/// Statistics by name, and their labels in the summary table of a run.
const LABELS: &[(&str, &str)] = &[
    ("requests", "Requests"),
    ("mean_us", "Mean"),
    ("p50_us", "Median"),
    ("p99_us", "p99"),
    ("p999_us", "p99.9"),
    ("read_mean_us", "Read mean"),
    ("write_mean_us", "Write mean"),
    ("iops", "Throughput"),
    ("bytes_per_s", "Bandwidth"),
    ("energy_j", "Energy"),
    ("erases", "Erases"),
    ("write_amplification", "Write amplification"),
    ("hit_ratio", "Hit ratio"),
    ("simulated_s", "Simulated time"),
];

/// The statistic of this name in the words of the summary table; a path of the results as it is.
pub fn title(name: &str) -> String {
    let known = LABELS.iter().find(|known| known.0 == name);
    let words = known.and_then(|(_, label)| figures::words(label));
    words.unwrap_or_else(|| name.to_owned())
}

/// The page.
///
/// # Panics
/// Never for any content of `sweep`: the template is fixed and tested.
pub fn page(sweep: &Sweep) -> String {
    let content = context! {
        notes => sweep.notes.clone(),
        data_file => sweep.data_file.clone(),
        seeds => sweep.seeds,
        combinations => sweep.rows.len(),
        failed => sweep.rows.iter().filter(|row| row.error.is_some()).count(),
    };
    DOCUMENT.render(&sweep.title, content, sweep)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn titles_are_those_of_the_summary_table() {
        for (name, label) in LABELS {
            assert!(figures::words(label).is_some(), "{name}");
        }
        assert_eq!(title("mean_us"), "Mean latency");
        assert_eq!(title("hit_ratio"), "Hit ratio");
        assert_eq!(title("latency_ns.all.p99"), "latency_ns.all.p99");
    }
}
