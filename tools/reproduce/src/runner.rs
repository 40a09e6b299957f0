//! Runs the scenarios of an experiment in parallel, profiles workloads, finds measured data.

use crate::Setting;
use hybridsim_calibrate::CalibrateError;
use hybridsim_config::diagnostic::SourceText;
use hybridsim_config::registry::Registry;
use hybridsim_data::PAPERS;
use hybridsim_engine::{Arrival, CommonEvent, EventRecord, EventSink, Op};
use hybridsim_observe::results::TenantResult;
use hybridsim_observe::{Detail, LatencyFold, Pictures, RunResults};
use hybridsim_simulation::parallel::{parallel_map, processors};
use hybridsim_simulation::run::{self, Options, RunOutput};
use hybridsim_simulation::scenario::resolve::Resolved;
use hybridsim_simulation::scenario::{Input, Scenario};
use hybridsim_simulation::state::PreconditionCache;
use hybridsim_simulation::workload;
use hybridsim_simulation::write_amplification::{self, Counted, WriteAmplification};
use hybridsim_workload::profile::{Profile, Profiler};
use hybridsim_workload::record::Record;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::{fs, io};
use thiserror::Error;

/// Failure of an experiment as a whole.
#[derive(Debug, Error)]
pub enum ExperimentError {
    /// Measured data is needed and not there.
    #[error("{0}")]
    NoData(String),
    /// A scenario did not run.
    #[error("{0}")]
    Failed(String),
    /// The user interrupted it.
    #[error("interrupted")]
    Interrupted,
}

impl ExperimentError {
    /// The failure of `what`, such as a drive or a file.
    pub fn of(what: impl std::fmt::Display, error: impl std::fmt::Display) -> Self {
        Self::Failed(format!("{what}: {error}"))
    }

    /// As [`ExperimentError::of`], for a calibration.
    pub fn of_calibration(what: &str, error: CalibrateError) -> Self {
        match error {
            CalibrateError::Interrupted => Self::Interrupted,
            error => Self::of(what, error),
        }
    }
}

/// A scenario to run.
#[derive(Clone, Debug)]
pub struct Job {
    /// The name in messages.
    pub name: String,
    /// The scenario.
    pub text: String,
    /// Keys to set in it, as `--set` does.
    pub sets: Vec<String>,
    /// Folder that paths of traces and presets start from.
    pub base: PathBuf,
    /// Whether every request's latency is wanted, in the order of completion.
    pub latencies: bool,
    /// Whether to keep the custom values that components emit, with their times.
    pub numbers: bool,
    /// Whether to observe the run in full: series over time, and how often blocks were erased.
    pub full: bool,
}

impl Job {
    /// The scenario `text`.
    pub fn new(name: impl Into<String>, text: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            text: text.into(),
            sets: Vec::new(),
            base: PathBuf::new(),
            latencies: false,
            numbers: false,
            full: false,
        }
    }

    /// The workload `keys`, those of a `[workload]` table, to be read and not run.
    pub fn of_workload(name: impl Into<String>, keys: &str) -> Self {
        let system = "[component.any]\nkind = \"constant-device\"\ncapacity = \"1MB\"";
        Self::new(name, format!("[workload]\n{keys}\n{system}\n"))
    }

    /// The scenario file `path` of the folder `papers`, such as `flashsim/fig6.toml`.
    ///
    /// # Panics
    /// When there is no such file: they are part of the program.
    pub fn paper(path: &str) -> Self {
        let file = PAPERS.get_file(path).and_then(|file| file.contents_utf8());
        Self::new(path, file.unwrap_or_else(|| panic!("papers/{path} is part of the program")))
    }

    /// Sets `key` to `value`, in TOML.
    #[must_use]
    pub fn set(mut self, key: &str, value: impl std::fmt::Display) -> Self {
        self.sets.push(format!("{key}={value}"));
        self
    }

    /// The job with the keys of `setting`.
    #[must_use]
    pub fn at(mut self, setting: &Setting) -> Self {
        self.sets.extend(setting.set.iter().cloned());
        self
    }

    /// The job at the seed `seed`.
    #[must_use]
    pub fn at_seed(&self, seed: u32) -> Self {
        let name = format!("{}, seed {seed}", self.name);
        self.clone().named(name).set("run.seed", seed)
    }

    /// Calls it `name`.
    #[must_use]
    pub fn named(self, name: impl Into<String>) -> Self {
        Self { name: name.into(), ..self }
    }

    /// Keeps the custom values that components emit.
    #[must_use]
    pub fn with_numbers(self) -> Self {
        Self { numbers: true, ..self }
    }

    /// Keeps series over time and how often blocks were erased.
    #[must_use]
    pub fn in_full(self) -> Self {
        Self { full: true, ..self }
    }

    /// Keeps every request's latency.
    #[must_use]
    pub fn with_latencies(self) -> Self {
        Self { latencies: true, ..self }
    }
}

/// A request that has completed.
#[derive(Clone, Copy, Debug)]
pub struct ServedRequest {
    /// Operation.
    pub op: Op,
    /// Length.
    pub sectors: u32,
    /// Latency in nanoseconds.
    pub ns: u64,
}

/// Results of a [`Job`].
#[derive(Clone, Debug)]
pub struct JobOutput {
    /// Figures of the run.
    pub results: RunResults,
    /// Distributions of `all` requests, each `read` and each `write`: ns, and how many requests
    /// took at most that.
    pub latency_points: BTreeMap<&'static str, Vec<(u64, u64)>>,
    /// Series over time and number of blocks by number of erases; empty unless asked for.
    pub pictures: Pictures,
    /// Every request in the order of completion, where asked for.
    pub latencies: Vec<ServedRequest>,
    /// Custom values, if requested: time in seconds, index of the name, value.
    pub numbers: Vec<(f64, u8, u64)>,
}

impl JobOutput {
    /// The figures of the workload `name` of several.
    pub fn tenant(&self, name: &str) -> Option<&TenantResult> {
        self.results.tenants.as_ref()?.by_name.get(name)
    }

    /// Mean latency of all requests in milliseconds; NaN without any.
    pub fn mean_ms(&self) -> f64 {
        self.results.latency_ns.all.mean.map_or(f64::NAN, |ns| ns / 1e6)
    }

    /// The share of requests of `kind` (`all`, `read`, `write`) that took at most `ms`.
    pub fn share_within_ms(&self, kind: &str, ms: f64) -> f64 {
        let points = self.latency_points.get(kind).map_or(&[][..], Vec::as_slice);
        let Some(&(_, total)) = points.last() else { return f64::NAN };
        let within = points.iter().take_while(|(ns, _)| *ns as f64 <= ms * 1e6).last();
        within.map_or(0.0, |(_, count)| *count as f64) / total as f64
    }

    /// Mean latency in milliseconds of the requests of at least `sectors`; NaN without any.
    pub fn mean_ms_from(&self, sectors: u32) -> f64 {
        let long = self.latencies.iter().filter(|served| served.sectors >= sectors);
        let times: Vec<f64> = long.map(|served| served.ns as f64 / 1e6).collect();
        times.iter().sum::<f64>() / times.len() as f64
    }

    /// The share of the requests below `sectors` that complete within `ms`; NaN without any.
    pub fn share_within_ms_below(&self, sectors: u32, ms: f64) -> f64 {
        let short = self.latencies.iter().filter(|served| served.sectors < sectors);
        let within: Vec<bool> = short.map(|served| served.ns as f64 <= ms * 1e6).collect();
        within.iter().filter(|within| **within).count() as f64 / within.len() as f64
    }

    /// Longest latency in milliseconds.
    pub fn longest_ms(&self) -> f64 {
        ms(self.results.latency_ns.all.max)
    }

    /// Median latency in milliseconds.
    pub fn median_ms(&self) -> f64 {
        ms(self.results.latency_ns.all.p50)
    }

    /// 99th percentile of the latency in milliseconds.
    pub fn p99_ms(&self) -> f64 {
        ms(self.results.latency_ns.all.p99)
    }

    /// The distribution of latencies of `kind`: (ns, share that took at most that).
    pub fn distribution(&self, kind: &str) -> Vec<(f64, f64)> {
        let points = self.latency_points.get(kind).map_or(&[][..], Vec::as_slice);
        let total = points.last().map_or(1, |(_, count)| (*count).max(1)) as f64;
        points.iter().map(|(ns, count)| (*ns as f64, *count as f64 / total)).collect()
    }
}

/// Registry, data and threads for experiments.
pub struct Runner<'a> {
    registry: &'a Registry,
    data: Option<PathBuf>,
    threads: usize,
    interrupted: &'a AtomicBool,
    progress: &'a (dyn Fn(&str) + Sync),
    /// The folder to write scenarios into, and how many have been.
    scenarios: Option<(PathBuf, AtomicUsize)>,
}

impl<'a> Runner<'a> {
    /// A runner that stops when `interrupted` is set, reports finished runs to `progress`, and
    /// finds measured data below the folder `HYBRIDSIM_DATA` names.
    pub fn new(
        registry: &'a Registry,
        interrupted: &'a AtomicBool,
        progress: &'a (dyn Fn(&str) + Sync),
    ) -> Self {
        let data = std::env::var_os("HYBRIDSIM_DATA").map(PathBuf::from);
        let threads = processors();
        Self { registry, data, threads, interrupted, progress, scenarios: None }
    }

    /// With a `folder`, which may be new, into which it writes every scenario that it runs, with
    /// every value spelt out, by number and name of the job.
    #[must_use]
    pub fn writing_scenarios(self, folder: PathBuf) -> Self {
        Self { scenarios: Some((folder, AtomicUsize::new(1))), ..self }
    }

    /// The entries that scenarios are made of.
    pub const fn registry(&self) -> &'a Registry {
        self.registry
    }

    /// The path of a measured data file or folder.
    ///
    /// # Errors
    /// [`ExperimentError::NoData`] when it is not there.
    pub fn data(&self, path: impl AsRef<Path>) -> Result<PathBuf, ExperimentError> {
        let Some(folder) = &self.data else {
            let message = "needs measured data: set HYBRIDSIM_DATA to its folder";
            return Err(ExperimentError::NoData(message.to_owned()));
        };
        let found = folder.join(path.as_ref());
        match found.exists() {
            true => Ok(found),
            false => {
                let message = format!("needs {} below HYBRIDSIM_DATA", path.as_ref().display());
                Err(ExperimentError::NoData(message))
            }
        }
    }

    /// The flag that is set when the user asks for an end.
    pub const fn interrupted(&self) -> &'a AtomicBool {
        self.interrupted
    }

    /// Whether the user asked for an end.
    pub fn is_interrupted(&self) -> bool {
        self.interrupted.load(Ordering::Relaxed)
    }

    /// Reports work on `name` outside of scenarios.
    ///
    /// # Errors
    /// [`ExperimentError::Interrupted`] when there should be no more.
    pub fn done(&self, name: &str) -> Result<(), ExperimentError> {
        (self.progress)(name);
        match self.is_interrupted() {
            true => Err(ExperimentError::Interrupted),
            false => Ok(()),
        }
    }

    /// Runs `jobs`, as many at a time as there are processors; results come in the jobs' order.
    ///
    /// # Errors
    /// The first job, in order, that does not run to its end.
    pub fn run(&self, jobs: &[Job]) -> Result<Vec<JobOutput>, ExperimentError> {
        self.write_scenarios(jobs)?;
        let finished = |at: usize, output: &Result<JobOutput, ExperimentError>| {
            if output.is_ok() {
                (self.progress)(&jobs[at].name);
            }
        };
        let all = parallel_map(jobs.iter().collect(), self.threads, |job| self.one(job), finished);
        all.into_iter().collect()
    }

    /// Counts the flash operations of `jobs`, whose systems are single SSDs.
    ///
    /// # Errors
    /// The first job, in order, that does not run to its end.
    pub fn count(&self, jobs: &[Job]) -> Result<Vec<WriteAmplification>, ExperimentError> {
        self.write_scenarios(jobs)?;
        let finished = |at: usize, counted: &Result<WriteAmplification, ExperimentError>| {
            if counted.is_ok() {
                (self.progress)(&jobs[at].name);
            }
        };
        let one = |job: &Job| {
            let scenario = check(job, self.registry)?;
            let mut on_progress = |_: &run::RunProgress| !self.is_interrupted();
            let options = write_amplification::Options {
                on_progress: Some(&mut on_progress),
                cache: PreconditionCache::standard(),
            };
            let counted = write_amplification::count(&scenario, self.registry, options);
            let Counted { results, fault, .. } = counted.map_err(|error| failure(job, &error))?;
            match fault {
                _ if self.is_interrupted() => Err(ExperimentError::Interrupted),
                Some(fault) => Err(failure(job, &fault)),
                None => Ok(results),
            }
        };
        let all = parallel_map(jobs.iter().collect(), self.threads, one, finished);
        all.into_iter().collect()
    }

    fn write_scenarios(&self, jobs: &[Job]) -> Result<(), ExperimentError> {
        let Some((folder, written)) = &self.scenarios else { return Ok(()) };
        let failed = |error: io::Error| ExperimentError::of(folder.display(), error);
        fs::create_dir_all(folder).map_err(failed)?;
        let first = written.fetch_add(jobs.len(), Ordering::Relaxed);
        for (number, job) in (first..).zip(jobs) {
            let text = Resolved::new(&check(job, self.registry)?, self.registry).text();
            let name: String =
                job.name.chars().map(|it| if it.is_alphanumeric() { it } else { '-' }).collect();
            fs::write(folder.join(format!("{number:04}-{name}.toml")), text).map_err(failed)?;
        }
        Ok(())
    }

    /// Runs `jobs` at the seeds 1 to `seeds`: for each job, in their order, its outputs by seed.
    ///
    /// # Errors
    /// As [`Runner::run`].
    pub fn run_at_seeds(
        &self,
        jobs: &[Job],
        seeds: u32,
    ) -> Result<Vec<Vec<JobOutput>>, ExperimentError> {
        let all: Vec<Job> =
            jobs.iter().flat_map(|job| (1..=seeds).map(|seed| job.at_seed(seed))).collect();
        let mut ran = self.run(&all)?.into_iter();
        Ok(jobs.iter().map(|_| ran.by_ref().take(seeds as usize).collect()).collect())
    }

    fn one(&self, job: &Job) -> Result<JobOutput, ExperimentError> {
        // Preconditioning may take long, so check before it starts.
        if self.is_interrupted() {
            return Err(ExperimentError::Interrupted);
        }
        let scenario = check(job, self.registry)?;
        let mut kept =
            KeptEvents { latencies: job.latencies, numbers: job.numbers, ..KeptEvents::default() };
        let mut on_progress = |_: &run::RunProgress| !self.is_interrupted();
        let options = Options {
            detail: if job.full { Detail::Full } else { Detail::Bare },
            on_progress: Some(&mut on_progress),
            sink: (job.latencies || job.numbers)
                .then_some(&mut kept as &mut (dyn EventSink + Send)),
            cache: PreconditionCache::standard(),
            ..Options::default()
        };
        let failed = |error: &dyn std::fmt::Display| failure(job, error);
        let done = run::run(&scenario, self.registry, options).map_err(|error| failed(&error))?;
        let RunOutput { results, pictures, latencies, fault, .. } = done;
        if self.is_interrupted() {
            return Err(ExperimentError::Interrupted);
        }
        if let Some(fault) = fault {
            return Err(failed(&fault));
        }
        if let Some(broken) = results.violations.first() {
            return Err(failed(&format!("a check failed: {broken}")));
        }
        let pictures = pictures.unwrap_or_default();
        let latency_points = points(&latencies);
        let (latencies, numbers) = (kept.list, kept.numbers_seen);
        Ok(JobOutput { results, latency_points, pictures, latencies, numbers })
    }

    /// The profile of the workload of `job` on `capacity` sectors, of which `visit` sees every
    /// request.
    ///
    /// # Errors
    /// When the scenario is wrong or its workload breaks off.
    pub fn profile(
        &self,
        job: &Job,
        capacity: u64,
        visit: &mut dyn FnMut(&Arrival),
    ) -> Result<Profile, ExperimentError> {
        let mut profiler = Profiler::new(true);
        self.each(job, capacity, &mut |arrival| {
            profiler.take(&Record { at: arrival.at, request: arrival.request, response: None });
            visit(arrival);
        })?;
        Ok(profiler.finish(&[]))
    }

    /// Shows `visit` every request of the workload of `job` on `capacity` sectors.
    ///
    /// # Errors
    /// When the scenario is wrong or its workload breaks off.
    pub fn each(
        &self,
        job: &Job,
        capacity: u64,
        visit: &mut dyn FnMut(&Arrival),
    ) -> Result<(), ExperimentError> {
        self.write_scenarios(std::slice::from_ref(job))?;
        let scenario = check(job, self.registry)?;
        let opened = workload::open(&scenario, self.registry, capacity);
        let mut source = opened.map_err(|error| failure(job, &error))?.source;
        while let Some(arrival) = source.next().map_err(|error| failure(job, &error))? {
            if self.is_interrupted() {
                return Err(ExperimentError::Interrupted);
            }
            visit(&arrival);
        }
        Ok(())
    }
}

/// A latency in milliseconds; NaN without one.
pub fn ms(ns: Option<u64>) -> f64 {
    ns.map_or(f64::NAN, |ns| ns as f64 / 1e6)
}

fn points(latencies: &LatencyFold) -> BTreeMap<&'static str, Vec<(u64, u64)>> {
    let (read, write) = (latencies.of(Op::Read).points(), latencies.of(Op::Write).points());
    BTreeMap::from([("all", latencies.all().points()), ("read", read), ("write", write)])
}

fn failure(job: &Job, error: &dyn std::fmt::Display) -> ExperimentError {
    ExperimentError::Failed(format!("{}: {error}", job.name))
}

fn check(job: &Job, registry: &Registry) -> Result<Scenario, ExperimentError> {
    let source = SourceText { name: job.name.clone(), text: job.text.clone() };
    let (base, sets) = (job.base.clone(), job.sets.clone());
    let input = Input { source, base, sets, trace: None };
    Scenario::check(input, registry).map_err(|problems| failure(job, &problems))
}

/// Collects what jobs ask for.
#[derive(Default)]
struct KeptEvents {
    latencies: bool,
    numbers: bool,
    list: Vec<ServedRequest>,
    numbers_seen: Vec<(f64, u8, u64)>,
}

impl EventSink for KeptEvents {
    fn take(&mut self, events: &[EventRecord]) {
        for record in events {
            match record.event() {
                Some(CommonEvent::Completed { op, sectors, latency, .. }) if self.latencies => {
                    self.list.push(ServedRequest { op, sectors, ns: latency.as_ns() });
                }
                Some(CommonEvent::Custom { name, value }) if self.numbers => {
                    self.numbers_seen.push((record.time.as_ns() as f64 / 1e9, name, value));
                }
                _ => {}
            }
        }
    }
}
