//! Random reads beside sequential writes at a limited rate: how much the writes slow the reads.

use super::fit::solve;
use super::percent_off;
use super::tables::{self, FioRow};
use crate::published::parameters;
use crate::{Claim, Experiment, ExperimentError, Findings, Job, JobOutput, Runner};
use hybridsim_report::study::Curve;
use serde::Deserialize;

pub const EXPERIMENT: Experiment = Experiment { id: "ssd/reads-beside-writes", run };

/// Drives and loads of the experiment.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Parameters {
    drives: [MeasuredDrive; 2],
    /// Rates of the writes in MiB/s; first 0.
    rates: Vec<u32>,
    /// Reads outstanding.
    depths: Vec<u32>,
    /// Depths of the pictures.
    drawn: Vec<u32>,
    /// Pages of 4 KiB that one program may take.
    program_pages: Vec<u32>,
}

/// A drive, its runs in the table, and the worth of its rows.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct MeasuredDrive {
    name: String,
    runs: String,
    remark: String,
    is_fitted: bool,
}

/// The rate that is fitted to, at one read outstanding, beside the unloaded drive.
const FITTED: u32 = 250;
/// The highest rate of writes of 128 KiB of the ZN540 alone, in MiB/s, at any depth: it gives the
/// time of a program, and a predictor shares it between reads and writes.
const WRITES_ALONE: f64 = 1_169.0;
/// Dies of the simulated drive, and pages of 4 KiB in a MiB.
const DIES: u32 = 32;
const PAGES_PER_MIB: f64 = 256.0;
/// Writes of 128 KiB.
const WRITES_PER_MIB: f64 = 8.0;
/// Reads of a run, and its shortest duration.
const READS: f64 = 60_000.0;
const SECONDS_MIN: f64 = 2.0;
/// Offered reads, as a part of those that the unloaded drive serves.
const OFFERED: f64 = 1.5;
/// Rate, median and 99th percentile of the reads of a run, and what was written beside them, which
/// may be less than the limit.
#[derive(Clone, Copy)]
struct ReadFigures {
    iops: f64,
    p50_us: f64,
    p99_us: f64,
    written_mib_per_s: f64,
}

/// A compared figure of a run.
type ReadFigure = fn(&ReadFigures) -> f64;

const VALUES: [(&str, ReadFigure); 3] = [
    ("reads per second", |reads| reads.iops),
    ("the median", |reads| reads.p50_us),
    ("the 99th percentile", |reads| reads.p99_us),
];

impl ReadFigures {
    fn simulated(ran: &JobOutput) -> Self {
        let reads = ran.tenant("reads");
        let us = |ns: Option<u64>| ns.map_or(f64::NAN, |ns| ns as f64 / 1e3);
        let writes = ran.tenant("writes").and_then(|writes| writes.iops);
        Self {
            iops: reads.and_then(|reads| reads.iops).unwrap_or(f64::NAN),
            p50_us: us(reads.and_then(|reads| reads.latency_ns.read.p50)),
            p99_us: us(reads.and_then(|reads| reads.latency_ns.read.p99)),
            written_mib_per_s: writes.unwrap_or(0.0) / WRITES_PER_MIB,
        }
    }
}

/// The measured reads of one drive.
struct MeasuredReads<'a> {
    rows: &'a [FioRow],
    drive: &'a MeasuredDrive,
}

impl MeasuredReads<'_> {
    fn at(&self, rate: u32, depth: u32) -> Result<ReadFigures, ExperimentError> {
        let member = format!("rate_inteference/{}_{rate}_{depth}", self.drive.runs);
        let of = |dir: &str| self.rows.iter().find(|row| row.is_of(&member, dir));
        let written_mib_per_s =
            of("write").map_or(0.0, |row| row.mb_per_s * 1e6 / f64::from(1 << 20));
        let found = of("read").and_then(|row| {
            let (p50_us, p99_us) = (row.p50_us?, row.p99_us?);
            Some(ReadFigures { iops: row.iops, p50_us, p99_us, written_mib_per_s })
        });
        found.ok_or_else(|| ExperimentError::of("nothing measured", &member))
    }
}

/// The constants that are fitted.
#[derive(Clone, Copy)]
struct SuspensionConstants {
    read_us: f64,
    /// The time of a program between the points at which it can be suspended.
    interval_us: f64,
    program_pages: u32,
}

impl SuspensionConstants {
    /// The time of a program with which all dies write as fast as the drive does.
    fn program_us(&self) -> f64 {
        1e6 * f64::from(DIES * self.program_pages) / (PAGES_PER_MIB * WRITES_ALONE)
    }

    /// Reads at `depth` beside writes of `rate` MiB/s, where the unloaded drive serves `unloaded`.
    fn job(&self, rate: u32, depth: u32, unloaded: f64) -> Job {
        let seconds = (READS / unloaded).max(SECONDS_MIN);
        // Two writes in the whole run are none.
        let between_ms = if rate == 0 { 450.0 * seconds } else { 125.0 / f64::from(rate) };
        let duration = format!("\"{:.0}us\"", 1e6 * seconds);
        let us = |us: f64| format!("\"{us:.2}us\"");
        // Two programs of every die.
        let buffer = format!("\"{}KiB\"", 8 * DIES * self.program_pages);
        Job::paper("ssd/interference.toml")
            .named(format!("{rate} MiB/s, {depth} outstanding"))
            .in_full()
            .set("workload.reads.queue_depth", depth)
            .set("workload.reads.generator.interarrival_ms", 1e3 / (OFFERED * unloaded))
            .set("workload.reads.generator.duration", &duration)
            .set("workload.writes.generator.interarrival_ms", between_ms)
            .set("workload.writes.generator.duration", &duration)
            .set("component.ssd.read_time", us(self.read_us))
            .set("component.ssd.program_time", us(self.program_us()))
            .set("component.ssd.timing.program_suspend_interval", us(self.interval_us))
            .set("component.ssd.program_pages", self.program_pages)
            .set("component.ssd.timing.write_buffer", buffer)
            .set("component.ssd.ftl.stripe_pages", self.program_pages)
    }
}

/// The read time by the rate of the unloaded drive; the interval between points of suspension by
/// the rate of reads beside one rate of the writes, for the size of a program that meets their 99th
/// percentile there.
fn fitted(
    runner: &Runner,
    measured: &MeasuredReads<'_>,
    program_pages: &[u32],
) -> Result<SuspensionConstants, ExperimentError> {
    let (unloaded, loaded) = (measured.at(0, 1)?, measured.at(FITTED, 1)?);
    let run = |with: SuspensionConstants, rate: u32| -> Result<ReadFigures, ExperimentError> {
        Ok(ReadFigures::simulated(&runner.run(&[with.job(rate, 1, unloaded.iops)])?[0]))
    };
    let start = SuspensionConstants { read_us: 60.0, interval_us: 200.0, program_pages: 24 };
    let read_us = solve("read time", (30.0, 90.0), unloaded.iops, |read_us| {
        Ok(run(SuspensionConstants { read_us, ..start }, 0)?.iops)
    })?;
    let mut best: Option<(f64, SuspensionConstants)> = None;
    let mut failed = None;
    for &program_pages in program_pages {
        let with = SuspensionConstants { read_us, program_pages, ..start };
        let range = (40.0, 800.0);
        let solved = solve("interval of suspension", range, loaded.iops, |interval_us| {
            Ok(run(SuspensionConstants { interval_us, ..with }, FITTED)?.iops)
        });
        let interval_us = match solved {
            Ok(interval_us) => interval_us,
            // With programs of this size no interval meets the rate; others may.
            Err(error) => {
                failed = Some(error);
                continue;
            }
        };
        let with = SuspensionConstants { interval_us, ..with };
        let error = libm::log(run(with, FITTED)?.p99_us / loaded.p99_us).abs();
        if best.is_none_or(|(least, _)| error < least) {
            best = Some((error, with));
        }
    }
    best.map(|(_, with)| with).ok_or_else(|| failed.expect("every size fits or fails"))
}

/// A run with and without writes, measured and simulated.
struct LoadPoint {
    rate: u32,
    depth: u32,
    theirs: [ReadFigures; 2],
    ours: [ReadFigures; 2],
}

impl LoadPoint {
    /// The ratio of the loaded to the unloaded drive.
    fn ratio(reads: &[ReadFigures; 2], value: ReadFigure) -> f64 {
        value(&reads[1]) / value(&reads[0])
    }
}

/// A ratio predicted for a point.
type Predictor<'a> = &'a dyn Fn(&LoadPoint) -> f64;

/// Mean error of a ratio, in percent.
fn mean_error(points: &[&LoadPoint], value: ReadFigure, predicted: Predictor<'_>) -> f64 {
    let ratios =
        points.iter().map(|point| predicted(point) / LoadPoint::ratio(&point.theirs, value));
    percent_off(ratios)
}

fn points(
    runner: &Runner,
    Parameters { rates, depths, .. }: &Parameters,
    measured: &MeasuredReads<'_>,
    with: SuspensionConstants,
) -> Result<Vec<LoadPoint>, ExperimentError> {
    let mut points = Vec::new();
    for &depth in depths {
        let unloaded = measured.at(0, depth)?;
        let job = |rate: &u32| with.job(*rate, depth, unloaded.iops);
        let jobs: Vec<Job> = rates.iter().map(job).collect();
        let ran: Vec<ReadFigures> = runner.run(&jobs)?.iter().map(ReadFigures::simulated).collect();
        for (&rate, &ours) in rates.iter().zip(&ran).skip(1) {
            let theirs = [unloaded, measured.at(rate, depth)?];
            points.push(LoadPoint { rate, depth, theirs, ours: [ran[0], ours] });
        }
    }
    Ok(points)
}

/// Rows of the mean errors of the ratios at `points`. Those of the fitted drive are `given`: the
/// model was chosen after a look at all of them.
fn rows(findings: &mut Findings, drive: &MeasuredDrive, words: &str, points: &[&LoadPoint]) {
    let mut row = |id: &str, what: &str, none: f64, shared: f64, ours: f64| {
        let percent = |value: f64| format!("{value:.0}");
        let claim = Claim::of(id).with("name", &drive.name).with("what", what);
        let claim = claim.with("words", words).with("looked_at", &drive.remark);
        let claim = claim.with("none", percent(none)).with("shared", percent(shared));
        findings.row(claim.given_if(drive.is_fitted).ours(ours));
    };
    for (what, value) in VALUES {
        let ours = mean_error(points, value, &|point| LoadPoint::ratio(&point.ours, value));
        let none = mean_error(points, value, &|_| 1.0);
        let shared =
            |point: &LoadPoint| 1.0 - (point.theirs[1].written_mib_per_s / WRITES_ALONE).min(0.99);
        let shared = mean_error(points, value, &shared);
        let id = match what == VALUES[0].0 {
            true => "ssd/rate-beside-writes",
            false => "ssd/latency-beside-writes",
        };
        row(id, what, none, shared, ours);
    }
    let written = points.iter().map(|point| {
        let [theirs, ours] = [&point.theirs, &point.ours].map(|reads| reads[1].written_mib_per_s);
        ours / theirs
    });
    row("ssd/written-beside-reads", "", f64::NAN, f64::NAN, percent_off(written));
}

/// Pictures of the ratios by the rate of the writes.
fn plots(findings: &mut Findings, name: &str, drawn: &[u32], points: &[LoadPoint]) {
    for depth in drawn {
        let drawn = || points.iter().filter(|point| point.depth == *depth);
        let mut curves = Vec::new();
        for (what, value) in VALUES {
            let of = |reads: fn(&LoadPoint) -> &[ReadFigures; 2]| {
                drawn().map(|it| (f64::from(it.rate), LoadPoint::ratio(reads(it), value))).collect()
            };
            curves.push(Curve::ours(&format!("{what} simulated"), of(|point| &point.ours)));
            curves.push(Curve::published(&format!("{what} measured"), of(|point| &point.theirs)));
        }
        findings.plot("ssd/reads-beside-writes", &[("name", &name), ("depth", depth)], curves);
    }
}

fn run(runner: &Runner) -> Result<Findings, ExperimentError> {
    let all: Vec<FioRow> = tables::read(runner, "mixed_interference")?;
    let parameters: Parameters = parameters("ssd/reads-beside-writes");
    let mut findings = Findings::default();
    let drives = parameters.drives.each_ref().map(|drive| MeasuredReads { rows: &all, drive });
    let with = fitted(runner, &drives[0], &parameters.program_pages)?;
    let SuspensionConstants { read_us, interval_us, program_pages } = with;
    for measured in &drives {
        let (points, drive) = (points(runner, &parameters, measured, with)?, measured.drive);
        if drive.is_fitted {
            let is_it = |point: &&LoadPoint| (point.rate, point.depth) == (FITTED, 1);
            let point = points.iter().find(is_it).expect("the fitted rate is simulated");
            let claim = Claim::of("ssd/fitted-rate-beside-writes")
                .with("name", &drive.name)
                .with("rate", FITTED)
                .with("dies", DIES)
                .with("read", read_us)
                .with("kib", 4 * program_pages)
                .with("program", with.program_us() / 1e3)
                .with("interval", interval_us)
                .published(LoadPoint::ratio(&point.theirs, VALUES[0].1));
            findings.row(claim.ours(LoadPoint::ratio(&point.ours, VALUES[0].1)));
        }
        let wanted =
            |point: &&LoadPoint| !drive.is_fitted || (point.rate, point.depth) != (FITTED, 1);
        let (one, more): (Vec<_>, Vec<_>) =
            points.iter().filter(wanted).partition(|point| point.depth == 1);
        rows(&mut findings, drive, "one read outstanding", &one);
        rows(&mut findings, drive, "4 to 32 reads outstanding", &more);
        plots(&mut findings, &drive.name, &parameters.drawn, &points);
    }
    Ok(findings)
}
