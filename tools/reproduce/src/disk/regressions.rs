//! DiskSim's own regression scenarios, imported, with its own random numbers.

use super::super::{Claim, Experiment, ExperimentError, Findings, Job, JobOutput, Runner};
use hybridsim_import::search_path::SearchPath;
use hybridsim_import::{FileSource, Request, Trace, disksim};
use std::path::Path;

pub const EXPERIMENT: Experiment = Experiment { id: "disk/regressions", run };

struct Regression {
    name: &'static str,
    words: &'static str,
    /// Its trace, and the format if it cannot be recognised from the file.
    trace: Option<(&'static str, Option<&'static str>)>,
    expected_ms: f64,
    /// Whether the requests to the drives count.
    of_drives: bool,
    /// What is known if it comes out otherwise.
    known: &'static str,
}

const fn regression(name: &'static str, words: &'static str, expected_ms: f64) -> Regression {
    Regression { name, words, trace: None, expected_ms, of_drives: false, known: "" }
}

const REGRESSIONS: [Regression; 10] = [
    regression("synthsimpledisk", "a device of constant time", 13.5),
    regression(OPEN, "open synthetic workload on three drives", 10.9),
    regression("synthclosed", "closed synthetic workload", 87.6),
    regression("synthmixed", "mixed synthetic workload", 22.08),
    Regression {
        trace: Some(("ajw.1week.srt.gz", None)),
        ..regression("hplajw", "a week of an HP-UX system", 48.8)
    },
    Regression {
        trace: Some(("ascii.trace.gz", Some("disksim"))),
        ..regression("ascii", "ASCII trace", 13.8)
    },
    regression("syntharrays", "set of arrays on shared buses", 34.3),
    Regression {
        of_drives: true,
        ..regression("synthraid5", "RAID 5 at the driver, requests to the drives", 22.8)
    },
    Regression {
        known: "evicts the lines that DiskSim evicts up to 6.7 s of simulated time; later \
                differences have not been traced",
        ..regression("synthcachemem", "memory cache at a controller", 24.6)
    },
    regression("synthcachedev", "a drive caches another", 28.9),
];

/// The scenario whose parameter file is part of the program: written for this project, as the data
/// folder does not have it.
const OPEN: &str = "synthopen";
const OPEN_FILE: &str = include_str!("../../../../papers/disk/synthopen.parv");

fn run(runner: &Runner) -> Result<Findings, ExperimentError> {
    let folder = runner.data("disksim")?;
    let mut jobs = Vec::new();
    for regression in &REGRESSIONS {
        // The seed of the files.
        jobs.push(Job::new(regression.name, import(regression, &folder)?).set("run.seed", 42));
    }
    let ran = runner.run(&jobs)?;
    let mut findings = Findings::default();
    for (regression, ran) in REGRESSIONS.iter().zip(&ran) {
        findings.row(
            Claim::of("disk/mean-response")
                .with("name", regression.name)
                .with("words", regression.words)
                .within_share(regression.expected_ms, 0.03)
                .ours(regression.mean_ms(ran))
                .if_it_differs(regression.known),
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
            Some(OPEN) => Ok((name.to_owned(), OPEN_FILE.to_owned())),
            _ => self.0.read(name, from),
        }
    }
}

fn import(regression: &Regression, folder: &Path) -> Result<String, ExperimentError> {
    let text = |path: &Path| path.to_string_lossy().into_owned();
    let request = Request {
        file: text(&folder.join(format!("configs/{}.parv", regression.name))),
        overrides: Vec::new(),
        trace: regression.trace.map(|(trace, format)| Trace {
            path: text(&folder.join("workloads").join(trace)),
            format: format.map(str::to_owned),
        }),
    };
    let include =
        ["specs_only/hp_c3323a_simple", "specs_only/hp_c2249a", "disks/seagate_cheetah9lp"];
    let include = include.iter().map(|name| folder.join(name)).collect();
    let imported = disksim(&request, &mut WithOpen(SearchPath { include }));
    let failed = |error| ExperimentError::Failed(format!("{}: {error}", regression.name));
    imported.map(|imported| imported.text).map_err(failed)
}
