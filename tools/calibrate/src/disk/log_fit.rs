//! The fit of a disk's constants to logs, and the statistical significance of their values.

use super::constants::{CONSTANTS, Unit};
use super::distance::{Floor, apart, demerit};
use super::log::{Class, Log};
use super::replay::{Script, replay};
use super::start::DiskDrive;
use super::{Change, ClassChange};
use crate::pattern_search::{Space, scan};
use hybridsim_engine::Stream;

/// Bootstrap samples for the standard deviation of a gain.
const DRAWS: u64 = 40;
/// Requests in a block of the bootstrap, as consecutive requests are correlated.
const PIECE: usize = 25;
/// A gain, or a change, of fewer standard deviations is not significant.
const DEVIATIONS_MIN: f64 = 2.0;
/// A gain below this share of the cost is ignored, however significant.
const GAIN_SHARE_MIN: f64 = 0.002;

/// Runs with other angles that count in a demerit as much as the one with the log's own.
const JUDGED_RUNS: usize = 3;
/// Values of a constant tried when the search starts again, evenly spread over its range.
const RESTARTS: u32 = 9;

/// The logs to replay and to compare by class.
pub(super) struct LogBench<'a> {
    /// The logs.
    pub logs: &'a [Log],
    /// Classes of requests in the logs.
    pub classes: &'a [Class],
    /// The class of every request, by log.
    pub numbers: &'a [Vec<usize>],
    /// Distances of the seeks, as shares of the stroke, by log.
    pub distances: Vec<Vec<f64>>,
    /// Mean length of a request.
    pub mean_sectors: f64,
    /// The logs with their own pauses, which is how drives are compared with them.
    pub exact: Vec<Script>,
    /// The logs as they are replayed while constants are moved: all of them once or several times.
    pub steady: Vec<Script>,
    /// The logs with other angles, several times.
    pub other_angles: Vec<Vec<Script>>,
    /// Whether the drive follows the angles of the logs.
    pub followed: bool,
}

/// Requests of a bench: those fitted to, or those held out.
pub(super) struct Sample<'a> {
    pub bench: &'a LogBench<'a>,
    /// Log and number of every request that counts, in order.
    pub of: Vec<(usize, usize)>,
    /// Response times by class, sorted.
    theirs: Vec<Vec<f64>>,
}

/// A constant after the fit.
#[derive(Clone, Copy, Debug)]
pub(super) struct MovedConstant {
    /// The value; that at the start where the log does not identify it.
    pub value: Option<f64>,
    /// Standard deviation of the value, where it changed.
    pub margin: Option<f64>,
    /// Increase of the cost with the value of the start, in ms, and its standard deviation, where
    /// it changed.
    pub gain_ms: Option<(f64, f64)>,
}

impl<'a> Sample<'a> {
    /// The requests `of` the logs of `bench`.
    pub fn new(bench: &'a LogBench<'a>, of: Vec<(usize, usize)>) -> Self {
        let mut sample = Self { bench, of, theirs: Vec::new() };
        sample.theirs = sample.sorted(sample.of.iter().map(|&of| (of, bench.measured_ms(of))));
        sample
    }

    /// Values by class, sorted.
    fn sorted(&self, all: impl Iterator<Item = ((usize, usize), f64)>) -> Vec<Vec<f64>> {
        let mut by = vec![Vec::new(); self.bench.classes.len()];
        all.for_each(|((log, at), value)| by[self.bench.numbers[log][at]].push(value));
        by.iter_mut().for_each(|values| values.sort_by(f64::total_cmp));
        by
    }

    /// Latencies of all `scripts` on `drive`, which are the logs once or several times, as far as
    /// they are needed.
    pub fn latencies(&self, drive: &DiskDrive<'_>, scripts: &[Script]) -> Vec<Vec<f64>> {
        let log = |(at, script): (usize, &Script)| {
            let log = at % self.bench.logs.len();
            let needed = self.of.iter().filter(|of| of.0 == log).map(|of| of.1 + 1).max();
            // A drive that stops early has no latencies and the highest cost.
            replay(drive, script, needed.unwrap_or(0)).unwrap_or_default()
        };
        scripts.iter().enumerate().map(log).collect()
    }

    /// The cost to minimise: the distance of the distributions by class, rank by rank, as a mean
    /// over all requests. Errors of one class cannot compensate those of another, and, unlike the
    /// demerit with its squares, the cost is not dominated by the few requests that went to the
    /// medium instead of the buffer, or missed a revolution.
    pub fn figure_ms(&self, latencies: &[Vec<f64>]) -> f64 {
        let Some(ours) = self.by_class(latencies) else { return f64::INFINITY };
        let sum: f64 = ours.iter().zip(&self.theirs).map(|(a, b)| apart(a, b)).sum();
        sum / self.of.len() as f64
    }

    /// The latencies that count by class, sorted; `None` where a drive stopped before its end.
    fn by_class(&self, latencies: &[Vec<f64>]) -> Option<Vec<Vec<f64>>> {
        let rounds = latencies.chunks(self.bench.logs.len());
        let is_whole = |round: &[Vec<f64>]| self.of.iter().all(|of| round[of.0].len() > of.1);
        rounds.clone().all(is_whole).then(|| {
            let own = |round: &'_ [Vec<f64>], of: (usize, usize)| (of, round[of.0][of.1]);
            self.sorted(rounds.flat_map(|round| self.of.iter().map(move |&of| own(round, of))))
        })
    }

    /// All of a replay's latencies that count, sorted.
    pub fn all(&self, latencies: &[Vec<f64>]) -> Vec<f64> {
        let mut all = self.by_class(latencies).unwrap_or_default().concat();
        all.sort_by(f64::total_cmp);
        all
    }

    /// All measured ones, sorted.
    pub fn all_measured(&self) -> Vec<f64> {
        let mut all = self.theirs.concat();
        all.sort_by(f64::total_cmp);
        all
    }

    /// The floor of `drive`.
    pub fn floor(&self, drive: &DiskDrive<'_>) -> Floor {
        let run = |scripts: &Vec<Script>| self.all(&self.latencies(drive, scripts));
        let runs: Vec<Vec<f64>> = self.bench.other_angles.iter().map(run).collect();
        Floor::of(&runs, &self.all_measured())
    }

    /// Whether the log may be that of `drive` itself, where its angles are chance, so that it
    /// cannot judge a change.
    pub fn is_close(&self, drive: &DiskDrive<'_>) -> bool {
        !self.bench.followed && self.floor(drive).may_be_a_run()
    }

    /// The demerit of `drive`, as a mean over the log's own angles and others.
    pub fn demerit_ms(&self, drive: &DiskDrive<'_>) -> f64 {
        let theirs = self.all_measured();
        let run =
            |scripts: &Vec<Script>| demerit(&self.all(&self.latencies(drive, scripts)), &theirs);
        let others = &self.bench.other_angles[..JUDGED_RUNS];
        let own = run(&self.bench.exact) * JUDGED_RUNS as f64;
        (own + others.iter().map(run).sum::<f64>()) / (2 * JUDGED_RUNS) as f64
    }

    /// The two halves of its requests.
    pub fn halves(&self) -> [Sample<'a>; 2] {
        let (first, second) = self.of.split_at(self.of.len() / 2);
        [first, second].map(|of| Sample::new(self.bench, of.to_vec()))
    }

    /// The demerit of two replays.
    pub fn change(&self, latencies: &[Vec<Vec<f64>>; 2]) -> Change {
        let theirs = self.all_measured();
        let [before_ms, after_ms] = latencies.each_ref().map(|it| demerit(&self.all(it), &theirs));
        Change { before_ms, after_ms }
    }

    /// Two replays by class.
    pub fn class_changes(&self, latencies: &[Vec<Vec<f64>>; 2]) -> Vec<ClassChange> {
        let none = || vec![Vec::new(); self.bench.classes.len()];
        let ours = latencies.each_ref().map(|it| self.by_class(it).unwrap_or_else(none));
        let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
        let both = |at: usize, of: &dyn Fn(&[f64]) -> f64| {
            let [before_ms, after_ms] = ours.each_ref().map(|ours| of(&ours[at]));
            Change { before_ms, after_ms }
        };
        let class = |(at, &class): (usize, &Class)| ClassChange {
            class,
            requests: self.theirs[at].len(),
            measured_ms: mean(&self.theirs[at]),
            mean: both(at, &mean),
            demerit: both(at, &|ours| demerit(ours, &self.theirs[at])),
        };
        let all = self.bench.classes.iter().enumerate().map(class);
        all.filter(|change| change.requests > 0).collect()
    }

    /// The figure of `other` less that of `own`, and the standard deviation of that, from pieces of
    /// the log drawn anew.
    fn gain_ms(&self, own: &[Vec<f64>], other: &[Vec<f64>]) -> (f64, f64) {
        let pieces: Vec<&[(usize, usize)]> = self.of.chunks(PIECE).collect();
        let mut stream = Stream::new(1, "calibrate");
        let draw = |stream: &mut Stream| {
            let drawn = (0..pieces.len()).map(|_| stream.below(pieces.len() as u64) as usize);
            let of: Vec<(usize, usize)> = drawn.flat_map(|at| pieces[at].iter().copied()).collect();
            let drawn = Sample::new(self.bench, of);
            drawn.figure_ms(other) - drawn.figure_ms(own)
        };
        let drawn: Vec<f64> = (0..DRAWS).map(|_| draw(&mut stream)).collect();
        let mean = drawn.iter().sum::<f64>() / DRAWS as f64;
        let square: f64 = drawn.iter().map(|value| (value - mean).powi(2)).sum();
        let gain = self.figure_ms(other) - self.figure_ms(own);
        (gain, (square / (DRAWS - 1) as f64).sqrt())
    }
}

impl LogBench<'_> {
    fn measured_ms(&self, (log, at): (usize, usize)) -> f64 {
        self.logs[log].lines[at].response_ms
    }
}

/// A fit in progress.
#[derive(Clone)]
struct LogFit<'a> {
    sample: &'a Sample<'a>,
    drive: &'a DiskDrive<'a>,
    start: Vec<Option<f64>>,
    values: Vec<Option<f64>>,
}

impl LogFit<'_> {
    /// The range of constant `at`, which includes its start.
    fn range(&self, at: usize) -> (f64, f64) {
        let ((low, high), far) = (CONSTANTS[at].range, CONSTANTS[at].far);
        let start = self.start[at].unwrap_or(low);
        ((start - far).max(low).min(start), (start + far).min(high).max(start))
    }

    /// The first step of constant `at`, which is at `value` now.
    fn step(&self, at: usize, value: f64) -> f64 {
        match CONSTANTS[at].unit {
            Unit::Sector => CONSTANTS[at].step.min(value * 0.5),
            Unit::Time | Unit::Share => CONSTANTS[at].step,
        }
    }

    /// The constants `which`, alone and together with those that compensate for them, with first
    /// steps of `part` of their own.
    fn space(&self, which: &[usize], values: &[f64], part: f64) -> Space {
        let mut space = Space::default();
        let step = |place: usize| part * self.step(which[place], values[place]);
        for (place, &at) in which.iter().enumerate() {
            space.ranges.push(self.range(at));
            space.directions.push(vec![(place, step(place))]);
        }
        for (place, &at) in which.iter().enumerate() {
            let is_one = |&(_, &other): &(usize, &usize)| {
                CONSTANTS[at].compensated_by.contains(&CONSTANTS[other].name)
            };
            let sectors = self.sample.bench.mean_sectors;
            let less = |(other, _): (usize, &usize)| (other, -sectors * step(place));
            let others = which.iter().enumerate().filter(is_one).map(less);
            let together: Vec<(usize, f64)> =
                std::iter::once((place, step(place))).chain(others).collect();
            space.directions.extend((together.len() > 1).then_some(together));
        }
        space
    }

    fn drive(&self, values: &[Option<f64>]) -> DiskDrive<'_> {
        let all = CONSTANTS.into_iter().zip(values);
        self.drive.with(all.filter_map(|(constant, value)| Some((constant, (*value)?))))
    }

    fn latencies(&self, values: &[Option<f64>]) -> Vec<Vec<f64>> {
        self.sample.latencies(&self.drive(values), &self.sample.bench.steady)
    }

    /// Searches along the constants `which`, with first steps of `part` of their own.
    fn search(&mut self, which: &[usize], part: f64, halvings: u32) {
        let found = self.best(self.sample, which, part, halvings);
        which.iter().zip(found).for_each(|(&at, value)| self.values[at] = Some(value));
    }

    /// The best values of `which` for `sample`, the others staying.
    fn best(&self, sample: &Sample<'_>, which: &[usize], part: f64, halvings: u32) -> Vec<f64> {
        let value = |at: &usize| self.values[*at].expect("only constants with values are moved");
        let begin: Vec<f64> = which.iter().map(value).collect();
        let mut values = self.values.clone();
        let mut cost = |tried: &[f64]| {
            which.iter().zip(tried).for_each(|(&at, &value)| values[at] = Some(value));
            sample.figure_ms(&sample.latencies(&self.drive(&values), &sample.bench.steady))
        };
        self.space(which, &begin, part).search(&begin, halvings, &mut cost).0
    }

    /// Starts again from the best of several values of each constant, the others staying, where
    /// that is better: latencies are a step function of most constants, and a search that goes from
    /// one step to the next does not see those behind a worse one.
    fn restart(&mut self, which: &[usize]) {
        let mut least = self.cost();
        for &at in which {
            let mut values = self.values.clone();
            let cost = |value| {
                values[at] = Some(value);
                self.sample.figure_ms(&self.latencies(&values))
            };
            if let Some((value, _)) = scan(self.range(at), RESTARTS, least, cost) {
                self.values[at] = Some(value);
                self.search(which, 0.5, 3);
                least = self.cost();
            }
        }
    }

    fn cost(&self) -> f64 {
        self.sample.figure_ms(&self.latencies(&self.values))
    }

    fn moved(&self) -> Vec<usize> {
        (0..CONSTANTS.len()).filter(|&at| self.values[at] != self.start[at]).collect()
    }

    /// The gain of each changed constant, in ms of the cost.
    fn gains(&self) -> Vec<(usize, (f64, f64))> {
        let own = self.latencies(&self.values);
        let gain = |at: usize| {
            let mut without = self.values.clone();
            without[at] = self.start[at];
            (at, self.sample.gain_ms(&own, &self.latencies(&without)))
        };
        self.moved().into_iter().map(gain).collect()
    }

    /// Resets constants without a significant gain, the least significant first.
    fn reset_insignificant(&mut self) {
        loop {
            let least = GAIN_SHARE_MIN * self.sample.figure_ms(&self.latencies(&self.values));
            let sure = |(gain, deviation): (f64, f64)| match gain > least {
                true => gain / deviation.max(f64::MIN_POSITIVE),
                false => 0.0,
            };
            let gains = self.gains();
            let chance = gains.iter().filter(|(_, gain)| sure(*gain) < DEVIATIONS_MIN);
            let weakest = chance.min_by(|a, b| sure(a.1).total_cmp(&sure(b.1)));
            let Some(&(weakest, _)) = weakest else { return };
            for (at, gain) in gains {
                // Constants without any gain are reset at once.
                if at == weakest || sure(gain) <= 0.0 {
                    self.values[at] = self.start[at];
                }
            }
            // Others may have compensated for it.
            self.search(&self.moved(), 0.25, 3);
        }
    }

    /// The values of each changed constant by the two halves of the requests.
    fn cross_validate(&self) -> Vec<CrossValidated> {
        let halves = self.sample.halves();
        let one = |at: usize| {
            let values = halves.each_ref().map(|half| self.best(half, &[at], 0.5, 5)[0]);
            // No finer than the resolution of the search.
            let finest = self.step(at, values[0]) / 64.0;
            let margin = ((values[0] - values[1]).abs() / 2.0).max(finest);
            let cost = |half: &Sample<'_>, value: Option<f64>| {
                let mut tried = self.values.clone();
                tried[at] = value;
                half.figure_ms(&half.latencies(&self.drive(&tried), &half.bench.steady))
            };
            let gains = [(0, 1), (1, 0)].map(|(fitted, other)| {
                cost(&halves[other], self.start[at]) - cost(&halves[other], Some(values[fitted]))
            });
            CrossValidated { at, margin, gain_ms: gains[0] + gains[1] }
        };
        self.moved().into_iter().map(one).collect()
    }

    /// Resets constants on which the halves of the requests disagree, those whose value of one half
    /// is worse on the other than that of the start, and those at a limit of their range, which
    /// compensate for something else.
    fn reset_unstable(&mut self) -> Vec<CrossValidated> {
        let all = self.cross_validate();
        for &CrossValidated { at, margin, gain_ms } in &all {
            let (Some(value), Some(start)) = (self.values[at], self.start[at]) else { continue };
            let (low, high) = self.range(at);
            let at_a_limit = value >= high || value <= low;
            let disagree = (value - start).abs() < DEVIATIONS_MIN * margin;
            if at_a_limit || disagree || gain_ms <= 0.0 {
                self.values[at] = Some(start);
            }
        }
        all
    }

    /// Resets constants, the least significant first, until those that are left are no chance:
    /// fitted to either half of the requests alone, they bring the drive no farther from the other
    /// half.
    fn reset_unproven(&mut self) {
        let halves = self.sample.halves();
        let start = halves.each_ref().map(|half| half.demerit_ms(self.drive));
        loop {
            let moved = self.moved();
            let is_worse = |(fitted, other): (usize, usize)| {
                let mut inner =
                    LogFit { sample: &halves[fitted], values: self.start.clone(), ..self.clone() };
                inner.search(&moved, 1.0, 6);
                inner.restart(&moved);
                halves[other].demerit_ms(&self.drive(&inner.values)) > start[other]
            };
            if moved.is_empty() || ![(0, 1), (1, 0)].into_iter().any(is_worse) {
                return;
            }
            let sure = |(gain, deviation): (f64, f64)| gain / deviation.max(f64::MIN_POSITIVE);
            let gains = self.gains();
            let weakest = gains.iter().min_by(|a, b| sure(a.1).total_cmp(&sure(b.1)));
            let Some(&(weakest, _)) = weakest else { return };
            self.values[weakest] = self.start[weakest];
            self.search(&self.moved(), 0.25, 3);
        }
    }

    /// Resets constants, the one whose reset helps most first, until the demerit is no worse than
    /// that of the start, on the whole nor on either half of the requests: the search minimises a
    /// mean distance by class, which a demerit need not follow.
    fn reset_harmful(&mut self) {
        let halves = self.sample.halves();
        let demerits = |values: &[Option<f64>]| {
            let drive = self.drive(values);
            let own = self.sample.all(&self.sample.latencies(&drive, &self.sample.bench.exact));
            let [first, second] = halves.each_ref().map(|half| half.demerit_ms(&drive));
            [first, second, demerit(&own, &self.sample.all_measured())]
        };
        let start = demerits(&self.start);
        let excess = |values: &[Option<f64>]| {
            let now = demerits(values);
            now.iter().zip(&start).map(|(now, start)| (now - start).max(0.0)).sum::<f64>()
        };
        let mut values = self.values.clone();
        while excess(&values) > 0.0 {
            let moved = (0..values.len()).filter(|&at| values[at] != self.start[at]);
            let without = moved.map(|at| {
                let mut without = values.clone();
                without[at] = self.start[at];
                (excess(&without), without)
            });
            let Some((_, best)) = without.min_by(|a, b| a.0.total_cmp(&b.0)) else { break };
            values = best;
        }
        self.values = values;
    }
}

/// A constant beside what the halves of the requests say.
#[derive(Clone, Copy, Debug)]
struct CrossValidated {
    /// Position among [`CONSTANTS`].
    at: usize,
    /// Half of how far apart the values are that the halves choose: the standard deviation of a
    /// mean of two.
    margin: f64,
    /// Gain of each half's value over the start's on the other half, in ms of the cost, both
    /// together.
    gain_ms: f64,
}

/// Fits the constants of `drive` to `sample`.
pub(super) fn fit(drive: &DiskDrive<'_>, sample: &Sample<'_>) -> Vec<MovedConstant> {
    let start = drive.constants();
    if sample.is_close(drive) {
        let unmoved = |value| MovedConstant { value, margin: None, gain_ms: None };
        return start.into_iter().map(unmoved).collect();
    }
    let mut fit = LogFit { sample, drive, values: start.clone(), start };
    let may_move = |&at: &usize| fit.start[at].is_some() && drive.shows(&CONSTANTS[at]);
    let all: Vec<usize> = (0..CONSTANTS.len()).filter(may_move).collect();
    fit.search(&all, 1.0, 6);
    fit.restart(&all);
    fit.reset_insignificant();
    let margins = fit.reset_unstable();
    fit.search(&fit.moved(), 0.25, 4);
    fit.reset_insignificant();
    fit.reset_unproven();
    fit.reset_harmful();
    let gains = fit.gains();
    let moved = |at: usize| MovedConstant {
        value: fit.values[at],
        margin: margins.iter().find(|other| other.at == at).map(|other| other.margin),
        gain_ms: gains.iter().find(|(other, _)| *other == at).map(|(_, gain)| *gain),
    };
    (0..CONSTANTS.len()).map(moved).collect()
}
