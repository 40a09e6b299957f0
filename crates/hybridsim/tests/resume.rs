//! A run that goes on from a saved state does exactly what it would have done without the break.

use hybridsim_config::diagnostic::SourceText;
use hybridsim_engine::{CommonEvent, EventRecord, SimTime, Stream};
use hybridsim_flash::FlashEvent;
use hybridsim_flash::ftl::FtlEntry;
use hybridsim_simulation::registry::standard;
use hybridsim_simulation::run::{self, Options, RunOutput};
use hybridsim_simulation::scenario::{Input, Scenario};
use std::fmt::Write;
use std::fs;
use std::path::Path;

/// `count` requests from `start_ns` on, as a trace; where they end.
fn requests(text: &mut String, start_ns: u64, count: u64, seed: u64) {
    let mut stream = Stream::new(seed, "resume");
    let mut at = start_ns;
    for number in 0..count {
        let (page, pages) = (stream.below(900), 1 + stream.below(4));
        let read = u64::from(stream.chance(0.3));
        let (whole, part) = (at / 1_000_000, at % 1_000_000);
        writeln!(text, "{whole}.{part:06} 0 {} {} {read}", page * 8, pages * 8)
            .expect("memory can be written");
        // Now and then time enough for work in the background.
        at += if number % 50 == 49 { 30_000_000 } else { stream.below(400_000) };
    }
}

fn run_with(
    folder: &Path,
    trace: &str,
    system: &str,
    state: Option<&[u8]>,
) -> (RunOutput, Vec<EventRecord>) {
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
    let options = Options { sink: Some(&mut events), save_state: true, ..Options::default() };
    let done = run::run(&scenario, &registry, options);
    let done = done.unwrap_or_else(|error| panic!("{system}\n{error}"));
    assert_eq!(done.fault, None, "{system}");
    (done, events)
}

/// Time spent in states is told in pieces, which a break cuts in two, and what a device says of
/// itself at the end or the start of a run is not of requests.
fn of_requests(system: &str, event: &EventRecord) -> bool {
    // The hybrid SSD's wear by medium, told at the end.
    let wear = |name| system.contains("slc-mlc-ssd") && [13, 14].contains(&name);
    match event.event() {
        Some(CommonEvent::StateTime { .. }) => false,
        Some(CommonEvent::Custom { name, .. }) => !wear(name),
        _ => {
            !matches!(event.event(), Some(FlashEvent::Wear { .. } | FlashEvent::FreeBlocks { .. }))
        }
    }
}

fn resumed_equals_uninterrupted(system: &str) {
    let folder = tempfile::tempdir().expect("a folder");
    let mut first = String::new();
    requests(&mut first, 0, 1_500, 1);
    let (before, told_before) = run_with(folder.path(), &first, system, None);
    let state = before.state.expect("the run came to its end");
    let base = told_before.last().expect("something happened").time;
    let mut second = String::new();
    requests(&mut second, 0, 1_500, 2);
    let (after, resumed) = run_with(folder.path(), &second, system, Some(&state));
    requests(&mut first, base.as_ns(), 1_500, 2);
    let (_, whole) = run_with(folder.path(), &first, system, None);
    let whole: Vec<EventRecord> =
        whole.into_iter().filter(|event| of_requests(system, event)).collect();
    let told_before = told_before.iter().filter(|event| of_requests(system, event)).count();
    let resumed: Vec<EventRecord> =
        resumed.into_iter().filter(|event| of_requests(system, event)).collect();
    let shift = base.since(SimTime::ZERO);
    assert!(resumed.len() > 3_000, "{} events", resumed.len());
    assert_eq!(whole.len(), told_before + resumed.len(), "{system}");
    for (one, other) in whole[told_before..].iter().zip(&resumed) {
        assert_eq!(*one, EventRecord { time: other.time + shift, ..*other }, "{system}");
    }
    // The figures are of the second run alone.
    assert_eq!(after.results.requests, 1_500);
}

fn ssd(more: &str) -> String {
    format!(
        "[component.ssd]\nkind = \"ssd\"\nchannels = 2\ndies_per_channel = 2\nblocks_per_plane = 12\n\
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
fn with_every_timing_model_and_inside_volumes() {
    for timing in ["interleaved", "queued", "serial", "none"] {
        resumed_equals_uninterrupted(&ssd(&format!("timing = \"{timing}\"\n")));
    }
    resumed_equals_uninterrupted(&ssd(
        "timing = \"queued\"\nwrite_buffer = \"64KiB\"\nmulti_plane = true\n\
         program_suspend_time = \"10us\"\nerase_suspend_time = \"20us\"\nresume_time = \"5us\"\n",
    ));
    let (first, second) = (ssd(""), ssd("").replace("[component.ssd]", "[component.ssd2]"));
    resumed_equals_uninterrupted(&format!(
        "[component.both]\nkind = \"stripe\"\nmembers = [\"ssd\", \"ssd2\"]\nchunk = \"8KiB\"\n\
         {first}{second}"
    ));
}
