//! Saved states of caches and their controllers: a run that continues from a saved state emits the
//! events that an uninterrupted run emits.

use hybridsim_config::build::SchedulerEntry;
use hybridsim_config::diagnostic::SourceText;
use hybridsim_engine::CommonEvent;
use hybridsim_engine::{EventRecord, Loader, SimTime, Stream};
use hybridsim_simulation::registry::standard;
use hybridsim_simulation::run::{self, Options, RunOutput};
use hybridsim_simulation::scenario::resolve::Resolved;
use hybridsim_simulation::scenario::{Input, Scenario};
use hybridsim_simulation::state;
use std::fmt::Write;
use std::fs;
use std::path::Path;

const REQUESTS: u64 = 1_500;

/// Appends a trace of random requests that begins at `start_ns`.
fn requests(text: &mut String, start_ns: u64, seed: u64) {
    let mut stream = Stream::new(seed, "resume-caches");
    let mut at = start_ns;
    for number in 0..REQUESTS {
        // A quarter of the requests goes to a small working set, so that caches have hits.
        let pages = if stream.chance(0.25) { 40 } else { 900 };
        let (page, length) = (stream.below(pages), 1 + stream.below(4));
        let read = u64::from(stream.chance(0.4));
        let (ms, rest) = (at / 1_000_000, at % 1_000_000);
        writeln!(text, "{ms}.{rest:06} 0 {} {} {read}", page * 8, length * 8).expect("to memory");
        // Pauses leave time for work in the background.
        at += if number % 50 == 49 { 60_000_000 } else { stream.below(600_000) };
    }
}

/// The output and the events of a run, and the time of its saved state.
fn run_with(
    folder: &Path,
    trace: &str,
    system: &str,
    state: Option<&[u8]>,
) -> (RunOutput, Vec<EventRecord>, SimTime) {
    fs::write(folder.join("trace.txt"), trace).expect("a writable folder");
    let given = state.map_or(String::new(), |bytes| {
        fs::write(folder.join("before.state"), bytes).expect("a writable folder");
        "[run]\nstate = \"before.state\"\n".to_owned()
    });
    let text = format!("{given}[workload]\ntrace = \"trace.txt\"\nformat = \"disksim\"\n{system}");
    let registry = standard();
    let source = SourceText { name: "test".to_owned(), text };
    let input = Input { source, base: folder.to_owned(), sets: Vec::new(), trace: None };
    let scenario = Scenario::check(input, &registry).unwrap_or_else(|wrong| panic!("{wrong}"));
    let mut events: Vec<EventRecord> = Vec::new();
    let options = Options { sink: Some(&mut events), save_state: true, ..Options::default() };
    let done = run::run(&scenario, &registry, options);
    let done = done.unwrap_or_else(|error| panic!("{system}\n{error}"));
    assert_eq!(done.fault, None, "{system}");
    let bytes = done.state.as_ref().expect("a run without a fault saves its state");
    let bytes =
        state::unpack(bytes, &Resolved::new(&scenario, &registry).system()).expect("as packed");
    let saved_at = Loader::new(&bytes).take().expect("a state begins with its time");
    (done, events, saved_at)
}

/// Whether an event belongs to both runs. Time in power states is reported in intervals, which the
/// break splits, and what a component reports when a run begins is reported again.
fn is_compared(event: &EventRecord) -> bool {
    match event.event() {
        Some(CommonEvent::StateTime { .. } | CommonEvent::StateTimes { .. }) => false,
        Some(CommonEvent::Custom { .. }) => event.time > SimTime::ZERO,
        _ => true,
    }
}

fn resumed_equals_uninterrupted(system: &str) {
    let folder = tempfile::tempdir().expect("a folder");
    let (mut first, mut second) = (String::new(), String::new());
    requests(&mut first, 0, 1);
    requests(&mut second, 0, 2);
    let (before, events_before, base) = run_with(folder.path(), &first, system, None);
    let state = before.state.expect("checked above");
    let (after, resumed, _) = run_with(folder.path(), &second, system, Some(&state));
    requests(&mut first, base.as_ns(), 2);
    let (_, whole, _) = run_with(folder.path(), &first, system, None);
    let whole: Vec<EventRecord> = whole.into_iter().filter(is_compared).collect();
    let compared_before = events_before.iter().filter(|event| is_compared(event)).count();
    let resumed: Vec<EventRecord> = resumed.into_iter().filter(is_compared).collect();
    let shift = base.since(SimTime::ZERO);
    assert!(resumed.len() > 3_000, "{} events", resumed.len());
    for (one, other) in whole[compared_before..].iter().zip(&resumed) {
        assert_eq!(*one, EventRecord { time: other.time + shift, ..*other }, "{system}");
    }
    assert_eq!(whole.len(), compared_before + resumed.len(), "{system}");
    assert_eq!(after.results.requests, REQUESTS);
}

/// A device that takes `us` microseconds a request.
fn device(name: &str, capacity: &str, us: u64) -> String {
    format!(
        "[component.{name}]\nkind = \"constant-device\"\ncapacity = \"{capacity}\"\n\
         latency = \"{us}us\"\n"
    )
}

/// A controller over a flash device and a disk.
fn over_both(kind: &str, more: &str) -> String {
    format!(
        "[component.cache]\nkind = \"{kind}\"\nflash = \"flash\"\ndisk = \"disk\"\n{more}{}{}",
        device("flash", "512KiB", 100),
        device("disk", "4MiB", 400)
    )
}

#[test]
fn hybrid_disks_with_every_policy() {
    let registry = standard();
    for category in ["admission", "replacement", "cleanup"] {
        let names: Vec<_> = registry.descriptions(category).map(|entry| entry.name).collect();
        assert!(names.len() > 3, "{category}: {names:?}");
        for name in names {
            // Without this the replacement policy is never asked.
            let cleanup =
                if category == "cleanup" { "" } else { "cleanup = \"on-demand-partial\"\n" };
            let policy = format!("{category} = \"{name}\"\n{cleanup}");
            resumed_equals_uninterrupted(&over_both("hybrid-disk", &policy));
        }
    }
    resumed_equals_uninterrupted(&over_both(
        "hybrid-disk",
        "journal = true\npinned = [{ start = \"64KiB\", length = \"64KiB\" }]\n\
         disk_scheduler = \"sstf\"\ncleanup = { kind = \"idle-periodic\", idle = \"5ms\" }\n",
    ));
}

#[test]
fn a_hybrid_disk_over_every_scheduler() {
    for entry in standard().iter::<SchedulerEntry>() {
        let policy = format!("disk_scheduler = \"{}\"\n", entry.description.name);
        resumed_equals_uninterrupted(&over_both("hybrid-disk", &policy));
    }
}

#[test]
fn flash_caches_in_every_scheme() {
    let small = "period_pages = 1000\nsequential_bytes = \"1MiB\"\ndestage_pages = 8\n";
    for scheme in ["fp", "rw", "op"] {
        for more in ["", "write_ahead = 10\nwrite_ahead_pause = \"5ms\"\ncosts = \"observed\"\n"] {
            let parameters = format!("scheme = \"{scheme}\"\n{small}{more}");
            resumed_equals_uninterrupted(&over_both("flash-cache", &parameters));
        }
    }
    for policy in ["back", "through", "around"] {
        let parameters = format!(
            "scheme = \"fp\"\n{small}write_policy = \"{policy}\"\ndirty_share = 0.05\n\
             promote_after = 2\npromote_rate = \"1MB/s\"\n"
        );
        resumed_equals_uninterrupted(&over_both("flash-cache", &parameters));
    }
    let registry = standard();
    for entry in registry.descriptions("replacement") {
        let parameters = format!("{small}adjust = \"always\"\nreplacement = \"{}\"\n", entry.name);
        resumed_equals_uninterrupted(&over_both("flash-cache", &parameters));
    }
}

#[test]
fn memory_caches_with_every_policy() {
    for replacement in ["lru", "fifo", "slru", "random", "lifo"] {
        for more in [
            "",
            "flush = \"periodic\"\nflush_period = \"20ms\"\n",
            "flush_idle = \"5ms\"\nallocation = \"strict\"\n",
            "write_scheme = \"early\"\nread_prefetch = \"whole-line\"\n",
        ] {
            resumed_equals_uninterrupted(&format!(
                "[component.cache]\nkind = \"memory-cache\"\ndevice = \"disk\"\nsize = \"256KiB\"\n\
                 replacement = \"{replacement}\"\n{more}{}",
                device("disk", "4MiB", 400)
            ));
        }
    }
}

#[test]
fn cache_devices_in_every_scheme() {
    for scheme in ["back", "through", "sync"] {
        for more in [
            "",
            "flush = \"periodic\"\nflush_period = \"20ms\"\n",
            "flush_idle = \"5ms\"\nflush_sectors_max = 64\n",
        ] {
            resumed_equals_uninterrupted(&format!(
                "[component.cache]\nkind = \"cache-device\"\ndevices = [\"disk\", \"flash\"]\n\
                 write_scheme = \"{scheme}\"\n{more}{}{}",
                device("flash", "2MiB", 100),
                device("disk", "4MiB", 400)
            ));
        }
    }
}

#[test]
fn nv_caches_with_and_without_a_host_policy() {
    resumed_equals_uninterrupted(&over_both("nv-cache-disk", ""));
    for more in [
        "pin = [{ start = \"64KiB\", size = \"128KiB\" }]\n",
        "power_mode = true\nspinning_min = \"0s\"\n",
        "pin = [{ start = \"0B\", size = \"64KiB\" }]\nunpin_after = \"100ms\"\n",
    ] {
        let drive = over_both("nv-cache-disk", "");
        resumed_equals_uninterrupted(&format!(
            "[component.policy]\nkind = \"nv-cache-host\"\ndrive = \"cache\"\n\
             {more}{drive}"
        ));
    }
}
