//! Calibration finds the parameters of a simulated device again, though its latencies are noisy,
//! and the preset it writes behaves like the device.

use hybridsim_calibrate::{Calibration, Kind, KnownParameters, Reading, calibrate, preset};
use hybridsim_config::diagnostic::SourceText;
use hybridsim_engine::sample::standard_exponential;
use hybridsim_engine::{CommonEvent, EventRecord, EventSink, Stream};
use hybridsim_simulation::registry::standard;
use hybridsim_simulation::run::{self, Options, RunOutput};
use hybridsim_simulation::scenario::{Input, Scenario};
use std::path::PathBuf;

const KNOWN: KnownParameters = KnownParameters { page_bytes: 2048, erase_ns: 1.5e6 };

const DEVICE: &str = "[component.ssd]\nkind = \"ssd\"\ntiming.kind = \"serial\"\nchannels = 1\n\
    dies_per_channel = 1\nplanes_per_die = 1\nblocks_per_plane = 256\npages_per_block = 64\n\
    page_size = \"2KiB\"\nover_provisioning = 0.1\nread_time = \"130us\"\n\
    program_time = \"400us\"\nerase_time = \"1.5ms\"\ncontroller.read_overhead = \"480us\"\n\
    controller.write_overhead = \"620us\"\n";

#[derive(Default)]
struct Latencies(Vec<f64>);

impl EventSink for Latencies {
    fn take(&mut self, events: &[EventRecord]) {
        for record in events {
            if let Some(CommonEvent::Completed { latency, .. }) = record.event() {
                self.0.push(latency.as_ns() as f64);
            }
        }
    }
}

/// Runs `requests` of `pages` pages on `system`.
fn simulate(system: &str, rw: &str, pages: u64, requests: u64) -> (RunOutput, Vec<f64>) {
    let text = format!(
        "[workload]\ngenerator = {{ kind = \"fio\", requests = {requests}, rw = \"{rw}\", \
         bs = \"{}KiB\", span = \"28MiB\", norandommap = true }}\n\
         [host]\nmode = \"closed\"\nqueue_depth = 1\n{system}",
        pages * 2
    );
    let registry = standard();
    let source = SourceText { name: "test".to_owned(), text };
    let input = Input { source, base: PathBuf::new(), sets: Vec::new(), trace: None };
    let scenario =
        Scenario::check(input, &registry).unwrap_or_else(|problems| panic!("{problems}"));
    let mut latencies = Latencies::default();
    let options = Options { sink: Some(&mut latencies), ..Options::default() };
    let done = run::run(&scenario, &registry, options).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(done.fault, None);
    (done, latencies.0)
}

/// Measures `system` as the paper does: ten times at each length, disturbed by a tenth on average.
fn measured(system: &str, kind: Kind) -> Calibration {
    let rw = kind.word();
    let mut stream = Stream::new(3, "noise");
    let mut readings = Vec::new();
    for pages in [1, 2, 4, 8, 16, 32, 64] {
        for ns in simulate(system, rw, pages, 10).1 {
            let ns = ns * (1.0 + 0.1 * standard_exponential(&mut stream));
            readings.push(Reading { kind, bytes: pages * 2048, ns });
        }
    }
    calibrate(&readings, KNOWN).unwrap_or_else(|error| panic!("{error}"))
}

fn near(name: &str, got: f64, expect: f64, share: f64) {
    assert!((got / expect - 1.0).abs() <= share, "{name}: {got} instead of {expect}");
}

#[test]
fn a_simulated_device_is_found_again_within_two_percent() {
    // Pages never written are not read from the flash.
    let filled = format!("{DEVICE}precondition = \"fill\"\n");
    let read = measured(&filled, Kind::Read).read.expect("reads");
    near("read_time", read.page_ns.value, 130e3, 0.02);
    near("read_overhead", read.overhead_ns.value, 480e3, 0.05);
    let write = measured(DEVICE, Kind::Write).write.expect("writes");
    near("program_time", write.page_ns.value, 400e3, 0.02);
    near("write_overhead", write.overhead_ns.value, 620e3, 0.05);
}

#[test]
fn erases_per_write_are_found_again_within_two_percent() {
    let line = measured(DEVICE, Kind::Write);
    // Over and over in order: a block is erased for every 64 pages, and nothing is copied.
    let (done, latencies) = simulate(DEVICE, "write", 8, 40_000);
    let reading = |ns: &f64| Reading { kind: Kind::ScatteredWrite, bytes: 8 * 2048, ns: *ns };
    let mut readings: Vec<Reading> = latencies.iter().map(reading).collect();
    let write = line.write.expect("writes");
    // The line without noise: what is tested here are the erases.
    for pages in [1, 64] {
        let ns = 400e3 * pages as f64 + 620e3;
        near("the line", write.page_ns.value * pages as f64 + write.overhead_ns.value, ns, 0.05);
        readings.push(Reading { kind: Kind::Write, bytes: pages * 2048, ns });
    }
    let found = calibrate(&readings, KNOWN).unwrap_or_else(|error| panic!("{error}"));
    let per_write = done.results.totals.erases.expect("a flash device") as f64 / 40_000.0;
    near("erases", found.scattered[0].erases.value, per_write, 0.02);
    // An empty flash erases nothing, and is corrected by k erases.
    let text =
        preset("found", &found, 1 << 30).replace("[controller]", "[component.ssd.controller]");
    let overhead = text.lines().last().and_then(|line| line.strip_prefix("# ")).expect("a key");
    let lines = text.lines().filter(|line| !line.starts_with("write_overhead"));
    let lines: Vec<&str> = lines.chain([overhead]).collect();
    let corrected = simulate(&format!("[component.ssd]\n{}", lines.join("\n")), "write", 8, 1000).1;
    let mean = |list: &[f64]| list.iter().sum::<f64>() / list.len() as f64;
    near("corrected writes", mean(&corrected), mean(&latencies), 0.02);
}

#[test]
fn the_preset_behaves_like_the_device() {
    let filled = format!("{DEVICE}precondition = \"fill\"\n");
    let (read, write) = (measured(&filled, Kind::Read).read, measured(DEVICE, Kind::Write).write);
    let calibration = Calibration { known: KNOWN, read, write, scattered: Vec::new(), readings: 1 };
    let text = preset("found", &calibration, 30 << 20);
    let text = text.replace("[controller]", "[component.ssd.controller]");
    let system = format!("[component.ssd]\nprecondition = \"fill\"\n{text}");
    let mean = |system: &str, rw| {
        simulate(system, rw, 16, 100).0.results.latency_ns.all.mean.expect("requests")
    };
    near("reads", mean(&system, "read"), mean(&filled, "read"), 0.03);
}
