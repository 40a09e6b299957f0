//! Mapping units apart from pages and requests.

#[path = "common/command.rs"]
mod command;

use command::{document, fails, scenario};
use serde_json::Value;
use tempfile::TempDir;

/// An SSD of 2 dies with 4 planes and pages of 16 KiB, 128 MiB in all.
fn text(workload: &str, unit: &str, more: &str) -> String {
    format!(
        "[workload]\ngenerator = {{ {workload} }}\n[host]\nmode = \"closed\"\n\
         queue_depth = 4\n[component.ssd]\nkind = \"ssd\"\nchannels = 2\ndies_per_channel = 1\n\
         planes_per_die = 4\nblocks_per_plane = 32\npages_per_block = 32\n\
         page_size = \"16KiB\"\nmap_unit = \"{unit}\"\nover_provisioning = 0.28\n\
         read_time = \"60us\"\nprogram_time = \"2ms\"\nerase_time = \"5ms\"\n\
         channel_rate = \"1GB/s\"\n{more}\n"
    )
}

fn run(folder: &TempDir, text: &str, args: &[&str]) -> Value {
    let path = scenario(folder, "ssd.toml", text);
    document(&[&["run", &path, "--json", "--no-cache"], args].concat())
}

fn number(of: &Value, path: &str) -> f64 {
    of.pointer(path).and_then(Value::as_f64).unwrap_or_else(|| panic!("no {path}"))
}

const RANDOM: &str = "kind = \"uniform\", requests = 1000, read = 0.0, block = \"BLOCK\"";
const IN_ORDER: &str = "kind = \"fio\", rw = \"write\", bs = \"4KiB\", span = \"4MiB\"";

#[test]
fn random_writes_program_the_whole_unit_and_read_the_rest() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    // Before garbage collection: the unit divided by the write.
    for (unit, block, expected) in [
        ("64KiB", "4KiB", 16.0),
        ("16KiB", "4KiB", 4.0),
        ("64KiB", "16KiB", 4.0),
        ("64KiB", "64KiB", 1.0),
    ] {
        let text = text(&RANDOM.replace("BLOCK", block), unit, "precondition = \"fill\"");
        let path = scenario(&folder, "ssd.toml", &text);
        let counted = document(&["write-amplification", &path, "--json", "--no-cache"]);
        let by_pages = number(&counted, "/page_write_amplification");
        let bytes = number(&counted, "/write_amplification");
        assert!((bytes / by_pages / expected - 1.0).abs() < 1e-9, "{unit} {block}: {bytes}");
        let rest = number(&counted, "/reads_by_cause/partial");
        assert_eq!(rest, if expected > 1.0 { 1000.0 } else { 0.0 }, "{unit} {block}");
        let ran = run(&folder, &text, &[]);
        assert_eq!(number(&ran, "/totals/write_amplification"), bytes, "{unit} {block}");
    }
}

#[test]
fn writes_in_order_are_merged_in_the_buffer() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let apart = text(IN_ORDER, "64KiB", "");
    assert_eq!(number(&run(&folder, &apart, &[]), "/totals/write_amplification"), 16.0);
    let merged = text(IN_ORDER, "64KiB", "merge_buffer = \"128KiB\"");
    let ran = run(&folder, &merged, &["--verify"]);
    assert_eq!(number(&ran, "/totals/write_amplification"), 1.0);
    assert_eq!(number(&ran, "/totals/host_bytes"), number(&ran, "/throughput/write_bytes"));
    // Also of random writes, whose rest is read when they leave the buffer.
    let random = text(&RANDOM.replace("BLOCK", "4KiB"), "64KiB", "merge_buffer = \"1MiB\"");
    let path = scenario(&folder, "ssd.toml", &random);
    let counted = document(&["write-amplification", &path, "--json", "--no-cache"]);
    let ran = run(&folder, &random, &[]);
    for key in ["/host_bytes", "/programmed_bytes", "/reads_by_cause", "/programs_by_cause"] {
        let of_run = format!("/components/ssd{key}");
        assert_eq!(counted.pointer(key), ran.pointer(&of_run), "{key}");
    }
    let amplification = number(&ran, "/totals/write_amplification");
    assert!(amplification > 8.0 && amplification < 16.0, "{amplification}");
}

#[test]
fn merged_units_keep_their_data_through_power_failures() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let load = "kind = \"uniform\", requests = 4000, read = 0.4, block = \"12KiB\", \
                span = \"8MiB\"";
    for unit in ["4KiB", "16KiB", "64KiB"] {
        let queued = "merge_buffer = \"512KiB\"\ntiming = \"queued\"";
        let text = text(load, unit, queued);
        run(&folder, &text, &["--verify"]);
        run(&folder, &text, &["--verify", "--set", "run.power_cut_every=200"]);
    }
}

#[test]
fn several_units_in_a_page_are_programmed_together() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let load = "kind = \"uniform\", requests = 3000, read = 0.5, block = \"4KiB\"";
    let units = text(load, "4KiB", "timing = \"queued\"\nprogram_pages = 2");
    let pages = text(load, "4KiB", "timing = \"queued\"\nprogram_pages = 8\nread_pages = 4")
        .replace("16KiB", "4KiB")
        .replace("pages_per_block = 32", "pages_per_block = 128");
    let fingerprint = |text: &str| run(&folder, text, &[])["fingerprint"].clone();
    assert_eq!(fingerprint(&units), fingerprint(&pages));
}

#[test]
fn a_read_of_part_of_a_unit_transfers_only_the_pages_it_touches() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let load = "kind = \"uniform\", requests = 200, read = 1.0, block = \"BLOCK\"";
    for timing in ["interleaved", "queued"] {
        let mean = |block: &str| {
            let more = format!("timing = \"{timing}\"\nprecondition = \"fill\"");
            let text = text(&load.replace("BLOCK", block), "64KiB", &more);
            let ran = run(&folder, &text, &["--set", "host.queue_depth=1"]);
            number(&ran, "/latency_ns/all/mean")
        };
        // 60 us, and 16 KiB or 64 KiB at 1 GB/s.
        assert!((mean("4KiB") - 76_384.0).abs() < 10.0, "{timing}: {}", mean("4KiB"));
        assert!((mean("64KiB") - 125_536.0).abs() < 10.0, "{timing}: {}", mean("64KiB"));
    }
}

#[test]
fn units_that_do_not_fit_are_refused() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for (unit, more, expected) in [
        ("6KiB", "", "do not divide each other"),
        ("24KiB", "", "do not divide each other"),
        ("128KiB", "", "does not fit the 4 planes"),
        ("700B", "", "not a multiple of 512"),
        ("4KiB", "timing = \"serial\"", "cannot program several units"),
        ("64KiB", "merge_buffer = \"32KiB\"", "holds no mapping unit"),
    ] {
        let path =
            scenario(&folder, "ssd.toml", &text(&RANDOM.replace("BLOCK", "4KiB"), unit, more));
        let message = fails(2, &["check", &path]);
        assert!(message.contains(expected), "{message}");
    }
}
