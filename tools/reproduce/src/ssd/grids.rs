//! Drives measured by jobs of fio over sizes and depths: latencies, and the limits of rates.
//!
//! Every drive is fitted by [`calibrate_ssd`] from the same start to half of its jobs, as a user's
//! drive would be, and judged by the other half; mixes of reads and writes are judged only.

use super::tables::{self, FioRow};
use crate::published::parameters;
use crate::{Claim, Experiment, ExperimentError, Findings, Job, Runner};
use hybridsim_calibrate::block_size;
use hybridsim_calibrate::ssd::{
    DirectionResult, JobErrors, JobResult, MeasuredJob, QueuedSsd, REFINED_MAX, SsdCalibration,
    calibrate_ssd, every_other, trivial,
};
use hybridsim_engine::Op;
use hybridsim_report::study::Curve;
use serde::Deserialize;

impl FioRow {
    fn delivered(&self) -> Option<DirectionResult> {
        let op = if self.dir == "read" { Op::Read } else { Op::Write };
        let percentiles =
            [(50.0, self.p50_us), (99.0, self.p99_us), (99.9, self.p99_9_us)].into_iter();
        let percentiles = percentiles.filter_map(|(percent, us)| Some((percent, us?))).collect();
        Some(DirectionResult { op, iops: self.iops, mean_us: self.mean_us?, percentiles })
    }

    fn bytes(&self) -> Option<u64> {
        block_size(&self.bs)
    }

    fn depth(&self) -> Option<u64> {
        Some(self.qd? * self.jobs.unwrap_or(1))
    }
}

/// The measured jobs of a drive.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Grid {
    name: String,
    sources: Vec<GridSource>,
    judged_only: Option<JudgedOnly>,
    /// The device of the mixes of reads and writes.
    mixes: Option<String>,
}

/// Jobs in the tables. Only results with SPDK are taken, in which the host takes little time.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct GridSource {
    table: String,
    device: String,
    workload: String,
    /// fio's word for the workload.
    rw: String,
}

/// Jobs that are judged only, and in words.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct JudgedOnly {
    words: String,
    workload: String,
    /// Bytes of a request that is longer than these.
    below: Option<u64>,
}

impl JudgedOnly {
    fn is_one(&self, job: &MeasuredJob) -> bool {
        job.workload == self.workload && self.below.is_none_or(|below| job.bytes < below)
    }
}

impl Grid {
    fn is_judged_only(&self, job: &MeasuredJob) -> bool {
        self.judged_only.as_ref().is_some_and(|jobs| jobs.is_one(job))
    }
}

/// Smaller requests are changed in place by some of the drives, which is not modelled.
const BYTES_MIN: u64 = 4096;
/// Bytes outstanding: all drives write at their limit with far fewer, and more only wait.
const OUTSTANDING_MAX: u64 = 4 << 20;

fn jobs(runner: &Runner, grid: &Grid) -> Result<Vec<MeasuredJob>, ExperimentError> {
    let mut found = Vec::new();
    for GridSource { table, device, workload, rw } in &grid.sources {
        let rows: Vec<FioRow> = tables::read(runner, table)?;
        let wanted = rows.iter().filter(|row| {
            let one_zone = row.zones.as_deref().is_none_or(|zones| ["", "1"].contains(&zones));
            (row.device.as_str(), row.workload.trim(), row.engine.as_str())
                == (device, workload, "spdk")
                && one_zone
        });
        found.extend(wanted.filter_map(|row| {
            let bytes = row.bytes().filter(|bytes| *bytes >= BYTES_MIN)?;
            let depth = row.depth().filter(|depth| depth * bytes <= OUTSTANDING_MAX)?;
            MeasuredJob::new(rw, (bytes, depth), 50, vec![row.delivered()?])
        }));
    }
    found.sort_by_key(MeasuredJob::key);
    found.dedup_by(|a, b| a.key() == b.key());
    Ok(found)
}

/// The mixes of reads and writes of `device`: one loop that reads with the given probability.
fn mixes(runner: &Runner, device: &str) -> Result<Vec<MeasuredJob>, ExperimentError> {
    let rows: Vec<FioRow> = tables::read(runner, "mixed_interference")?;
    let of = |row: &&FioRow| {
        row.device == device && row.engine == "spdk" && row.workload.starts_with("randrw")
    };
    let mut found = Vec::new();
    for read in rows.iter().filter(of).filter(|row| row.dir == "read") {
        let same = |row: &&FioRow| row.dir == "write" && row.member == read.member;
        let write = rows.iter().filter(of).find(same);
        let percent = read.workload.rsplit('=').next().and_then(|text| text.parse().ok());
        let job = write.zip(percent).and_then(|(write, percent)| {
            let delivered = vec![read.delivered()?, write.delivered()?];
            MeasuredJob::new("randrw", (read.bytes()?, read.depth()?), percent, delivered)
        });
        found.extend(job);
    }
    found.sort_by_key(MeasuredJob::key);
    Ok(found)
}

/// The drive of the scenario `start`, fitted to those of `jobs` that `fits` marks.
pub(super) fn fitted<'r>(
    runner: &'r Runner,
    (name, start): (&str, &str),
    jobs: &[MeasuredJob],
    fits: &[bool],
) -> Result<SsdCalibration<'r>, ExperimentError> {
    let failed = |error| ExperimentError::of_calibration(name, error);
    let start = Job::paper(start).text;
    let drive = QueuedSsd::of_scenario(name, &start, runner.registry()).map_err(failed)?;
    runner.done(&format!("{name}: {} jobs", jobs.len()))?;
    let found = calibrate_ssd(&drive, jobs, fits, &|| !runner.is_interrupted()).map_err(failed)?;
    runner.done(&format!("{name}: fitted"))?;
    Ok(found)
}

fn calibrated(runner: &Runner, grid: &Grid) -> Result<Findings, ExperimentError> {
    let jobs = jobs(runner, grid)?;
    let mut fits = every_other(&jobs);
    fits.iter_mut().zip(&jobs).for_each(|(fits, job)| *fits &= !grid.is_judged_only(job));
    let found = fitted(runner, (&grid.name, "ssd/parallel.toml"), &jobs, &fits)?;
    let mut findings = Findings::default();
    given(&mut findings, &grid.name, &found);
    judged_by_direction(&mut findings, grid, &found);
    saturated(&mut findings, &grid.name, &found.jobs);
    plots(&mut findings, &grid.name, &found.jobs);
    if let Some(device) = &grid.mixes {
        let mixes = mixes(runner, device)?;
        let failed = |error| ExperimentError::of(&grid.name, error);
        let results = found.simulate(&mixes).map_err(failed)?;
        let (name, words) = (&grid.name, "mixes of reads and appends, none fitted to");
        judged(&mut findings, name, words, &JobErrors::of(&results, false), None);
        plots(&mut findings, name, &results);
    }
    Ok(findings)
}

/// Rows for the jobs held out, reads and writes apart, and for those that are judged only.
fn judged_by_direction(findings: &mut Findings, grid: &Grid, found: &SsdCalibration<'_>) {
    let ops = [(Op::Read, "reads held out"), (Op::Write, "writes held out")];
    for (op, words) in ops {
        let is_wanted = |result: &JobResult| {
            let is_judged_only = grid.is_judged_only(&result.measured);
            !result.fitted && !is_judged_only && result.measured.delivered[0].op == op
        };
        let trivial = Some(trivial(&found.jobs, is_wanted));
        judged(findings, &grid.name, words, &JobErrors::among(&found.jobs, is_wanted), trivial);
    }
    if let Some(only) = &grid.judged_only {
        let others = JobErrors::among(&found.jobs, |result| only.is_one(&result.measured));
        judged(findings, &grid.name, &format!("{}, none fitted to", only.words), &others, None);
    }
}

/// `share` in percent, with one decimal.
fn percent(share: f64) -> String {
    format!("{:.1}", 100.0 * share)
}

/// The row of the jobs that were fitted to, with the constants.
pub(super) fn given(findings: &mut Findings, name: &str, found: &SsdCalibration<'_>) {
    let [_, (channels, dies)] = found.dies;
    let mut constants = Vec::new();
    if found.are_dies_searched {
        constants.push(format!("{channels} channels of {dies} dies"));
    }
    for constant in &found.constants {
        constants.extend(constant.to.as_ref().map(|to| format!("{} {to}", constant.name)));
    }
    let stopped = format!("; the search was stopped after {REFINED_MAX} simulations");
    let fitted = &found.fitted[1];
    findings.row(
        Claim::of("ssd/jobs-fitted-to")
            .with("name", name)
            .with("jobs", fitted.jobs)
            .with("count", constants.len())
            .with("constants", constants.join(", "))
            .with("stopped", if found.is_stopped { stopped.as_str() } else { "" })
            .ours(100.0 * fitted.rate_mean),
    );
}

/// Rows for the mean errors of jobs that were not fitted to, if there are any.
pub(super) fn judged(
    findings: &mut Findings,
    name: &str,
    which: &str,
    judged: &JobErrors,
    trivial: Option<f64>,
) {
    if judged.jobs == 0 {
        return;
    }
    let rate = match trivial {
        Some(_) => "ssd/rate-of-jobs-held-out",
        None => "ssd/rate-of-other-jobs",
    };
    let rows = [
        (rate, judged.rate_mean),
        ("ssd/median-latency-of-jobs", judged.p50_mean),
        ("ssd/tail-latency-of-jobs", judged.p99_mean),
    ];
    for (id, error) in rows {
        let claim = Claim::of(id).with("name", name).with("jobs", judged.jobs);
        let claim = claim.with("which", which).with("worst", percent(judged.rate_worst));
        let claim = claim.with("trivial", percent(trivial.unwrap_or(f64::NAN)));
        findings.row(claim.ours(100.0 * error));
    }
}

/// Rows of the highest rate of every size.
fn saturated(findings: &mut Findings, name: &str, results: &[JobResult]) {
    for row in results.chunk_by(|a, b| a.measured.is_of_row(&b.measured)) {
        let rate = |one: &DirectionResult, result: &JobResult| {
            one.iops * result.measured.bytes as f64 / 1e6
        };
        let best = |of: &dyn Fn(&JobResult) -> f64| row.iter().map(of).fold(0.0, f64::max);
        let theirs = best(&|result| rate(&result.measured.delivered[0], result));
        let ours = best(&|result| rate(&result.simulated[0], result));
        let measured = &row[0].measured;
        let words = format!("{} {} KiB", measured.workload, measured.bytes / 1024);
        let top = row.iter().find(|result| rate(&result.measured.delivered[0], result) == theirs);
        let claim = Claim::of("ssd/highest-rate").with("name", name).with("words", words);
        let is_fitted = top.is_some_and(|result| result.fitted);
        findings.row(claim.published(theirs).given_if(is_fitted).ours(ours));
    }
}

/// A picture of the rates and one of the latencies of every row of depths.
pub(super) fn plots(findings: &mut Findings, name: &str, results: &[JobResult]) {
    for row in results.chunk_by(|a, b| a.measured.is_of_row(&b.measured)) {
        let MeasuredJob { workload, bytes, read_percent, .. } = &row[0].measured;
        let mix =
            if *workload == "randrw" { format!(", {read_percent} % reads") } else { String::new() };
        let kib = bytes / 1024;
        let texts: [(&str, &dyn std::fmt::Display); 4] =
            [("name", &name), ("workload", workload), ("kib", &kib), ("mix", &mix)];
        let points = |value: &dyn Fn(&DirectionResult) -> Option<f64>, ours: bool| {
            let one = |result: &JobResult| {
                let of = if ours { &result.simulated } else { &result.measured.delivered };
                Some((result.measured.depth as f64, value(&of[0])?))
            };
            row.iter().filter_map(one).collect::<Vec<_>>()
        };
        let both = |what: &str, value: &dyn Fn(&DirectionResult) -> Option<f64>| {
            [
                Curve::ours(&format!("{what} simulated"), points(value, true)),
                Curve::published(&format!("{what} measured"), points(value, false)),
            ]
        };
        let latencies = [50.0, 99.0]
            .map(|percent| both(&format!("p{percent:.0}"), &|one| one.percentile(percent)));
        findings.plot("ssd/rate-by-depth", &texts, both("", &|one| Some(one.iops)));
        findings.plot("ssd/latency-by-depth", &texts, latencies.concat());
    }
}

pub const ZN540: Experiment = Experiment {
    id: "ssd/wd-zn540",
    run: |runner| calibrated(runner, &parameters("ssd/wd-zn540")),
};

pub const S980_PRO: Experiment = Experiment {
    id: "ssd/samsung-980-pro",
    run: |runner| calibrated(runner, &parameters("ssd/samsung-980-pro")),
};

pub const NVME_A: Experiment =
    Experiment { id: "ssd/nvme-a", run: |runner| calibrated(runner, &parameters("ssd/nvme-a")) };

pub const NVME_B: Experiment =
    Experiment { id: "ssd/nvme-b", run: |runner| calibrated(runner, &parameters("ssd/nvme-b")) };
