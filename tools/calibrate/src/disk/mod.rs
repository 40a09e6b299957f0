//! A hard disk's constants from a measured log.
//!
//! The drive's overheads, settling times and link rate are fitted to the distributions of the
//! response times of one part of the log, by class of request. The other part validates the fit.
//! Requests are not compared one by one: the rotational position at a random request is unknown
//! unless the layout is known to the sector, and then the distributions agree as well.

mod constants;
mod distance;
mod log;
mod log_fit;
mod replay;
mod seeks;
mod start;
#[cfg(test)]
mod tests;

pub use distance::{Floor, demerit, quantile};
pub use log::{Class, Log, LoggedRequest};
pub use seeks::{DistanceChange, SeekCorrection};
pub use start::DiskDrive;

use super::CalibrateError;
use constants::{CONSTANTS, Constant};
use hybridsim_engine::Op;
use hybridsim_simulation::parallel::{parallel_map, processors};
use log::Cylinders;
use log_fit::{LogBench, MovedConstant, Sample, fit};
use replay::{Script, Step, replay};
use serde::Serialize;

/// Division of the logs for cross-validation.
#[derive(Clone, Copy, Debug)]
pub struct Split {
    /// Number of consecutive parts of each log, at least two. Each part is held out once.
    pub parts: usize,
    /// Whether the drive's values are fitted to the whole logs, instead of all but the last part.
    pub whole: bool,
}

/// Drive, logs and fits; the values of the first fit are the drive's.
#[derive(Clone, Debug, Serialize)]
pub struct DiskCalibration<'r> {
    /// The drive at the start.
    pub start: String,
    /// The logs' names.
    pub logs: Vec<String>,
    /// Requests in them.
    pub requests: usize,
    /// Demerit over the whole logs, each part with the constants fitted to the others.
    pub crossed: Change,
    /// The floor of the start on the whole logs.
    pub floor: Floor,
    /// The fits.
    pub fits: Vec<DiskFit>,
    #[serde(skip)]
    drive: Option<DiskDrive<'r>>,
}

/// One fit.
#[derive(Clone, Debug, Serialize)]
pub struct DiskFit {
    /// The part of the logs it was fitted to.
    pub fitted: String,
    /// The part it was not fitted to, if there is one.
    pub held_out: Option<String>,
    /// Demerit over the part it was fitted to, in ms.
    pub on_fitted: Change,
    /// Demerit over the part it was not fitted to.
    pub on_held_out: Option<Change>,
    /// Mean demerit of runs with other angles of the platters over the part held out (over the
    /// fitted one where there is none).
    pub other_angles: Change,
    /// The floor of the fitted drive on that part.
    pub floor: Floor,
    /// Whether the fitted part may be a run of the start itself, so that nothing was fitted.
    pub is_close: bool,
    /// Changes by class of request, on the part held out (on the fitted one where there is none).
    pub classes: Vec<ClassChange>,
    /// All constants.
    pub constants: Vec<ConstantChange>,
    /// The correction of the seek curve, where the log calls for one.
    pub seeks: Option<SeekCorrection>,
    /// Random requests by seek distance, on the same part as `classes`.
    pub distances: Vec<DistanceChange>,
    /// Sorted latencies of the part held out with the drive's own values and with the fitted ones,
    /// and those measured; in ms.
    #[serde(skip)]
    pub held_out_ms: [Vec<f64>; 3],
}

/// A result with the start's values and with the fitted ones.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Change {
    pub before_ms: f64,
    pub after_ms: f64,
}

/// A class of requests.
#[derive(Clone, Debug, Serialize)]
pub struct ClassChange {
    #[serde(flatten)]
    pub class: Class,
    /// Requests of it.
    pub requests: usize,
    /// Mean response time measured.
    pub measured_ms: f64,
    /// Mean response time simulated.
    pub mean: Change,
    /// Demerit of the class.
    pub demerit: Change,
}

/// The fit of a constant.
#[derive(Clone, Debug, Serialize)]
pub struct ConstantChange {
    /// The parameter.
    pub name: &'static str,
    /// The value at the start, in words.
    pub from: String,
    /// The fitted value with its error; `None` where the log does not identify it.
    pub to: Option<String>,
    /// Increase of the cost with the value of the start, in ms.
    pub gain_ms: Option<f64>,
    /// Standard deviation of that.
    pub deviation_ms: Option<f64>,
    /// `from` and `to` as numbers: ms, ms per sector or a share.
    #[serde(skip)]
    pub numbers: (Option<f64>, Option<f64>),
}

/// Least distance of `drive` from `log`, and its distance with other angles.
///
/// # Errors
/// As [`calibrate_disk`].
pub fn floor(drive: &DiskDrive<'_>, log: &Log) -> Result<Floor, CalibrateError> {
    let logs = std::slice::from_ref(log);
    let cylinders = fitting(drive, logs)?;
    let (classes, numbers) = log::classify(logs, &cylinders);
    let distances = log::distances(logs, &cylinders);
    let bench = LogBench::new(drive, logs, (&classes, &numbers), distances)
        .map_err(CalibrateError::Start)?;
    let work = CrossValidation { drive, bench: &bench, parts: 1 };
    drive.unless_interrupted(work.sample(|_| true).floor(drive))
}

/// The cylinders of `drive`, within which the requests of `logs` have to lie.
fn fitting(drive: &DiskDrive<'_>, logs: &[Log]) -> Result<Cylinders, CalibrateError> {
    let component = drive.build().map_err(CalibrateError::Start)?;
    let capacity = component.capacity();
    for log in logs {
        if let Some((number, end)) = log.beyond(capacity) {
            return Err(CalibrateError::Readings(format!(
                "{}: request {number} goes to sector {end}, and {} has {capacity}; is the log of \
                 a larger drive, or of one partition among several?",
                log.name, drive.name
            )));
        }
    }
    Ok(Cylinders { positioner: component.positioner() })
}

/// Fits the constants of `drive` to part of `logs` and tries them on the rest.
///
/// # Errors
/// A drive that cannot be built, a request beyond its end, or an interrupted calibration.
pub fn calibrate_disk<'r>(
    drive: &DiskDrive<'r>,
    logs: &[Log],
    split: Split,
) -> Result<DiskCalibration<'r>, CalibrateError> {
    let cylinders = fitting(drive, logs)?;
    let (classes, numbers) = log::classify(logs, &cylinders);
    let distances = log::distances(logs, &cylinders);
    let bench = LogBench::new(drive, logs, (&classes, &numbers), distances)
        .map_err(CalibrateError::Start)?;
    let work = CrossValidation { drive, bench: &bench, parts: split.parts };
    let whole = split.whole.then_some(None);
    // All but the last part comes first: its values are taken.
    let held_out = whole.into_iter().chain((0..split.parts).rev().map(Some));
    let fits =
        parallel_map(held_out.collect(), processors(), |held_out| work.one(held_out), |_, _| {});
    drive.unless_interrupted(DiskCalibration {
        start: drive.name.clone(),
        logs: logs.iter().map(|log| log.name.clone()).collect(),
        requests: logs.iter().map(|log| log.lines.len()).sum(),
        crossed: crossed(&fits),
        floor: work.sample(|_| true).floor(drive),
        fits,
        drive: Some(drive.clone()),
    })
}

/// Least share of random requests that come within a twelfth of a turn of a log whose angles can be
/// followed; by chance it is a sixth of them, and a few that are served from the buffer.
const FOLLOWED_SHARE_MIN: f64 = 0.5;

/// Angles, evenly apart, at which every random request is tried where they cannot be followed: the
/// chance in the angles of the log is enough.
const ANGLES: u64 = 2;

/// Runs with other angles that the floor is the mean of, all pairs of them.
const FLOOR_RUNS: u64 = 20;

impl<'a> LogBench<'a> {
    fn new(
        drive: &DiskDrive<'_>,
        logs: &'a [Log],
        (classes, numbers): (&'a [Class], &'a [Vec<usize>]),
        distances: Vec<Vec<f64>>,
    ) -> Result<Self, String> {
        let turn = drive.turn();
        let script = |steps: Vec<Step>| Script { steps: steps.into(), turn };
        let free = |line: &LoggedRequest| Step {
            request: line.request,
            pause: line.pause,
            angle_of: None,
        };
        let exact: Vec<Script> =
            logs.iter().map(|log| script(log.lines.iter().map(free).collect())).collect();
        let angles =
            |draw| exact.iter().map(move |it: &Script| it.with_other_angles(draw)).collect();
        let other_angles: Vec<Vec<Script>> = (0..FLOOR_RUNS).map(angles).collect();
        let is_random = |log: usize, at: usize| classes[numbers[log][at]].place == log::RANDOM;
        let (mut random, mut near) = (0_u32, 0_u32);
        for (number, log) in logs.iter().enumerate() {
            let ours = replay(drive, &exact[number], log.lines.len())?;
            for (at, (line, ours)) in log.lines.iter().zip(ours).enumerate() {
                let apart_ms = (line.response_ms - ours).abs();
                random += u32::from(is_random(number, at));
                near += u32::from(is_random(number, at) && apart_ms * 12e6 < turn.as_ns() as f64);
            }
        }
        let followed = f64::from(near) > FOLLOWED_SHARE_MIN * f64::from(random);
        let lines = || logs.iter().flat_map(|log| log.lines.iter());
        let sectors: u64 = lines().map(|line| u64::from(line.request.sectors)).sum();
        let mean_sectors = sectors as f64 / lines().count() as f64;
        let held = |round: u64, number: usize, at: usize| {
            let line = &logs[number].lines[at];
            let angle = line.at + turn * round / ANGLES;
            Step { angle_of: is_random(number, at).then_some(angle), ..free(line) }
        };
        let all = |number: usize| 0..logs[number].lines.len();
        let round = |round: u64| {
            let one = move |number| script(all(number).map(|at| held(round, number, at)).collect());
            (0..logs.len()).map(one)
        };
        let steady = match followed {
            true => exact.clone(),
            false => (0..ANGLES).flat_map(round).collect(),
        };
        Ok(Self {
            logs,
            classes,
            numbers,
            distances,
            mean_sectors,
            exact,
            steady,
            other_angles,
            followed,
        })
    }
}

fn crossed(fits: &[DiskFit]) -> Change {
    let all = |which: usize| {
        let parts = fits.iter().filter(|fit| fit.held_out.is_some());
        let mut all: Vec<f64> =
            parts.flat_map(|fit| fit.held_out_ms[which].iter().copied()).collect();
        all.sort_by(f64::total_cmp);
        all
    };
    let measured = all(2);
    Change { before_ms: demerit(&all(0), &measured), after_ms: demerit(&all(1), &measured) }
}

#[derive(Clone, Copy)]
struct CrossValidation<'a> {
    drive: &'a DiskDrive<'a>,
    bench: &'a LogBench<'a>,
    parts: usize,
}

impl CrossValidation<'_> {
    /// The requests in the parts that are `wanted`.
    fn sample(&self, wanted: impl Fn(usize) -> bool) -> Sample<'_> {
        let mut of = Vec::new();
        for (at, log) in self.bench.logs.iter().enumerate() {
            let component = |line: usize| line * self.parts / log.lines.len();
            of.extend(
                (0..log.lines.len()).filter(|&line| wanted(component(line))).map(|it| (at, it)),
            );
        }
        Sample::new(self.bench, of)
    }

    fn one(&self, held_out: Option<usize>) -> DiskFit {
        let fitted = self.sample(|component| Some(component) != held_out);
        let moved = fit(self.drive, &fitted);
        let value = |(constant, moved): (Constant, &MovedConstant)| Some((constant, moved.value?));
        let constants_only = self.drive.with(CONSTANTS.into_iter().zip(&moved).filter_map(value));
        let is_close = fitted.is_close(self.drive);
        let seeks = if is_close { None } else { seeks::correction(&fitted, &constants_only) };
        let after = seeks
            .as_ref()
            .map_or_else(|| constants_only.clone(), |it| constants_only.with_seeks(it));
        let both = |of: &Sample<'_>| {
            [self.drive, &after].map(|drive| of.latencies(drive, &self.bench.exact))
        };
        let rest = held_out.map(|held_out| self.sample(|component| component == held_out));
        let shown = rest.as_ref().unwrap_or(&fitted);
        let latencies = both(shown);
        let floor = shown.floor(&after);
        let constants = changes(self.drive, &moved);
        let nothing_moved = seeks.is_none() && constants.iter().all(|change| change.to.is_none());
        let start_floor = if nothing_moved { floor } else { shown.floor(self.drive) };
        DiskFit {
            fitted: held_out.map_or("the whole".to_owned(), |component| self.others(component)),
            held_out: held_out.map(|component| self.component(component)),
            on_fitted: match rest {
                Some(_) => fitted.change(&both(&fitted)),
                None => fitted.change(&latencies),
            },
            on_held_out: rest.as_ref().map(|rest| rest.change(&latencies)),
            other_angles: Change { before_ms: start_floor.to_log_ms, after_ms: floor.to_log_ms },
            floor,
            is_close,
            classes: shown.class_changes(&latencies),
            distances: seeks::by_distance(shown, self.drive, &after),
            constants,
            seeks,
            held_out_ms: [shown.all(&latencies[0]), shown.all(&latencies[1]), shown.all_measured()],
        }
    }

    fn component(&self, component: usize) -> String {
        match (self.parts, component) {
            (2, 0) => "first half".to_owned(),
            (2, _) => "second half".to_owned(),
            (parts, component) => format!("part {} of {parts}", component + 1),
        }
    }

    fn others(&self, component: usize) -> String {
        match self.parts {
            2 => self.component(1 - component),
            _ => format!("all but {}", self.component(component)),
        }
    }
}

fn changes(drive: &DiskDrive<'_>, moved: &[MovedConstant]) -> Vec<ConstantChange> {
    let start = drive.constants();
    let change = |((constant, moved), from): ((Constant, &MovedConstant), &Option<f64>)| {
        let to = moved.value.filter(|to| Some(*to) != *from);
        ConstantChange {
            name: constant.name,
            from: from.map_or("none".to_owned(), |from| constant.words(from)),
            to: to.map(|to| constant.with_margin(to, moved.margin.unwrap_or(0.0))),
            gain_ms: moved.gain_ms.map(|gain| gain.0),
            deviation_ms: moved.gain_ms.map(|gain| gain.1),
            numbers: (*from, to),
        }
    };
    CONSTANTS.into_iter().zip(moved).zip(&start).map(change).collect()
}

impl DiskCalibration<'_> {
    /// Weaknesses of the first fit, whose values are the preset's: a demerit above the start's, and
    /// a write cache that the log does not show.
    pub fn warnings(&self) -> Vec<String> {
        let Some(fit) = self.fits.first() else { return Vec::new() };
        let mut warnings = self.worse_parts(fit);
        let Some(drive) = self.drive.as_ref().filter(|drive| drive.hides_writes()) else {
            return warnings;
        };
        let half_turn_ms = drive.turn().as_ns() as f64 / 2e6;
        let uncached = |class: &&ClassChange| {
            class.class.place == log::RANDOM
                && class.class.op == log::word(Op::Write)
                && class.measured_ms > class.mean.after_ms + half_turn_ms
        };
        warnings.extend(fit.classes.iter().find(uncached).map(|class| {
            format!(
                "random writes took {:.2} ms, and with the write cache of {} they take {:.2}: was \
                 the log measured without one? Then start with write_cache = false",
                class.measured_ms, self.start, class.mean.after_ms
            )
        }));
        warnings
    }

    /// The parts of the logs on which `fit` is worse than the start.
    fn worse_parts(&self, fit: &DiskFit) -> Vec<String> {
        // Runs with other angles are of the part held out, where there is one.
        let Change { before_ms, after_ms } = fit.other_angles;
        let angles =
            format!("; over {FLOOR_RUNS} other angles: after {after_ms:.4}, before {before_ms:.4}");
        let of_fitted = if fit.held_out.is_some() { "" } else { angles.as_str() };
        let parts = [
            (Some(&fit.fitted), Some(fit.on_fitted), "to which they were fitted", of_fitted),
            (fit.held_out.as_ref(), fit.on_held_out, "held out", angles.as_str()),
        ];
        let worse = parts.into_iter().filter_map(|(part, change, role, angles)| {
            let (part, change) = (part?, change?);
            (change.after_ms > change.before_ms).then(|| {
                format!(
                    "the fitted constants are worse than those of {} on the {part}, {role}: {:.4} \
                     ms, before {:.4} ms (two runs of the drive with other angles: {:.4} \
                     ms{angles}); use {0}, or a longer log",
                    self.start, change.after_ms, change.before_ms, fit.floor.between_runs_ms
                )
            })
        });
        worse.collect()
    }

    /// The drive with the first fit's values as a preset, every value with its source.
    ///
    /// # Panics
    /// Never: every calibration has a drive and a fit.
    pub fn preset(&self) -> String {
        let (drive, fit) = (self.drive.as_ref(), self.fits.first());
        let (drive, fit) = drive.zip(fit).expect("a calibration has both");
        let value = |(constant, change): (Constant, &ConstantChange)| {
            Some((constant, change.numbers.1.or(change.numbers.0)?))
        };
        let mut fitted = drive.with(CONSTANTS.into_iter().zip(&fit.constants).filter_map(value));
        if let Some(seeks) = &fit.seeks {
            fitted = fitted.with_seeks(seeks);
        }
        let logs = self.logs.join(", ");
        let held_out = match (&fit.held_out, fit.on_held_out) {
            (Some(component), Some(change)) => format!(
                "On {component}, which was held out: {:.4} ms, before {:.4} ms.",
                change.after_ms, change.before_ms
            ),
            _ => "Nothing was held out of this fit.".to_owned(),
        };
        let warnings: String =
            self.warnings().iter().map(|warning| format!("WARNING: {warning}\n")).collect();
        let head = format!(
            "{}, its constants fitted to {logs}\n{warnings}Demerit on {}, to which they were \
             fitted: {:.4} ms, before {:.4} ms.\n{held_out}\n",
            self.start, fit.fitted, fit.on_fitted.after_ms, fit.on_fitted.before_ms
        );
        let moved = |name: &str| fit.constants.iter().any(|it| it.name == name && it.to.is_some());
        let source = |key: &str| {
            if let Some(seeks) =
                fit.seeks.as_ref().filter(|_| key == "seek" || key.starts_with("seek."))
            {
                let name = &self.start;
                return Some(format!("{name}, corrected by {logs}: ms, {}", seeks.words()));
            }
            let of_key = |(at, change): &(usize, &ConstantChange)| {
                change.name == key || CONSTANTS[*at].negative == Some(key)
            };
            let (at, change) = fit.constants.iter().enumerate().find(of_key)?;
            if change.to.is_some() {
                let value = change.to.as_deref().unwrap_or_default();
                return Some(format!(
                    "fitted to {logs}, {}: {value}; {} has {}",
                    fit.fitted, self.start, change.from
                ));
            }
            // Without a value of its own it would take that of a fitted constant.
            let follows = CONSTANTS[at].falls_back_to.filter(|name| moved(name));
            match (drive.writes(key), follows) {
                (true, _) => Some(format!("from {}; not identified by the log", self.start)),
                (false, Some(name)) => Some(format!("as {name} of {}", self.start)),
                (false, None) => None,
            }
        };
        fitted.preset(&head, source)
    }
}
