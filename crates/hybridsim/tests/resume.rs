//! A run that goes on from a saved state does exactly what it would have done without the break.

mod common;

use common::{DISK, ZNS, component, system_around};
use hybridsim_config::build::{ComponentEntry, SchedulerEntry};
use hybridsim_config::diagnostic::SourceText;
use hybridsim_disk::DiskEvent;
use hybridsim_engine::CommonEvent;
use hybridsim_engine::{EventRecord, SimTime, Stream};
use hybridsim_flash::FlashEvent;
use hybridsim_flash::ftl::FtlEntry;
use hybridsim_flash::timing::TIMES;
use hybridsim_observe::Detail;
use hybridsim_simulation::registry::standard;
use hybridsim_simulation::run::{self, Options, RunOutput};
use hybridsim_simulation::scenario::{Input, Scenario};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::Path;

/// Appends `count` requests to a trace, from `start_ns` on, `pace` times as far apart as suits
/// flash. Every 50 requests there is time for work in the background.
fn requests(text: &mut String, start_ns: u64, count: u64, seed: u64, pace: u64) {
    let mut stream = Stream::new(seed, "resume");
    let mut at = start_ns;
    for number in 0..count {
        let (page, pages) = (stream.below(900), 1 + stream.below(4));
        let read = u64::from(stream.chance(0.3));
        let (whole, part) = (at / 1_000_000, at % 1_000_000);
        writeln!(text, "{whole}.{part:06} 0 {} {} {read}", page * 8, pages * 8)
            .expect("memory can be written");
        at += pace * if number % 50 == 49 { 30_000_000 } else { stream.below(400_000) };
    }
}

fn try_run(
    folder: &Path,
    trace: &str,
    system: &str,
    (state, detail): (Option<&[u8]>, Detail),
) -> Result<(RunOutput, Vec<EventRecord>), String> {
    fs::write(folder.join("trace.txt"), trace).expect("one's own folder");
    let state = state.map_or(String::new(), |bytes| {
        fs::write(folder.join("before.state"), bytes).expect("one's own folder");
        "[run]\nstate = \"before.state\"\n".to_owned()
    });
    let text = format!("{state}[workload]\ntrace = \"trace.txt\"\nformat = \"disksim\"\n{system}");
    let registry = standard();
    let source = SourceText { name: "test".to_owned(), text };
    let input = Input { source, base: folder.to_owned(), sets: Vec::new(), trace: None };
    let scenario = Scenario::check(input, &registry).unwrap_or_else(|wrong| panic!("{wrong}"));
    let mut events: Vec<EventRecord> = Vec::new();
    let sink = Some(&mut events as _);
    let options = Options { detail, sink, save_state: true, ..Options::default() };
    let done = run::run(&scenario, &registry, options).map_err(|error| error.to_string())?;
    assert_eq!(done.fault, None, "{system}");
    Ok((done, events))
}

fn run_with(
    folder: &Path,
    trace: &str,
    system: &str,
    state: Option<&[u8]>,
) -> (RunOutput, Vec<EventRecord>) {
    try_run(folder, trace, system, (state, Detail::Bare))
        .unwrap_or_else(|error| panic!("{system}\n{error}"))
}

/// Whether an event is reported at the same time whether or not the run was saved in between. Time
/// spent in states and read-ahead are reported in portions, which the end of a run cuts in two, and
/// what a device reports about itself at the start and the end of a run is no event of requests.
fn is_comparable(system: &str, event: &EventRecord) -> bool {
    // The hybrid SSD's wear by medium, reported at the end.
    let wear = |name| system.contains("slc-mlc-ssd") && [13, 14].contains(&name);
    let in_portions = match event.event() {
        Some(CommonEvent::StateTime { .. } | CommonEvent::StateTimes { .. }) => true,
        Some(CommonEvent::Custom { name, .. }) => wear(name),
        _ => matches!(event.event(), Some(DiskEvent::MediaTransfer { .. })),
    };
    let at_the_ends =
        matches!(event.event(), Some(FlashEvent::Wear { .. } | FlashEvent::FreeBlocks { .. }));
    !in_portions && !at_the_ends
}

/// Time by component and power state, and sectors and time by component that passed a medium.
fn totals<'a>(events: impl IntoIterator<Item = &'a EventRecord>) -> BTreeMap<(u16, u8), u64> {
    let mut totals = BTreeMap::new();
    for record in events {
        let component = record.component().0;
        let mut add = |key: u8, value: u64| *totals.entry((component, key)).or_default() += value;
        for (state, time) in record.event().into_iter().flat_map(CommonEvent::states) {
            add(state as u8, time.as_ns());
        }
        for part in record.event().into_iter().flat_map(DiskEvent::parts) {
            if let DiskEvent::MediaTransfer { sectors, duration } = part {
                add(u8::MAX, u64::from(sectors));
                add(u8::MAX - 1, duration.as_ns());
            }
        }
    }
    totals
}

fn resumed_equals_uninterrupted(system: &str) {
    resumed_after(SimTime::ZERO, system);
}

/// As [`resumed_equals_uninterrupted`]; the second run has its first request at `pause`.
fn resumed_after(pause: SimTime, system: &str) {
    // A disk takes some twenty times as long as flash.
    let is_flash = system.contains("ssd") || system.contains("constant-device");
    let pace = if system.contains("preset") || !is_flash { 20 } else { 1 };
    let folder = tempfile::tempdir().expect("a folder");
    let mut first = String::new();
    requests(&mut first, 0, 1_500, 1, pace);
    let (before, first_events) = run_with(folder.path(), &first, system, None);
    let state = before.state.expect("the run came to its end");
    let base = first_events.last().expect("something happened").time;
    let mut second = String::new();
    requests(&mut second, pause.as_ns(), 1_500, 2, pace);
    requests(&mut first, base.as_ns() + pause.as_ns(), 1_500, 2, pace);
    // A trace begins with its first request: the pause before it is in the whole trace alone.
    let (trace, from) = match pause {
        SimTime::ZERO => (&second, String::new()),
        _ => (&first, format!("from = \"{}ns\"\n", base.as_ns())),
    };
    let (after, resumed) = run_with(folder.path(), trace, &(from + system), Some(&state));
    let (_, whole) = run_with(folder.path(), &first, system, None);
    assert_eq!(totals(&whole), totals(first_events.iter().chain(&resumed)), "{system}");
    // At the instant of the break the last completion and the next arrival come in any order.
    let shift = base.since(SimTime::ZERO);
    let later = |events: Vec<EventRecord>, from: SimTime| -> Vec<EventRecord> {
        let compared = |event: &EventRecord| event.time > from && is_comparable(system, event);
        events.into_iter().filter(compared).collect()
    };
    let (whole, resumed) = (later(whole, base), later(resumed, SimTime::ZERO));
    assert!(resumed.len() > 3_000, "{} events", resumed.len());
    for (one, other) in whole.iter().zip(&resumed) {
        assert_eq!(*one, EventRecord { time: other.time + shift, ..*other }, "{system}");
    }
    assert_eq!(whole.len(), resumed.len(), "{system}");
    // The figures are of the second run alone.
    assert_eq!(after.results.requests, 1_500);
}

#[test]
fn with_every_kind_of_component() {
    for entry in standard().iter::<ComponentEntry>() {
        let kind = entry.description.name;
        let system = system_around(kind);
        resumed_equals_uninterrupted(&system);
    }
}

#[test]
fn with_work_of_a_disk_under_way() {
    let disk = |more: &str| component("it", &format!("{DISK}{more}"));
    for more in [
        "spin_down_after = \"500ms\"\nspin_up_time = \"2s\"\nspin_down_time = \"1s\"\n",
        "write_cache = true\ndestage_delay = \"1s\"\n",
        "write_cache = false\nread_ahead = \"next-track\"\nread_ahead_on_hit = true\n",
    ] {
        resumed_equals_uninterrupted(&disk(more));
    }
    for entry in standard().iter::<SchedulerEntry>() {
        resumed_equals_uninterrupted(&disk(&format!(
            "scheduler = \"{}\"\n",
            entry.description.name
        )));
    }
}

#[test]
fn with_an_array_degraded_and_being_rebuilt() {
    let members = |count: u32| -> String {
        (0..count).map(|at| component(&format!("m{at}"), DISK)).collect()
    };
    let array = |keys: &str, count| format!("{}{}", component("it", keys), members(count));
    let failing = "failures = [{ member = 1, at = \"500ms\" }, { member = 2, at = \"20s\" }]\n";
    for kind in ["raid1", "raid6"] {
        // At this rate the spare is not filled at the end of the first run.
        resumed_equals_uninterrupted(&array(
            &format!(
                "kind = \"{kind}\"\nmembers = [\"m0\", \"m1\", \"m2\", \"m3\"]\n\
                 spares = [\"m4\"]\nrebuild_rate = \"2MB/s\"\n{failing}"
            ),
            5,
        ));
    }
    resumed_equals_uninterrupted(&array(
        "kind = \"raid5\"\nmembers = [\"m0\", \"m1\", \"m2\"]\nresync = \"bitmap\"\n\
             bitmap_region = \"1MiB\"\nbitmap_clear_after = \"200ms\"\njournal = \"m3\"\n",
        4,
    ));
}

#[test]
fn with_shared_and_held_buses_and_queues() {
    let disks = format!("{}{}", component("a", DISK), component("b", DISK));
    let bus = |more: &str| {
        let both = "members = [\"scsi\"]\n";
        format!(
            "[component.it]\nkind = \"concat\"\n{both}[component.scsi]\nkind = \"bus\"\n\
             devices = [\"a\", \"b\"]\nrate = \"20MB/s\"\n{more}{disks}"
        )
    };
    resumed_equals_uninterrupted(&bus("type = \"interleaved\"\n"));
    resumed_equals_uninterrupted(&bus("disconnect = false\narbitration = \"fcfs\"\n"));
    for keys in [
        "priority = \"sync\"\nscheduler = \"look\"\n",
        "next = \"after-completion\"\nread_delay = \"100us\"\ncommand_time = \"50us\"\n",
        "scheduler = \"anticipatory\"\n",
    ] {
        let queue = format!("kind = \"io-queue\"\ndevice = \"a\"\n{keys}");
        resumed_equals_uninterrupted(&format!(
            "{}{}",
            component("it", &queue),
            component("a", DISK)
        ));
    }
}

/// An SSD with `more` keys.
fn ssd(more: &str) -> String {
    format!(
        "[component.ssd]\nkind = \"ssd\"\nchannels = 2\ndies_per_channel = 2\n\
         blocks_per_plane = 12\n\
         pages_per_block = 32\nover_provisioning = 0.5\nread_time = \"25us\"\n\
         program_time = \"200us\"\nerase_time = \"1.5ms\"\nchannel_rate = \"100MB/s\"\n\
         program_order = \"any\"\n{more}"
    )
}

#[test]
fn with_every_translation_layer() {
    for entry in standard().iter::<FtlEntry>() {
        let name = entry.description.name;
        if name == "raw" {
            // Random writes end its run: pages have to be erased first. It remembers nothing.
            continue;
        }
        resumed_equals_uninterrupted(&ssd(&format!(
            "ftl = \"{name}\"\nprecondition = \"steady\"\nidle_after = \"5ms\"\n"
        )));
    }
    resumed_equals_uninterrupted(&ssd(
        "ftl = { kind = \"dftl\", cache_entries = 8, host_buffer = \"4KiB\", stripe_pages = 3 }\n\
         precondition = \"steady\"\n",
    ));
}

#[test]
fn with_an_slc_cache() {
    for when_full in ["direct", "fold"] {
        resumed_equals_uninterrupted(&ssd(&format!(
            "ftl = {{ kind = \"slc-cache\", static_size = \"64KiB\", dynamic_size = \"128KiB\", \
             low_mark = \"32KiB\", when_full = \"{when_full}\" }}\n\
             timing.kind = \"queued\"\ntiming.write_buffer = \"64KiB\"\n\
             slc.program_time = \"70us\"\n\
             slc.endurance = 1000\nprecondition = \"fill\"\nidle_after = \"1ms\"\n"
        )));
    }
}

#[test]
fn with_both_media_in_one_device() {
    for more in [
        "",
        "slc_size = \"0B\"\n",
        "slc_endurance = 2000\nmlc_endurance = 1000\n",
        "probing = \"quadratic\"\nnvram = \"64KiB\"\n",
        "filter = \"all\"\nwrite_back = false\nthrottle = false\nidle_after = \"5ms\"\n",
        "cache_mode = \"dynamic\"\npremapped = false\nfilter = \"all\"\n",
        "slc_size = \"0B\"\ndensity_size = \"256KiB\"\ndensity_up = 5\n",
    ] {
        resumed_equals_uninterrupted(&format!(
            "[component.ssd]\nkind = \"slc-mlc-ssd\"\ncapacity = \"4MiB\"\nmlc_size = \"5MiB\"\n\
             mlc_pages_per_block = 16\nslc_pages_per_block = 8\nthreshold_every = 50\n\
             mapping_cache = 4\n{}{more}",
            if more.contains("slc_size") { "" } else { "slc_size = \"256KiB\"\n" }
        ));
    }
}

#[test]
fn throttling_counts_once_over_both_runs() {
    // All writes arrive at once; while they are served, throttling begins and becomes heavy. That
    // is reported at the end of the first run, and again with the next request. The pause behind
    // that has the way back.
    let system = ssd("throttle.kind = \"thermal\"\nthrottle.thermal_resistance = 20.0\n\
         throttle.heat_capacity = 0.01\nenergy.idle_power = \"1W\"\n\
         energy.active_power = \"5W\"\n\
         throttle.tmt1_celsius = 50.0\nthrottle.tmt1_end_celsius = 47.0\n\
         throttle.tmt1_rate = \"20MB/s\"\n\
         throttle.tmt2_celsius = 55.0\nthrottle.tmt2_end_celsius = 49.0\n\
         throttle.tmt2_rate = \"5MB/s\"\n");
    let line = |ns: u64, read: u64, text: &mut String| {
        writeln!(text, "{}.{:06} 0 0 1024 {read}", ns / 1_000_000, ns % 1_000_000)
            .expect("memory can be written");
    };
    let (mut first, mut second) = (String::new(), String::new());
    (0..8).for_each(|_| line(0, 0, &mut first));
    [0, 2_000_000_000].into_iter().for_each(|ns| line(ns, 1, &mut second));
    let folder = tempfile::tempdir().expect("a folder");
    let (before, events) = run_with(folder.path(), &first, &system, None);
    let base = events.last().expect("something happened").time.as_ns();
    let (after, _) = run_with(folder.path(), &second, &system, before.state.as_deref());
    [0, 2_000_000_000].into_iter().for_each(|ns| line(base + ns, 1, &mut first));
    let (whole, _) = run_with(folder.path(), &first, &system, None);
    let [before, after, whole] = [before, after, whole].map(|run| {
        let devices = run.results.components.values();
        devices.filter_map(|it| it.thermal.clone()).next().expect("it has a temperature")
    });
    assert_eq!((before.throttlings, after.throttlings, whole.throttlings), (2, 0, 2));
    assert!(after.throttling_ns["heavy"] > 10_000_000, "{after:?}");
    for (state, ns) in &whole.throttling_ns {
        let sum = before.throttling_ns[state] + after.throttling_ns[state];
        assert_eq!(sum, *ns, "{state}: {before:?}, {after:?}");
        assert!(before.throttling_ns[state] > 1_000_000, "{before:?}");
    }
}

#[test]
fn with_bit_errors_and_blocks_to_refresh() {
    let errors = "errors.kind = \"power-law\"\nprecondition = \"fill\"\nidle_after = \"5ms\"\n\
                  errors.rber_base = 6e-3\nerrors.rber_read = 4e-6\nerrors.rber_retention = 1e-4\n\
                  errors.retention_age = \"5d\"\nerrors.retries_max = 2\n\
                  errors.retry_rber_factor = 0.9\n";
    for refresh in [
        "errors.refresh_retries = 2\n",
        "errors.refresh_reads = 30\n",
        "errors.refresh_age = \"120h\"\n",
    ] {
        resumed_equals_uninterrupted(&ssd(&format!("{errors}{refresh}")));
    }
}

#[test]
fn with_a_zone_being_refreshed() {
    let errors = "errors.kind = \"power-law\"\nerrors.rber_base = 1e-6\n\
                  errors.rber_read = 1e-9\nerrors.refresh_reads = 3\nidle_after = \"100us\"\n";
    let zoned = component("zoned", &format!("{ZNS}{errors}"));
    resumed_equals_uninterrupted(
        &system_around("log-structured").replace(&component("zoned", ZNS), &zoned),
    );
}

#[test]
fn the_state_is_the_same_with_detailed_events() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut trace = String::new();
    requests(&mut trace, 0, 500, 1, 1);
    for buffer in ["0B", "64KiB"] {
        let system = ssd(&format!(
            "timing.kind = \"queued\"\ntiming.write_buffer = \"{buffer}\"\n\
             precondition = \"fill\"\n\
             timing.program_suspend_time = \"10us\"\n"
        ));
        let state = |detail| {
            let (done, _) = try_run(folder.path(), &trace, &system, (None, detail))
                .unwrap_or_else(|error| panic!("{system}\n{error}"));
            done.state.expect("the run came to its end")
        };
        assert!(state(Detail::Bare) == state(Detail::Full), "{system}");
    }
}

#[test]
fn with_every_timing_model_and_inside_volumes() {
    let registry = standard();
    for timing in registry.descriptions("timing").map(|it| it.name) {
        resumed_equals_uninterrupted(&ssd(&format!("timing.kind = \"{timing}\"\n")));
    }
    for stage in registry.descriptions("stage").map(|it| it.name) {
        resumed_equals_uninterrupted(&ssd(&format!("stages = [\"{stage}\"]\n")));
    }
    resumed_equals_uninterrupted(&ssd(
        "timing.kind = \"queued\"\ntiming.write_buffer = \"64KiB\"\ntiming.multi_plane = true\n\
         controller.firmware_cores = 2\ncontroller.read_overhead = \"60us\"\n\
         controller.write_overhead = \"90us\"\n\
         timing.program_suspend_time = \"10us\"\ntiming.erase_suspend_time = \"20us\"\n\
         timing.resume_time = \"5us\"\n",
    ));
    resumed_equals_uninterrupted(&ssd(
        "timing.kind = \"queued\"\ntiming.write_buffer = \"64KiB\"\n\
         timing.program_suspend_time = \"10us\"\n\
         timing.program_suspend_interval = \"50us\"\ntiming.suspend_reads_max = 1\n\
         controller.host_rate = \"200MB/s\"\ncontroller.host_write_rate = \"100MB/s\"\n",
    ));
    // Reads delay the programs that writes without a buffer wait for.
    resumed_equals_uninterrupted(&ssd("timing.kind = \"queued\"\ntiming.write_buffer = \"0B\"\n\
         timing.program_suspend_time = \"10us\"\n"));
    // Most writes wait for the write buffer.
    resumed_equals_uninterrupted(&ssd(
        "timing.kind = \"queued\"\ntiming.write_buffer = \"8KiB\"\n\
         timing.buffer_pause_time = \"1ms\"\n\
         timing.buffer_pause_interval = \"3ms\"\ntiming.buffer_pause_full_max = \"700us\"\n",
    ));
    // Throttled most of the time: the drive has 125 °C when active.
    let warm = "throttle.kind = \"thermal\"\nthrottle.thermal_resistance = 20.0\n\
        throttle.heat_capacity = 0.01\nenergy.idle_power = \"1W\"\n\
                energy.active_power = \"5W\"\nenergy.program_energy = \"50uJ\"\n\
                throttle.tmt1_celsius = 60.0\nthrottle.tmt1_end_celsius = 55.0\n\
                throttle.tmt1_rate = \"20MB/s\"\n\
                throttle.tmt2_celsius = 70.0\nthrottle.tmt2_end_celsius = 65.0\n\
                throttle.tmt2_rate = \"5MB/s\"\n";
    let timed = |name: &&str| registry.provides("timing", name).contains(&TIMES);
    for timing in registry.descriptions("timing").map(|it| it.name).filter(timed) {
        resumed_equals_uninterrupted(&ssd(&format!("{warm}timing.kind = \"{timing}\"\n")));
    }
    resumed_equals_uninterrupted(&ssd(&format!("{warm}idle_after = \"5ms\"\n")));
    let (first, second) = (ssd(""), ssd("").replace("[component.ssd]", "[component.ssd2]"));
    resumed_equals_uninterrupted(&format!(
        "[component.both]\nkind = \"stripe\"\nmembers = [\"ssd\", \"ssd2\"]\nchunk = \"8KiB\"\n\
         {first}{second}"
    ));
}

/// A disk below a host that has one request at the device at a time and this scheduler.
fn scheduled_by(choice: &str) -> String {
    format!("[host]\nqueue_depth = 1\nscheduler = {choice}\n{}", component("it", DISK))
}

#[test]
fn with_every_scheduler_of_the_host() {
    for entry in standard().iter::<SchedulerEntry>() {
        let choice = format!("{:?}", entry.description.name);
        // Without the pause, the last completion and the next arrival might change places.
        resumed_after(SimTime::from_ns(780_000), &scheduled_by(&choice));
    }
}

#[test]
fn a_host_with_another_scheduler_starts_it_afresh() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut trace = String::new();
    requests(&mut trace, 0, 300, 1, 20);
    let (before, _) = run_with(folder.path(), &trace, &scheduled_by("\"scan\""), None);
    let resumed = |choice: &str| {
        let state = before.state.as_deref();
        let (done, _) = run_with(folder.path(), &trace, &scheduled_by(choice), state);
        done.results.fingerprint
    };
    assert_ne!(resumed("\"scan\""), resumed("\"deadline\""));
    assert_eq!(
        resumed("\"scan\""),
        resumed("{ kind = \"scan\", by = \"lbn\" }"),
        "a default written out is the same scheduler"
    );
}
