//! SATA drives behind several hosts: random reads and writes of 4 KiB by queue depth and threads.
//!
//! Every drive is fitted by [`calibrate_ssd`] from the same start behind each host, to two jobs of
//! one thread: 1 and 16 requests outstanding. All other jobs judge the fit.

use super::{bundle, grids};
use crate::{Claim, Experiment, ExperimentError, Findings, Job, Runner};
use hybridsim_calibrate::CalibrateError;
use hybridsim_calibrate::ssd::{
    Drive, JobResult, Judged, MeasuredJob, SsdCalibration, calibrate_ssd, trivial,
};
use hybridsim_engine::Op;

pub const EXPERIMENT: Experiment = Experiment { id: "ssd/sata", run };

/// What the reads of a drive behind a host show.
#[derive(Clone, Copy, PartialEq)]
enum Reads {
    /// The drive.
    Data,
    /// Data, behind a controller that delays completions when few requests are outstanding.
    Coalesced,
    /// Blocks that were never written: no flash is read.
    Unwritten,
    /// The cache of a RAID controller.
    CacheHits,
}

impl Reads {
    /// Why they do not judge the model of the drive.
    const fn reason(self) -> Option<&'static str> {
        match self {
            Self::Data => None,
            Self::Coalesced => Some(
                "the controller: four requests outstanding take twice as long as one, and eight \
                 no longer than four",
            ),
            Self::Unwritten => Some(
                "blocks that were never written: as fast as no flash is, and twice as fast as \
                 behind other hosts",
            ),
            Self::CacheHits => Some("hits in the RAID controller's cache of 1 GB"),
        }
    }
}

/// A drive behind a host.
struct Grid {
    drive: &'static str,
    host: &'static str,
    /// Its results, such as `sata300-g8_intel-s4610`.
    bundle: &'static str,
    reads: Reads,
    /// Whether its writes show a drive that copies no pages.
    writes: bool,
}

const fn grid(
    (drive, host): (&'static str, &'static str),
    bundle: &'static str,
    reads: Reads,
    writes: bool,
) -> Grid {
    Grid { drive, host, bundle, reads, writes }
}

const S4610: &str = "Intel D3-S4610";
const S860_PRO: &str = "Samsung 860 PRO";
const PM883: &str = "Samsung PM883";
const MX200: &str = "Crucial MX200";
const SATA300: &str = "3 Gbit/s port";
const M1015: &str = "M1015 adapter";
const AHCI: &str = "AHCI";
const DL380: &str = "P420i as an adapter";
const RAID: &str = "P420i with its cache";
const RAID_NO_CACHE: &str = "P420i without its cache";

/// What the reads show is inferred from their latency at depth 1 (`MANIFEST.md` of the data).
const GRIDS: [Grid; 16] = [
    grid((S4610, SATA300), "sata300-g8_intel-s4610", Reads::Data, true),
    grid((S4610, M1015), "hba-m1015_intel-s4610", Reads::Data, true),
    grid((PM883, SATA300), "sata300-g8_samsung-pm883", Reads::Data, true),
    grid((PM883, M1015), "hba-m1015_samsung-pm883", Reads::Data, true),
    grid((S860_PRO, M1015), "hba-m1015_samsung-860pro", Reads::Data, true),
    grid((S860_PRO, SATA300), "sata300-g8_samsung-860pro", Reads::Unwritten, true),
    grid(("Crucial MX200, first", SATA300), "sata300-g8_crucial250-01", Reads::Data, false),
    grid(("Crucial MX200, second", SATA300), "sata300-g8_crucial250-02", Reads::Data, false),
    grid((S4610, DL380), "hba-dl380g8_intel-s4610", Reads::Coalesced, false),
    grid((S860_PRO, DL380), "hba-dl380g8_samsung-860pro", Reads::Coalesced, false),
    grid(
        (S860_PRO, RAID_NO_CACHE),
        "raid-p420i_samsung-860pro-nowritecache",
        Reads::Coalesced,
        false,
    ),
    grid((MX200, RAID), "raid-p420i_crucial-mx200", Reads::Coalesced, false),
    grid((S4610, AHCI), "ahci-g10_intel-s4610", Reads::Unwritten, false),
    grid((PM883, AHCI), "ahci-g10_samsung-pm883", Reads::Unwritten, false),
    grid((S4610, RAID), "raid-p420i_intel-s4610-test01", Reads::CacheHits, false),
    grid((PM883, RAID), "raid-p420i_samsung-pm883", Reads::CacheHits, false),
];

/// Commands that a drive takes at a time: NCQ.
const COMMANDS_MAX: u64 = 32;
/// fio's `iodepth` and `numjobs` of the jobs that are fitted to.
const FITTED: [&str; 2] = ["-1-1.json", "-16-1.json"];

/// The jobs of `grid`, and which of them are fitted to.
fn jobs(runner: &Runner, grid: &Grid) -> Result<(Vec<MeasuredJob>, Vec<bool>), ExperimentError> {
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

fn fitted<'r>(
    runner: &'r Runner,
    name: &str,
    jobs: &[MeasuredJob],
    fits: &[bool],
) -> Result<SsdCalibration<'r>, ExperimentError> {
    let failed =
        |error: &dyn std::fmt::Display| ExperimentError::Failed(format!("{name}: {error}"));
    let start = Job::paper("ssd/sata.toml").text;
    let drive = Drive::of_scenario(name, &start, runner.registry());
    let drive = drive.map_err(|error| failed(&error))?;
    runner.done(&format!("{name}: {} jobs", jobs.len()))?;
    let found = calibrate_ssd(&drive, jobs, fits, &|| !runner.is_interrupted());
    let found = found.map_err(|error| match error {
        CalibrateError::Interrupted => ExperimentError::Interrupted,
        error => failed(&error),
    })?;
    runner.done(&format!("{name}: fitted"))?;
    Ok(found)
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
        let errors = Judged::among(&found.jobs, is_one);
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
    let errors = Judged::among(jobs, |result| is_judged(result, op, BEYOND));
    if errors.jobs > 0 {
        let words = format!("{name}: {} {}, mean error of requests/s", errors.jobs, BEYOND.0);
        let claim = Claim::new("–", words).unit("%").at_most("", 100.0 * grids::RATE);
        findings.row(
            claim
                .ours(100.0 * errors.rate_mean)
                .remark(&format!("at worst {:.1} %", 100.0 * errors.rate_worst))
                .if_it_differs(
                    "not modelled: the adapter, which slows down when more threads wait than it \
                     has room for commands",
                ),
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
        Claim::new("–", format!("{name}: random reads"))
            .not_comparable(why)
            .remark(&format!("reads per second by requests outstanding: {}", rates.join(", "))),
    );
}

/// The rate of reads of the first job with so many requests outstanding.
fn alone(jobs: &[MeasuredJob], depth: u64) -> Option<f64> {
    let is_one = |job: &&MeasuredJob| job.depth == depth && job.delivered[0].op == Op::Read;
    jobs.iter().find(is_one).map(|job| job.delivered[0].iops)
}

/// Highest over lowest, less one.
fn spread(values: &[f64]) -> f64 {
    let low = values.iter().copied().fold(f64::INFINITY, f64::min);
    values.iter().copied().fold(0.0, f64::max) / low - 1.0
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
    let spreads: Vec<f64> = [2, 4, 8, 16, 32].map(|depth| spread(&rates(depth))).to_vec();
    spreads.iter().sum::<f64>() / spreads.len() as f64
}

/// The row of the differences between hosts, with the rates of a drive at depth 1.
fn between_hosts(findings: &mut Findings, measured: &[(&Grid, f64)]) {
    for drive in [S4610, PM883, S860_PRO] {
        let of = measured.iter().filter(|(grid, _)| grid.drive == drive);
        let of: Vec<&(&Grid, f64)> =
            of.filter(|(grid, _)| [Reads::Data, Reads::Coalesced].contains(&grid.reads)).collect();
        let rates: Vec<f64> = of.iter().map(|(_, rate)| *rate).collect();
        if rates.len() < 2 {
            continue;
        }
        let words: Vec<String> =
            of.iter().map(|(grid, rate)| format!("{} {rate:.0}/s", grid.host)).collect();
        findings.row(
            Claim::new("–", format!("{drive}: random reads at depth 1 behind other hosts"))
                .not_comparable("the noise between hosts, not an error")
                .remark(&format!("{}: {:.0} %", words.join(", "), 100.0 * spread(&rates))),
        );
    }
}

/// The rows over all drives and hosts.
fn totals(findings: &mut Findings, all: &All) {
    for (op, results) in [(Op::Read, &all.reads), (Op::Write, &all.writes)] {
        let name = format!("All drives and hosts, {}", word(op));
        for depths in GROUPS {
            let errors = Judged::among(results, |result| is_judged(result, op, depths));
            let without = all.trivial(op, depths);
            grids::judged(findings, &name, depths.0, &errors, Some(without));
        }
        beyond(findings, &name, results, op);
    }
}

/// The row of the rates of jobs with as many requests outstanding in other threads.
fn equal_depths(findings: &mut Findings, name: &str, (found, op): (&SsdCalibration<'_>, Op)) {
    findings.row(
        Claim::new("–", format!("{name}: spread of equal depths, 2 to 32"))
            .not_comparable("the noise of the measurement, not an error")
            .remark(&format!(
                "rates with as many requests outstanding in one thread or in several differ by \
                 {:.1} %, the highest from the lowest, on average over depths",
                100.0 * noise(&found.jobs, op)
            )),
    );
}

fn run(runner: &Runner) -> Result<Findings, ExperimentError> {
    let mut findings = Findings::default();
    let mut all = All::default();
    let mut first = Vec::new();
    for grid in &GRIDS {
        let name = format!("{}, {}", grid.drive, grid.host);
        let (jobs, fits) = jobs(runner, grid)?;
        first.extend(alone(&jobs, 1).map(|rate| (grid, rate)));
        if let Some(why) = grid.reads.reason() {
            apart(&mut findings, &name, &jobs, why);
        }
        let shown = [(Op::Read, grid.reads == Reads::Data), (Op::Write, grid.writes)];
        for (op, _) in shown.into_iter().filter(|(_, is_shown)| *is_shown) {
            let own = jobs.iter().zip(&fits).filter(|(job, _)| job.delivered[0].op == op);
            let (jobs, fits): (Vec<MeasuredJob>, Vec<bool>) =
                own.map(|(job, fits)| (job.clone(), *fits)).unzip();
            let name = format!("{name}, {}", word(op));
            let found = fitted(runner, &name, &jobs, &fits)?;
            grids::given(&mut findings, &name, &found);
            rows(&mut findings, &name, &found, op, &mut all);
            equal_depths(&mut findings, &name, (&found, op));
            grids::plots(&mut findings, &name, &found.jobs);
        }
    }
    between_hosts(&mut findings, &first);
    totals(&mut findings, &all);
    Ok(findings)
}
