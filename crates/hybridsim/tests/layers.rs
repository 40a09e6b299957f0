//! Translation layers over devices: loads of any kind on zones, verified.

mod common;

use common::{CONSTANT, DISK, SSD, ZNS, component, system_around};
use hybridsim_config::diagnostic::SourceText;
use hybridsim_observe::results::Log;
use hybridsim_simulation::registry::standard;
use hybridsim_simulation::run::{self, Options, RunOutput};
use hybridsim_simulation::scenario::{Input, Scenario};
use std::path::Path;

fn try_run(text: &str) -> Result<RunOutput, String> {
    let source = SourceText { name: "test".to_owned(), text: text.to_owned() };
    let base = Path::new("").to_owned();
    let input = Input { source, base, sets: Vec::new(), trace: None };
    let registry = standard();
    let scenario = Scenario::check(input, &registry).map_err(|problems| problems.to_string())?;
    run::run(&scenario, &registry, Options::default()).map_err(|error| error.to_string())
}

/// Runs `system` under verified reads and writes of up to 12 KiB.
fn run(keys: &str, requests: u64, system: &str) -> RunOutput {
    let text = format!(
        "system = \"it\"\n[workload]\ngenerator = {{ kind = \"fio\", requests = {requests}, \
         rw = \"randrw\", bssplit = \"512/20:4k/40:12k/40\", norandommap = true }}\n\
         [host]\nmode = \"closed\"\nqueue_depth = 8\n\
         [run]\nverify = true\n{keys}\n{system}"
    );
    let done = try_run(&text).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(done.fault, None, "{system}");
    assert_eq!(done.results.violations, [""; 0], "{system}");
    assert_eq!(done.results.requests + done.results.requests_lost, requests, "{system}");
    done
}

fn zoned(name: &str) -> String {
    component(name, ZNS)
}

const LOG: &str = "kind = \"log-structured\"\nover_provisioning = 1.0\n";

/// A log over the component called `device`.
fn log(name: &str, device: &str, keys: &str) -> String {
    component(name, &format!("{LOG}device = \"{device}\"\n{keys}"))
}

fn of<'a>(done: &'a RunOutput, path: &str) -> &'a Log {
    done.results.components[path].log.as_ref().expect("it is a log")
}

#[test]
fn any_load_runs_on_zones() {
    let cleaned = "cleaned = \"shared\"\ngc = \"cost-benefit\"\nidle_after = \"200us\"\n\
                   idle_free_segments = 3\nover_provisioning = 2.0\n";
    let shared = log("it", "a", "").replace("over_provisioning = 1.0\n", cleaned);
    for system in [log("it", "a", "") + &zoned("a"), shared + &zoned("a")] {
        let done = run("", 20_000, &system);
        let log = of(&done, "it");
        assert!(log.segments_cleaned > 20 && log.segments_freed > 20, "{log:?}");
        let flash = done.results.components["it/a"].flash.as_ref().expect("it is flash");
        // Pages are blocks, so that the device programs what the log writes, and pads nothing.
        assert_eq!(flash.programmed_bytes, log.log_bytes, "{system}");
        assert!(done.results.components["it/a"].custom.keys().eq(["open_zones"]), "{system}");
        assert_eq!(log.total_write_amplification, log.log_write_amplification);
        assert!(log.log_write_amplification > Some(1.2), "{log:?}");
    }
}

#[test]
fn total_write_amplification_is_that_of_the_layer_times_that_of_the_device() {
    // Segments in another size than the blocks of the SSD, and two of them at a time.
    let keys = "segment_size = \"96KiB\"\nover_provisioning = 0.3\n";
    let system = log("it", "a", "").replace("over_provisioning = 1.0\n", keys);
    let ssd = SSD.replace("over_provisioning = 0.5", "over_provisioning = 0.21");
    let done = run("", 30_000, &(system + &component("a", &ssd)));
    let log = of(&done, "it");
    let of_ssd = done.results.components["it/a"].flash.as_ref().expect("it is flash");
    let both = log.log_write_amplification.zip(of_ssd.write_amplification);
    let product = both.map(|(layer, ssd)| layer * ssd).expect("both were written");
    let total = log.total_write_amplification.expect("it is above flash");
    assert!((product / total - 1.0).abs() < 0.01, "{product}, {total}");
    assert!(log.segments_cleaned > 100, "{log:?}");
}

#[test]
fn the_log_survives_power_failures_above_zones_and_flash() {
    let over_ssd = log("it", "a", "segment_size = \"96KiB\"\n") + &component("a", SSD);
    let buffered = "timing.kind = \"queued\"\ntiming.write_buffer = \"64KiB\"\n";
    let over_buffer = log("it", "a", "") + &component("a", &format!("{ZNS}{buffered}"));
    for system in [log("it", "a", "") + &zoned("a"), over_ssd, over_buffer] {
        let done = run("power_cut_every = 300", 20_000, &system);
        assert!(done.results.power_cuts > 50, "{system}");
        let recovery = done.results.components["it"].recovery.expect("it recovers");
        assert!(recovery.recovery_ns_mean > Some(50_000.0), "{recovery:?}");
    }
}

#[test]
fn caches_and_arrays_stand_over_zones() {
    let keys = "kind = \"flash-cache\"\nflash = \"log\"\ndisk = \"disk\"\n";
    let cache = component("it", keys) + &component("disk", DISK);
    let done = run("", 5_000, &(cache + &log("log", "a", "") + &zoned("a")));
    assert!(of(&done, "it/log").log_bytes > 1 << 20);
    let raid = component("it", "kind = \"raid1\"\nmembers = [\"x\", \"y\"]\n");
    let logs = log("x", "a", "") + &log("y", "b", "") + &zoned("a") + &zoned("b");
    let done = run("", 5_000, &(raid + &logs));
    assert_eq!(of(&done, "it/x").log_host_bytes, of(&done, "it/y").log_host_bytes);
    run("power_cut_every = 300", 5_000, &system_around("log-structured"));
    // A log over two devices, one behind a controller.
    let concat = component("both", "kind = \"concat\"\nmembers = [\"way\", \"b\"]\n");
    let way = component("way", "kind = \"io-queue\"\ndevice = \"a\"\n");
    let system = log("it", "both", "") + &concat + &way + &zoned("a") + &zoned("b");
    run("", 20_000, &system);
    // A log over the zones of a stripe.
    let stripe = "kind = \"stripe\"\nmembers = [\"a\", \"b\"]\nchunk = \"8KiB\"\n";
    let devices = component("both", stripe) + &zoned("a") + &zoned("b");
    let done = run("power_cut_every = 300", 30_000, &(log("it", "both", "") + &devices));
    assert!(of(&done, "it").segments_freed > 10 && done.results.power_cuts > 50);
}

#[test]
fn what_does_not_fit_is_a_problem() {
    let problem = |system: &str| {
        let load =
            "system = \"it\"\n[workload]\ngenerator = { kind = \"uniform\", requests = 9 }\n";
        try_run(&format!("{load}{system}")).map(|_| ()).expect_err("it is refused")
    };
    let over = |keys: &str| problem(&(log("it", "a", keys) + &zoned("a")));
    for (keys, said) in [
        ("segment_size = \"2MiB\"\n", "whose zones are the segments"),
        ("block_size = \"2KiB\"\n", "must be whole pages of `a`"),
        ("block_size = \"16KiB\"\n", "divide the 2000 sectors of its zones"),
        ("block_size = \"100B\"\n", "multiple of 512"),
        ("free_segments = 30\n", "segments are spare"),
        ("separate = \"temperature\"\n", "at most 3 zones open or active"),
    ] {
        let problem = over(keys);
        assert!(problem.contains(said), "{keys}: {problem}");
    }
    let unlike = component("b", &ZNS.replace("1000KiB", "512KiB"));
    let concat = component("both", "kind = \"concat\"\nmembers = [\"a\", \"b\"]\n");
    let said = problem(&(log("it", "both", "") + &concat + &zoned("a") + &unlike));
    assert!(said.contains("beside devices with other zones, or without"), "{said}");
    let volatile = component("a", &format!("{DISK}write_cache = true\n"));
    let text = "system = \"it\"\n[workload]\ngenerator = { kind = \"uniform\", requests = 999 }\n\
                [run]\nverify = true\npower_cut_every = 100\n";
    let done = try_run(&format!("{text}{}{volatile}", log("it", "a", "")));
    let fault = match done {
        Ok(done) => done.fault.expect("it is refused").to_string(),
        Err(error) => error,
    };
    assert!(fault.contains("volatile write cache"), "{fault}");
}

#[test]
fn a_memory_cache_writes_back_when_its_period_or_idle_time_is_over() {
    let written = |flush: &str| {
        let cache = format!(
            "kind = \"memory-cache\"\nsize = \"64MiB\"\ndevice = \"a\"\n\
             write_scheme = \"back\"\n{flush}"
        );
        let done = run("", 2_000, &(component("it", &cache) + &component("a", CONSTANT)));
        done.results.components["it"].cache.as_ref().expect("it is a cache").destaged_bytes
    };
    let (on_demand, idle) = ("flush = \"demand\"\n", "flush_idle = \"10us\"\n");
    let periodic = "flush = \"periodic\"\nflush_period = \"1ms\"\n";
    let before = written(on_demand);
    assert!(written(periodic) > before + (1 << 20), "{before} bytes on demand");
    assert!(written(&format!("{on_demand}{idle}")) > before);
}

#[test]
fn a_write_back_cache_destages_what_was_written() {
    let cache = "kind = \"cache-device\"\ndevices = [\"disk\", \"flash\"]\n\
                 flush = \"periodic\"\nflush_period = \"1ms\"\n";
    let devices = component("disk", CONSTANT) + &component("flash", CONSTANT);
    let done = run("", 10_000, &(component("it", cache) + &devices));
    let components = &done.results.components;
    let destaged = components["it"].cache.as_ref().expect("it is a cache").destaged_bytes;
    assert!(destaged > 1 << 20, "{destaged} bytes");
}

#[test]
fn an_idle_device_takes_dirty_data_beside_one_request_but_not_two() {
    let destaged = |depth: u32| {
        let cache = "kind = \"cache-device\"\ndevices = [\"disk\", \"flash\"]\n\
                     flush = \"demand\"\nflush_idle = \"20us\"\n";
        let text = format!(
            "system = \"it\"\n[workload]\n\
             generator = {{ kind = \"uniform\", requests = 2000 }}\n\
             [host]\nmode = \"closed\"\nqueue_depth = {depth}\n{}{}{}",
            component("it", cache),
            component("disk", CONSTANT),
            component("flash", CONSTANT)
        );
        let done = try_run(&text).unwrap_or_else(|error| panic!("{error}"));
        done.results.components["it"].cache.as_ref().expect("it is a cache").destaged_bytes
    };
    assert!(destaged(1) > 1 << 20);
    assert_eq!(destaged(2), 0);
}

/// The estimates of a disk reach the scheduler of the host through what is between them, and with
/// them it is faster than by addresses.
#[test]
fn a_scheduler_knows_the_disk_below_a_bus_and_a_controller() {
    let took = |scheduler: &str, system: &str| {
        let text = format!(
            "system = \"it\"\n[workload]\n\
             generator = {{ kind = \"uniform\", requests = 2000, read = 1.0 }}\n\
             [host]\nmode = \"closed\"\nqueue_depth = 1\noutstanding = 64\n\
             scheduler = \"{scheduler}\"\n{system}"
        );
        let done = try_run(&text).unwrap_or_else(|error| panic!("{error}"));
        done.results.simulated_ns
    };
    let bus = |name| {
        let keys = "kind = \"bus\"\ndevices = [\"disk\"]\n";
        component(name, keys) + &component("disk", DISK)
    };
    let controller = "kind = \"queueing-controller\"\nbuses = [\"bus\"]\n";
    for system in [component("it", DISK), bus("it"), component("it", controller) + &bus("bus")] {
        let (sptf, sstf) = (took("sptf", &system), took("sstf", &system));
        assert!(sptf + sptf / 5 < sstf, "{system}: {sptf} {sstf}");
    }
}

#[test]
fn a_queue_that_never_had_a_choice_says_that_its_scheduler_had_no_effect() {
    let warns = |depth: u32| {
        let queue = format!(
            "kind = \"io-queue\"\ndevice = \"disk\"\nscheduler = \"sstf\"\n\
             device_queue_depth = {depth}\n"
        );
        let done = run("", 200, &(component("it", &queue) + &component("disk", CONSTANT)));
        let warnings = done.results.warnings;
        warnings.iter().any(|it| it.contains("it.scheduler") && it.contains("to choose from"))
    };
    assert!(warns(8) && !warns(1));
}
