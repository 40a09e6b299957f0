//! A scenario's workload: a trace with its replay options, or a generator.

use crate::error::{RunError, section};
use crate::scenario::Scenario;
use hybridsim_config::param::EntryChoice;
use hybridsim_config::registry::Registry;
use hybridsim_engine::{Arrival, Request, SimTime, Source};
use hybridsim_workload::record::{RecordReader, TraceError};
use hybridsim_workload::shape::{self, ReplayError};
use hybridsim_workload::synthetic::{GeneratorEntry, GeneratorInput};
use hybridsim_workload::trace::{self, FormatEntry, OpenOptions};

/// The warnings of a workload, during and after a run.
pub struct Warnings(Option<shape::Warnings>);

impl Warnings {
    /// One sentence per kind of warning.
    pub fn list(&self) -> Vec<String> {
        let list = self.0.as_ref().map(shape::Warnings::list).unwrap_or_default();
        list.iter()
            .map(|warning| {
                let times = match warning.count {
                    1 => String::new(),
                    count => format!(" ({count} times)"),
                };
                format!("trace{}: {}{times}", warning.place, warning.message)
            })
            .collect()
    }
}

/// Opens the workload for a system of `capacity` sectors.
///
/// # Errors
/// A generator or replay that does not fit, or a trace that cannot be opened.
pub fn open(
    scenario: &Scenario,
    registry: &Registry,
    capacity: u64,
) -> Result<(Box<dyn Source>, Warnings), RunError> {
    match &scenario.source.generator {
        Some(choice) => Ok((generator(scenario, registry, choice, capacity)?, Warnings(None))),
        None => trace(scenario, registry, capacity),
    }
}

fn generator(
    scenario: &Scenario,
    registry: &Registry,
    choice: &EntryChoice,
    capacity_sectors: u64,
) -> Result<Box<dyn Source>, RunError> {
    let entry = registry
        .find::<GeneratorEntry>(&choice.name)
        .expect("a checked scenario names a registered generator");
    let input = GeneratorInput {
        settings: &choice.settings,
        registry,
        seed: scenario.seed(),
        path: "workload",
        capacity_sectors,
    };
    (entry.build)(&input)
        .map_err(|list| RunError::Scenario(section(scenario, "workload.generator", list)))
}

fn trace(
    scenario: &Scenario,
    registry: &Registry,
    capacity: u64,
) -> Result<(Box<dyn Source>, Warnings), RunError> {
    let formats: Vec<FormatEntry> = registry.iter::<FormatEntry>().collect();
    let (path, options) = (scenario.trace_path(), open_options(scenario));
    let reopen = move || -> Result<Box<dyn RecordReader>, TraceError> {
        Ok(Box::new(trace::open_with(&formats, &path, &options)?))
    };
    let replay =
        shape::replay(&scenario.workload, reopen, capacity).map_err(|error| match error {
            ReplayError::Settings(list) => RunError::Scenario(section(scenario, "workload", list)),
            ReplayError::Trace(error) => RunError::Trace(error.to_string()),
        })?;
    if !replay.has_times() && scenario.host.text("mode") == "open" {
        let message = format!(
            "{} has no arrival times, so it can only be replayed in a closed loop; write \
             `mode = \"closed\"` under [host], or pass --set host.mode=closed",
            name(scenario)
        );
        return Err(RunError::Scenario(crate::scenario::Diagnostics::single(message)));
    }
    let warnings = Warnings(Some(replay.warnings()));
    Ok((Box::new(replay), warnings))
}

/// How the scenario's trace is opened.
pub fn open_options(scenario: &Scenario) -> OpenOptions {
    match &scenario.source.format {
        Some(choice) => OpenOptions {
            format: Some(choice.name.clone()),
            settings: choice.settings.clone(),
            ..OpenOptions::default()
        },
        None => OpenOptions::default(),
    }
}

/// What to call the workload in results.
pub fn name(scenario: &Scenario) -> String {
    match &scenario.source.generator {
        Some(choice) => choice.name.clone(),
        None => scenario
            .trace_path()
            .file_name()
            .map_or_else(String::new, |name| name.to_string_lossy().into_owned()),
    }
}

/// How far a workload is, shared between the run and whoever watches it.
#[derive(Clone, Default)]
pub struct Meter(Rc<Cell<(u64, Option<f64>)>>);

impl Meter {
    /// The moment `now`.
    pub fn beat(&self, now: SimTime) -> RunProgress {
        let (requests, fraction) = self.0.get();
        RunProgress { fraction, requests, now, preparing: false }
    }
}

/// Every so many requests the meter is read by hand; asking the source each time would cost more
/// than replaying.
const METER_EVERY: u64 = 1 << 14;

/// A source that tells its [`Meter`], and refuses to be empty.
pub struct MeteredSource {
    inner: Box<dyn Source>,
    requests: u64,
    meter: Meter,
}

impl MeteredSource {
    /// Watches `inner`.
    pub fn new(inner: Box<dyn Source>, meter: Meter) -> Self {
        Self { inner, requests: 0, meter }
    }
}

impl Source for MeteredSource {
    fn next(&mut self) -> Result<Option<Arrival>, String> {
        let next = self.inner.next()?;
        if next.is_none() && self.requests == 0 {
            // A run over nothing would "succeed" with empty statistics.
            return Err("the workload has not a single request; check the trace and the slice \
                        (`first`, `count`, `from`, `until`, `volumes`)"
                .to_owned());
        }
        self.requests += u64::from(next.is_some());
        if self.requests.is_multiple_of(METER_EVERY) {
            self.meter.0.set((self.requests, self.inner.progress()));
        }
        Ok(next)
    }

    fn progress(&self) -> Option<f64> {
        self.inner.progress()
    }

    fn reads_ahead(&self) -> bool {
        self.inner.reads_ahead()
    }

    fn waits(&self) -> bool {
        self.inner.waits()
    }

    fn take_back(&mut self) {
        self.requests = self.requests.saturating_sub(1);
        self.inner.take_back();
    }

    fn completed(&mut self, request: &Request, now: SimTime) {
        self.inner.completed(request, now);
    }
}
