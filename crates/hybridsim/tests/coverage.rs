//! The table of what the papers describe names existing files, tests and claims, and the proofs of
//! a few of its rows are here.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(path: impl AsRef<Path>) -> String {
    let path = root().join(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The text of all sources below `folder`.
fn sources(folder: &Path) -> String {
    let entries = fs::read_dir(folder).expect("a readable folder");
    let text = |entry: fs::DirEntry| match entry.path() {
        path if path.is_dir() => sources(&path),
        path => fs::read_to_string(path).expect("sources are text"),
    };
    entries.map(|entry| text(entry.expect("a readable entry"))).collect()
}

/// An id of a claim, such as K09.
fn is_id(word: &str) -> bool {
    let bytes = word.as_bytes();
    bytes.len() == 3 && b"KBFOH".contains(&bytes[0]) && bytes[1..].iter().all(u8::is_ascii_digit)
}

/// The five cells of each row about a capability.
fn rows(text: &str) -> Vec<Vec<&str>> {
    let cells = |line| str::split(line, '|').map(str::trim).collect::<Vec<_>>();
    let rows = text.lines().filter(|line| line.starts_with('|')).map(cells);
    rows.filter(|row| row.len() == 7 && row[1] != "Capability" && !row[1].starts_with('-'))
        .map(|row| row[1..6].to_vec())
        .collect()
}

/// The texts between backticks.
fn quoted(cell: &str) -> impl Iterator<Item = &str> {
    cell.split('`').skip(1).step_by(2)
}

#[test]
fn every_file_and_test_of_the_table_exists() {
    let text = read("docs/papers/coverage.md");
    let rows = rows(&text);
    assert!(rows.len() > 140, "only {} rows were found", rows.len());
    let mut tests = 0;
    for row in &rows {
        let [what, section, places, proof, state] = row[..] else { panic!("{row:?}") };
        assert!(!what.is_empty() && !section.is_empty(), "{row:?}");
        let states = ["met", "differs", "undecided", "not modelled"];
        assert!(states.iter().any(|known| state.starts_with(known)), "{what}: {state}");
        for path in quoted(places) {
            assert!(root().join(path).exists(), "{what} is said to be in {path}");
        }
        let mut file = String::new();
        for word in quoted(proof) {
            if word.contains('/') {
                file = read(word);
            } else {
                assert!(file.contains(&format!("fn {word}(")), "{what}: no test `{word}`");
                tests += 1;
            }
        }
        let proved = quoted(proof).count() > 0 || proof.split([',', ' ', ';']).any(is_id);
        assert!(proved || state.starts_with("not modelled"), "{what} has no proof");
    }
    assert!(tests > 140, "only {tests} tests are named");
}

#[test]
fn the_table_names_the_claims_that_are_reproduced_and_no_others() {
    let text = read("docs/papers/coverage.md");
    let rows = rows(&text);
    let words = rows.iter().flat_map(|row| row[3].split([',', ' ', ';']));
    let named: BTreeSet<&str> = words.filter(|word| is_id(word)).collect();
    let mut code = sources(&root().join("tools/reproduce/src"));
    for folder in std::fs::read_dir(root().join("papers")).expect("the papers") {
        let claims = folder.expect("an entry").path().join("claims.toml");
        code += &std::fs::read_to_string(claims).unwrap_or_default();
    }
    let reproduced: BTreeSet<&str> = code.split('"').filter(|word| is_id(word)).collect();
    assert!(reproduced.len() > 50, "only {} claims were found", reproduced.len());
    let missing: Vec<_> = reproduced.difference(&named).collect();
    assert!(missing.is_empty(), "the table lacks {missing:?}");
    let unknown: Vec<_> = named.difference(&reproduced).collect();
    assert!(unknown.is_empty(), "nothing reproduces {unknown:?}");
}

/// The results of a scenario with `sets`.
fn results(path: &str, sets: &[String]) -> serde_json::Value {
    let output = Command::new(env!("CARGO_BIN_EXE_hybridsim"))
        .args(["run", path, "--json"])
        .args(sets.iter().flat_map(|set| ["--set", set]))
        .current_dir(root())
        .output()
        .expect("the program starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("one JSON document")
}

#[test]
fn a_stripe_of_n_serves_n_times_as_many() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    const LOAD: &str = r#"
system = "volume"
[host]
mode = "closed"
queue_depth = 64
[workload]
generator = { kind = "fio", requests = 4000, rw = "randread", bs = "4KiB" }
[component.volume]
kind = "stripe"
"#;
    let served = |members: usize| {
        let names: Vec<String> = (0..members).map(|at| format!("\"disk{at}\"")).collect();
        let disk = |at| format!("[component.disk{at}]\npreset = \"seagate-cheetah-9lp\"\n");
        let disks: String = (0..members).map(disk).collect();
        let text = format!("{LOAD}members = [{}]\n{disks}", names.join(", "));
        let path = folder.path().join(format!("{members}.toml"));
        fs::write(&path, text).expect("a writable folder");
        // As much of each member, so that arms go as far.
        let size = format!("workload.generator.span=\"{}GiB\"", 2 * members);
        let results = results(&path.display().to_string(), &[size]);
        results["throughput"]["iops"].as_f64().expect("a rate")
    };
    let one = served(1);
    for members in [2, 4] {
        let times = served(members) / one;
        let expected = members as f64;
        assert!((0.8 * expected..=1.05 * expected).contains(&times), "{members}: {times}");
    }
}

/// OP-FCL on a short run of configuration 1 of op-fcl with 32 MiB of flash, its division decided
/// anew after `period` pages.
fn flash_cache(period: u64) -> serde_json::Value {
    let sets = [
        "workload.generator.requests=30000".to_owned(),
        "workload.generator.span=\"33MiB\"".to_owned(),
        "run.warmup_requests=15000".to_owned(),
        "component.flash.blocks_per_plane=128".to_owned(),
        "component.cache.scheme=\"op\"".to_owned(),
        format!("component.cache.period_pages={period}"),
    ];
    results("papers/op-fcl/config1.toml", &sets)
}

#[test]
fn a_flash_cache_begins_with_a_twentieth_free_and_what_it_gives_up_spares_copies() {
    const NEVER: u64 = 1_000_000_000;
    let [as_begun, adjusted] = [NEVER, 2_000].map(flash_cache);
    let cache = &as_begun["components"]["cache"];
    let pages = cache["constants"]["flash_pages"].as_f64().expect("a number");
    let kept = cache["constants"]["cache_pages_max"].as_f64().expect("a number");
    // Of 19 twentieths a 64th is the map.
    assert!((kept / pages - 0.95 * 63.0 / 64.0).abs() < 0.001, "{kept} of {pages}");
    let amplification = |results: &serde_json::Value| {
        results["totals"]["write_amplification"].as_f64().expect("a number")
    };
    let [as_begun, adjusted] = [&as_begun, &adjusted].map(amplification);
    assert!(2.0 * adjusted < as_begun, "{adjusted} with space given up, {as_begun} without");
}
