//! The NV cache power mode on real disks: times and energy, worked out by hand.

use hybridsim_config::diagnostic::SourceText;
use hybridsim_observe::results::RunResults;
use hybridsim_simulation::registry::standard;
use hybridsim_simulation::run::{self, Options};
use hybridsim_simulation::scenario::{Input, Scenario};
use std::path::PathBuf;

/// A turn of 10 ms; stopping takes 1 s, starting 2 s. Idle 2 W, standing 0.25 W, 1 W and 5 W.
const DISK: &str = "kind = \"hard-disk\"\nrpm = \"6000rpm\"\nheads = 1\ncylinders = 1000\n\
    outer_sectors_per_track = 100\ninner_sectors_per_track = 100\nzone_count = 1\n\
    seek = { kind = \"linear\", single = \"1ms\", full = \"10ms\" }\nread_ahead = \"none\"\n\
    cache_segments = 0\nwrite_cache = false\n\
    idle_power = \"2W\"\nread_power = \"3W\"\nwrite_power = \"3W\"\n\
    seek_power = \"4W\"\nstandby_power = \"0.25W\"\nspin_up_power = \"5W\"\n\
    spin_up_time = \"2s\"\nspin_down_power = \"1W\"\nspin_down_time = \"1s\"\n";

/// Runs lines of (second, first sector, sectors, whether it is a read) on the drive over `disk`.
fn play(name: &str, host: &str, disk: &str, lines: &[(u64, u64, u32, bool)]) -> RunResults {
    let line = |(at, lba, sectors, read): &(u64, u64, u32, bool)| {
        format!("{}.0 0 {lba} {sectors} {}\n", at * 1000, u32::from(*read))
    };
    let folder = std::env::temp_dir().join(format!("hybridsim-power-mode-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder for the trace");
    let trace = folder.join(name);
    std::fs::write(&trace, lines.iter().map(line).collect::<String>()).expect("written");
    let text = format!(
        "system = \"host\"\n[workload]\ntrace = {:?}\nformat = \"disksim\"\n\
         [host]\nqueue_depth = 64\n[run]\nverify = true\n\
         [component.host]\nkind = \"nv-cache-host\"\ndrive = \"drive\"\n{host}\
         [component.drive]\nkind = \"nv-cache-disk\"\nflash = \"flash\"\ndisk = \"disk\"\n\
         [component.flash]\nkind = \"constant-device\"\ncapacity = \"32KiB\"\nlatency = \"1ms\"\n\
         {disk}",
        trace.display().to_string()
    );
    let registry = standard();
    let source = SourceText { name: "test".to_owned(), text };
    let input = Input { source, base: PathBuf::new(), sets: Vec::new(), trace: None };
    let scenario =
        Scenario::check(input, &registry).unwrap_or_else(|problems| panic!("{problems}"));
    let done = run::run(&scenario, &registry, Options::default())
        .unwrap_or_else(|error| panic!("{error}"));
    std::fs::remove_file(&trace).expect("removed");
    assert_eq!(done.fault, None);
    done.results
}

/// Seconds a disk spent in a state.
fn seconds(results: &RunResults, part: &str, state: &str) -> f64 {
    let mut parts = results.components.iter();
    let found = parts.find(|(path, _)| path.rsplit('/').next() == Some(part));
    let power = found.and_then(|(_, part)| part.power.as_ref()).expect("it draws power");
    power.state_ns.get(state).map_or(0.0, |ns| *ns as f64 / 1e9)
}

fn near(got: f64, expected: f64, tolerance: f64) {
    assert!((got - expected).abs() <= tolerance, "{got}, not {expected}");
}

const MODE: &str = "power_mode = true\nspinning_min = \"5s\"\n";
/// The first comes before the mode; the others find the disk at rest.
const LINES: &[(u64, u64, u32, bool)] = &[
    (0, 0, 8, false),
    (10, 1000, 8, false),
    (20, 50_000, 8, true),
    (40, 2000, 8, false),
    (50, 2000, 8, true),
];

#[test]
fn the_disk_stands_until_the_cache_lacks_something() {
    let results = play("one", MODE, &format!("[component.disk]\n{DISK}"), LINES);
    let spent = |state| seconds(&results, "disk", state);
    near(spent("spin_down"), 2.0, 1e-9);
    near(spent("spin_up"), 2.0, 1e-9);
    // From the first access on it turns for 5 s: idle but for writing back, 30 ms at most.
    near(spent("idle"), 5.0, 0.05);
    // 1 s to 20 s and 28 s to 50 s, less two accesses of 30 ms at most.
    near(spent("standby"), 41.0, 0.1);
    // 2 x 1 J to stop, 10 J to start, 5 s of 2 W, 41 s of 0.25 W, 0.1 s of less than 4 W.
    let disk = results.components.values().filter_map(|part| part.power.as_ref()?.energy_j);
    near(disk.sum(), 2.0 + 10.0 + 10.0 + 10.25, 0.4);
    let read = &results.latency_ns.read;
    assert!((2_000_000_000..2_030_000_000).contains(&read.max.expect("reads")), "{read:?}");
    assert_eq!(read.min, Some(1_000_000), "from flash");
}

#[test]
fn without_the_mode_the_disk_turns() {
    let results = play("without", "", &format!("[component.disk]\n{DISK}"), LINES);
    assert_eq!(seconds(&results, "disk", "spin_down"), 0.0);
    near(seconds(&results, "disk", "idle"), 50.0, 0.1);
}

#[test]
fn a_full_cache_starts_the_disk_and_is_emptied_meanwhile() {
    // 64 sectors of flash: the third write finds no room, the fourth does.
    let lines = [
        (0, 0, 8, false),
        (10, 1000, 32, false),
        (11, 2000, 32, false),
        (12, 3000, 32, false),
        (13, 4000, 32, false),
        (30, 1000, 32, true),
        (40, 4000, 32, true),
    ];
    let results = play("full", MODE, &format!("[component.disk]\n{DISK}"), &lines);
    near(seconds(&results, "disk", "spin_up"), 3.0 * 2.0, 1e-9);
    near(seconds(&results, "disk", "spin_down"), 3.0, 1e-9);
    // 14 s to 19 s, 32 s to 37 s.
    near(seconds(&results, "disk", "idle"), 10.0, 0.3);
    assert!(results.latency_ns.write.max.expect("writes") > 2_000_000_000);
    // Everything was written back by then.
    assert!(results.latency_ns.read.max.expect("reads") > 2_000_000_000);
}

#[test]
fn arrays_pass_the_commands_on_and_start_what_is_needed() {
    let array = |kind: &str| {
        format!(
            "[component.disk]\nkind = \"{kind}\"\nmembers = [\"a\", \"b\"]\n[component.a]\n{DISK}\
             [component.b]\n{DISK}"
        )
    };
    // The second half of the address space is the second disk's, of which nothing is wanted.
    let concat = play("concat", MODE, &array("concat"), LINES);
    let spent = |part, state| seconds(&concat, part, state);
    near(spent("a", "spin_up"), 2.0, 1e-9);
    near(spent("a", "spin_down"), 2.0, 1e-9);
    near(spent("b", "spin_up"), 0.0, 1e-9);
    near(spent("b", "spin_down"), 1.0, 1e-9);
    near(spent("b", "standby"), 49.0, 0.1);
    let mirror = play("mirror", MODE, &array("raid1"), LINES);
    near(seconds(&mirror, "a", "spin_down") + seconds(&mirror, "b", "spin_down"), 4.0, 1e-9);
    // Behind a bus each disk is still a device of its own.
    let behind = format!(
        "[component.disk]\nkind = \"concat\"\nmembers = [\"bus\"]\n\
         [component.bus]\nkind = \"bus\"\ndevices = [\"a\", \"b\"]\n\
         [component.a]\n{DISK}[component.b]\n{DISK}"
    );
    let bus = play("bus", MODE, &behind, LINES);
    near(seconds(&bus, "a", "spin_down"), 2.0, 1e-9);
    near(seconds(&bus, "b", "spin_down"), 1.0, 1e-9);
    near(seconds(&bus, "b", "spin_up"), 0.0, 1e-9);
}

#[test]
fn a_host_pins_queries_and_gives_back() {
    let host = "pin = [{ start = \"512000B\", size = \"4KiB\" }]\nunpin_after = \"30s\"\n\
                query_every = \"7s\"\n";
    let results = play(
        "pin",
        host,
        &format!("[component.disk]\n{DISK}"),
        &[(0, 0, 8, false), (20, 1000, 8, true), (40, 1000, 8, true), (60, 30_000, 8, true)],
    );
    let host = &results.components["host"];
    let pinned = &host.custom["pinned_sectors"];
    assert_eq!((pinned.count, pinned.max, pinned.min), (2, 8, 0), "8, and none from 30 s on");
    let read = &results.latency_ns.read;
    assert_eq!(read.min, Some(1_000_000), "populated at once, so from flash");
    assert!(read.max > Some(1_100_000), "later from the disk");
}

#[test]
fn data_written_while_pinned_outlive_the_pin() {
    let host = "pin = [{ start = \"512000B\", size = \"4KiB\" }]\npopulate = false\n\
                unpin_after = \"30s\"\n";
    let lines = [(0, 0, 8, false), (20, 1000, 8, false), (40, 1000, 8, true)];
    let results = play("outlive", host, &format!("[component.disk]\n{DISK}"), &lines);
    assert_eq!(results.latency_ns.read.max, Some(1_000_000), "still from flash");
}
