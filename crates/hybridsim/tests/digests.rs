//! Presets that were fitted to a measured drive are still as close to its measurements.
//!
//! A fingerprint shows that a model changed, but not whether for the worse, and can be blessed.
//! `tests/digests.toml` has a few measured figures of each drive, how the preset is simulated to
//! be compared with them, and by how much it may differ. Runs are deterministic and short.

use hybridsim::presets;
use hybridsim_config::diagnostic::SourceText;
use hybridsim_config::registry::Registry;
use hybridsim_simulation::registry::standard;
use hybridsim_simulation::run::{self, Options};
use hybridsim_simulation::scenario::{Input, Scenario};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Figures that a preset has at least.
const ROWS_MIN: usize = 3;

/// A load that a drive was measured under.
#[derive(Deserialize)]
struct Load {
    /// Source of its figures.
    source: String,
    /// Factor of the drive's own counter on write amplification.
    #[serde(default = "one")]
    counter: f64,
    rows: Vec<Row>,
    #[serde(flatten)]
    scenario: toml::Table,
}

/// A figure: its name, its path in the results, the measured value, its unit, the tolerance as a
/// share of it, and its part in the fit.
#[derive(Deserialize)]
struct Row(String, String, f64, String, f64, Kind);

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Kind {
    /// It went into the constants of the preset or the choice of its model.
    Fitted,
    /// It took no part in either.
    Judged,
}

const fn one() -> f64 {
    1.0
}

fn digests() -> BTreeMap<String, Vec<Load>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/digests.toml");
    let text = fs::read_to_string(path).expect("the measured figures");
    toml::from_str(&text).unwrap_or_else(|problem| panic!("tests/digests.toml: {problem}"))
}

impl Load {
    /// The results of `preset` under it.
    fn results(&self, preset: &str, registry: &Registry) -> serde_json::Value {
        let mut scenario = self.scenario.clone();
        let empty = || toml::Value::Table(toml::Table::new());
        let components = scenario.entry("component").or_insert_with(empty);
        let components = components.as_table_mut().expect("a table of components");
        let it = components.entry("it").or_insert_with(empty);
        it.as_table_mut().expect("a component").insert("preset".to_owned(), preset.into());
        let text = toml::to_string(&scenario).expect("a scenario");
        let source = SourceText { name: format!("digest of {preset}"), text };
        let input = Input { source, base: PathBuf::new(), sets: Vec::new(), trace: None };
        let scenario = Scenario::check(input, registry).unwrap_or_else(|list| panic!("{list}"));
        let done = run::run(&scenario, registry, Options::default())
            .unwrap_or_else(|problem| panic!("{preset}: {problem}"));
        assert_eq!(done.fault, None, "{preset}");
        assert!(done.results.violations.is_empty(), "{preset}: {:?}", done.results.violations);
        serde_json::to_value(&done.results).expect("results")
    }

    /// The simulated figure of `row`, in its unit.
    fn figure(&self, Row(_, path, _, unit, ..): &Row, results: &serde_json::Value) -> Option<f64> {
        let value = results.pointer(&format!("/{}", path.replace('.', "/")))?.as_f64()?;
        let counter = if path.ends_with("write_amplification") { self.counter } else { 1.0 };
        Some(counter * value / results_per_unit(unit))
    }
}

/// Results are in nanoseconds, bytes per second and requests per second.
fn results_per_unit(unit: &str) -> f64 {
    match unit {
        "us" => 1e3,
        "ms" | "MB/s" => 1e6,
        "1/s" | "1" => 1.0,
        _ => panic!("a figure in `{unit}`, which no result is converted to"),
    }
}

#[test]
fn presets_are_as_close_to_the_measured_drives_as_their_tolerances_say() {
    let registry = standard();
    let (mut all, mut failed) = (String::new(), String::new());
    for (preset, loads) in digests() {
        for load in loads {
            let results = load.results(&preset, &registry);
            for row in &load.rows {
                let Row(what, path, measured, unit, tolerance, kind) = row;
                let simulated = load.figure(row, &results);
                let simulated = simulated.unwrap_or_else(|| panic!("{preset}: no `{path}`"));
                let off = simulated / measured - 1.0;
                let line = format!(
                    "{preset:27} {what:30} {measured:>9} {simulated:>11.3} {unit:5} {:>+8.2} % \
                     {:>5.1} %  {kind:?}: {}\n",
                    100.0 * off,
                    100.0 * tolerance,
                    load.source,
                );
                all += &line;
                if off.is_nan() || off.abs() > *tolerance {
                    failed += &line;
                }
            }
        }
    }
    let head = format!(
        "{:27} {:30}  measured   simulated       deviation tolerance  source\n",
        "preset", "figure"
    );
    println!("{head}{all}");
    assert!(failed.is_empty(), "farther from the measured drive than allowed:\n{head}{failed}");
}

#[test]
fn presets_fitted_to_a_measured_drive_have_at_least_three_measured_figures() {
    let (digests, presets) = (digests(), presets::list());
    let unknown = digests.keys().filter(|name| !presets.iter().any(|it| it.0 == **name));
    let unknown: Vec<&String> = unknown.collect();
    assert!(unknown.is_empty(), "tests/digests.toml has presets that do not exist: {unknown:?}");
    let figures = |name: &str| -> usize {
        digests.get(name).map_or(0, |loads| loads.iter().map(|load| load.rows.len()).sum())
    };
    // The first line of a preset says so.
    let is_measured =
        |summary: &str| summary.contains("fitted to ") || summary.contains("as measured for ");
    let of_drives = presets
        .iter()
        .filter(|(name, summary)| is_measured(summary) || digests.contains_key(name.as_str()));
    let names: Vec<&str> = of_drives.map(|(name, _)| name.as_str()).collect();
    assert!(names.len() > 15, "the search found nearly nothing: {names:?}");
    let few: Vec<&str> = names.into_iter().filter(|name| figures(name) < ROWS_MIN).collect();
    assert!(few.is_empty(), "fewer than {ROWS_MIN} figures in tests/digests.toml: {few:?}");
}
