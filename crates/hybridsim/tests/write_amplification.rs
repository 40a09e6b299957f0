//! Counting without a clock against simulated runs of the same scenarios.

#[path = "common/command.rs"]
mod command;

use command::{call, scenario as file, text};
use hybridsim_config::diagnostic::SourceText;
use hybridsim_engine::Fault;
use hybridsim_simulation::registry::standard;
use hybridsim_simulation::run::{self, RunOutput};
use hybridsim_simulation::scenario::{Input, Scenario};
use hybridsim_simulation::state::PreconditionCache;
use hybridsim_simulation::write_amplification::{Counted, Options, count};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

/// An SSD of 4 planes with 40 blocks of 32 pages, behind a closed loop.
fn text_of(workload: &str, ssd: &str) -> String {
    format!(
        "[workload]\n{workload}\n[host]\nmode = \"closed\"\nqueue_depth = 4\n\
         [component.ssd]\nkind = \"ssd\"\nchannels = 2\ndies_per_channel = 1\n\
         planes_per_die = 2\nblocks_per_plane = 40\npages_per_block = 32\npage_size = \"4KiB\"\n\
         over_provisioning = 0.4\ntiming.kind = \"none\"\n{ssd}\n"
    )
}

fn checked(text: &str, sets: &[&str]) -> Scenario {
    let source = SourceText { name: "test".to_owned(), text: text.to_owned() };
    let base = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let sets = sets.iter().map(|&set| set.to_owned()).collect();
    let input = Input { source, base, sets, trace: None };
    Scenario::check(input, &standard()).unwrap_or_else(|wrong| panic!("{wrong}\n{text}"))
}

fn counted(text: &str, sets: &[&str]) -> Counted {
    let done = count(&checked(text, sets), &standard(), Options::default());
    done.unwrap_or_else(|wrong| panic!("{wrong}\n{text}"))
}

fn simulated(text: &str) -> RunOutput {
    let done = run::run(&checked(text, &[]), &standard(), run::Options::default());
    done.unwrap_or_else(|wrong| panic!("{wrong}\n{text}"))
}

fn named(counts: &BTreeMap<&'static str, u64>) -> BTreeMap<String, u64> {
    counts.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect()
}

/// Asserts that both perform the same flash operations, and returns what was counted.
fn same(text: &str) -> Counted {
    let (found, run) = (counted(text, &[]), simulated(text));
    let flash = run.results.components["ssd"].flash.clone().expect("a flash device");
    let results = &found.results;
    assert_eq!(named(&results.reads_by_cause), flash.reads_by_cause, "{text}");
    assert_eq!(named(&results.programs_by_cause), flash.programs_by_cause, "{text}");
    assert_eq!(named(&results.erases_by_cause), flash.erases_by_cause, "{text}");
    assert_eq!(results.unwritten_reads, flash.unwritten_reads, "{text}");
    assert_eq!(results.searched_blocks, flash.searched_blocks, "{text}");
    assert_eq!(Some(results.free_blocks_end), flash.free_blocks_end, "{text}");
    assert_eq!(results.host_bytes, flash.host_bytes, "{text}");
    assert_eq!(results.programmed_bytes, flash.programmed_bytes, "{text}");
    assert_eq!(results.write_amplification, flash.write_amplification, "{text}");
    assert_eq!(results.page_write_amplification, flash.page_write_amplification, "{text}");
    // A run that ends early reports neither.
    if run.fault.is_none() {
        assert_eq!(results.erase_count, flash.erase_count, "{text}");
        assert_eq!(results.requests, run.results.requests, "{text}");
    }
    let constants = &run.results.components["ssd"].constants;
    assert_eq!(&results.constants, constants, "{text}");
    assert_eq!(found.fault, run.fault, "{text}");
    found
}

#[test]
fn stores_multiply_the_amplification_of_the_drive() {
    let lsm = "generator = { kind = \"lsm\", keys = 2000, memtable = \"64KiB\", file = \"64KiB\", \
               extent = \"64KiB\", block = \"64KiB\", requests = 6000, \
               compaction = { kind = \"leveled\", base = \"256KiB\" } }";
    let navy = "generator = { kind = \"navy\", small_keys = 9000, small_area = 0.5, \
                region = \"256KiB\", requests = 9000 }";
    for (store, least, most) in [(lsm, 4.0, 8.0), (navy, 1.5, 13.7)] {
        let text = text_of(store, "");
        let of_application = |counted: &Counted| counted.results.application.expect("a store");
        let all = same(&text);
        let of = of_application(&all);
        assert_eq!(simulated(&text).results.application, Some(of), "{store}");
        let [own, total] = [of.write_amplification, of.total_write_amplification];
        let [own, total] = [own.expect("it wrote"), total.expect("it wrote")];
        assert!((least..most).contains(&own), "{store}: {own}");
        assert_eq!(own, all.results.host_bytes as f64 / of.bytes as f64, "{store}");
        let device = all.results.write_amplification.expect("the drive wrote");
        assert_eq!(total, own * device, "{store}");
        let after = counted(&text, &["run.warmup_requests=2000"]);
        let rest = of_application(&after);
        assert!(rest.bytes < of.bytes, "{store}: the warm-up counts");
        let expected = after.results.host_bytes as f64 / rest.bytes as f64;
        assert_eq!(rest.write_amplification, Some(expected), "{store}");
    }
    let plain = counted(&text_of("generator = { kind = \"uniform\", requests = 9 }", ""), &[]);
    assert_eq!(plain.results.application, None);
}

/// Expects exit code `code` with `word` on standard error.
fn refused(args: &[&str], code: i32, word: &str) {
    let output = call(args);
    let message = text(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{args:?}\n{message}");
    assert!(message.contains(word) && !message.contains("panicked"), "{message}");
    assert!(output.stdout.is_empty(), "{args:?} printed {}", text(&output.stdout));
}

const OVERWRITES: &str = "generator = { kind = \"uniform\", requests = 12000, read = 0.2 }";

#[test]
fn life_is_what_every_block_endures_divided_by_the_amplification() {
    let load = "generator = { kind = \"uniform\", requests = 60000, read = 0.0 }";
    let results =
        counted(&text_of(load, "endurance = 700\nprecondition = \"steady\""), &[]).results;
    let physical = 4.0 * 40.0 * 32.0 * 4096.0;
    let amplification = results.write_amplification.expect("it writes");
    let expected = 700.0 * physical / amplification;
    let life = results.life_host_bytes.expect("it erases");
    assert!((life / expected - 1.0).abs() < 0.01, "{life} and {expected}");
    let worn = text_of(load, "endurance = 700\nprecondition = \"steady\"\ninitial_wear = 0.9");
    let worn = counted(&worn, &[]).results.life_host_bytes.expect("it erases");
    assert!((worn / life - 0.1).abs() < 0.001, "{worn} of {life}");
}

#[test]
fn every_translation_layer_performs_the_operations_of_a_run() {
    let registry = standard();
    for entry in registry.descriptions("ftl").filter(|entry| entry.name != "raw") {
        for (requests, precondition) in [(12_000, "none"), (6_000, "fill")] {
            let workload =
                format!("generator = {{ kind = \"uniform\", requests = {requests}, read = 0.2 }}");
            let ssd = format!("ftl = \"{}\"\nprecondition = \"{precondition}\"", entry.name);
            let found = same(&text_of(&workload, &ssd));
            assert!(found.results.erases > 80, "{}: {}", entry.name, found.results.erases);
            assert_eq!(found.fault, None);
        }
    }
}

#[test]
fn write_amplification_is_in_bytes_where_writes_are_not_whole_pages() {
    let registry = standard();
    for entry in registry.descriptions("ftl").filter(|entry| entry.name != "raw") {
        // At multiples of its size.
        for block in ["1KiB", "6KiB", "8KiB"] {
            let workload = format!(
                "generator = {{ kind = \"uniform\", requests = 6000, read = 0.2, \
                 block = \"{block}\" }}"
            );
            let text = text_of(&workload, &format!("ftl = \"{}\"", entry.name));
            let run = simulated(&text).results;
            let flash = run.components["ssd"].flash.as_ref().expect("a flash device");
            assert_eq!(flash.host_bytes, run.throughput.write_bytes, "{} {block}", entry.name);
            assert_eq!(flash.programmed_bytes, flash.programs * 4096, "{} {block}", entry.name);
            let [bytes, pages] = [flash.write_amplification, flash.page_write_amplification]
                .map(|ratio| ratio.expect("writes"));
            match block {
                "1KiB" => assert!((bytes / pages - 4.0).abs() < 1e-9, "{bytes} {pages}"),
                "6KiB" => assert!(bytes > pages * 4.0 / 3.0 - 1e-9, "{bytes} {pages}"),
                _ => assert_eq!(bytes, pages),
            }
            same(&text);
        }
    }
}

#[test]
fn write_amplification_is_in_bytes_where_pages_differ_in_size() {
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/slc-mlc.toml");
    let text = std::fs::read_to_string(example).expect("an example");
    let run = simulated(&text).results;
    let ssd = &run.components["ssd"];
    let flash = ssd.flash.as_ref().expect("a flash device");
    assert_eq!(flash.host_bytes, run.throughput.write_bytes);
    let mlc_bytes = flash.programs as f64 * ssd.constants["mlc_page_bytes"];
    let programmed_bytes = flash.programmed_bytes as f64;
    assert!(
        programmed_bytes < mlc_bytes && programmed_bytes > 0.25 * mlc_bytes,
        "{programmed_bytes}"
    );
    let expected = programmed_bytes / flash.host_bytes as f64;
    assert!((flash.write_amplification.expect("writes") - expected).abs() < 1e-12);
}

#[test]
fn every_policy_of_the_page_map_makes_the_decisions_of_a_run() {
    let registry = standard();
    let names = |category: &'static str| registry.descriptions(category).map(|entry| entry.name);
    let policies = names("gc-policy").map(|name| format!("gc = \"{name}\""));
    let wear = names("wear-levelling").map(|name| format!("wear = \"{name}\""));
    let heat = names("placement").map(|name| format!("placement = \"{name}\""));
    let others = ["gc_pace = \"blocking\"", "gc_pace = \"blocking\", gc_separate = false"];
    let mut keys: Vec<String> = policies.chain(wear).chain(heat).collect();
    keys.extend(others.map(str::to_owned));
    for key in keys {
        let required = registry.descriptions("gc-policy").any(|entry| {
            let is_it = key == format!("gc = \"{}\"", entry.name);
            is_it && entry.params.iter().any(|param| param.default.is_none())
        });
        if required {
            continue;
        }
        let ssd = format!("ftl = {{ kind = \"page\", {key} }}\nprecondition = \"steady\"");
        let found = same(&text_of(OVERWRITES, &ssd));
        assert!(found.results.gc_programs > 1_000, "{key}");
    }
}

#[test]
fn workloads_are_those_of_a_run() {
    let trims = "generator = { kind = \"streams\", requests = 20000, active = 3, \
                 block = \"4KiB\", \
                 region = \"256KiB\", trim = true }";
    let partial = "generator = { kind = \"uniform\", requests = 9000, block = \"6KiB\", \
                   read = 0.3 }";
    let trace = "trace = \"workloads/sqlite.hst\"\naddress = \"wrap\"\ncount = 12000";
    for (workload, ftls) in [
        (trims, &["page", "dftl", "fast", "block"][..]),
        (partial, &["page", "dftl", "fast"]),
        (trace, &["page", "dftl", "fast", "block"]),
    ] {
        for ftl in ftls {
            let found = same(&text_of(workload, &format!("ftl = \"{ftl}\"")));
            let results = &found.results;
            assert!(results.erases > 100, "{ftl} {workload}");
            assert_eq!(workload == trims, results.trimmed_pages > 1_000, "{ftl} {workload}");
            assert_eq!(workload == partial, results.reads_by_cause["partial"] > 1_000);
        }
    }
    // The order of the trace, whatever its times.
    let [once, paced] = ["at-once", "after-completions"].map(|times| {
        let workload = format!("{trace}\ntimes = \"{times}\"");
        counted(&text_of(&workload, ""), &[]).results.programs_by_cause
    });
    assert_eq!(once, paced);
}

#[test]
fn worn_out_flash_ends_the_count_as_it_ends_a_run() {
    let workload = "generator = { kind = \"uniform\", requests = 1000000 }";
    let found = same(&text_of(workload, "endurance = 30\nprecondition = \"fill\""));
    assert!(matches!(&found.fault, Some(Fault::Device { reason, .. }) if reason.contains("worn")));
    assert!(found.results.warnings.iter().any(|text| text.contains("ended early")));
    let raw = same(&text_of(OVERWRITES, "ftl = \"raw\""));
    assert!(matches!(raw.fault, Some(Fault::Device { .. })));
}

#[test]
fn timing_has_no_effect_and_the_cache_of_states_none_either() {
    let times = "read_time = \"25us\"\nprogram_time = \"200us\"\nerase_time = \"1.5ms\"";
    let text = text_of(OVERWRITES, &format!("precondition = \"steady\"\n{times}"));
    let plain = counted(&text, &[]);
    let mut timed = counted(&text, &["component.ssd.timing=\"queued\"", "host.mode=\"open\""]);
    timed.results.warnings.clone_from(&plain.results.warnings);
    assert_eq!(plain.results, timed.results);
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (folder, keep_from) = (folder.path().to_owned(), Duration::ZERO);
    let cache = PreconditionCache { folder, bytes_max: 1 << 20, keep_from };
    for _ in 0..2 {
        let options = Options { cache: Some(cache.clone()), ..Options::default() };
        let found = count(&checked(&text, &[]), &standard(), options).expect("it counts");
        assert_eq!(found.results, plain.results);
        assert_eq!(cache.usage().states, 1);
    }
}

#[test]
fn the_curve_joins_to_the_whole() {
    for requests in [10, 700, 100_000] {
        let workload = format!("generator = {{ kind = \"uniform\", requests = {requests} }}");
        let results = counted(&text_of(&workload, ""), &[]).results;
        let mut before = 0.0;
        let mut programs = 0.0;
        for point in &results.curve {
            assert!(point.drive_writes > before);
            programs += point.write_amplification * (point.drive_writes - before);
            before = point.drive_writes;
        }
        assert_eq!(before, results.drive_writes);
        let whole = results.write_amplification.expect("pages were written");
        assert!((programs / before - whole).abs() < 1e-9, "{requests}");
        assert!(results.curve.len() <= 1025);
        if requests == 100_000 {
            // From fresh flash to the steady state.
            assert!(results.curve[0].write_amplification < 1.01);
            assert!(results.curve.last().expect("points").write_amplification > whole);
            let utilisation = results.victim_utilisation.expect("blocks were collected");
            let copied = 1.0 - 1.0 / whole;
            assert!((utilisation - copied).abs() < 0.05, "{utilisation} {copied}");
        }
    }
}

#[test]
fn warm_up_requests_are_left_out() {
    let text = text_of("generator = { kind = \"uniform\", requests = 10000 }", "");
    let [all, first, rest] =
        [&["run.seed=1"][..], &["workload.generator.requests=7001"], &["run.warmup_requests=7001"]]
            .map(|sets| counted(&text, sets).results);
    assert_eq!(rest.requests, 2_999);
    assert_eq!(all.programs, first.programs + rest.programs);
    assert_eq!(all.erases, first.erases + rest.erases);
    assert!((rest.curve.last().expect("points").drive_writes - rest.drive_writes).abs() < 1e-12);
}

#[test]
fn what_needs_a_clock_is_refused_or_has_no_effect() {
    let refusal = |text: &str| match count(&checked(text, &[]), &standard(), Options::default()) {
        Ok(_) => panic!("it counted {text}"),
        Err(error) => error.to_string(),
    };
    let ssd = text_of(OVERWRITES, "");
    for (run, key) in [
        ("verify = true", "run.verify"),
        ("power_cut_every = 900", "run.power_cut_every"),
        ("state = \"a.state\"", "run.state"),
        ("faults = [{ at = \"1s\", do = \"wear\", fraction = 0.5 }]", "run.faults"),
    ] {
        let message = refusal(&format!("{ssd}[run]\n{run}\n"));
        assert!(message.contains(key), "{message}");
    }
    let duration = "generator = { kind = \"uniform\", duration = \"1s\" }";
    assert!(refusal(&text_of(duration, "")).contains("depend on completions"));
    let several = ssd.replace("[workload]", "[workload.one]");
    assert!(refusal(&several).contains("several workloads"));
    let disk = "[workload]\ngenerator = { kind = \"uniform\", requests = 10 }\n\
                [component.disk]\npreset = \"seagate-cheetah-9lp\"\n";
    assert!(refusal(disk).contains("`hard-disk`"));
    let idle = text_of(OVERWRITES, "idle_after = \"1ms\"");
    let idle = counted(&idle, &["host.scheduler=\"sptf\"", "run.warmup_time=\"1s\""]);
    for key in ["component.ssd.idle_after", "host.scheduler", "run.warmup_time"] {
        let about = |text: &&String| text.contains(key) && text.contains("changes nothing");
        assert_eq!(idle.results.warnings.iter().filter(about).count(), 1, "{key}");
    }
}

#[test]
fn the_command_prints_tables_and_documents() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = file(&folder, "ssd.toml", &text_of(OVERWRITES, ""));
    let table = text(&call(&["write-amplification", &path]).stdout);
    for word in ["write amplification", "blocks erased", "drive writes", "victim utilisation"] {
        assert!(table.contains(word), "{table}");
    }
    let read = |args: &[&str]| -> Value {
        let output = call(&[&["write-amplification", &path, "--json"], args].concat());
        serde_json::from_slice(&output.stdout).expect("JSON")
    };
    let one = read(&[]);
    assert!(one["write_amplification"].as_f64().expect("a number") > 1.0);
    assert_eq!(one["requests_by_op"]["write"], one["host_programs"]);
    let svg = folder.path().join("curve.svg");
    let svg = svg.to_str().expect("UTF-8");
    let vary = "component.ssd.over_provisioning=0.2,0.4";
    let several = read(&["--vary", vary, "-o", svg]);
    let amplification = |at: usize| {
        assert_eq!(several[at]["values"]["component.ssd.over_provisioning"], ["0.2", "0.4"][at]);
        several[at]["results"]["write_amplification"].as_f64().expect("a number")
    };
    assert_eq!(amplification(1), one["write_amplification"].as_f64().expect("a number"));
    assert!(amplification(0) > amplification(1));
    assert!(std::fs::read_to_string(svg).expect("a picture").contains("0.2"));
    let table = text(&call(&["write-amplification", &path, "--vary", vary]).stdout);
    assert!(table.contains("over_provisioning") && table.lines().count() >= 3, "{table}");
    let vary = "component.ssd.over_provisioning=0.4,0.00001";
    let output = call(&["write-amplification", &path, "--vary", vary, "--json"]);
    assert_eq!(output.status.code(), Some(4));
    let failed: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert!(failed[1]["error"].as_str().expect("an error").contains("over_provisioning"));
    refused(&["write-amplification", "nowhere.toml"], 2, "nowhere");
    refused(&["write-amplification", &path, "--set", "run.verify=true"], 2, "run.verify");
    refused(&["write-amplification", &path, "--trace", "nowhere"], 3, "nowhere");
}
