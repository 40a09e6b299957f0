//! DiskSim's own regression scenarios, imported, with its own random numbers.

use crate::published::parameters;
use crate::{Claim, Experiment, ExperimentError, Findings, Job, JobOutput, Runner};
use hybridsim_data::OPEN_REGRESSION;
use hybridsim_import::search_path::SearchPath;
use hybridsim_import::{FileSource, Request, Trace, disksim};
use serde::Deserialize;
use std::path::Path;

pub const EXPERIMENT: Experiment = Experiment { id: "disk/regressions", run };

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Parameters {
    regressions: Vec<Regression>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Regression {
    name: String,
    words: String,
    expected_ms: f64,
    trace: Option<String>,
    /// The format of the trace, if it cannot be recognised from the file.
    format: Option<String>,
    /// Whether the requests to the drives count, in place of those to the system.
    #[serde(default)]
    of_drives: bool,
    /// The known cause of a difference.
    #[serde(default)]
    known: String,
}

/// The scenario whose parameter file is part of the program: written for this project, as the data
/// folder does not have it.
const OPEN: &str = "synthopen";

fn run(runner: &Runner) -> Result<Findings, ExperimentError> {
    let folder = runner.data("disksim")?;
    let mut jobs = Vec::new();
    let regressions = parameters::<Parameters>("disk/regressions").regressions;
    for regression in &regressions {
        // The seed of the files.
        jobs.push(Job::new(&regression.name, import(regression, &folder)?).set("run.seed", 42));
    }
    let ran = runner.run(&jobs)?;
    let mut findings = Findings::default();
    for (regression, ran) in regressions.iter().zip(&ran) {
        findings.row(
            Claim::of("disk/mean-response")
                .with("name", &regression.name)
                .with("words", &regression.words)
                .published(regression.expected_ms)
                .ours(regression.mean_ms(ran))
                .if_it_differs(&regression.known),
        );
    }
    Ok(findings)
}

impl Regression {
    fn mean_ms(&self, ran: &JobOutput) -> f64 {
        if !self.of_drives {
            return ran.mean_ms();
        }
        let queues = ran.results.components.values();
        let reported: Vec<(f64, f64)> = queues
            .filter_map(|queue| queue.custom.get("response_ns"))
            .map(|reported| (reported.mean.unwrap_or(0.0), reported.count as f64))
            .collect();
        let count: f64 = reported.iter().map(|(_, count)| count).sum();
        reported.iter().map(|(mean, share)| mean * share).sum::<f64>() / count / 1e6
    }
}

/// The search path, and the file of the open scenario.
struct WithOpen(SearchPath);

impl FileSource for WithOpen {
    fn read(&mut self, name: &str, from: &str) -> Result<(String, String), String> {
        match Path::new(name).file_stem().and_then(|stem| stem.to_str()) {
            Some(OPEN) => Ok((name.to_owned(), OPEN_REGRESSION.to_owned())),
            _ => self.0.read(name, from),
        }
    }
}

fn import(regression: &Regression, folder: &Path) -> Result<String, ExperimentError> {
    let text = |path: &Path| path.to_string_lossy().into_owned();
    let request = Request {
        file: text(&folder.join(format!("configs/{}.parv", regression.name))),
        overrides: Vec::new(),
        trace: regression.trace.as_ref().map(|trace| Trace {
            path: text(&folder.join("workloads").join(trace)),
            format: regression.format.clone(),
        }),
    };
    let include =
        ["specs_only/hp_c3323a_simple", "specs_only/hp_c2249a", "disks/seagate_cheetah9lp"];
    let include = include.iter().map(|name| folder.join(name)).collect();
    let imported = disksim(&request, &mut WithOpen(SearchPath { include }));
    let failed = |error| ExperimentError::of(&regression.name, error);
    imported.map(|imported| imported.text).map_err(failed)
}
