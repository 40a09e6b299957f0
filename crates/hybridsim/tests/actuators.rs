//! Disks with two actuators: two halves behind one link, by construction and beside measurements.

use hybridsim_config::diagnostic::SourceText;
use hybridsim_observe::RunResults;
use hybridsim_simulation::registry::standard;
use hybridsim_simulation::run::{self, Options};
use hybridsim_simulation::scenario::{Input, Scenario};
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

fn simulate(folder: &Path, text: &str) -> RunResults {
    let registry = standard();
    let source = SourceText { name: "actuators".to_owned(), text: text.to_owned() };
    let input = Input { source, base: folder.to_owned(), sets: Vec::new(), trace: None };
    let scenario = Scenario::check(input, &registry).unwrap_or_else(|wrong| panic!("{wrong}"));
    let done = run::run(&scenario, &registry, Options::default());
    let done = done.unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(done.fault, None);
    done.results
}

/// A server of one request at a time, which takes 10 ms for each.
const HALF: &str = "kind = \"constant-device\"\ncapacity = \"64MiB\"\nlatency = \"10ms\"\n\
                    queue_depth = 1\n";

/// Two components of these keys in a `kind`, behind a link of this rate if there is one.
fn two(kind: &str, half: &str, link: &str) -> String {
    let members = if link.is_empty() { "\"a\", \"b\"" } else { "\"link\"" };
    let bus = match link {
        "" => String::new(),
        rate => format!(
            "[component.link]\nkind = \"bus\"\nrate = \"{rate}\"\ndevices = [\"a\", \"b\"]\n"
        ),
    };
    format!(
        "system = \"it\"\n[component.it]\nkind = \"{kind}\"\nmembers = [{members}]\n{bus}\
         [component.a]\n{half}[component.b]\n{half}"
    )
}

fn one(half: &str) -> String {
    format!("system = \"it\"\n[component.it]\n{half}")
}

/// Duration of a trace of reads at these MiB, at this queue depth.
fn replay(mib: &[u64], depth: u32, system: &str) -> u64 {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut trace = "time,op,offset,size\n".to_owned();
    for at in mib {
        writeln!(trace, "0,R,{},4096", at << 20).expect("a string");
    }
    fs::write(folder.path().join("reads.csv"), trace).expect("one's own folder");
    let text = format!(
        "[host]\nmode = \"closed\"\nqueue_depth = {depth}\n[workload]\ntrace = \"reads.csv\"\n\
         format = {{ kind = \"columns\", time_unit = \"us\" }}\n"
    );
    let results = simulate(folder.path(), &with(&text, system));
    assert_eq!(results.requests, mib.len() as u64);
    results.simulated_ns
}

#[test]
fn two_actuators_serve_twice_the_requests_where_both_halves_are_used() {
    let in_turn: Vec<u64> = (0..200).map(|at| at % 2 * 64 + at % 60).collect();
    let in_one: Vec<u64> = (0..200).map(|at| at % 60).collect();
    let two = two("concat", HALF, "");
    let each = 10_000_000;
    for depth in [2, 16] {
        assert_eq!(replay(&in_turn, depth, &two), 100 * each, "{depth}");
        assert_eq!(replay(&in_one, depth, &two), 200 * each, "{depth}");
        assert_eq!(replay(&in_one, depth, &one(HALF)), 200 * each, "{depth}");
    }
    assert_eq!(replay(&in_turn, 1, &two), 200 * each, "nothing is parallel");
    // Interleaved by 1 MiB, all addresses use both.
    let striped = two_interleaved();
    assert_eq!(replay(&in_one, 2, &striped), 100 * each);
}

fn two_interleaved() -> String {
    two("stripe", HALF, "").replacen("members", "chunk = \"1MiB\"\nmembers", 1)
}

/// Bytes per second of a sequential read of 1 MiB requests.
fn sequential(system: &str) -> f64 {
    let load = "[host]\nmode = \"closed\"\nqueue_depth = 16\n[workload.generator]\n\
                kind = \"fio\"\nrequests = 1000\nrw = \"read\"\nbs = \"1MiB\"\n";
    let results = simulate(Path::new(""), &with(load, system));
    (1000u64 << 20) as f64 / (results.simulated_ns as f64 / 1e9)
}

/// A scenario of a system and a load.
fn with(load: &str, system: &str) -> String {
    system.replacen("[component", &format!("{load}[component"), 1)
}

const ACTUATOR: &str = "preset = \"seagate-exos-2x14-actuator\"\n";

#[test]
fn one_stream_uses_both_actuators_where_addresses_are_interleaved_and_the_link_limits_both() {
    let single = sequential(&one(ACTUATOR));
    let split = sequential(&two("concat", ACTUATOR, "1200MB/s"));
    let striped = sequential(&two("stripe", ACTUATOR, "1200MB/s"));
    let narrow = sequential(&two("stripe", ACTUATOR, "300MB/s"));
    println!("single {single:.3e}, split {split:.3e}, striped {striped:.3e}, narrow {narrow:.3e}");
    assert!((split / single - 1.0).abs() < 0.05, "{split} {single}");
    assert!((striped / single - 2.0).abs() < 0.1, "{striped} {single}");
    assert!((narrow / 300e6 - 1.0).abs() < 0.05, "{narrow}");
    assert!((striped / 524e6 - 1.0).abs() < 0.1, "the data sheet's rate: {striped}");
}

/// Random requests of 4 KiB per second, and their mean latency in ms.
fn random(system: &str, rw: &str, depth: u32) -> (f64, f64) {
    let load = format!(
        "[host]\nmode = \"closed\"\nqueue_depth = {depth}\n[workload.generator]\n\
         kind = \"fio\"\nrequests = 4000\nrw = \"{rw}\"\nbs = \"4KiB\"\nnorandommap = true\n"
    );
    let results = simulate(Path::new(""), &with(&load, system));
    let rate = 4000.0 / (results.simulated_ns as f64 / 1e9);
    (rate, f64::from(depth) / rate * 1e3)
}

/// `docs/models/disk.md` puts these rates beside those of the data sheet, from which they differ.
#[test]
fn random_requests_of_the_preset_have_the_documented_rates() {
    let uncached = format!("{ACTUATOR}write_cache = false\n");
    let system = two("concat", &uncached, "1200MB/s");
    let (reads, _) = random(&system, "randread", 16);
    let (writes, _) = random(&system, "randwrite", 16);
    println!("4 KiB at depth 16: {reads:.1} reads/s, {writes:.1} writes/s");
    assert!((reads - 267.0).abs() < 1.0 && (writes - 274.0).abs() < 1.0, "{reads} {writes}");
}

/// Of the measurements through Ceph only these can be compared: a single random read, which no
/// second actuator makes faster, and the gain of saturated random writes, which is at most that of
/// two actuators.
#[test]
fn measurements_through_ceph_do_not_contradict_two_actuators() {
    let Some(data) = std::env::var_os("HYBRIDSIM_DATA").map(PathBuf::from) else {
        println!("skipped: HYBRIDSIM_DATA is not set");
        return;
    };
    let Ok(table) = fs::read_to_string(data.join("dualactuator/table.csv")) else {
        println!("skipped: HYBRIDSIM_DATA has no dualactuator/table.csv");
        return;
    };
    let measured = |disk: &str, rw: &str, depth: u32, column: usize| -> f64 {
        let row = table.lines().find(|it| it.starts_with(&format!("{disk},{rw},{depth},")));
        let value = row.and_then(|it| it.split(',').nth(column)?.parse().ok());
        value.unwrap_or_else(|| panic!("no {disk} {rw} {depth}"))
    };
    let (single, split) = (one(ACTUATOR), two("concat", ACTUATOR, "1200MB/s"));
    let (_, read_ms) = random(&split, "randread", 1);
    let measured_ms = measured("mach2", "read", 1, 4) / 1e3;
    println!("read at depth 1: {read_ms:.2} ms, {measured_ms:.2} ms with about 0.5 ms of Ceph");
    assert!((read_ms / (measured_ms - 0.5) - 1.0).abs() < 0.2, "{read_ms} {measured_ms}");
    let (alone, _) = random(&single, "randwrite", 64);
    let (both, _) = random(&split, "randwrite", 128);
    let rate = |disk| measured(disk, "write", 256, 3);
    let (gain, seen) = (both / alone, rate("mach2") / rate("normal"));
    println!("saturated random writes: {gain:.2} times one actuator, {seen:.2} measured");
    assert!((gain / 2.0 - 1.0).abs() < 0.05 && (1.0..gain).contains(&seen), "{gain} {seen}");
}
