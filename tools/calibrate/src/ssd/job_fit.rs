//! The fit of an SSD's constants to measured jobs, and its errors.

use super::constants::{CONSTANTS, Constant, STEP};
use super::jobs::{DirectionResult, MeasuredJob};
use super::simulate::{JobBench, SimulatedDirection};
use super::{FittedConstant, QueuedSsd, SsdCalibration, SsdPoint};
use crate::CalibrateError;
use crate::pattern_search::Space;
use hybridsim_engine::Op;
use hybridsim_simulation::parallel::{parallel_map, processors};
use serde::Serialize;
use std::cell::RefCell;
use std::collections::BTreeSet;

/// Steps and end of a search.
#[derive(Clone, Copy)]
struct Pace {
    /// First steps, as a part of [`STEP`].
    scale: f64,
    /// Number of times the steps are halved.
    halvings: u32,
    /// Most points that it tries.
    tried_max: u32,
}

/// Searches from the start, beside other numbers of dies, and for refinement. Numbers of dies are
/// compared by searches that end by themselves.
const COARSE: Pace = Pace { scale: 1.0, halvings: 3, tried_max: u32::MAX };
const BESIDE: Pace = Pace { scale: 1.0, halvings: 2, tried_max: u32::MAX };
const FINE: Pace = Pace { scale: 0.25, halvings: 3, tried_max: REFINED_MAX };
/// Most points that a search for refinement tries.
pub const REFINED_MAX: u32 = 100;
/// A constant is not identified if START's value increases the distance by at most this.
pub const TOLERANCE: f64 = 0.003;
/// Channels, and dies of each, that are tried.
const CHANNELS: (u64, u64) = (1, 32);
const DIES: (u64, u64) = (1, 256);
/// Weight of the median and of the 99th percentile, where the rate has 1.
const WEIGHTS: [(f64, f64); 2] = [(50.0, 0.5), (99.0, 0.25)];
/// Distances above this one count less than their square.
const LARGE: f64 = 0.2;
/// Rates within 2 % count as equal.
const SATURATED: f64 = 0.98;
/// The jobs are run with so many times the requests when they are judged.
const JUDGED_EFFORT: u64 = 4;

/// Errors of a set of jobs; 0.1 is 10 %. Rates are those of closed loops; NaN without any.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct JobErrors {
    pub jobs: usize,
    pub rate_mean: f64,
    pub rate_worst: f64,
    pub p50_mean: f64,
    pub p99_mean: f64,
}

/// A job beside its simulation.
#[derive(Clone, Debug, Serialize)]
pub struct JobResult {
    pub measured: MeasuredJob,
    /// Results with the fitted constants, in the order of the measured ones.
    pub simulated: Vec<DirectionResult>,
    /// Whether it was fitted to.
    pub fitted: bool,
}

impl JobResult {
    /// The error of the rate of direction `at`.
    pub fn rate_error(&self, at: usize) -> f64 {
        self.simulated[at].iops / self.measured.delivered[at].iops - 1.0
    }
}

impl JobErrors {
    /// Errors of the jobs among `results` that were fitted to, or of the others.
    pub fn of(results: &[JobResult], fitted: bool) -> Self {
        Self::among(results, |result| result.fitted == fitted)
    }

    /// Errors of the jobs among `results` that `is_wanted` selects.
    pub fn among(results: &[JobResult], is_wanted: impl Fn(&JobResult) -> bool) -> Self {
        let wanted: Vec<&JobResult> = results.iter().filter(|result| is_wanted(result)).collect();
        let pairs =
            || wanted.iter().flat_map(|one| one.measured.delivered.iter().zip(&one.simulated));
        let closed = wanted.iter().filter(|one| one.measured.offered.is_none());
        let rates: Vec<f64> = closed
            .flat_map(|one| (0..one.simulated.len()).map(|at| one.rate_error(at).abs()))
            .collect();
        let mean_of = |percent| {
            let apart = pairs().filter_map(|(theirs, ours)| {
                Some(libm::log(ours.percentile(percent)? / theirs.percentile(percent)?).abs())
            });
            libm::exp(mean(&apart.collect::<Vec<_>>())) - 1.0
        };
        Self {
            jobs: wanted.len(),
            rate_mean: mean(&rates),
            rate_worst: rates.iter().copied().fold(f64::NAN, f64::max),
            p50_mean: mean_of(50.0),
            p99_mean: mean_of(99.0),
        }
    }

    /// The statistic that judges the jobs, with its mean error: the rate of closed loops, or else
    /// the median latency.
    pub fn headline(&self) -> (&'static str, f64) {
        match self.rate_mean.is_nan() {
            false => ("requests per second", self.rate_mean),
            true => ("median latency", self.p50_mean),
        }
    }
}

/// NaN without values.
fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// The squared distance of `ours` from `theirs`: the weighted mean of the squared logarithmic
/// errors of rate and percentiles, without the rate where it is given. Large errors count less
/// (Cauchy's loss), so that a few jobs that the drive treats in its own way do not spoil the
/// others.
fn squared_distance(
    ours: &SimulatedDirection,
    theirs: &DirectionResult,
    rate_is_given: bool,
) -> f64 {
    let square = |ours: f64, theirs: f64| {
        let log = libm::log(ours / theirs) / LARGE;
        LARGE * LARGE * libm::log1p(log * log)
    };
    let (mut sum, mut weights) = match rate_is_given {
        true => (0.0, 0.0),
        false => (square(ours.iops, theirs.iops), 1.0),
    };
    for (percent, weight) in WEIGHTS {
        if let Some(measured) = theirs.percentile(percent) {
            sum += weight * square(ours.percentile(percent), measured);
            weights += weight;
        }
    }
    sum / weights
}

/// Result of a search.
struct SearchResult {
    point: SsdPoint,
    distance: f64,
    /// Whether it was stopped at [`Pace::tried_max`].
    is_stopped: bool,
}

/// The jobs to fit to.
#[derive(Clone)]
struct JobFit<'a, 'r> {
    drive: &'a QueuedSsd<'r>,
    benches: Vec<&'a JobBench<'a>>,
    /// Positions of the [`CONSTANTS`] that may move.
    free: Vec<usize>,
    /// Jobs that are simulated at a time.
    threads: usize,
    go_on: &'a (dyn Fn() -> bool + Sync),
}

impl<'a, 'r> JobFit<'a, 'r> {
    /// All constants that `benches` show.
    fn new(
        drive: &'a QueuedSsd<'r>,
        benches: &'a [JobBench<'a>],
        go_on: &'a (dyn Fn() -> bool + Sync),
    ) -> Self {
        let shows = |op: Op| benches.iter().any(|bench| bench.does(op));
        let both = shows(Op::Read) && shows(Op::Write);
        let start = drive.point();
        let is_shown = |&at: &usize| {
            let constant = &CONSTANTS[at];
            // Writes alone show the constant that it follows.
            let is_own = constant.follows.is_none() || both || !start.constants[at].is_nan();
            is_own && constant.shown_by.is_none_or(shows)
        };
        let free = (0..CONSTANTS.len()).filter(is_shown).collect();
        Self { drive, benches: benches.iter().collect(), free, threads: processors(), go_on }
    }

    /// The jobs that do nothing but `op`; where there are none, all that do `op`; `None` without
    /// any. Reads decide about the constants that both show; writes do so where there are no reads.
    fn of(&self, op: Op) -> Option<Self> {
        let other = if op == Op::Read { Op::Write } else { Op::Read };
        let reads = self.benches.iter().any(|bench| bench.does(Op::Read));
        let is_own = |&at: &usize| match CONSTANTS[at].shown_by {
            Some(shown_by) => shown_by == op,
            None => op == Op::Read || !reads,
        };
        let mut benches = self.benches.clone();
        benches.retain(|bench| bench.does(op));
        if benches.iter().any(|bench| !bench.does(other)) {
            benches.retain(|bench| !bench.does(other));
        }
        let free = self.free.iter().copied().filter(is_own).collect();
        (!benches.is_empty()).then_some(Self { benches, free, ..*self })
    }

    /// The distance of the drive at `point` from what was measured: the root of the mean of
    /// [`squared_distance`] over all jobs.
    fn cost(&self, point: &SsdPoint) -> Result<f64, CalibrateError> {
        let one = |bench: &JobBench<'_>| {
            if !(self.go_on)() {
                return Err(CalibrateError::Interrupted);
            }
            bench.run(self.drive, point)
        };
        let distinct = Distinct::of(self.benches.iter().map(|bench| bench.measured));
        let benches = distinct.firsts.iter().map(|at| self.benches[*at]).collect();
        let ran = parallel_map(benches, self.threads, one, |_, _| {});
        let ran: Vec<Vec<SimulatedDirection>> = ran.into_iter().collect::<Result<_, _>>()?;
        let costs = self.benches.iter().zip(&distinct.numbers).flat_map(|(bench, number)| {
            let both = ran[*number].iter().zip(&bench.measured.delivered);
            let is_given = bench.measured.offered.is_some();
            both.map(move |(ours, theirs)| squared_distance(ours, theirs, is_given))
        });
        Ok(mean(&costs.collect::<Vec<_>>()).sqrt())
    }

    /// The constants that come closest, from those of `start` on.
    fn search(&self, start: &SsdPoint, pace: Pace) -> Result<SearchResult, CalibrateError> {
        let Pace { scale, halvings, tried_max } = pace;
        let ranges = self.free.iter().map(|&at| CONSTANTS[at].bounds()).collect();
        let mut directions: Vec<Vec<(usize, f64)>> =
            (0..self.free.len()).map(|at| vec![(at, STEP)]).collect();
        directions.extend(self.compensating());
        directions.iter_mut().flatten().for_each(|(_, step)| *step *= scale);
        let space = Space { ranges, directions };
        let failed = RefCell::new(None);
        let from: Vec<f64> = self.free.iter().map(|&at| start.coordinate(at)).collect();
        let at = |values: &[f64]| {
            let mut point = start.clone();
            self.free.iter().zip(values).for_each(|(&at, value)| point.constants[at] = *value);
            point
        };
        let mut tried = 0;
        let (found, distance) = space.search(&from, halvings, &mut |values| {
            tried += 1;
            if tried > tried_max {
                return f64::INFINITY;
            }
            self.cost(&at(values)).unwrap_or_else(|error| {
                failed.borrow_mut().get_or_insert(error);
                f64::INFINITY
            })
        });
        match failed.into_inner() {
            Some(error) => Err(error),
            None => Ok(SearchResult { point: at(&found), distance, is_stopped: tried > tried_max }),
        }
    }

    /// Directions in which one constant makes up for another.
    fn compensating(&self) -> Vec<Vec<(usize, f64)>> {
        let place = |name: &str| self.free.iter().position(|&at| CONSTANTS[at].name == name);
        let pairs = [
            ("read_time", STEP / 2.0, "read_overhead", -STEP),
            ("read_time", STEP / 4.0, "channel_rate", STEP),
            ("channel_rate", STEP, "host_rate", -STEP / 2.0),
            ("request_interval", STEP, "host_rate", STEP),
            ("channel_rate", STEP, "host_write_rate", -STEP / 2.0),
        ];
        let both = |(one, by, other, back): (&str, f64, &str, f64)| {
            Some(vec![(place(one)?, by), (place(other)?, back)])
        };
        pairs.into_iter().filter_map(both).collect()
    }

    /// The best number of channels and dies, and the constants beside it.
    fn search_dies(&self, start: &SsdPoint) -> Result<SsdPoint, CalibrateError> {
        let mut best = self.search(start, COARSE)?;
        // The neighbours are searched at the same time instead of the jobs.
        let beside =
            JobFit { benches: self.benches.clone(), free: self.free.clone(), threads: 1, ..*self };
        let mut tried = vec![(best.point.channels, best.point.dies_per_channel)];
        loop {
            let mut near = neighbours(&best.point);
            near.retain(|point| !tried.contains(&(point.channels, point.dies_per_channel)));
            tried.extend(near.iter().map(|point| (point.channels, point.dies_per_channel)));
            let found =
                parallel_map(near, processors(), |near| beside.search(&near, BESIDE), |_, _| {});
            let found: Vec<SearchResult> = found.into_iter().collect::<Result<_, _>>()?;
            let nearest = found.into_iter().min_by(|a, b| a.distance.total_cmp(&b.distance));
            match nearest.filter(|nearest| nearest.distance < best.distance) {
                Some(better) => best = better,
                None => return Ok(self.search(&best.point, FINE)?.point),
            }
        }
    }

    /// The values of constant `at` between which the distance stays within [`TOLERANCE`] of that of
    /// `point`, all else being equal.
    fn range(&self, point: &SsdPoint, at: usize, least: f64) -> Result<(f64, f64), CalibrateError> {
        let (low, high) = CONSTANTS[at].bounds();
        let mut ends = [point.constants[at]; 2];
        for (end, sign) in ends.iter_mut().zip([-1.0, 1.0]) {
            let mut step = STEP / 16.0;
            loop {
                let next = (point.constants[at] + sign * step).clamp(low, high);
                let mut moved = point.clone();
                moved.constants[at] = next;
                if self.cost(&moved)? > least + TOLERANCE {
                    break;
                }
                *end = next;
                if next == low || next == high {
                    break;
                }
                step *= 1.5;
            }
        }
        Ok((ends[0], ends[1]))
    }
}

/// Twice and half the channels, and the dies of each, with the program bandwidth of `point`.
fn neighbours(point: &SsdPoint) -> Vec<SsdPoint> {
    let program = CONSTANTS.iter().position(|constant| constant.name == "program_time");
    let with = |channels: u64, dies_per_channel: u64| {
        let mut other = SsdPoint { channels, dies_per_channel, ..point.clone() };
        let more =
            (channels * dies_per_channel) as f64 / (point.channels * point.dies_per_channel) as f64;
        if let Some(at) = program {
            other.constants[at] += libm::log(more);
        }
        other
    };
    let (channels, dies) = (point.channels, point.dies_per_channel);
    let near =
        [(channels * 2, dies), (channels / 2, dies), (channels, dies * 2), (channels, dies / 2)];
    let is_tried = |(channels, dies): &(u64, u64)| {
        (CHANNELS.0..=CHANNELS.1).contains(channels) && (DIES.0..=DIES.1).contains(dies)
    };
    near.into_iter().filter(is_tried).map(|(channels, dies)| with(channels, dies)).collect()
}

/// Fits the constants of `drive` to those of `jobs` that `fits` marks, and judges by the others.
/// `go_on` is asked several times a second and ends the fit when it returns false.
///
/// # Errors
/// When the drive cannot run one of them, none is left to fit to, or the fit is to end.
pub fn calibrate_ssd<'r>(
    drive: &QueuedSsd<'r>,
    jobs: &[MeasuredJob],
    fits: &[bool],
    go_on: &(dyn Fn() -> bool + Sync),
) -> Result<SsdCalibration<'r>, CalibrateError> {
    let wanted: Vec<&MeasuredJob> =
        jobs.iter().zip(fits).filter(|(_, fits)| **fits).map(|(job, _)| job).collect();
    let fits: Vec<bool> =
        jobs.iter().zip(fits).map(|(job, fits)| *fits && !is_redundant(job, &wanted)).collect();
    let fits = fits.as_slice();
    let fitted: Vec<&MeasuredJob> =
        jobs.iter().zip(fits).filter(|(_, fits)| **fits).map(|(job, _)| job).collect();
    if fitted.is_empty() {
        return Err(CalibrateError::Fit("there is no job to fit to".to_owned()));
    }
    let drive = &QueuedSsd { host: drive.host.measured(&fitted), ..drive.clone() };
    let start = drive.point();
    let benches = |point: &SsdPoint| -> Result<Vec<JobBench<'_>>, CalibrateError> {
        fitted.iter().map(|job| JobBench::new(drive, point, job, 1)).collect()
    };
    // Only reads show how many dies there are: writes end in the buffer.
    let started = benches(&start)?;
    let reads = JobFit::new(drive, &started, go_on).of(Op::Read);
    let are_dies_searched = reads.is_some();
    let point = match reads {
        Some(reads) => reads.search_dies(&start)?,
        None => start.clone(),
    };
    let benches = benches(&point)?;
    let fit = JobFit::new(drive, &benches, go_on);
    let point = match fit.of(Op::Write) {
        Some(writes) => writes.search(&point, COARSE)?.point,
        None => point,
    };
    let searched = fit.search(&point, FINE)?;
    let (found, constants) = identify(fit, &start, searched)?;
    let SearchResult { point, is_stopped, .. } = found;
    let before = simulate(drive, jobs, fits, &start)?;
    let after = simulate(drive, jobs, fits, &point)?;
    let both = |fitted| [&before, &after].map(|results| JobErrors::of(results, fitted));
    Ok(SsdCalibration {
        start: drive.start.name.clone(),
        dies: [&start, &point].map(|point| (point.channels, point.dies_per_channel)),
        are_dies_searched,
        is_stopped,
        constants,
        fitted: both(true),
        held_out: both(false),
        trivial: trivial(&after, |result| !result.fitted),
        host_us: drive.host.times_ns.map(|ns| ns as f64 / 1e3),
        commands_max: drive.start.queue_depth,
        jobs: after,
        drive: drive.clone(),
        point,
    })
}

/// Whether `jobs` deliver the rate of `job`, a closed loop, at two depths with fewer requests
/// outstanding: more of them only wait longer.
fn is_redundant(job: &MeasuredJob, jobs: &[&MeasuredJob]) -> bool {
    if job.offered.is_some() {
        return false;
    }
    let rate = |job: &MeasuredJob| job.delivered.iter().map(|one| one.iops).sum::<f64>();
    let delivers = |other: &&&MeasuredJob| {
        other.is_of_row(job) && other.depth < job.depth && rate(other) > SATURATED * rate(job)
    };
    let depths: BTreeSet<u64> = jobs.iter().filter(delivers).map(|other| other.depth).collect();
    depths.len() >= 2
}

/// Puts back the constants that the jobs do not identify, fits the others again, and gives their
/// ranges.
fn identify(
    mut fit: JobFit<'_, '_>,
    start: &SsdPoint,
    searched: SearchResult,
) -> Result<(SearchResult, Vec<FittedConstant>), CalibrateError> {
    let SearchResult { mut point, distance: mut least, .. } = searched;
    let mut identified = Vec::new();
    for at in std::mem::take(&mut fit.free) {
        let mut back = point.clone();
        back.constants[at] = start.constants[at];
        let cost = fit.cost(&back)?;
        if cost > least + TOLERANCE {
            identified.push(at);
        } else {
            (point, least) = (back, cost);
        }
    }
    fit.free = identified;
    let found = fit.search(&point, FINE)?;
    let point = &found.point;
    let one = |(at, constant): (usize, &Constant)| {
        let words = |at| constant.words(at);
        let range = match fit.free.contains(&at) {
            true => Some(fit.range(point, at, found.distance)?),
            false => None,
        };
        Ok(FittedConstant {
            name: constant.name,
            from: words(start.constants[at]),
            written: words(point.constants[at]),
            to: range.map(|_| words(point.constants[at])),
            range: range.map(|(low, high)| (words(low), words(high))),
        })
    };
    let constants = CONSTANTS.iter().enumerate().map(one).collect::<Result<_, _>>()?;
    Ok((found, constants))
}

pub(super) fn simulate(
    drive: &QueuedSsd<'_>,
    jobs: &[MeasuredJob],
    fits: &[bool],
    point: &SsdPoint,
) -> Result<Vec<JobResult>, CalibrateError> {
    let Distinct { firsts, numbers } = Distinct::of(jobs.iter());
    let one = |at: usize| {
        let ran = JobBench::new(drive, point, &jobs[at], JUDGED_EFFORT)?.run(drive, point)?;
        Ok(ran.iter().map(SimulatedDirection::delivered).collect())
    };
    let ran = parallel_map(firsts, processors(), one, |_, _| {});
    let ran: Vec<Vec<DirectionResult>> = ran.into_iter().collect::<Result<_, CalibrateError>>()?;
    let result = |((job, &fitted), number): ((&MeasuredJob, &bool), usize)| JobResult {
        measured: job.clone(),
        simulated: ran[number].clone(),
        fitted,
    };
    Ok(jobs.iter().zip(fits).zip(numbers).map(result).collect())
}

/// Jobs without those that ask the same of a drive, as threads do that share a depth differently.
struct Distinct {
    /// The position of the first job of each kind.
    firsts: Vec<usize>,
    /// The kind of each job.
    numbers: Vec<usize>,
}

impl Distinct {
    fn of<'j>(jobs: impl Iterator<Item = &'j MeasuredJob>) -> Self {
        let jobs: Vec<&MeasuredJob> = jobs.collect();
        let mut firsts: Vec<usize> = Vec::new();
        let mut numbers = Vec::with_capacity(jobs.len());
        for (at, job) in jobs.iter().enumerate() {
            let known = firsts.iter().position(|first| is_same(jobs[*first], job));
            numbers.push(known.unwrap_or_else(|| {
                firsts.push(at);
                firsts.len() - 1
            }));
        }
        Self { firsts, numbers }
    }
}

/// Whether both ask the same of a drive.
fn is_same(one: &MeasuredJob, other: &MeasuredJob) -> bool {
    let ops = |job: &MeasuredJob| job.delivered.iter().map(|one| one.op).collect::<Vec<_>>();
    one.key() == other.key() && ops(one) == ops(other)
}

/// The mean error of the rates of the jobs that `is_wanted` selects, as the fitted jobs of their
/// rows predict them without a drive: latency at the least depth, and at most the highest rate.
pub fn trivial(results: &[JobResult], is_wanted: impl Fn(&JobResult) -> bool) -> f64 {
    let closed = results.iter().filter(|result| result.measured.offered.is_none());
    let errors = closed.filter(|result| is_wanted(result)).filter_map(|held_out| {
        let row = results
            .iter()
            .filter(|other| other.fitted && other.measured.is_of_row(&held_out.measured));
        let rate = |result: &JobResult| result.measured.delivered[0].iops;
        let least = row.clone().min_by_key(|result| result.measured.depth)?;
        let limit = row.map(rate).fold(0.0, f64::max);
        let by_latency = rate(least) * held_out.measured.depth as f64 / least.measured.depth as f64;
        Some((by_latency.min(limit) / rate(held_out) - 1.0).abs())
    });
    mean(&errors.collect::<Vec<_>>())
}
