//! Golden fingerprints: what a run does may change only on purpose.
//!
//! The same file is checked by the Python tests against the release build, so debug and release
//! must agree. After a deliberate change of a model, run with `HYBRIDSIM_BLESS=1` and say in the
//! commit what changed.

use hybridsim_observe::Detail;
use hybridsim_simulation::registry::standard;
use hybridsim_simulation::run::{self, Options};
use hybridsim_simulation::scenario::Scenario;
use std::fs;
use std::path::{Path, PathBuf};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden")
}

fn fingerprint(path: &Path, detail: Detail) -> String {
    let registry = standard();
    let scenario =
        Scenario::read(path, &[], &registry).unwrap_or_else(|problems| panic!("{problems}"));
    let options = Options { detail, ..Options::default() };
    let done = run::run(&scenario, &registry, options).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(done.fault, None, "{}", path.display());
    assert!(done.results.violations.is_empty(), "{:?}", done.results.violations);
    done.results.fingerprint
}

#[test]
fn fingerprints_are_golden_with_and_without_observers() {
    let list = folder().join("fingerprints.txt");
    let mut scenarios: Vec<PathBuf> = fs::read_dir(folder())
        .expect("golden scenarios")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "toml"))
        .collect();
    scenarios.sort();
    assert!(scenarios.len() >= 4, "{scenarios:?}");
    let mut found = String::new();
    for path in &scenarios {
        let bare = fingerprint(path, Detail::Bare);
        assert_eq!(bare, fingerprint(path, Detail::Full), "observers change nothing");
        let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
        found += &format!("{name} {bare}\n");
    }
    if std::env::var_os("HYBRIDSIM_BLESS").is_some() {
        fs::write(&list, &found).expect("a writable repository");
    }
    let golden = fs::read_to_string(&list).expect("the list of fingerprints");
    assert_eq!(found, golden, "a model changed; if on purpose, see the head of this test");
}
