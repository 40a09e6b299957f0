//! An SSD's constants from what jobs of fio measured.
//!
//! The jobs are closed loops, with so many requests of one size outstanding, or open loops of a
//! limited rate. Each is simulated on the drive with other constants until the requests per second
//! and the latencies come closest. Half of the jobs are held out and judge the fit.

mod constants;
mod job_fit;
mod jobs;
mod simulate;
#[cfg(test)]
mod tests;
mod warnings;

pub use job_fit::{JobErrors, JobResult, REFINED_MAX, TOLERANCE, calibrate_ssd, trivial};
pub use jobs::{DirectionResult, MeasuredJob, OfferedRate, parse, read};

use crate::CalibrateError;
use crate::start::{CalibratedKind, Start};
use constants::CONSTANTS;
use hybridsim_config::diagnostic::SourceText;
use hybridsim_config::param::{Settings, Value};
use hybridsim_config::registry::Registry;
use serde::Serialize;
use std::collections::BTreeSet;
use std::path::Path;

const SSD: CalibratedKind = CalibratedKind {
    kind: "ssd",
    words: "SSD",
    remedy: "name a preset of `hybridsim list preset` that is one, or a file with one",
};

/// An SSD that has queues at its dies.
#[derive(Clone, Debug)]
pub struct QueuedSsd<'r> {
    start: Start<'r>,
    host: Host,
}

/// The host that the jobs run on.
#[derive(Clone, Copy, Debug)]
struct Host {
    /// Most commands at the drive; further requests wait in the host.
    commands_max: u64,
    /// Time from a completion to the request that follows it, in nanoseconds, of jobs that mostly
    /// read and of those that mostly write, whose data the host may have to make first.
    times_ns: [u64; 2],
}

impl Host {
    /// Most commands at a drive without a limit: more than a loop has outstanding.
    const UNLIMITED: u64 = 65_536;

    /// The place of `job` in `times_ns`.
    fn place(job: &MeasuredJob) -> usize {
        usize::from(job.write_share() > 0.5)
    }

    fn time_ns(&self, job: &MeasuredJob) -> u64 {
        self.times_ns[Self::place(job)]
    }

    /// The host with the times that the jobs of least depth among `jobs` leave to it: the median.
    fn measured(self, jobs: &[&MeasuredJob]) -> Self {
        let time_ns = |place: usize| {
            let closed = jobs.iter().filter(|job| job.offered.is_none());
            let own = closed.filter(|job| Self::place(job) == place);
            let least = own.clone().map(|job| job.depth).min();
            let least = own.filter(|job| Some(job.depth) == least);
            let mut times: Vec<f64> = least.map(|job| job.host_us()).collect();
            times.sort_by(f64::total_cmp);
            times.get(times.len() / 2).map_or(self.times_ns[place], |us| (us * 1e3) as u64)
        };
        Self { times_ns: [time_ns(0), time_ns(1)], ..self }
    }
}

impl<'r> QueuedSsd<'r> {
    /// The drive `name` stands for: a preset, or a file ending in `.toml` that is one or is a
    /// scenario with a single SSD.
    ///
    /// # Errors
    /// When it is none of these, is wrong, or has another timing model.
    pub fn read(name: &str, registry: &'r Registry) -> Result<Self, CalibrateError> {
        Self::of(Start::read(name, &SSD, registry)?)
    }

    /// The only SSD of the scenario `text`, to be called `name`.
    ///
    /// # Errors
    /// As [`QueuedSsd::read`].
    pub fn of_scenario(
        name: &str,
        text: &str,
        registry: &'r Registry,
    ) -> Result<Self, CalibrateError> {
        let source = SourceText { name: name.to_owned(), text: text.to_owned() };
        Self::of(Start::of_scenario(name, &SSD, source, Path::new(""), registry)?)
    }

    fn of(start: Start<'r>) -> Result<Self, CalibrateError> {
        let timing = &start.component.settings.entry("timing").name;
        if timing != "queued" {
            let name = &start.name;
            let message = format!("{name}: timing is `{timing}`, and only `queued` is calibrated");
            return Err(CalibrateError::Start(message));
        }
        let commands_max = start.queue_depth.unwrap_or(Host::UNLIMITED);
        Ok(Self { start, host: Host { commands_max, times_ns: [0; 2] } })
    }

    fn point(&self) -> SsdPoint {
        let settings = &self.start.component.settings;
        let [channels, dies] = ["channels", "dies_per_channel"].map(|key| settings.count(key));
        SsdPoint {
            channels,
            dies_per_channel: dies,
            constants: CONSTANTS.iter().map(|constant| constant.read(settings)).collect(),
        }
    }
}

/// A variant of a drive.
#[derive(Clone, Debug)]
struct SsdPoint {
    channels: u64,
    dies_per_channel: u64,
    /// Coordinates, by [`CONSTANTS`]; [`constants::FOLLOWS`] of those that follow another.
    constants: Vec<f64>,
}

impl SsdPoint {
    /// The coordinate of constant `at`, or of the one that it follows.
    fn coordinate(&self, at: usize) -> f64 {
        let followed = CONSTANTS[at].follows.filter(|_| self.constants[at].is_nan());
        let place = |name| CONSTANTS.iter().position(|constant| constant.name == name);
        self.constants[followed.and_then(place).unwrap_or(at)]
    }

    fn write(&self, settings: &mut Settings) {
        settings.set("channels", Value::Count(self.channels));
        settings.set("dies_per_channel", Value::Count(self.dies_per_channel));
        for (constant, at) in CONSTANTS.iter().zip(&self.constants) {
            constant.write(settings, *at);
        }
    }
}

/// A fitted drive.
#[derive(Clone, Debug, Serialize)]
pub struct SsdCalibration<'r> {
    /// The drive at the start.
    pub start: String,
    /// Channels and dies of each: at the start, and fitted.
    pub dies: [(u64, u64); 2],
    /// Whether other numbers of channels and dies were tried; without reads they do not show.
    pub are_dies_searched: bool,
    /// Whether the last search was stopped at [`REFINED_MAX`] simulations.
    pub is_stopped: bool,
    /// All constants.
    pub constants: Vec<FittedConstant>,
    /// The jobs that were fitted to, with the constants of the start and with those fitted.
    pub fitted: [JobErrors; 2],
    /// The jobs held out, in the same way.
    pub held_out: [JobErrors; 2],
    /// Error on the jobs held out of the requests per second that the latency of one request at a
    /// time and the highest rate of the row fitted to would let expect.
    pub trivial: f64,
    /// Time of the host from a completion to the next request, in microseconds, as measured by
    /// the jobs of least depth fitted to: of those that mostly read, and that mostly write.
    pub host_us: [f64; 2],
    /// Most commands at the drive, where START has a limit.
    pub commands_max: Option<u64>,
    /// Every job.
    pub jobs: Vec<JobResult>,
    #[serde(skip)]
    drive: QueuedSsd<'r>,
    #[serde(skip)]
    point: SsdPoint,
}

/// The fit of a constant.
#[derive(Clone, Debug, Serialize)]
pub struct FittedConstant {
    /// The parameter.
    pub name: &'static str,
    /// The value at the start.
    pub from: String,
    /// The value in the preset. Where the jobs do not identify it, that of the start, or the one
    /// at which other numbers of dies have the same bandwidth.
    pub written: String,
    /// The fitted value; `None` where the jobs do not identify it.
    pub to: Option<String>,
    /// The values between which the distance from the measurements increases by at most
    /// [`TOLERANCE`], all else being equal.
    pub range: Option<(String, String)>,
}

/// Times of the host below this one, in microseconds, are not worth a mention.
const HOST_US_MIN: f64 = 0.05;

/// Marks the jobs that are fitted to: every other one of a row of depths or offered rates, the rows
/// shifted against each other, so that neighbours judge each other.
pub fn every_other(jobs: &[MeasuredJob]) -> Vec<bool> {
    let mut rows: Vec<&MeasuredJob> = Vec::new();
    let mut numbers = Vec::new();
    for job in jobs {
        let row = rows.iter().position(|row| row.is_of_row(job)).unwrap_or_else(|| {
            rows.push(job);
            rows.len() - 1
        });
        let lower = jobs.iter().filter(|other| other.is_of_row(job) && other.load() < job.load());
        let loads: BTreeSet<(u64, u64)> = lower.map(MeasuredJob::load).collect();
        numbers.push(row + loads.len());
    }
    numbers.into_iter().map(|number| number % 2 == 0).collect()
}

/// Marks the jobs that have one of `depths` requests outstanding.
pub fn of_depths(jobs: &[MeasuredJob], depths: &[u64]) -> Vec<bool> {
    jobs.iter().map(|job| depths.contains(&job.depth)).collect()
}

impl SsdCalibration<'_> {
    /// Settings of the host that go with the constants of the drive.
    pub fn host(&self) -> Option<String> {
        let limit = self.commands_max.map(|most| format!("queue_depth = {most}"));
        let is_worth = |us: &f64| *us >= HOST_US_MIN;
        let [reads, writes] = self.host_us;
        let time = match [reads, writes].map(|us| is_worth(&us)) {
            [false, false] => None,
            [true, true] => {
                Some(format!("think_time = \"{reads:.1}us\" (writes: \"{writes:.1}us\")"))
            }
            [true, false] => Some(format!("think_time = \"{reads:.1}us\" (reads)")),
            [false, true] => Some(format!("think_time = \"{writes:.1}us\" (writes)")),
        };
        let both: Vec<String> = limit.into_iter().chain(time).collect();
        (!both.is_empty()).then(|| format!("Simulated with [host] {}.", both.join(", ")))
    }

    /// Simulates other jobs on the fitted drive.
    ///
    /// # Errors
    /// When it cannot run one of them.
    pub fn simulate(&self, jobs: &[MeasuredJob]) -> Result<Vec<JobResult>, CalibrateError> {
        job_fit::simulate(&self.drive, jobs, &vec![false; jobs.len()], &self.point)
    }

    /// Where a constant comes from that is not identified.
    fn provenance(&self, constant: &FittedConstant) -> String {
        let (start, from) = (&self.start, &constant.from);
        match constant.written == *from {
            true => format!("from {start}: not identified"),
            false => {
                format!(
                    "not identified: {from} in {start}, changed with the dies at the same bandwidth"
                )
            }
        }
    }

    /// The drive as a preset, every value with its source.
    pub fn preset(&self) -> String {
        let mut start = self.drive.start.clone();
        self.point.write(&mut start.component.settings);
        let [fitted, held_out] = [&self.fitted[1], &self.held_out[1]];
        let (words, error) = fitted.headline();
        let mut head = format!(
            "Fitted from {} to {} jobs of fio: mean error of {words} {:.1} %;\n",
            self.start,
            fitted.jobs,
            100.0 * error
        );
        let (words, error) = held_out.headline();
        head += &match held_out.jobs {
            0 => "none held out".to_owned(),
            jobs => format!("{jobs} jobs held out: mean error of {words} {:.1} %", 100.0 * error),
        };
        if held_out.rate_worst > 0.0 {
            head += &format!(", at worst {:.1} %", 100.0 * held_out.rate_worst);
        }
        if let Some(words) = self.host() {
            head += &format!("\n{words}");
        }
        if self.is_stopped {
            head += &format!("\nThe search was stopped after {REFINED_MAX} simulations.");
        }
        let is_fitted = |key: &str| {
            ["channels", "dies_per_channel"].contains(&key)
                || CONSTANTS.iter().any(|constant| constant.name == key)
        };
        let dies = match self.are_dies_searched {
            true => "fitted: tried in powers of two".to_owned(),
            false => format!("from {}: not identified", self.start),
        };
        start.preset(&head, is_fitted, |key| {
            let constant = self.constants.iter().find(|constant| constant.name == key);
            match constant {
                Some(FittedConstant { to: Some(_), range: Some((low, high)), .. }) => {
                    Some(format!("fitted, between {low} and {high}"))
                }
                Some(constant) => Some(self.provenance(constant)),
                None => is_fitted(key).then(|| dies.clone()),
            }
        })
    }
}
