//! SATA drives behind several hosts: random reads and writes of 4 KiB by queue depth and threads.
//!
//! Every drive is fitted by [`calibrate_ssd`] from the same start behind each host, to two jobs of
//! one thread: 1 and 16 requests outstanding. All other jobs judge the fit.

use super::{bundle, grids, spread};
use crate::published::parameters;
use crate::{Claim, Experiment, ExperimentError, Findings, Runner};
use hybridsim_calibrate::ssd::{JobErrors, JobResult, MeasuredJob, SsdCalibration, trivial};
use hybridsim_engine::Op;
use serde::Deserialize;
use std::collections::BTreeMap;

pub const EXPERIMENT: Experiment = Experiment { id: "ssd/sata", run };

/// Drives and hosts of the experiment.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Parameters {
    grids: Vec<SataGrid>,
    /// The reason why reads do not judge the model of the drive, for each kind but the drive's own.
    reasons: BTreeMap<Reads, String>,
    /// Drives behind several hosts, which are compared.
    compared: Vec<String>,
}

/// The source of the data of reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Reads {
    /// The drive.
    Data,
    /// The drive, behind a controller that delays completions when few requests are outstanding.
    Coalesced,
    /// Blocks that were never written: no flash is read.
    Unwritten,
    /// The cache of a RAID controller.
    CacheHits,
}

/// A drive behind a host.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct SataGrid {
    drive: String,
    host: String,
    /// The file of results, such as `sata300-g8_intel-s4610`.
    bundle: String,
    reads: Reads,
    /// Whether its writes show a drive that copies no pages.
    writes: bool,
}

/// Commands that a drive takes at a time: NCQ.
const COMMANDS_MAX: u64 = 32;
/// fio's `iodepth` and `numjobs` of the jobs that are fitted to.
const FITTED: [&str; 2] = ["-1-1.json", "-16-1.json"];

/// The jobs of `grid`, and which of them are fitted to.
fn jobs(
    runner: &Runner,
    grid: &SataGrid,
) -> Result<(Vec<MeasuredJob>, Vec<bool>), ExperimentError> {
    let path = runner.data(format!("ssd/fioplot/grid_{}.tar.gz", grid.bundle))?;
    let mut found = bundle::read(&path)?;
    found.retain(|(_, job)| match job.workload {
        "randread" => true,
        "randwrite" => grid.writes,
        _ => false,
    });
    found.sort_by_key(|(_, job)| job.key());
    let fits = |(name, _): &(String, _)| FITTED.iter().any(|end| name.ends_with(end));
    let fits = found.iter().map(fits).collect();
    Ok((found.into_iter().map(|(_, job)| job).collect(), fits))
}

/// Outstanding requests of a group of jobs, in words and from and to.
type Depths = (&'static str, u64, u64);

/// The groups that judge all: few requests, among which the drive's parallelism shows, and as many
/// as it takes, which its link limits.
const GROUPS: [Depths; 2] =
    [("with 2 to 8 outstanding", 2, 8), ("with 16 or 32 outstanding", 16, COMMANDS_MAX)];
/// More than the drive takes: they wait in the host, in the order of its scheduler.
const BEYOND: Depths = ("with more than 32 outstanding", COMMANDS_MAX + 1, u64::MAX);

fn is_judged(result: &JobResult, op: Op, depths: Depths) -> bool {
    let MeasuredJob { depth, delivered, .. } = &result.measured;
    !result.fitted && delivered[0].op == op && (depths.1..=depths.2).contains(depth)
}

/// Results of several fits.
#[derive(Default)]
struct All {
    reads: Vec<JobResult>,
    writes: Vec<JobResult>,
    /// The error without a model, by direction and group, of each fit.
    trivial: Vec<(Op, Depths, f64)>,
}

impl All {
    fn trivial(&self, op: Op, depths: Depths) -> f64 {
        let wanted = self.trivial.iter().filter(|one| (one.0, one.1) == (op, depths));
        let errors: Vec<f64> = wanted.map(|one| one.2).filter(|error| error.is_finite()).collect();
        errors.iter().sum::<f64>() / errors.len() as f64
    }
}

fn word(op: Op) -> &'static str {
    if op == Op::Read { "random reads" } else { "random writes" }
}

/// The rows of one direction of a fit.
fn rows(findings: &mut Findings, name: &str, found: &SsdCalibration<'_>, op: Op, all: &mut All) {
    for depths in GROUPS {
        let is_one = |result: &JobResult| is_judged(result, op, depths);
        let without = trivial(&found.jobs, is_one);
        let errors = JobErrors::among(&found.jobs, is_one);
        grids::judged(findings, name, depths.0, &errors, Some(without));
        all.trivial.push((op, depths, without));
    }
    beyond(findings, name, &found.jobs, op);
    let of = found.jobs.iter().filter(|result| result.measured.delivered[0].op == op);
    let to = if op == Op::Read { &mut all.reads } else { &mut all.writes };
    to.extend(of.cloned());
}

/// The row of the rates with more requests outstanding than the drive takes.
fn beyond(findings: &mut Findings, name: &str, jobs: &[JobResult], op: Op) {
    let errors = JobErrors::among(jobs, |result| is_judged(result, op, BEYOND));
    if errors.jobs > 0 {
        findings.row(
            Claim::of("ssd/rate-beyond-the-queue")
                .with("name", name)
                .with("jobs", errors.jobs)
                .with("which", BEYOND.0)
                .with("worst", format!("{:.1}", 100.0 * errors.rate_worst))
                .ours(100.0 * errors.rate_mean),
        );
    }
}

/// The row of reads that do not show the drive.
fn apart(findings: &mut Findings, name: &str, jobs: &[MeasuredJob], why: &str) {
    let rates: Vec<String> = [1, 2, 4, 8, 16]
        .iter()
        .filter_map(|depth| Some((depth, alone(jobs, *depth)?)))
        .map(|(depth, rate)| format!("{rate:.0} at {depth}"))
        .collect();
    findings.row(
        Claim::of("ssd/reads-not-of-the-drive")
            .with("name", name)
            .with("rates", rates.join(", "))
            .not_comparable(why),
    );
}

/// The rate of reads of the first job with so many requests outstanding.
fn alone(jobs: &[MeasuredJob], depth: u64) -> Option<f64> {
    let is_one = |job: &&MeasuredJob| job.depth == depth && job.delivered[0].op == Op::Read;
    jobs.iter().find(is_one).map(|job| job.delivered[0].iops)
}

/// The mean spread of the rates of jobs with as many requests outstanding in other threads.
fn noise(results: &[JobResult], op: Op) -> f64 {
    let rates = |depth: u64| {
        let same = results.iter().filter(move |result| result.measured.depth == depth);
        same.map(|result| &result.measured.delivered[0])
            .filter(|one| one.op == op)
            .map(|one| one.iops)
            .collect::<Vec<f64>>()
    };
    let spreads: Vec<f64> = [2, 4, 8, 16, 32].map(|depth| spread(rates(depth))).to_vec();
    spreads.iter().sum::<f64>() / spreads.len() as f64
}

/// The row of the differences between hosts, with the rates of a drive at depth 1.
fn between_hosts(findings: &mut Findings, compared: &[String], measured: &[(&SataGrid, f64)]) {
    for drive in compared {
        let of = measured.iter().filter(|(grid, _)| grid.drive == *drive);
        let of: Vec<&(&SataGrid, f64)> =
            of.filter(|(grid, _)| [Reads::Data, Reads::Coalesced].contains(&grid.reads)).collect();
        let rates: Vec<f64> = of.iter().map(|(_, rate)| *rate).collect();
        if rates.len() < 2 {
            continue;
        }
        let words: Vec<String> =
            of.iter().map(|(grid, rate)| format!("{} {rate:.0}/s", grid.host)).collect();
        findings.row(
            Claim::of("ssd/reads-behind-other-hosts")
                .with("drive", drive)
                .with("hosts", words.join(", "))
                .with("spread", format!("{:.0}", 100.0 * spread(rates))),
        );
    }
}

/// The rows over all drives and hosts.
fn totals(findings: &mut Findings, all: &All) {
    for (op, results) in [(Op::Read, &all.reads), (Op::Write, &all.writes)] {
        let name = format!("All drives and hosts, {}", word(op));
        for depths in GROUPS {
            let errors = JobErrors::among(results, |result| is_judged(result, op, depths));
            let without = all.trivial(op, depths);
            grids::judged(findings, &name, depths.0, &errors, Some(without));
        }
        beyond(findings, &name, results, op);
    }
}

/// The row of the rates of jobs with as many requests outstanding in other threads.
fn equal_depths(findings: &mut Findings, name: &str, (found, op): (&SsdCalibration<'_>, Op)) {
    findings.row(
        Claim::of("ssd/spread-of-equal-depths")
            .with("name", name)
            .with("spread", format!("{:.1}", 100.0 * noise(&found.jobs, op))),
    );
}

fn run(runner: &Runner) -> Result<Findings, ExperimentError> {
    let mut findings = Findings::default();
    let mut all = All::default();
    let mut first = Vec::new();
    let parameters: Parameters = parameters("ssd/sata");
    for grid in &parameters.grids {
        let name = format!("{}, {}", grid.drive, grid.host);
        let (jobs, fits) = jobs(runner, grid)?;
        first.extend(alone(&jobs, 1).map(|rate| (grid, rate)));
        if let Some(why) = parameters.reasons.get(&grid.reads) {
            apart(&mut findings, &name, &jobs, why);
        }
        let shown = [(Op::Read, grid.reads == Reads::Data), (Op::Write, grid.writes)];
        for (op, _) in shown.into_iter().filter(|(_, is_shown)| *is_shown) {
            let own = jobs.iter().zip(&fits).filter(|(job, _)| job.delivered[0].op == op);
            let (jobs, fits): (Vec<MeasuredJob>, Vec<bool>) =
                own.map(|(job, fits)| (job.clone(), *fits)).unzip();
            let name = format!("{name}, {}", word(op));
            let found = grids::fitted(runner, (&name, "ssd/sata.toml"), &jobs, &fits)?;
            grids::given(&mut findings, &name, &found);
            rows(&mut findings, &name, &found, op, &mut all);
            equal_depths(&mut findings, &name, (&found, op));
            grids::plots(&mut findings, &name, &found.jobs);
        }
    }
    between_hosts(&mut findings, &parameters.compared, &first);
    totals(&mut findings, &all);
    Ok(findings)
}
