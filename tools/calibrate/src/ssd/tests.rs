use super::simulate::{JobBench, SimulatedDirection};
use super::*;
use hybridsim_engine::Op;
use hybridsim_simulation::registry;
use std::fs;

/// An SSD of 8 dies with the constants that its jobs are measured on.
const TRUE: &str = r#"
[component.ssd]
kind = "ssd"
channels = 4
dies_per_channel = 2
planes_per_die = 1
blocks_per_plane = 64
pages_per_block = 96
page_size = "4KiB"
over_provisioning = 0.5
read_time = "55us"
program_time = "600us"
erase_time = "3ms"
channel_rate = "600MB/s"
read_pages = 4
program_pages = 12
ftl = { kind = "page", stripe_pages = 12 }

[component.ssd.timing]
kind = "queued"
read_spread = 0.4
write_buffer = "1MiB"

[component.ssd.controller]
host_rate = "1500MB/s"
host_duplex = "full"
read_overhead = "9us"
write_overhead = "11us"
request_interval = "2us"
"#;

fn jobs(drive: &QueuedSsd<'_>, depths: &[u64]) -> Vec<MeasuredJob> {
    let mut found = Vec::new();
    for (workload, bytes, op) in
        [("randread", 4096, Op::Read), ("randread", 65536, Op::Read), ("write", 4096, Op::Write)]
    {
        for depth in depths {
            let wanted =
                DirectionResult { op, iops: 1.0, mean_us: 1.0, percentiles: vec![(50.0, 1.0)] };
            let asked = MeasuredJob::new(workload, (bytes, *depth), 50, vec![wanted]);
            let asked = asked.expect("a sound job");
            let bench =
                JobBench::new(drive, &drive.point(), &asked, 2).expect("a drive that takes it");
            let ran = bench.run(drive, &drive.point()).expect("a run");
            let delivered = ran.iter().map(SimulatedDirection::delivered).collect();
            found.extend(MeasuredJob::new(workload, (bytes, *depth), 50, delivered));
        }
    }
    found
}

#[test]
fn constants_of_a_simulated_drive_are_found_again() {
    let registry = registry::standard();
    let measured = QueuedSsd::of_scenario("true", TRUE, &registry).expect("a drive");
    let jobs = jobs(&measured, &[1, 4, 16, 64]);
    let start = TRUE
        .replace("55us", "80us")
        .replace("600us", "900us")
        .replace("600MB/s", "900MB/s")
        .replace("1500MB/s", "3000MB/s")
        .replace("11us", "20us");
    let start = QueuedSsd::of_scenario("start", &start, &registry).expect("a drive");
    let fits = every_other(&jobs);
    assert_eq!(fits.iter().filter(|fits| **fits).count(), 6);
    let found = calibrate_ssd(&start, &jobs, &fits, &|| true).expect("a fit");
    assert_eq!(found.dies[1], (4, 2), "{:?}", found.constants);
    assert!(found.held_out[0].rate_mean > 0.2, "{:?}", found.held_out);
    assert!(found.held_out[1].rate_mean < 0.05, "{:?}", found.held_out);
    assert!(found.held_out[1].p50_mean < 0.05, "{:?}", found.held_out);
    assert!(found.trivial > 2.0 * found.held_out[1].rate_mean, "{}", found.trivial);
    assert_eq!(found.warnings(), Vec::<String>::new());
    let truth = measured.point();
    // Four jobs that read do not separate channel, link and controller, which can make up for each
    // other.
    for name in ["read_time", "program_time", "controller.write_overhead"] {
        let at = CONSTANTS.iter().position(|constant| constant.name == name);
        let at = at.expect("a constant");
        let apart = (found.point.constants[at] - truth.constants[at]).abs();
        assert!(apart < 0.12, "{:?}", found.constants[at]);
    }
    let preset = found.preset();
    assert!(preset.contains("fitted, between"), "{preset}");
    let section = |name: &str| preset.split(&format!("\n[{name}]\n")).nth(1).unwrap_or_default();
    assert!(section("controller").starts_with("read_overhead = "), "{preset}");
    assert!(section("timing").starts_with("kind = \"queued\"  # from start\n"), "{preset}");
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("fitted.toml");
    fs::write(&path, &preset).expect("it can be written");
    let name = path.to_str().expect("a path in UTF-8");
    let again =
        QueuedSsd::read(name, &registry).unwrap_or_else(|error| panic!("{error}\n{preset}"));
    let apart = again.point().constants[0] - found.point.constants[0];
    assert!(apart.abs() < 1e-3, "{preset}");
}

#[test]
fn jobs_of_a_row_are_held_out_in_turn() {
    let one = |workload: &str, bytes, depth| {
        let delivered =
            DirectionResult { op: Op::Read, iops: 1.0, mean_us: 1.0, percentiles: vec![] };
        MeasuredJob::new(workload, (bytes, depth), 50, vec![delivered]).expect("a sound job")
    };
    let row = |bytes| [1, 4, 16].map(|depth| one("randread", bytes, depth));
    let jobs = [row(4096), row(8192)].concat();
    assert_eq!(every_other(&jobs), [true, false, true, false, true, false]);
}

/// A job of `workload`, with 4 KiB and `depth`, as `drive` delivers it.
fn delivered(drive: &QueuedSsd<'_>, workload: &str, depth: u64, ops: &[Op]) -> MeasuredJob {
    let wanted =
        |op: &Op| DirectionResult { op: *op, iops: 1.0, mean_us: 1.0, percentiles: vec![] };
    let asked = MeasuredJob::new(workload, (4096, depth), 50, ops.iter().map(wanted).collect());
    let asked = asked.expect("a sound job");
    let bench = JobBench::new(drive, &drive.point(), &asked, 2).expect("a drive that takes it");
    let ran = bench.run(drive, &drive.point()).expect("a run");
    let delivered = ran.iter().map(SimulatedDirection::delivered).collect();
    MeasuredJob::new(workload, (4096, depth), 50, delivered).expect("a sound job")
}

const BOTH: [Op; 2] = [Op::Read, Op::Write];

#[test]
fn writes_copy_no_pages_on_the_small_drive() {
    let registry = registry::standard();
    let drive = QueuedSsd::of_scenario("true", TRUE, &registry).expect("a drive");
    for (workload, percent, ops) in [
        ("write", 0, &BOTH[1..]),
        ("randwrite", 0, &BOTH[1..]),
        ("randrw", 50, &BOTH),
        ("randrw", 90, &BOTH),
        ("readwrite", 50, &BOTH),
    ] {
        let wanted =
            |op: &Op| DirectionResult { op: *op, iops: 1.0, mean_us: 1.0, percentiles: vec![] };
        let wanted = ops.iter().map(wanted).collect();
        let job = MeasuredJob::new(workload, (4096, 16), percent, wanted).expect("a sound job");
        let bench = JobBench::new(&drive, &drive.point(), &job, 2).expect("a drive that takes it");
        let ran = bench.output(&drive, &drive.point()).expect("a run");
        let flash = ran.results.components.values().find_map(|one| one.flash.as_ref());
        let flash = flash.expect("the drive has flash");
        assert_eq!(flash.gc_programs, 0, "{workload} {percent}");
        assert!(flash.erases > 0, "{workload} {percent}: counted before blocks were erased");
    }
}

#[test]
fn mixes_alone_show_reads_and_dies() {
    let registry = registry::standard();
    let drive = QueuedSsd::of_scenario("true", TRUE, &registry).expect("a drive");
    let jobs = [1, 8, 64].map(|depth| delivered(&drive, "randrw", depth, &BOTH));
    let start = TRUE
        .replace("\"55us\"", "\"80us\"")
        .replace("dies_per_channel = 2", "dies_per_channel = 4");
    let start = QueuedSsd::of_scenario("start", &start, &registry).expect("a drive");
    let found = calibrate_ssd(&start, &jobs, &[true; 3], &|| true).expect("a fit");
    assert!(found.are_dies_searched);
    // Three jobs show how many dies there are, and not on how many channels.
    let (channels, dies) = found.dies[1];
    assert_eq!(channels * dies, 8, "{:?}", found.constants);
    assert!(found.preset().contains("fitted: tried in powers of two"), "{}", found.preset());
}

#[test]
fn writes_alone_leave_the_dies_of_the_start() {
    let registry = registry::standard();
    let drive = QueuedSsd::of_scenario("true", TRUE, &registry).expect("a drive");
    // The two deepest write at the limit of the drive; so does the third.
    let jobs = [1, 16, 64, 256].map(|depth| delivered(&drive, "write", depth, &BOTH[1..]));
    let found = calibrate_ssd(&drive, &jobs, &[true; 4], &|| true).expect("a fit");
    assert!(!found.are_dies_searched);
    let preset = found.preset();
    let dies = preset.lines().find(|line| line.starts_with("dies_per_channel"));
    assert!(dies.is_some_and(|line| line.ends_with("from true: not identified")), "{preset}");
    // Depth 256 adds nothing to two shallower ones, so it is not fitted to and does not count so.
    assert_eq!(
        found.jobs.iter().map(|job| job.fitted).collect::<Vec<_>>(),
        [true, true, true, false]
    );
    assert_eq!((found.fitted[1].jobs, found.held_out[1].jobs), (3, 1));
}

#[test]
fn results_of_fio_that_cannot_be_used_say_why() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("fio.json");
    let problem = |text: &str| {
        fs::write(&path, text).expect("it can be written");
        read(&path).map(|jobs| jobs.len()).map_err(|error| error.to_string())
    };
    let read_part = r#""read":{"iops":9.5,"lat_ns":{"mean":3}}"#;
    let job =
        |options: &str| format!(r#"{{"jobs":[{{"job options":{{{options}}},{read_part}}}]}}"#);
    assert_eq!(problem(&job(r#""rw":"randread","bs":"4k","iodepth":"8""#)), Ok(1));
    let clones = r#""rw":"randread","bs":"4k","iodepth":"8","numjobs":"2""#;
    assert_eq!(problem(&job(&format!(r#"{clones},"group_reporting":"1""#))), Ok(1));
    assert_eq!(problem(&job(r#""rw":"randread","bs":"4Ki","direct":"1""#)), Ok(1));
    let sized = |bytes: u64| {
        let part = format!(r#""read":{{"iops":9.5,"lat_ns":{{"mean":3}},"io_bytes":{bytes}"#);
        format!(r#"{{"jobs":[{{"job options":{{"rw":"read"}},{part},"total_ios":100}}}}]}}"#)
    };
    assert_eq!(problem(&sized(4096 * 101)), Ok(1));
    let fill = format!(r#"{{"jobname":"fill","job options":{{"rw":"write"}},{read_part}}}"#);
    for (text, word) in [
        ("{", "EOF"),
        ("{}", "no list `jobs`"),
        (r#"{"jobs":[{"read":{"iops":0}}]}"#, "no job of fixed size"),
        (&job(r#""rw":"randread","thinktime":"100""#), "has `thinktime`"),
        (&job(r#""rw":"randtrim""#), "cannot be simulated"),
        (&job(clones), "`numjobs` without `group_reporting`"),
        (&format!(r#"{{"jobs":[{fill}]}}"#), "no job of fixed size"),
        (&job(r#""rw":"read","bs":"ten""#), "`bs` is no size"),
        (&sized(8192 * 100), "transferred 8192 bytes each, not 4096"),
        (&job(r#""rw":"read","direct":"0""#), "page cache"),
        (&job(r#""rw":"read","ioengine":"libaio""#), "page cache"),
        (&job(r#""rw":"read","iodepth":"x""#), "`iodepth` is no number"),
    ] {
        let message = problem(text).expect_err(text);
        assert!(message.contains(word) && message.contains("fio.json"), "{text}: {message}");
    }
}

/// The open loop of a job with `options` that delivered 1000 requests a second, `us` each, at most
/// 64 outstanding.
fn limited(direction: &str, options: &str, us: u64) -> Result<Option<OfferedRate>, String> {
    let ns = us * 1000;
    let text = format!(
        r#"{{"jobs":[{{"job options":{{"bs":"4k","iodepth":"64",{options}}},
        {direction}:{{"iops":1000,"lat_ns":{{"mean":{ns},
        "percentile":{{"50.000000":{ns}}}}}}}}}]}}"#
    );
    parse("fio.json", &text).map(|jobs| jobs[0].offered).map_err(|error| error.to_string())
}

#[test]
fn a_job_of_limited_rate_is_an_open_loop_while_the_drive_keeps_up() {
    let reads = |options: &str| limited(r#""read""#, &format!(r#""rw":"randread",{options}"#), 90);
    let constant = Ok(Some(OfferedRate { iops: 1000.0, is_poisson: false }));
    let exponential = Ok(Some(OfferedRate { iops: 1000.0, is_poisson: true }));
    assert_eq!(reads(r#""rate_iops":"1000""#), constant);
    assert_eq!(reads(r#""rate_iops":"1010,1010,1010""#), constant);
    assert_eq!(reads(r#""rate_iops":"1000,500""#), constant);
    assert_eq!(reads(r#""rate_iops":",500""#), Ok(None), "reads are not limited");
    assert_eq!(reads(r#""rate":"4000k""#), constant);
    assert_eq!(reads(r#""rate_iops":"1000","rate_process":"poisson""#), exponential);
    let clones = r#""numjobs":"4","group_reporting":"1","rate_iops":"250""#;
    assert_eq!(reads(&format!(r#"{clones},"rate_process":"poisson""#)), exponential);
    // So few arrivals came by chance: a tenth of a request was outstanding.
    assert_eq!(reads(r#""rate_iops":"1100","rate_process":"poisson""#), exponential);
    assert_eq!(reads(r#""rate_iops":"900","rate_process":"poisson""#), exponential);
    // It did not keep up, so that 64 were outstanding.
    let slow = limited(r#""read""#, r#""rw":"randread","rate_iops":"1100""#, 64_000);
    assert_eq!(slow, Ok(None));
    for (options, word) in [
        (r#""rate_iops":"none""#, "`rate_iops` is no rate: none"),
        (r#""rate_iops":"0""#, "`rate_iops` is no rate: 0"),
        (r#""rate_iops":"250""#, "far more than `rate_iops` allows: 250"),
        (r#""rate_iops":"1000","rate_process":"bursts""#, "`rate_process` is not known"),
        (clones, "4 clones of constant rate"),
    ] {
        let message = reads(options).expect_err(options);
        assert!(message.contains("job 1") && message.contains(word), "{options}: {message}");
    }
    let mixed = r#""write":{"iops":1000,"lat_ns":{"mean":90000}},"read""#;
    let mixed = limited(mixed, r#""rw":"randrw","rate_iops":"1000""#, 90).expect_err("two rates");
    assert!(mixed.contains("measure reads and writes alone"), "{mixed}");
    let text = r#"{"jobs":[{"job options":{"rw":"read","rate_iops":"1000"},
        "read":{"iops":1000,"lat_ns":{"mean":90000}}}]}"#;
    let bare = parse("fio.json", text).expect_err("no percentiles").to_string();
    assert!(bare.contains("no median latency"), "{bare}");
}

/// Random reads that arrive at `iops` a second on `drive`, at most 256 outstanding.
fn offered(drive: &QueuedSsd<'_>, iops: f64) -> MeasuredJob {
    let wanted = DirectionResult { op: Op::Read, iops, mean_us: 1.0, percentiles: vec![] };
    let asked = MeasuredJob::new("randread", (4096, 256), 50, vec![wanted]);
    let offered = Some(OfferedRate { iops, is_poisson: true });
    let asked = MeasuredJob { offered, ..asked.expect("a sound job") };
    let bench = JobBench::new(drive, &drive.point(), &asked, 8).expect("a drive that takes it");
    let ran = bench.run(drive, &drive.point()).expect("a run");
    let delivered = ran.iter().map(SimulatedDirection::delivered).collect();
    MeasuredJob { delivered, ..asked }
}

#[test]
fn latencies_at_offered_rates_show_the_constants() {
    let registry = registry::standard();
    let measured = QueuedSsd::of_scenario("true", TRUE, &registry).expect("a drive");
    let ladder = [5e3, 20e3, 40e3, 60e3, 75e3, 90e3];
    let jobs = ladder.map(|iops| offered(&measured, iops));
    for (job, wanted) in jobs.iter().zip(ladder) {
        assert!((job.delivered[0].iops / wanted - 1.0).abs() < 0.05, "{job:?}");
    }
    let p50 = |job: &MeasuredJob| job.delivered[0].percentile(50.0).expect("it has one");
    assert!(p50(&jobs[5]) > 1.2 * p50(&jobs[0]), "{jobs:?}");
    let start = TRUE.replace("55us", "80us").replace("9us", "20us");
    let start = QueuedSsd::of_scenario("start", &start, &registry).expect("a drive");
    let fits = every_other(&jobs);
    assert_eq!(fits, [true, false, true, false, true, false]);
    let found = calibrate_ssd(&start, &jobs, &fits, &|| true).expect("a fit");
    let [before, after] = &found.held_out;
    assert!(after.rate_mean.is_nan() && found.trivial.is_nan(), "the rate is given: {after:?}");
    assert!(before.p50_mean > 0.3 && after.p50_mean < 0.05, "{before:?} {after:?}");
    assert!(after.p99_mean < 0.1, "{after:?}");
    assert_eq!(found.warnings(), Vec::<String>::new());
    let preset = found.preset();
    assert!(preset.contains("3 jobs held out: mean error of median latency"), "{preset}");
    assert!(!preset.contains("at worst") && !preset.contains("[host]"), "{preset}");
}

#[test]
fn what_the_latency_leaves_out_is_the_hosts() {
    let text = r#"{"jobs":[{"job options":{"rw":"randread","bs":"4k","iodepth":"4","numjobs":"2",
        "group_reporting":"1"},"read":{"iops":80000,"lat_ns":{"mean":95000},
        "clat_ns":{"mean":90000,"percentile":{"50.000000":88000}}}}]}"#;
    let jobs = parse("fio.json", text).expect("a result");
    let [job] = jobs.as_slice() else { panic!("{jobs:?}") };
    // The latency that has percentiles.
    assert!((job.delivered[0].mean_us - 90.0).abs() < 1e-9, "{job:?}");
    // Eight loops of 100 us.
    assert!((job.host_us() - 10.0).abs() < 1e-9, "{job:?}");
}

#[test]
fn engines_that_wait_for_each_request_have_no_depth() {
    let text = |engine: &str, depth: u32| {
        format!(
            r#"{{"global options":{{"ioengine":"{engine}","direct":"1"}},"jobs":[{{"job options":{{
            "rw":"randread","bs":"4k","iodepth":"{depth}"}},
            "read":{{"iops":9000,"clat_ns":{{"mean":100000}}}}}}]}}"#
        )
    };
    let error = parse("fio.json", &text("psync", 16)).expect_err("one at a time");
    assert!(error.to_string().contains("job 1: `ioengine = psync` keeps one"), "{error}");
    for (engine, depth) in [("psync", 1), ("io_uring", 16)] {
        let jobs = parse("fio.json", &text(engine, depth)).expect("a result");
        assert_eq!(jobs[0].depth, u64::from(depth));
    }
}

#[test]
fn time_of_the_host_is_measured_and_not_fitted() {
    let registry = registry::standard();
    let drive = QueuedSsd::of_scenario("true", TRUE, &registry).expect("a drive");
    let slow = QueuedSsd { host: Host { times_ns: [30_000, 0], ..drive.host }, ..drive.clone() };
    let jobs = [1, 4, 16, 64].map(|depth| delivered(&slow, "randread", depth, &BOTH[..1]));
    let fits = of_depths(&jobs, &[1, 16]);
    assert_eq!(fits, [true, false, true, false]);
    let found = calibrate_ssd(&drive, &jobs, &fits, &|| true).expect("a fit");
    assert!((found.host_us[0] - 30.0).abs() < 0.5, "{:?}", found.host_us);
    // START is the drive itself, and meets the rates with the host's time: without it, it would be
    // a third too fast at depth 4.
    assert!(found.held_out[0].rate_mean < 0.03, "{:?}", found.held_out);
    let preset = found.preset();
    assert!(preset.contains("[host] think_time = \"30."), "{preset}");
}

#[test]
fn requests_beyond_the_queue_of_the_drive_wait_in_the_host() {
    let registry = registry::standard();
    let limited = format!("[host]\nqueue_depth = 4\n{TRUE}");
    let limited = QueuedSsd::of_scenario("limited", &limited, &registry).expect("a drive");
    let rate = |job: &MeasuredJob| job.delivered[0].iops;
    let [few, many] = [4, 32].map(|depth| delivered(&limited, "randread", depth, &BOTH[..1]));
    assert!((rate(&many) / rate(&few) - 1.0).abs() < 0.02, "{few:?} {many:?}");
    // The wait in the host is part of the latency: Little's law.
    let little = 32e6 / rate(&many);
    assert!((many.delivered[0].mean_us / little - 1.0).abs() < 0.05, "{many:?}");
    let drive = QueuedSsd::of_scenario("true", TRUE, &registry).expect("a drive");
    let unlimited = delivered(&drive, "randread", 32, &BOTH[..1]);
    assert!(rate(&unlimited) > 1.3 * rate(&many), "{unlimited:?} {many:?}");
}

#[test]
fn latencies_of_an_open_loop_have_the_wait_for_the_queue_of_the_drive() {
    let registry = registry::standard();
    let mean_us = |queue: &str| {
        let text = format!("{queue}{TRUE}");
        let drive = QueuedSsd::of_scenario("mine.toml", &text, &registry).expect("a drive");
        offered(&drive, 40e3).delivered[0].mean_us
    };
    let (limited, free) = (mean_us("[host]\nqueue_depth = 4\n"), mean_us(""));
    assert!(limited > 1.2 * free, "{limited} {free}");
}

#[test]
fn a_short_run_has_the_rate_of_a_long_one() {
    let registry = registry::standard();
    let drive = QueuedSsd::of_scenario("true", TRUE, &registry).expect("a drive");
    for (workload, ops) in [("randread", &BOTH[..1]), ("write", &BOTH[1..]), ("randrw", &BOTH)] {
        let job = delivered(&drive, workload, 512, ops);
        let rate = |effort| {
            let bench = JobBench::new(&drive, &drive.point(), &job, effort).expect("a drive");
            let ran = bench.run(&drive, &drive.point()).expect("a run");
            ran.iter().map(|one| one.iops).sum::<f64>()
        };
        let [short, long] = [1, 16].map(rate);
        assert!((short / long - 1.0).abs() < 0.03, "{workload}: {short} {long}");
    }
}

#[test]
fn another_timing_model_is_refused() {
    let registry = registry::standard();
    let (before, _) = TRUE.split_once("[component.ssd.timing]").expect("its timing");
    let other = format!("{before}timing = \"interleaved\"\n");
    let error = QueuedSsd::of_scenario("x", &other, &registry).expect_err("no queues");
    assert!(error.to_string().contains("only `queued`"), "{error}");
}

#[test]
fn the_link_has_a_rate_in_each_direction() {
    let registry = registry::standard();
    let slower = TRUE.replace("host_duplex", "host_write_rate = \"700MB/s\"\nhost_duplex");
    let measured = QueuedSsd::of_scenario("true", &slower, &registry).expect("a drive");
    let drive = QueuedSsd::of_scenario("start", TRUE, &registry).expect("a drive");
    let of = |drive: &QueuedSsd<'_>, workload: &str, (bytes, depth), op| {
        let wanted = DirectionResult { op, iops: 1.0, mean_us: 1.0, percentiles: vec![] };
        let asked = MeasuredJob::new(workload, (bytes, depth), 50, vec![wanted]);
        let asked = asked.expect("a sound job");
        let bench = JobBench::new(drive, &drive.point(), &asked, 2).expect("a drive");
        let ran = bench.run(drive, &drive.point()).expect("a run");
        let delivered = ran.iter().map(SimulatedDirection::delivered).collect();
        MeasuredJob::new(workload, (bytes, depth), 50, delivered).expect("a sound job")
    };
    let reads = [1, 16].map(|depth| of(&measured, "randread", (65_536, depth), Op::Read));
    let sizes = [4_096, 65_536, 262_144];
    let writes = sizes.map(|bytes| of(&measured, "write", (bytes, 1), Op::Write));
    let link = |found: &SsdCalibration<'_>| {
        let it =
            found.constants.iter().find(|constant| constant.name == "controller.host_write_rate");
        it.expect("a constant").clone()
    };
    let jobs = [&reads[..], &writes[..]].concat();
    let found = calibrate_ssd(&drive, &jobs, &[true; 5], &|| true).expect("a fit");
    assert!(found.fitted[1].rate_mean < 0.05, "{:?}", found.constants);
    let rate = link(&found).to.expect("it is identified");
    let rate: f64 = rate.trim_end_matches(" MB/s").parse().expect("a rate");
    assert!((rate / 700.0 - 1.0).abs() < 0.15, "{:?}", found.constants);
    assert!(found.preset().contains("host_write_rate"), "{}", found.preset());
    // Writes alone show one rate, which is that of START's key.
    let found = calibrate_ssd(&drive, &writes, &[true; 3], &|| true).expect("a fit");
    assert_eq!((link(&found).from.as_str(), link(&found).to), ("as controller.host_rate", None));
    assert!(!found.preset().contains("host_write_rate"), "{}", found.preset());
}

#[test]
fn a_queue_of_the_host_that_limits_jobs_is_reported() {
    let registry = registry::standard();
    let limited = format!("[host]\nqueue_depth = 4\n{TRUE}");
    let drive = QueuedSsd::of_scenario("mine.toml", &limited, &registry).expect("a drive");
    let jobs = [1, 4, 16].map(|depth| delivered(&drive, "randread", depth, &BOTH[..1]));
    let warning = |count: usize| {
        let found = calibrate_ssd(&drive, &jobs[..count], &vec![true; count], &|| true);
        found.expect("a fit").warnings().into_iter().find(|it| it.contains("queue_depth"))
    };
    let found = warning(3).expect("16 are more than 4");
    assert!(
        found.starts_with("queue_depth = 4 of [host] in mine.toml limits 1 of 3 jobs"),
        "{found}"
    );
    assert_eq!(warning(2), None);
}

#[test]
fn weaknesses_of_the_jobs_are_named() {
    let registry = registry::standard();
    let drive = QueuedSsd::of_scenario("mine.toml", TRUE, &registry).expect("a drive");
    let jobs = [1, 2, 16].map(|depth| delivered(&drive, "randread", depth, &BOTH[..1]));
    let found = calibrate_ssd(&drive, &jobs, &[true; 3], &|| true).expect("a fit");
    let named = |change: fn(&mut SsdCalibration<'_>)| {
        let mut found = found.clone();
        change(&mut found);
        let text = found.warnings().join("\n");
        ["latency falls", "beyond the fit", "off themselves"].map(|name| text.contains(name))
    };
    assert_eq!(named(|_| {}), [false; 3]);
    assert_eq!(named(|it| it.jobs[0].measured.delivered[0].mean_us *= 2.0), [true, false, false]);
    assert_eq!(named(|it| it.jobs[2].fitted = false), [false, true, false]);
    // A row of which no job was fitted to has nothing to be beyond.
    assert_eq!(named(|it| it.jobs.iter_mut().for_each(|job| job.fitted = false)), [false; 3]);
    assert_eq!(named(|it| it.fitted[1].rate_mean = 0.11), [false, false, true]);
}

#[test]
fn a_constant_that_follows_the_dies_is_not_called_that_of_the_start() {
    let registry = registry::standard();
    let measured = QueuedSsd::of_scenario("true", TRUE, &registry).expect("a drive");
    let reads: Vec<_> =
        [1, 8, 64].map(|depth| delivered(&measured, "randread", depth, &BOTH[..1])).to_vec();
    let start = TRUE.replace("channels = 4", "channels = 1");
    let start = QueuedSsd::of_scenario("mine.toml", &start, &registry).expect("a drive");
    let found = calibrate_ssd(&start, &reads, &[true; 3], &|| true).expect("a fit");
    assert!(found.dies[1].0 * found.dies[1].1 > 2, "{:?}", found.dies);
    let preset = found.preset();
    let line = preset.lines().find(|line| line.starts_with("program_time")).expect("the key");
    assert!(line.contains("not identified: 600.00 us in mine.toml, changed with"), "{line}");
    let constant = found.constants.iter().find(|it| it.name == "program_time").expect("the key");
    assert_eq!((constant.from.as_str(), &constant.to), ("600.00 us", &None));
    assert_ne!(constant.written, constant.from);
}
