//! Random reads beside sequential writes at a limited rate: how much the writes slow the reads.

use super::fit::solve;
use super::{percent_off, tables};
use crate::{Claim, Experiment, ExperimentError, Findings, Job, JobOutput, Runner};
use hybridsim_report::study::{Axis, Curve, Plot};
use serde::Deserialize;

pub const EXPERIMENT: Experiment = Experiment { id: "ssd/reads-beside-writes", run };

/// The drive that is fitted, and one of which nothing is used: names, and their runs in the table.
/// The second is no blind judge: it is probably the same model, as its ratios differ from those of
/// the first by less than 1 % on average.
const DRIVES: [(&str, &str); 2] =
    [("WD Ultrastar DC ZN540", "zns"), ("nvme-a (not named)", "nvme")];
/// Rates of the writes in MiB/s.
const RATES: [u32; 7] = [0, 10, 50, 100, 250, 500, 1_000];
/// The rate that is fitted to, at one read outstanding, beside the unloaded drive.
const FITTED: u32 = 250;
/// Reads outstanding.
const DEPTHS: [u32; 5] = [1, 4, 8, 16, 32];
/// Depths of the pictures.
const DRAWN: [u32; 2] = [1, 16];
/// Pages of 4 KiB that one program may take: three pages of 16 KiB on each of 1 to 8 planes.
const PROGRAM_PAGES: [u32; 4] = [12, 24, 48, 96];
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
/// What is offered, of what the unloaded drive serves.
const OFFERED: f64 = 1.5;
/// Goal of the mean error of a ratio.
const GOAL: f64 = 0.10;

/// What the rows of the two drives are worth.
const MECHANISM: &str = "looked at when the model was made";
const SISTER: &str = "no blind judge: probably the model that was looked at";

/// A row of the table of fio's results.
#[derive(Debug, Deserialize)]
struct Row {
    engine: String,
    dir: String,
    iops: f64,
    #[serde(rename = "MBps")]
    mb_per_s: f64,
    p50_us: Option<f64>,
    p99_us: Option<f64>,
    member: String,
}

/// Rate, median and 99th percentile of the reads of a run, and what was written beside them, which
/// may be less than the limit.
#[derive(Clone, Copy)]
struct Reads {
    iops: f64,
    p50_us: f64,
    p99_us: f64,
    written_mib_per_s: f64,
}

/// What is compared, of a run.
type Value = fn(&Reads) -> f64;

const VALUES: [(&str, Value); 3] = [
    ("reads per second", |reads| reads.iops),
    ("the median", |reads| reads.p50_us),
    ("the 99th percentile", |reads| reads.p99_us),
];

impl Reads {
    fn simulated(ran: &JobOutput) -> Self {
        let tenants = ran.results.tenants.as_ref();
        let reads = tenants.and_then(|it| it.by_name.get("reads"));
        let us = |ns: Option<u64>| ns.map_or(f64::NAN, |ns| ns as f64 / 1e3);
        let writes = tenants.and_then(|it| it.by_name.get("writes")?.iops);
        let none = Self {
            iops: f64::NAN,
            p50_us: f64::NAN,
            p99_us: f64::NAN,
            written_mib_per_s: f64::NAN,
        };
        reads.map_or(none, |reads| Self {
            iops: reads.iops.unwrap_or(f64::NAN),
            p50_us: us(reads.latency_ns.read.p50),
            p99_us: us(reads.latency_ns.read.p99),
            written_mib_per_s: writes.unwrap_or(0.0) / WRITES_PER_MIB,
        })
    }
}

/// The measured reads of one drive.
struct Measured<'a> {
    rows: &'a [Row],
    runs: &'static str,
}

impl Measured<'_> {
    fn at(&self, rate: u32, depth: u32) -> Result<Reads, ExperimentError> {
        let member = format!("rate_inteference/{}_{rate}_{depth}", self.runs);
        let of = |direction: &str| {
            let is_it = |row: &&Row| {
                (row.member.as_str(), row.engine.as_str(), row.dir.as_str())
                    == (member.as_str(), "spdk", direction)
            };
            self.rows.iter().find(is_it)
        };
        let written_mib_per_s =
            of("write").map_or(0.0, |row| row.mb_per_s * 1e6 / f64::from(1 << 20));
        let found = of("read").and_then(|row| {
            let (p50_us, p99_us) = (row.p50_us?, row.p99_us?);
            Some(Reads { iops: row.iops, p50_us, p99_us, written_mib_per_s })
        });
        found.ok_or_else(|| ExperimentError::Failed(format!("nothing measured: {member}")))
    }
}

/// The constants that are fitted.
#[derive(Clone, Copy)]
struct Constants {
    read_us: f64,
    /// How long a program runs between the points at which it can be suspended.
    interval_us: f64,
    program_pages: u32,
}

impl Constants {
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
fn fitted(runner: &Runner, measured: &Measured<'_>) -> Result<Constants, ExperimentError> {
    let (unloaded, loaded) = (measured.at(0, 1)?, measured.at(FITTED, 1)?);
    let run = |with: Constants, rate: u32| -> Result<Reads, ExperimentError> {
        Ok(Reads::simulated(&runner.run(&[with.job(rate, 1, unloaded.iops)])?[0]))
    };
    let start = Constants { read_us: 60.0, interval_us: 200.0, program_pages: 24 };
    let read_us = solve("read time", (30.0, 90.0), unloaded.iops, |read_us| {
        Ok(run(Constants { read_us, ..start }, 0)?.iops)
    })?;
    let mut best: Option<(f64, Constants)> = None;
    let mut failed = None;
    for program_pages in PROGRAM_PAGES {
        let with = Constants { read_us, program_pages, ..start };
        let range = (40.0, 800.0);
        let solved = solve("interval of suspension", range, loaded.iops, |interval_us| {
            Ok(run(Constants { interval_us, ..with }, FITTED)?.iops)
        });
        let interval_us = match solved {
            Ok(interval_us) => interval_us,
            // With programs of this size no interval meets the rate; others may.
            Err(error) => {
                failed = Some(error);
                continue;
            }
        };
        let with = Constants { interval_us, ..with };
        let error = libm::log(run(with, FITTED)?.p99_us / loaded.p99_us).abs();
        if best.is_none_or(|(least, _)| error < least) {
            best = Some((error, with));
        }
    }
    best.map(|(_, with)| with).ok_or_else(|| failed.expect("every size fits or fails"))
}

/// A run with and without writes, measured and simulated.
struct Point {
    rate: u32,
    depth: u32,
    theirs: [Reads; 2],
    ours: [Reads; 2],
}

impl Point {
    /// The ratio of the loaded to the unloaded drive.
    fn ratio(reads: &[Reads; 2], value: Value) -> f64 {
        value(&reads[1]) / value(&reads[0])
    }
}

/// What a predictor says the ratio is at a point.
type Predictor<'a> = &'a dyn Fn(&Point) -> f64;

/// Mean error of a ratio, in percent.
fn mean_error(points: &[&Point], value: Value, predicted: Predictor<'_>) -> f64 {
    let ratios = points.iter().map(|point| predicted(point) / Point::ratio(&point.theirs, value));
    percent_off(ratios)
}

fn points(
    runner: &Runner,
    measured: &Measured<'_>,
    with: Constants,
) -> Result<Vec<Point>, ExperimentError> {
    let mut points = Vec::new();
    for depth in DEPTHS {
        let unloaded = measured.at(0, depth)?;
        let jobs = RATES.map(|rate| with.job(rate, depth, unloaded.iops));
        let ran: Vec<Reads> = runner.run(&jobs)?.iter().map(Reads::simulated).collect();
        for (&rate, &ours) in RATES.iter().zip(&ran).skip(1) {
            let theirs = [unloaded, measured.at(rate, depth)?];
            points.push(Point { rate, depth, theirs, ours: [ran[0], ours] });
        }
    }
    Ok(points)
}

/// Rows of the mean errors of the ratios at `points`. Those of the fitted drive are `given`: the
/// model was chosen after a look at all of them.
fn rows(findings: &mut Findings, (name, is_fitted): (&str, bool), words: &str, points: &[&Point]) {
    let mut add = |claim: Claim| findings.row(if is_fitted { claim.given() } else { claim });
    let looked_at = if is_fitted { MECHANISM } else { SISTER };
    for (what, value) in VALUES {
        let ours = mean_error(points, value, &|point| Point::ratio(&point.ours, value));
        let none = mean_error(points, value, &|_| 1.0);
        let mut remark =
            format!("{looked_at}; reads that no write slows would be off by {none:.0} %");
        if what == VALUES[0].0 {
            let shared =
                |point: &Point| 1.0 - (point.theirs[1].written_mib_per_s / WRITES_ALONE).min(0.99);
            let shared = mean_error(points, value, &shared);
            remark += &format!("; a share of the bandwidth, by {shared:.0} %");
        }
        add(Claim::new("–", format!("{name}: {what} beside writes, {words}, mean error"))
            .unit("%")
            .at_most("", 100.0 * GOAL)
            .ours(ours)
            .remark(&remark)
            .if_it_differs("see the pictures for the rates at which it does"));
    }
    let written = points.iter().map(|point| {
        let [theirs, ours] = [&point.theirs, &point.ours].map(|reads| reads[1].written_mib_per_s);
        ours / theirs
    });
    add(Claim::new("–", format!("{name}: written beside reads, {words}, mean error"))
        .unit("%")
        .at_most("", 100.0 * GOAL)
        .ours(percent_off(written))
        .remark("the limit of the writes is given")
        .if_it_differs("the drive gives writes another share beside many reads"));
}

/// Pictures of the ratios by the rate of the writes.
fn plots(findings: &mut Findings, name: &str, points: &[Point]) {
    for depth in DRAWN {
        let drawn = || points.iter().filter(|point| point.depth == depth);
        let mut curves = Vec::new();
        for (what, value) in VALUES {
            let of = |reads: fn(&Point) -> &[Reads; 2]| {
                drawn().map(|it| (f64::from(it.rate), Point::ratio(reads(it), value))).collect()
            };
            curves.push(Curve::ours(&format!("{what} simulated"), of(|point| &point.ours)));
            curves.push(Curve::published(&format!("{what} measured"), of(|point| &point.theirs)));
        }
        findings.plot(Plot {
            title: format!("{name}: {depth} reads outstanding beside writes"),
            caption: "Of the values without writes.".to_owned(),
            x: Axis::logarithmic("Writes", "MiB/s"),
            y: Axis::logarithmic("Ratio", ""),
            curves,
        });
    }
}

fn run(runner: &Runner) -> Result<Findings, ExperimentError> {
    let all: Vec<Row> = tables::read(runner, "mixed_interference")?;
    let mut findings = Findings::default();
    let drives = DRIVES.map(|(name, runs)| (name, Measured { rows: &all, runs }));
    let with = fitted(runner, &drives[0].1)?;
    let Constants { read_us, interval_us, program_pages } = with;
    let program_ms = with.program_us() / 1e3;
    for ((name, measured), is_fitted) in drives.iter().zip([true, false]) {
        let points = points(runner, measured, with)?;
        if is_fitted {
            let is_it = |point: &&Point| (point.rate, point.depth) == (FITTED, 1);
            let point = points.iter().find(is_it).expect("the fitted rate is simulated");
            let words = format!("{name}: reads per second beside {FITTED} MiB/s, of those without");
            findings.row(
                Claim::new("–", words)
                    .within_share(Point::ratio(&point.theirs, VALUES[0].1), GOAL)
                    .ours(Point::ratio(&point.ours, VALUES[0].1))
                    .remark(&format!(
                        "{DIES} dies; read {read_us:.1} us, program of {} KiB {program_ms:.2} ms, \
                         suspended every {interval_us:.0} us for one read",
                        4 * program_pages
                    ))
                    .given(),
            );
        }
        let wanted = |point: &&Point| !is_fitted || (point.rate, point.depth) != (FITTED, 1);
        let (one, more): (Vec<_>, Vec<_>) =
            points.iter().filter(wanted).partition(|point| point.depth == 1);
        rows(&mut findings, (name, is_fitted), "one read outstanding", &one);
        rows(&mut findings, (name, is_fitted), "4 to 32 reads outstanding", &more);
        plots(&mut findings, name, &points);
    }
    Ok(findings)
}
