//! A scenario's workload: a trace with its replay options, or a generator.

use crate::error::{RunError, section};
use crate::scenario::Scenario;
use hybridsim_config::param::EntryChoice;
use hybridsim_config::registry::Registry;
use hybridsim_engine::Source;
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
                format!("trace{}: {}{times}", warning.location, warning.message)
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
