//! A simulated drive whose constants are known is found again from its log, and what is no log or
//! no drive says so.

use super::replay::{Script, Step, replay};
use super::*;
use hybridsim_config::registry::Registry;
use hybridsim_engine::{Lba, Op, Request, SimDuration, SimTime, Stream};
use hybridsim_simulation::registry::standard;
use hybridsim_workload::record::Record;
use std::sync::LazyLock;
use std::sync::atomic::AtomicBool;

const START: &str = "seagate-barracuda-2gb";
/// Constants of the drive that is measured, other than the start's, in ms (ms per sector).
const TRUE: [(&str, f64); 5] = [
    ("read_hit_overhead", 0.45),
    ("read_miss_overhead", 1.1),
    ("write_hit_overhead", 1.3),
    ("host_rate", 0.1),
    ("host_write_rate", 0.16),
];

fn registry() -> &'static Registry {
    static REGISTRY: LazyLock<Registry> = LazyLock::new(standard);
    &REGISTRY
}

fn named(name: &str) -> Constant {
    CONSTANTS.into_iter().find(|constant| constant.name == name).expect("it is one of them")
}

/// Reads and writes as in the published logs: two thirds reads, a fifth goes on where the one
/// before ended, a fifth stays near, pauses of 40 ms on average.
fn requests(count: usize, capacity: u64) -> Vec<(SimDuration, Request)> {
    let mut stream = Stream::new(5, "requests");
    let mut before = Request::new(Op::Read, Lba(0), 8);
    let mut all = Vec::new();
    for _ in 0..count {
        let sectors = 4 * (1 + stream.below(4)) as u32;
        let kind = stream.below(5);
        let op = if stream.below(3) < 2 { Op::Read } else { Op::Write };
        let request = match kind {
            0 => Request::new(before.op, before.end(), sectors),
            1 => Request::new(op, Lba(before.end().0 + stream.below(60)), sectors),
            _ => Request::new(op, Lba(stream.below(capacity - 4096)), sectors),
        };
        if request.end().0 < capacity {
            all.push((SimDuration::from_us(1000 + stream.below(80_000)), request));
            before = request;
        }
    }
    all
}

/// The log of the drive with the true values, each response up to a fiftieth of a millisecond off,
/// each random request at another angle than the log says if the layout is not `known`.
fn log(known: bool) -> Log {
    let start = DiskDrive::read(START, registry()).expect("a preset");
    log_of(&start.with(TRUE.into_iter().map(|(name, value)| (named(name), value))), 3000, known)
}

/// The log of `count` requests of the drive `truth`.
fn log_of(truth: &DiskDrive<'_>, count: usize, known: bool) -> Log {
    let capacity = truth.build().expect("a drive").capacity();
    let requests = requests(count, capacity);
    let step = |&(pause, request): &(SimDuration, Request)| Step { request, pause, angle_of: None };
    let steps: Vec<Step> = requests.iter().map(step).collect();
    let script = Script { steps: steps.into(), turn: truth.turn() };
    let latencies = replay(truth, &script, requests.len()).expect("it runs");
    let mut noise = Stream::new(7, "noise");
    let (mut at, mut records) = (SimTime::ZERO, Vec::new());
    for ((pause, request), ms) in requests.iter().zip(latencies) {
        let turned = if known { 0 } else { noise.below(truth.turn().as_ns()) };
        at = at + *pause + SimDuration::from_ns(turned);
        let off = noise.below(40_000) as f64 - 20_000.0;
        let response = SimDuration::from_ns_f64(ms * 1e6 + off);
        records.push(Record { at, request: *request, response: Some(response) });
        at += response;
    }
    Log::new("measured".to_owned(), &records, 1).unwrap_or_else(|message| panic!("{message}"))
}

/// Demands on a fit to the log of the simulated drive.
struct FitDemands {
    /// Greatest error of a constant that moved, as a part of its disturbance.
    off_max: f64,
    /// Disturbed constants a fit may leave as they were, because the log does not identify them.
    unidentified_max: usize,
    /// Greatest part of the distance of the part held out that is left.
    left_max: f64,
}

/// Fits `log`, both ways; constants that were not disturbed move by no more than 0.1.
fn check(log: &Log, wanted: &FitDemands) -> DiskCalibration<'static> {
    let start = DiskDrive::read(START, registry()).expect("a preset");
    let split = Split { parts: 2, whole: false };
    let found = calibrate_disk(&start, std::slice::from_ref(log), split);
    let found = found.unwrap_or_else(|error| panic!("{error}"));
    for fit in &found.fits {
        let mut unidentified = 0;
        for change in &fit.constants {
            let (from, to) = change.numbers;
            let from = from.expect("it has a value");
            match (TRUE.iter().find(|(name, _)| *name == change.name), to) {
                (Some(_), None) => unidentified += 1,
                (Some((name, truth)), Some(to)) => {
                    let off = (to - truth).abs() / (truth - from).abs();
                    assert!(off <= wanted.off_max, "{name}: {to} instead of {truth}, from {from}");
                }
                (None, to) => {
                    let to = to.unwrap_or(from);
                    assert!((to - from).abs() <= 0.1, "{}: {from} to {to}", change.name);
                }
            }
        }
        assert!(
            unidentified <= wanted.unidentified_max,
            "{unidentified} of {} were not identified",
            TRUE.len()
        );
        let held_out = fit.on_held_out.expect("a half is held out");
        assert!(held_out.after_ms < wanted.left_max * held_out.before_ms, "{held_out:?}");
    }
    found
}

#[test]
fn a_drive_whose_angles_can_be_followed_is_found_again_within_a_tenth() {
    let wanted = FitDemands { off_max: 0.1, unidentified_max: 0, left_max: 0.6 };
    let found = check(&log(true), &wanted);
    assert!(found.crossed.after_ms < 0.2 * found.crossed.before_ms, "{:?}", found.crossed);
    // What is written is a preset with the fitted values, each with its source.
    let text = found.preset();
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("mine.toml");
    std::fs::write(&path, &text).expect("it can be written");
    let again = DiskDrive::read(&path.to_string_lossy(), registry())
        .unwrap_or_else(|error| panic!("{error}"));
    for (constant, (value, change)) in
        CONSTANTS.iter().zip(again.constants().iter().zip(&found.fits[0].constants))
    {
        let (from, to) = change.numbers;
        let off = (value.expect("a value") - to.or(from).expect("a value")).abs();
        assert!(off < 1e-6, "{}: {off}", constant.name);
    }
    let sourced = |line: &str| line.contains("# fitted to measured") || line.contains("# from ");
    let keys = text.lines().filter(|line| !line.is_empty() && !line.starts_with([' ', '#', ']']));
    for line in keys.filter(|line| !line.ends_with('[') && !line.contains("[")) {
        assert!(sourced(line) || line.contains("# as "), "{line}");
    }
    assert!(text.contains("; not identified by the log"), "{text}");
}

#[test]
fn a_drive_whose_angles_are_chance_is_found_again_within_a_quarter_of_the_truth() {
    // Most of what is left is at what angles the platter stood.
    check(&log(false), &FitDemands { off_max: 0.25, unidentified_max: 3, left_max: 1.0 });
}

#[test]
fn a_drive_that_is_as_its_description_says_stays_so() {
    let start = DiskDrive::read(START, registry()).expect("a preset");
    let mut log = log(true);
    let step =
        |line: &LoggedRequest| Step { request: line.request, pause: line.pause, angle_of: None };
    let steps: Vec<Step> = log.lines.iter().map(step).collect();
    let script = Script { steps: steps.into(), turn: start.turn() };
    let ours = replay(&start, &script, log.lines.len()).expect("it runs");
    let as_simulated =
        log.lines.iter().zip(ours).map(|(line, ms)| LoggedRequest { response_ms: ms, ..*line });
    log.lines = as_simulated.collect();
    let found = calibrate_disk(&start, &[log], Split { parts: 3, whole: true });
    let found = found.unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(found.fits.len(), 4);
    for change in found.fits.iter().flat_map(|fit| &fit.constants) {
        assert_eq!(change.to, None, "{}", change.name);
    }
    assert!(found.fits.iter().all(|fit| fit.seeks.is_none()));
}

#[test]
fn an_interrupted_calibration_finds_nothing() {
    let log = log(true);
    let interrupted = AtomicBool::new(true);
    let start = DiskDrive::read(START, registry()).expect("a preset").until(&interrupted);
    let step =
        |line: &LoggedRequest| Step { request: line.request, pause: line.pause, angle_of: None };
    let steps: Vec<Step> = log.lines.iter().map(step).collect();
    let script = Script { steps: steps.into(), turn: start.turn() };
    assert_eq!(replay(&start, &script, 9), Ok(vec![0.0; 9]), "it does not run");
    let found = calibrate_disk(&start, std::slice::from_ref(&log), Split { parts: 2, whole: true });
    assert!(matches!(found, Err(CalibrateError::Interrupted)));
    assert!(matches!(floor(&start, &log), Err(CalibrateError::Interrupted)));
}

#[test]
fn a_bent_seek_curve_is_found_again() {
    let start = DiskDrive::read(START, registry()).expect("a preset");
    let bend = [(0.02, 0.0), (0.1, 2.0), (0.3, 2.0), (0.6, 0.0)];
    let bent = SeekCorrection { read_ms: bend.to_vec(), write_ms: Vec::new() };
    let log = log_of(&start.with_seeks(&bent), 9000, false);
    let found = calibrate_disk(&start, &[log], Split { parts: 2, whole: false });
    let found = found.unwrap_or_else(|error| panic!("{error}"));
    let Change { before_ms, after_ms } = found.crossed;
    assert!(after_ms < 0.5 * before_ms, "{before_ms} to {after_ms}");
    let fit = &found.fits[0];
    let seeks = fit.seeks.as_ref().expect("a correction");
    assert!(seeks.write_ms.is_empty(), "its write cache hides them");
    // Overheads may take part of it, the same at every distance.
    let bend = seeks.at(0.2, false) - seeks.at(0.7, false);
    assert!((bend - 2.0).abs() < 0.6, "{seeks:?}");
    let many = |band: &&DistanceChange| band.op == "read" && band.requests > 200;
    assert!(fit.distances.iter().filter(many).count() > 2, "{:?}", fit.distances);
    for band in fit.distances.iter().filter(many) {
        let left = (band.measured_ms - band.mean.after_ms).abs();
        assert!(left < 0.5, "{band:?}");
    }
    // The preset has the curve.
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("bent.toml");
    std::fs::write(&path, found.preset()).expect("it can be written");
    let again = DiskDrive::read(&path.to_string_lossy(), registry())
        .unwrap_or_else(|error| panic!("{error}"));
    let with = |drive: &DiskDrive<'_>| {
        let script = Script { steps: found_steps(drive), turn: drive.turn() };
        replay(drive, &script, 500).expect("it runs")
    };
    let constants = CONSTANTS.into_iter().zip(&fit.constants);
    let fitted = constants.filter_map(|(it, change)| Some((it, change.numbers.1?)));
    assert_eq!(with(&again), with(&start.with(fitted).with_seeks(seeks)));
}

/// A log too short to show the curve leaves it as it is, however wrong the drive is.
#[test]
fn a_short_log_corrects_no_curve() {
    let start = DiskDrive::read(START, registry()).expect("a preset");
    let bent = SeekCorrection { read_ms: vec![(0.1, 3.0), (0.2, 0.0)], write_ms: Vec::new() };
    let log = log_of(&start.with_seeks(&bent), 1000, false);
    let found = calibrate_disk(&start, &[log], Split { parts: 2, whole: true });
    let found = found.unwrap_or_else(|error| panic!("{error}"));
    assert!(found.fits[1..].iter().all(|fit| fit.seeks.is_none()), "halves of a half are short");
}

/// 500 requests.
fn found_steps(drive: &DiskDrive<'_>) -> std::sync::Arc<[Step]> {
    let capacity = drive.build().expect("a drive").capacity();
    let step = |(pause, request): (SimDuration, Request)| Step { request, pause, angle_of: None };
    requests(500, capacity).into_iter().map(step).collect()
}

#[test]
fn what_is_no_log_of_a_drive_says_so() {
    let record = |at_us: u64, lba: u64, response_us: Option<u64>| Record {
        at: SimTime::from_ns(at_us * 1000),
        request: Request::new(Op::Read, Lba(lba), 8),
        response: response_us.map(SimDuration::from_us),
    };
    let many = |spacing_us: u64, response: Option<u64>| -> Vec<Record> {
        (0..600).map(|at| record(at * spacing_us, at * 1000, response)).collect()
    };
    let check = |records: &[Record], volumes: usize, word: &str| {
        let error = Log::new("log".to_owned(), records, volumes).expect_err(word);
        assert!(error.contains(word), "{error}");
    };
    check(&many(10_000, None), 1, "response_ns");
    check(&many(10_000, Some(0)), 1, "response_ns");
    check(&many(10_000, Some(5000))[..100], 1, "at least 500");
    check(&[], 1, "at least 500");
    check(&many(10_000, Some(15_000)), 1, "iodepth=1");
    check(&many(10_000, Some(5000)), 3, "3 volumes");
    let mut beyond = many(10_000, Some(5000));
    beyond[300].request.lba = Lba(1 << 40);
    let log = Log::new("log".to_owned(), &beyond, 1).expect("a log");
    let start = DiskDrive::read(START, registry()).expect("a preset");
    let split = Split { parts: 2, whole: false };
    let error = calibrate_disk(&start, &[log], split).expect_err("beyond").to_string();
    assert!(error.contains("request 301") && error.contains("larger drive"), "{error}");
}

/// A value at a limit compensates for something else, at the lower one as at the upper.
#[test]
fn a_constant_at_a_limit_is_put_back() {
    let start = DiskDrive::read(START, registry()).expect("a preset");
    let name = "write_hit_overhead";
    let log = log_of(&start.with(std::iter::once((named(name), 0.0))), 3000, true);
    let found = calibrate_disk(&start, &[log], Split { parts: 2, whole: true });
    let found = found.unwrap_or_else(|error| panic!("{error}"));
    let change = found.fits[0].constants.iter().find(|change| change.name == name);
    assert_eq!(change.expect("it is one of them").to, None);
}

#[test]
fn a_write_cache_that_the_log_does_not_show_is_asked_about() {
    let start = DiskDrive::read(START, registry()).expect("a preset");
    assert!(start.hides_writes());
    let warnings = |cached: bool| {
        let log = log_of(&start.with_write_cache(cached), 1000, false);
        let found = calibrate_disk(&start, &[log], Split { parts: 2, whole: false });
        found.unwrap_or_else(|error| panic!("{error}")).warnings().join("\n")
    };
    assert!(warnings(false).contains("write_cache = false"), "{}", warnings(false));
    assert!(!warnings(true).contains("write_cache = false"));
}

#[test]
fn a_fit_that_is_worse_than_its_start_says_so() {
    let change = |before_ms, after_ms| Change { before_ms, after_ms };
    let fit = |on_fitted, on_held_out| DiskFit {
        fitted: "first half".to_owned(),
        held_out: Some("second half".to_owned()),
        on_fitted,
        on_held_out: Some(on_held_out),
        other_angles: on_held_out,
        floor: Floor { between_runs_ms: 0.1, farthest_run_ms: 0.1, to_log_ms: 0.2 },
        is_close: false,
        classes: Vec::new(),
        constants: Vec::new(),
        seeks: None,
        distances: Vec::new(),
        held_out_ms: [Vec::new(), Vec::new(), Vec::new()],
    };
    let of = |on_fitted, on_held_out| {
        let found = DiskCalibration {
            start: "mine".to_owned(),
            logs: Vec::new(),
            requests: 0,
            crossed: change(0.0, 0.0),
            floor: Floor { between_runs_ms: 0.1, farthest_run_ms: 0.1, to_log_ms: 0.2 },
            fits: vec![fit(on_fitted, on_held_out)],
            drive: None,
        };
        found.warnings()
    };
    assert_eq!(of(change(0.2, 0.1), change(0.2, 0.2)), Vec::<String>::new());
    let worse = of(change(0.2, 0.1), change(0.2, 0.21));
    assert!(worse.len() == 1 && worse[0].contains("second half, held out"), "{worse:?}");
    assert_eq!(of(change(0.2, 0.3), change(0.2, 0.21)).len(), 2);
}

#[test]
fn what_is_no_drive_says_so() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let check = |name: &str, text: Option<&str>, word: &str| {
        let path = folder.path().join(name);
        let name = match text {
            Some(text) => {
                std::fs::write(&path, text).expect("it can be written");
                path.to_string_lossy().into_owned()
            }
            None => name.to_owned(),
        };
        let error = DiskDrive::read(&name, registry()).expect_err(word).to_string();
        assert!(error.contains(word), "{error}");
    };
    check("seagate-baracuda-2gb", None, "did you mean");
    check("sata-ssd", None, "no hard disk");
    check("nowhere.toml", None, "cannot read");
    check("broken.toml", Some("kind = "), "broken.toml");
    check("other.toml", Some("kind = \"hard-disk\"\nrmp = 3\n"), "rmp");
    let disk = |name: &str| format!("[component.{name}]\npreset = \"{START}\"\n");
    let two = format!(
        "system = \"all\"\n[component.all]\nkind = \"stripe\"\nmembers = [\"a\", \"b\"]\n{}{}",
        disk("a"),
        disk("b")
    );
    check("two.toml", Some(&two), "2 hard disks (a, b)");
}
