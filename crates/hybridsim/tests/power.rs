//! Power failures at random moments: nothing acknowledged is lost.

mod common;

use common::system_around;
use hybridsim_config::diagnostic::SourceText;
use hybridsim_engine::Fault;
use hybridsim_simulation::registry::standard;
use hybridsim_simulation::run::{self, Options, RunOutput};
use hybridsim_simulation::scenario::{Input, Scenario};
use std::path::PathBuf;

/// Runs `system` under reads and writes of a small range, the power failing again and again.
fn run(system: &str, requests: u64, every: u64) -> RunOutput {
    let text = format!(
        "[workload]\ngenerator = {{ kind = \"fio\", requests = {requests}, rw = \"randrw\", \
         bssplit = \"512/20:4k/40:12k/40\", span = \"2MiB\", norandommap = true }}\n\
         [host]\nmode = \"closed\"\nqueue_depth = 8\n\
         [run]\nverify = true\npower_cut_every = {every}\n{system}"
    );
    run_scenario(text)
}

fn run_scenario(text: String) -> RunOutput {
    run::run(&scenario(text), &standard(), Options::default())
        .unwrap_or_else(|error| panic!("{error}"))
}

fn scenario(text: String) -> Scenario {
    let source = SourceText { name: "test".to_owned(), text };
    // For those that replay a trace.
    let base = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../workloads");
    let input = Input { source, base, sets: Vec::new(), trace: None };
    Scenario::check(input, &standard()).unwrap_or_else(|problems| panic!("{problems}"))
}

/// `docs/models/flash-backed.md` says that this command shows the loss.
#[test]
fn the_printed_order_of_flash_backed_requests_loses_data() {
    let registry = standard();
    let example =
        PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../examples/flash-backed.toml");
    let text = "run.verify=true\nrun.power_cut_every=100\ncomponent.host-scheduler.order=";
    let fault = |order: &str| {
        let sets: Vec<String> = format!("{text}{order:?}").lines().map(str::to_owned).collect();
        let input = Input::read(&example, &sets).unwrap_or_else(|problems| panic!("{problems}"));
        let scenario =
            Scenario::check(input, &registry).unwrap_or_else(|problems| panic!("{problems}"));
        let done = run::run(&scenario, &registry, Options::default());
        done.unwrap_or_else(|error| panic!("{error}")).fault.map(|fault| fault.to_string())
    };
    let lost = fault("printed").unwrap_or_else(|| panic!("nothing was lost"));
    assert!(lost.contains("wrong data"), "{lost}");
    assert_eq!(fault("safe"), None);
}

#[test]
fn a_run_that_loses_much_says_so() {
    let warned = |every| {
        let done = run(&format!("{DISK}write_cache = false\n"), 2_000, every);
        let lost = |warning: &&String| warning.contains("were lost in");
        done.results.warnings.iter().find(lost).cloned()
    };
    let warning = warned(100).unwrap_or_else(|| panic!("much is lost"));
    assert!(warning.contains("run.power_cut_every above 100"), "{warning}");
    assert!(!warning.contains("host.mode"), "it is closed already: {warning}");
    assert_eq!(warned(100_000), None);
}

/// Each of two power failures takes fifteen seconds, as the disk spins up; the second fault comes
/// after the first of them.
#[test]
fn a_fault_scheduled_behind_a_power_failure_occurs() {
    let took = |faults: &str| {
        let done = run(&format!("faults = [{faults}]\n{DISK}write_cache = false\n"), 600, 300);
        assert_eq!((done.fault, done.results.power_cuts), (None, 2));
        done.results.simulated_ns
    };
    let slow = "{ at = \"0s\", do = \"slow\", factor = 10 }";
    let (never, always) = (took(""), took(slow));
    let (later, until) = (
        took("{ at = \"20s\", do = \"slow\", factor = 10 }"),
        took(&format!("{slow}, {{ at = \"20s\", do = \"slow\", factor = 1 }}")),
    );
    let between = |time: u64| 5 * (time - never) > always - never && time < always;
    assert!(between(later) && between(until), "{never} {later} {until} {always}");
}

/// A failure takes place between two messages, so a component that sent more of them in verified
/// runs, or drew anything else from the same stream, would move it.
#[test]
fn power_failures_are_those_of_a_run_that_is_not_verified() {
    let run = |text: &str, verify: bool| {
        let done = run_scenario(text.replace("VERIFY", &verify.to_string()));
        let results = done.results;
        (results.fingerprint, done.fault, results.power_cuts, results.requests_lost)
    };
    let mut modelled = 0;
    let caching = |ftl: &str| format!("[component.it]\n{}ftl = {ftl}\n", common::SSD);
    let mut systems = vec![
        (
            "superblock",
            caching("{ kind = \"superblock\", superblock_blocks = 2, cached_maps = 1 }"),
        ),
        ("dftl", caching("{ kind = \"dftl\", cache_entries = 16 }")),
    ];
    let kinds = standard();
    let kinds = kinds.descriptions("component").map(|it| it.name);
    systems.extend(kinds.map(|kind| (kind, system_around(kind))));
    for (kind, system) in systems {
        let disk = "preset = \"seagate-cheetah-9lp\"\n";
        let system = system.replace(disk, &format!("{disk}write_cache = false\n"));
        let text = format!(
            "system = \"it\"\n[workload]\ngenerator = {{ kind = \"fio\", requests = 3000, \
             rw = \"randrw\", bssplit = \"512/20:4k/40:12k/40\", span = \"2MiB\", \
             norandommap = true }}\n[host]\nmode = \"closed\"\nqueue_depth = 8\n\
             [run]\nverify = VERIFY\npower_cut_every = 300\n{system}"
        );
        if let Err(error) = run::check(&scenario(text.replace("VERIFY", "true")), &standard()) {
            assert!(error.to_string().contains("does not model power failures"), "{kind}: {error}");
            continue;
        }
        let (verified, plain) = (run(&text, true), run(&text, false));
        assert_eq!(verified, plain, "{kind}");
        assert_eq!(plain.1, None, "{kind}");
        modelled += 1;
        assert!(plain.2 > 10 && plain.3 > plain.2, "{kind}: {} failures", plain.2);
    }
    assert!(modelled > 15, "{modelled}");
}

const DISK: &str = "[component.disk]\npreset = \"seagate-cheetah-9lp\"\n";

fn survives(name: &str, system: &str) {
    let done = run(system, 20_000, 300);
    assert_eq!(done.fault, None, "{name}");
    let results = done.results;
    assert!(results.power_cuts > 50, "{name}: {} power failures", results.power_cuts);
    assert!(results.requests_lost > results.power_cuts, "{name}");
    assert_eq!(results.requests + results.requests_lost, 20_000, "{name}");
    assert_eq!(results.violations, [""; 0], "{name}");
}

#[test]
fn devices_and_volumes_keep_what_they_acknowledged() {
    let constant = "kind = \"constant-device\"\ncapacity = \"4MiB\"\nlatency = \"1ms\"\n";
    survives("constant", &format!("[component.device]\n{constant}jitter = \"500us\"\n"));
    survives("disk", &format!("{DISK}write_cache = false\n"));
    let members = "members = [\"a\", \"b\"]\n";
    let two = format!("[component.a]\n{constant}[component.b]\n{constant}");
    survives("stripe", &format!("[component.v]\nkind = \"stripe\"\n{members}{two}"));
    survives("concat", &format!("[component.v]\nkind = \"concat\"\n{members}{two}"));
}

#[test]
fn an_ssd_keeps_what_it_acknowledged_from_a_write_buffer() {
    // Requests are larger than the smallest buffer, in which almost every write waits.
    for (buffer, more) in [
        ("8KiB", ""),
        ("16KiB", "timing.power_loss_protection = true\n"),
        ("64KiB", "timing.buffer_pause_time = \"2ms\"\ntiming.buffer_pause_interval = \"5ms\"\n"),
    ] {
        let system = format!(
            "[component.ssd]\npreset = \"sata-ssd\"\ntiming.kind = \"queued\"\n\
             timing.write_buffer = \"{buffer}\"\n{more}\
             over_provisioning = 0.5\npages_per_block = 16\nblocks_per_plane = 32\n"
        );
        survives(buffer, &system);
    }
}

#[test]
fn an_ssd_keeps_what_it_acknowledged_without_a_write_buffer() {
    // Reads delay the programs that writes wait for.
    let system = "[component.ssd]\npreset = \"sata-ssd\"\ntiming.kind = \"queued\"\n\
                  timing.write_buffer = \"0B\"\ntiming.program_suspend_time = \"10us\"\n\
                  over_provisioning = 0.5\npages_per_block = 16\nblocks_per_plane = 32\n";
    survives("no buffer", system);
}

#[test]
fn an_ssd_keeps_what_it_acknowledged_while_throttled() {
    let system = "[component.ssd]\npreset = \"sata-ssd\"\nthrottle.kind = \"thermal\"\n\
        throttle.thermal_resistance = 20.0\n\
                  throttle.heat_capacity = 0.01\nenergy.idle_power = \"1W\"\n\
                  energy.active_power = \"5W\"\n\
                  throttle.tmt1_celsius = 60.0\nthrottle.tmt1_end_celsius = 55.0\n\
                  throttle.tmt1_rate = \"5MB/s\"\n\
                  over_provisioning = 0.5\npages_per_block = 16\nblocks_per_plane = 32\n";
    survives("throttled", system);
}

#[test]
fn every_ftl_keeps_what_it_acknowledged() {
    // Raw flash needs a host that erases.
    for entry in
        hybridsim_flash::ftl::ENTRIES.iter().filter(|entry| entry.description.name != "raw")
    {
        let ftl = entry.description.name;
        let order = "program_order = \"any\"\npages_per_block = 16\nblocks_per_plane = 32";
        let system = format!(
            "[component.ssd]\npreset = \"sata-ssd\"\nftl = \"{ftl}\"\n\
             over_provisioning = 0.5\n{order}\n"
        );
        survives(ftl, &system);
    }
    for timing in ["interleaved", "queued"] {
        let system = format!(
            "[component.ssd]\npreset = \"sata-ssd\"\ntiming.kind = \"{timing}\"\n\
             over_provisioning = 0.5\npages_per_block = 16\nblocks_per_plane = 32\n\
             ftl = {{ kind = \"dftl\", cache_entries = 8, host_buffer = \"8KiB\" }}\n"
        );
        survives("host buffer", &system);
    }
}

/// A hybrid disk with so little flash that it is cleaned all the time.
fn hybrid(cleanup: &str, more: &str, disk: &str) -> String {
    format!(
        "[component.hybrid]\nkind = \"hybrid-disk\"\nflash = \"flash\"\ndisk = \"disk\"\n\
         cleanup = \"{cleanup}\"\n{more}\n\
         [component.flash]\npreset = \"konanki-hybrid-flash-256mb\"\nblocks_per_plane = 32\n\
         pages_per_block = 16\nover_provisioning = 0.5\n[component.disk]\n{disk}"
    )
}

#[test]
fn a_hybrid_disk_keeps_what_it_acknowledged_under_every_cleanup() {
    let disk = "preset = \"seagate-cheetah-9lp\"\nwrite_cache = false\n";
    let mut cuts = 0;
    let mut recoveries = 0;
    for cleanup in hybridsim_cache::cleanup::ENTRIES.iter().map(|entry| entry.description.name) {
        for journal in [false, true] {
            // Requests of the host wait in the controller as well.
            let more =
                format!("journal = {journal}\nqueue_depth = {}", if journal { 2 } else { 9 });
            let system = hybrid(cleanup, &more, disk);
            let done = run(&system, 60_000, 80);
            let name = format!("{cleanup}, journal {journal}");
            assert_eq!(done.fault, None, "{name}");
            assert_eq!(done.results.violations, [""; 0], "{name}");
            let of_hybrid = &done.results.components["hybrid"];
            let recovery = of_hybrid.recovery.as_ref().expect("it recovered");
            assert_eq!(recovery.recovery_ns_max > 0, journal, "{name}");
            assert!(of_hybrid.cache.as_ref().expect("a cache").cleanups > 100, "{name}");
            cuts += done.results.power_cuts;
            recoveries += recovery.recoveries;
        }
    }
    assert!(cuts >= 10_000, "{cuts} power failures");
    assert!(recoveries > cuts / 2, "some fail again while they recover, most do not");
}

#[test]
fn a_flash_cache_keeps_what_it_acknowledged_in_every_scheme() {
    let mut cuts = 0;
    for scheme in ["fp", "rw", "op"] {
        for mapping in [false, true] {
            let ahead = if mapping { 32 } else { 0 };
            let checkpoint = if mapping && scheme != "fp" { 40 } else { 0 };
            let system = format!(
                "[component.cache]\nkind = \"flash-cache\"\nflash = \"flash\"\ndisk = \"disk\"\n\
                 scheme = \"{scheme}\"\nmapping = {mapping}\nperiod_pages = 2000\n\
                 checkpoint_pages = {checkpoint}\n\
                 write_ahead = {ahead}\nwrite_ahead_pause = \"1us\"\n\
                 destage_pages = 16\nsequential_bytes = \"64KiB\"\n\
                 [component.flash]\npreset = \"sata-ssd\"\nchannels = 1\ndies_per_channel = 1\n\
                 planes_per_die = 1\nblocks_per_plane = 64\npages_per_block = 8\n\
                 over_provisioning = 0.2\n\
                 [component.disk]\npreset = \"seagate-cheetah-9lp\"\nwrite_cache = false\n"
            );
            let done = run(&system, 60_000, 100);
            let name = format!("{scheme}, mapping {mapping}");
            assert_eq!(done.fault, None, "{name}");
            assert_eq!(done.results.violations, [""; 0], "{name}");
            let of_cache = &done.results.components["cache"];
            let recovery = of_cache.recovery.as_ref().expect("it recovered");
            assert_eq!(recovery.recovery_ns_max > 0, mapping, "{name}");
            assert!(of_cache.cache.as_ref().expect("a cache").destages > 100, "{name}");
            cuts += done.results.power_cuts;
        }
    }
    assert!(cuts >= 10_000, "{cuts} power failures");
}

#[test]
fn a_flash_cache_keeps_what_it_acknowledged_under_every_write_policy() {
    for policy in ["back", "through", "around"] {
        let system = format!(
            "[component.cache]\nkind = \"flash-cache\"\nflash = \"flash\"\ndisk = \"disk\"\n\
             scheme = \"fp\"\nwrite_policy = \"{policy}\"\npromote_after = 2\n\
             dirty_share = 0.1\ndestage_pages = 16\n\
             [component.flash]\n{SMALL_SSD}[component.disk]\n{SAFE_DISK}"
        );
        let done = run(&system, 40_000, 100);
        assert_eq!(done.fault, None, "{policy}");
        assert_eq!(done.results.violations, [""; 0], "{policy}");
        assert!(done.results.power_cuts > 300, "{policy}: {}", done.results.power_cuts);
    }
}

#[test]
fn destaged_data_are_not_left_in_the_write_cache_of_the_disk() {
    let disk = "preset = \"seagate-cheetah-9lp\"\nwrite_cache = true\n";
    let admit = "admission = \"always\"";
    let safe = run(&hybrid("on-demand-complete", admit, disk), 20_000, 300);
    assert_eq!(safe.fault, None);
    let more = format!("{admit}\nforce_destage = false");
    let fault = run(&hybrid("on-demand-complete", &more, disk), 20_000, 300).fault;
    assert!(fault.expect("data are lost").to_string().contains("wrong data"));
}

#[test]
fn a_hybrid_ssd_finds_everything_by_its_spare_areas() {
    // 4 MiB offered, small blocks: logs are folded, the SLC log wraps around, sectors move over.
    let plain = "[component.ssd]\nkind = \"slc-mlc-ssd\"\ncapacity = \"4MiB\"\n\
                 mlc_size = \"5MiB\"\n\
                 mlc_pages_per_block = 16\nslc_size = \"128KiB\"\nslc_pages_per_block = 4\n";
    survives("hybrid", plain);
    survives("three tiers", &format!("{plain}nvram = \"64KiB\"\n"));
    survives("drive of today", &format!("{plain}filter = \"all\"\npremapped = false\n"));
    let idle = format!("{plain}idle_after = \"1ms\"\nwrite_back = false\nprobes = 1\n");
    survives("idle work", &idle);
    survives("by erases", &format!("{plain}wear_levelling = \"implicit\"\n"));
}

/// Writes in order over 2,000 zones: those of a zone fail from the first that a failure took away
/// on, and those of the next succeed again.
#[test]
fn zones_keep_what_was_acknowledged_and_their_write_pointers() {
    let ssd = "[component.ssd]\nkind = \"zns-ssd\"\nchannels = 2\ndies_per_channel = 2\n\
               planes_per_die = 1\nblocks_per_plane = 2000\npages_per_block = 4\n\
               zone_capacity = \"64KiB\"\nmax_open_zones = 2\nread_time = \"25us\"\n\
               program_time = \"200us\"\nerase_time = \"1.5ms\"\n";
    for timing in ["", "timing.kind = \"queued\"\ntiming.write_buffer = \"64KiB\"\n"] {
        let done = run_scenario(format!(
            "[workload]\ngenerator = {{ kind = \"fio\", requests = 20000, rw = \"randrw\", \
             rwmixread = 40, percentage_random = \"100,0\", bs = \"4KiB\", norandommap = true }}\n\
             [host]\nmode = \"closed\"\nqueue_depth = 4\n\
             [run]\nverify = true\npower_cut_every = 300\n{ssd}{timing}"
        ));
        assert_eq!(done.fault, None, "{timing}");
        assert_eq!(done.results.violations, [""; 0], "{timing}");
        assert!(done.results.power_cuts > 50, "{}", done.results.power_cuts);
        let zones = &done.results.components["ssd"];
        let refused = zones.custom.get("zone_invalid_write").map_or(0, |it| it.count);
        let written = zones.flash.as_ref().map_or(0, |flash| flash.host_programs);
        assert!(refused > 50 && written > 5 * refused, "{written} written, {refused} refused");
    }
}

/// The disk below writes the requests that wait in another order than they arrived in.
#[test]
fn zones_over_a_disk_that_reorders_writes_have_no_holes() {
    for seed in 1..=12 {
        let done = run_scenario(format!(
            "system = \"it\"\n[workload]\ngenerator = {{ kind = \"fio\", requests = 2000, \
             rw = \"rw\", rwmixread = 50, bs = \"4KiB\", span = \"512KiB\", \
             norandommap = true }}\n[host]\nmode = \"closed\"\nqueue_depth = 5\n\
             [run]\nseed = {seed}\nverify = true\npower_cut_every = 50\n\
             [component.it]\nkind = \"smr-disk\"\ndevice = \"disk\"\nmanagement = {{ \
             kind = \"host-managed\", zone_size = \"64KiB\", conventional_zones = 0, \
             max_open_zones = 1 }}\n{DISK}write_cache = false\nscheduler = \"sdf\"\n"
        ));
        assert_eq!(done.fault, None, "seed {seed}");
        assert_eq!(done.results.violations, [""; 0], "seed {seed}");
        assert!(done.results.power_cuts > 20, "{}", done.results.power_cuts);
    }
}

/// What the persistent cache of a shingled disk acknowledges is on the medium, and what it gives up
/// too, although the disk below has a buffer that loses writes.
#[test]
fn a_persistent_cache_is_durable_above_a_volatile_buffer() {
    for kind in ["drive-managed", "host-aware"] {
        let band = match kind {
            "drive-managed" => "band_size = \"256KiB\", stream_min = \"1GiB\"",
            // Zones that are full take no write directly.
            _ => "zone_size = \"256KiB\", precondition_fill = 1.0",
        };
        let done = run_scenario(format!(
            "system = \"it\"\n[workload]\ngenerator = {{ kind = \"fio\", requests = 20000, \
             rw = \"randrw\", bs = \"4KiB\", span = \"4MiB\", norandommap = true }}\n\
             [host]\nmode = \"closed\"\nqueue_depth = 4\n\
             [run]\nverify = true\npower_cut_every = 300\n\
             [component.it]\nkind = \"smr-disk\"\ndevice = \"disk\"\n\
             management = {{ kind = \"{kind}\", {band}, cache_size = \"1MiB\", \
             cache_records = 60 }}\n{DISK}write_cache = true\n"
        ));
        assert_eq!(done.fault, None, "{kind}");
        assert_eq!(done.results.violations, [""; 0], "{kind}");
        assert!(done.results.power_cuts > 100, "{}", done.results.power_cuts);
        let cleaned = &done.results.components["it"].custom["cleaned_bytes"];
        assert!(cleaned.count > 500, "{kind}: {}", cleaned.count);
    }
}

#[test]
fn a_volatile_write_cache_loses_data_and_is_found_out() {
    let done = run(&format!("{DISK}write_cache = true\n"), 20_000, 300);
    let fault = done.fault.expect("acknowledged writes were lost").to_string();
    assert!(fault.contains("wrong data"), "{fault}");
}

/// With two writes to the same sector, of which the first is flushed, the disk may lose the second,
/// and those after it while power failures take the flushes.
#[test]
fn a_volatile_write_cache_keeps_what_was_flushed() {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("flushed.iolog");
    let one = "d write 0 512\nd sync 0 0\nd write 0 512\nd read 0 512\n";
    let log = format!("fio version 2 iolog\nd add\nd open\n{}d close\n", one.repeat(500));
    std::fs::write(&path, log).expect("the log is written");
    let (mut cuts, mut lost) = (0, 0);
    for seed in 0..20 {
        let text = format!(
            "[workload]\ntrace = {path:?}\n[host]\nmode = \"closed\"\nqueue_depth = 1\n\
             [run]\nseed = {seed}\nverify = true\npower_cut_every = 200\n\
             [component.disk]\npreset = \"generic-sata-7200-250gb\"\n"
        );
        let done = run_scenario(text);
        cuts += done.results.power_cuts;
        let Some(fault) = done.fault else { continue };
        let Fault::WrongData { got, ref expected, .. } = fault else { panic!("{fault}") };
        assert!(got + 4 >= expected[0], "seed {seed}: {fault}");
        lost += 1;
    }
    assert!(lost > 0 && cuts > 100, "{lost} runs lost writes in {cuts} power failures");
}

#[test]
fn parts_that_do_not_model_it_say_so() {
    let refused = |workload: &str, system: &str| {
        let text = format!("[workload]\n{workload}[run]\npower_cut_every = 100\n{system}");
        let error = run::check(&scenario(text), &standard()).err().expect("it is refused");
        assert!(matches!(error, run::RunError::Scenario(_)), "{error}");
        error.to_string()
    };
    let device = "[component.a]\nkind = \"constant-device\"\ncapacity = \"1GiB\"\n";
    let cache = "[component.v]\nkind = \"memory-cache\"\nsize = \"64KiB\"\ndevice = \"a\"\n";
    let generator = "generator = { kind = \"uniform\", requests = 10, interarrival_ms = 1 }\n";
    let error = refused(generator, &format!("{cache}{device}"));
    assert!(error.contains("`v`: a `memory-cache` does not model power failures"), "{error}");
    let trace = "trace = \"mail.hst\"\nfit = true\ntimes = \"after-completions\"\n";
    let error = refused(trace, device);
    assert!(
        error.contains("power_cut_every") && error.contains("waits for completions"),
        "{error}"
    );
}

/// An array of four devices, each described by `device`; a spare where `more` asks for it.
fn array(kind: &str, more: &str, device: &str) -> String {
    let names = ["a", "b", "c", "d", "s"];
    let count = if more.contains("spares") { 5 } else { 4 };
    let part = |name| format!("[component.{name}]\n{device}");
    let parts: String = names.iter().take(count).map(part).collect();
    format!(
        "[component.array]\nkind = \"{kind}\"\nmembers = [\"a\", \"b\", \"c\", \"d\"]\n\
         {more}\n{parts}"
    )
}

const SAFE_DISK: &str = "preset = \"seagate-cheetah-9lp\"\nwrite_cache = false\n";
const SMALL_SSD: &str = "preset = \"sata-ssd\"\nchannels = 1\ndies_per_channel = 1\n\
                         planes_per_die = 1\nblocks_per_plane = 64\npages_per_block = 16\n\
                         over_provisioning = 0.4\n";
const ARRAYS: [&str; 6] = ["raid1", "raid10", "raid4", "raid5", "raid6", "declustered"];

#[test]
fn arrays_of_disks_and_of_flash_keep_what_they_acknowledged() {
    for (kind, resync) in ARRAYS.iter().flat_map(|kind| [(kind, "full"), (kind, "bitmap")]) {
        let resync = format!(
            "resync = \"{resync}\"\nbitmap_region = \"128KiB\"\nbitmap_clear_after = \"9ms\""
        );
        survives(kind, &array(kind, &resync, SAFE_DISK));
        survives(kind, &array(kind, &resync, SMALL_SSD));
    }
}

#[test]
fn copies_on_disks_and_on_flash_survive_the_loss_of_one() {
    for kind in ["raid1", "raid10"] {
        for device in [SAFE_DISK, SMALL_SSD] {
            let more = "spares = [\"s\"]\nfailures = [{ member = 1, at = \"3s\" }]\n\
                        resync = \"bitmap\"";
            survives(kind, &array(kind, more, device));
        }
    }
}

#[test]
fn the_write_hole_of_arrays_of_disks_is_reported_and_never_wrong() {
    for kind in ["raid4", "raid5", "raid6", "declustered"] {
        let more = "failures = [{ member = 1, at = \"3s\" }]\nresync = \"bitmap\"\n\
                    bitmap_region = \"64KiB\"\nchunk = \"16KiB\"\nbitmap_clear_after = \"50ms\"";
        let done = run(&array(kind, more, SAFE_DISK), 20_000, 300);
        assert_eq!(done.fault, None, "{kind}");
        let custom = &done.results.components["array"].custom;
        assert!(custom["write_hole_sectors"].count > 0, "{kind}");
    }
}

#[test]
fn arrays_of_disks_and_of_flash_that_mend_nothing_are_found_out() {
    let none = "resync = \"none\"\nread_choice = \"round-robin\"\n";
    let lost = "failures = [{ member = 1, at = \"3s\" }]\nresync = \"none\"\n";
    for (kind, more) in [("raid1", none), ("raid10", none), ("raid5", lost), ("raid6", lost)] {
        for device in [SAFE_DISK, SMALL_SSD] {
            let fault = run(&array(kind, more, device), 20_000, 300).fault;
            let fault = fault.unwrap_or_else(|| panic!("{kind} over {device}: not found out"));
            assert!(fault.to_string().contains("wrong data"), "{kind}: {fault}");
        }
    }
}

/// A flash-backed scheduler over a drive with an NV cache of real flash.
fn flash_backed(order: &str, scheduler: &str) -> String {
    format!(
        "[component.host-scheduler]\nkind = \"flash-backed\"\ndrive = \"drive\"\n\
         order = \"{order}\"\nscheduler = \"{scheduler}\"\n\
         [component.drive]\nkind = \"nv-cache-disk\"\nflash = \"nv\"\ndisk = \"disk\"\n\
         [component.nv]\npreset = \"konanki-hybrid-flash-256mb\"\nblocks_per_plane = 32\n\
         pages_per_block = 16\nover_provisioning = 0.5\n\
         [component.disk]\npreset = \"seagate-cheetah-9lp\"\nwrite_cache = true\n"
    )
}

#[test]
fn flash_backed_requests_lose_data_in_the_printed_order_only() {
    // Plain writes to a disk with its write cache on may be lost; redirected ones may not. Off:
    let bare = |order, scheduler| flash_backed(order, scheduler).replace("= true", "= false");
    for scheduler in ["fcfs", "sstf", "c-look"] {
        let done = run(&bare("safe", scheduler), 20_000, 200);
        assert_eq!(done.fault, None, "{scheduler}");
        assert!(done.results.power_cuts > 100, "{scheduler}");
        let host = &done.results.components["host-scheduler"];
        assert!(host.custom["redirected_sectors"].count > 1000, "{scheduler}");
        let recovery = host.recovery.as_ref().expect("it recovered");
        assert!(recovery.recoveries > 20 && recovery.recovery_ns_max > 0, "{scheduler}");
        let fault = run(&bare("printed", scheduler), 20_000, 200).fault;
        assert!(fault.expect("data are lost").to_string().contains("wrong data"), "{scheduler}");
    }
}

/// Every scheduler that needs no parameters, over a real disk and real flash.
#[test]
fn under_every_scheduler_redirected_writes_survive() {
    let registry = standard();
    let mut cuts = 0;
    for entry in registry.descriptions("scheduler") {
        if entry.params.iter().any(|param| param.default.is_none()) {
            continue;
        }
        let system = flash_backed("safe", entry.name).replace("= true", "= false");
        let done = run(&system, 6000, 100);
        assert_eq!(done.fault, None, "{}", entry.name);
        assert_eq!(done.results.violations, [""; 0], "{}", entry.name);
        cuts += done.results.power_cuts;
    }
    assert!(cuts > 1000, "{cuts}");
}

/// A host that pins, with the disk stopped in between, over a disk with its write cache on.
#[test]
fn an_nv_cache_in_its_power_mode_keeps_what_it_acknowledged() {
    let system = "[component.host-rule]\nkind = \"nv-cache-host\"\ndrive = \"drive\"\n\
         pin = [{ start = \"64KiB\", size = \"256KiB\" }]\npower_mode = true\n\
         flush_every = \"2s\"\nflush_room = \"512KiB\"\nquery_every = \"1s\"\n\
         [component.drive]\nkind = \"nv-cache-disk\"\nflash = \"nv\"\ndisk = \"disk\"\n\
         [component.nv]\npreset = \"konanki-hybrid-flash-256mb\"\nblocks_per_plane = 32\n\
         pages_per_block = 16\nover_provisioning = 0.5\n\
         [component.disk]\npreset = \"seagate-cheetah-9lp\"\nwrite_cache = false\n";
    survives("nv-cache", system);
}
