//! Every real trace at hand, through a disk, an SSD and a hybrid of the two, every read checked.
//!
//! Needs the folder named by `HYBRIDSIM_DATA`; skips with a word where it is not set.

use hybridsim_config::registry::Registry;
use hybridsim_observe::RunResults;
use hybridsim_simulation::registry::standard;
use hybridsim_simulation::run::{self, Options};
use hybridsim_simulation::scenario::{Input, Scenario};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

const SYSTEMS: [&str; 3] = ["disk", "ssd", "hybrid"];

fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples")
}

/// Replays at most `count` records of `trace` on `system`.
fn replay(registry: &Registry, system: &str, trace: &Path, count: u64) -> RunResults {
    let sets = [
        "run.verify=true",
        "host.mode=closed",
        "workload.address=wrap",
        "workload.time_scale=1.0",
        &format!("workload.count={count}"),
    ];
    let mut sets: Vec<String> = sets.iter().map(|set| (*set).to_owned()).collect();
    if system == "ssd" {
        // The steady state of 64 GiB takes long in a debug build; the golden test has a small one.
        sets.push("component.ssd.precondition=none".to_owned());
    }
    let path = examples().join(format!("{system}.toml"));
    let mut input = Input::read(&path, &sets).expect("an example");
    input.trace = Some(trace.to_owned());
    let scenario = Scenario::check(input, registry).unwrap_or_else(|problems| panic!("{problems}"));
    let done = run::run(&scenario, registry, Options::default());
    let done = done.unwrap_or_else(|error| panic!("{system} {}: {error}", trace.display()));
    assert_eq!(done.fault, None, "{system} {}", trace.display());
    let violations = &done.results.violations;
    assert!(violations.is_empty(), "{system} {}: {violations:?}", trace.display());
    done.results
}

/// Rows of the table in the folder's MANIFEST.md: file and number of requests.
fn manifest(folder: &Path) -> BTreeMap<String, u64> {
    let text = fs::read_to_string(folder.join("MANIFEST.md")).expect("a manifest");
    let mut rows = BTreeMap::new();
    for line in text.lines() {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let [_, file, _, count, ..] = cells.as_slice() else { continue };
        let count = count.replace(',', "").parse();
        if let (Some(file), Ok(count)) = (file.strip_prefix('`'), count) {
            rows.entry(file.trim_end_matches('`').to_owned()).or_insert(count);
        }
    }
    rows
}

/// Long traces are cut here: reads are checked sector by sector, and this is a debug build.
const RECORDS_MAX: u64 = 20_000;

#[test]
fn every_real_trace_replays_on_every_system() {
    let Some(data) = std::env::var_os("HYBRIDSIM_DATA").map(PathBuf::from) else {
        println!("skipped: HYBRIDSIM_DATA is not set");
        return;
    };
    let folder = data.join("traces");
    let rows = manifest(&folder);
    assert!(rows.len() >= 20, "the manifest lists traces: {rows:?}");
    let registry = standard();
    for (file, &count) in &rows {
        let expected = count.min(RECORDS_MAX);
        for system in SYSTEMS {
            let results = replay(&registry, system, &folder.join(file), expected);
            assert_eq!(results.requests, expected, "{file} on {system}");
        }
    }
}

/// Replays at most `count` records of `trace` on the example `system` as it is, with `fit` alone.
fn fitted(registry: &Registry, system: &str, trace: &Path, count: u64) -> RunResults {
    let mut sets = vec!["workload.fit=true".to_owned(), format!("workload.count={count}")];
    if system == "ssd" {
        // As above.
        sets.push("component.ssd.precondition=none".to_owned());
    }
    let mut input = Input::read(&examples().join(format!("{system}.toml")), &sets).expect("valid");
    input.trace = Some(trace.to_owned());
    let scenario = Scenario::check(input, registry).unwrap_or_else(|problems| panic!("{problems}"));
    let what = format!("{system} {}", trace.display());
    let done = run::run(&scenario, registry, Options::default());
    let done = done.unwrap_or_else(|error| panic!("{what}: {error}"));
    assert_eq!(done.fault, None, "{what}");
    done.results
}

#[test]
fn every_real_trace_replays_on_every_example_with_fit() {
    let Some(data) = std::env::var_os("HYBRIDSIM_DATA").map(PathBuf::from) else {
        println!("skipped: HYBRIDSIM_DATA is not set");
        return;
    };
    let folder = data.join("traces");
    let registry = standard();
    let (mut runs, mut changed) = (0, 0);
    for (file, &count) in &manifest(&folder) {
        let expected = count.min(3_000);
        for system in SYSTEMS {
            let results = fitted(&registry, system, &folder.join(file), expected);
            assert_eq!(results.requests, expected, "{file} on {system}");
            let fit = results.warnings.iter().filter(|warning| warning.contains("fit: "));
            changed += usize::from(fit.count() > 0);
            runs += 1;
        }
    }
    assert!(runs >= 87 && changed > 0 && changed < runs, "{changed} of {runs} needed `fit`");
    println!("{runs} replays, {changed} of them changed by `fit`");
}

#[test]
fn every_bundled_recording_replays_on_every_system() {
    let folder = examples().join("../workloads");
    let mut recordings: Vec<PathBuf> = fs::read_dir(folder)
        .expect("recordings")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "hst"))
        .collect();
    recordings.sort();
    assert_eq!(recordings.len(), 8);
    let registry = standard();
    for recording in &recordings {
        for system in SYSTEMS {
            let results = replay(&registry, system, recording, 5_000);
            assert_eq!(results.requests, 5_000, "{} on {system}", recording.display());
        }
    }
}
