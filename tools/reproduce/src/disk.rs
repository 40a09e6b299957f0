//! Measured drives: the response times of eight disks, replayed through their own parameters.

mod calibrated;
mod regressions;
mod schedulers;

use super::{Claim, Experiment, ExperimentError, Findings, Job, JobOutput, Runner};
use crate::ServedRequest;
use crate::published::parameters;
use hybridsim_calibrate::CalibrateError;
use hybridsim_calibrate::disk::{DiskDrive, Floor, Log, demerit, floor, quantile};
use hybridsim_config::diagnostic::SourceText;
use hybridsim_engine::Op;
use hybridsim_import::search_path::SearchPath;
use hybridsim_import::{Override, Request, Trace, disksim};
use hybridsim_report::study::Curve;
use hybridsim_workload::record::RecordReader;
use hybridsim_workload::trace::{self, OpenOptions};
use serde::Deserialize;
use std::path::Path;

pub const EXPERIMENTS: &[Experiment] =
    &[DRIVES_REPLAYED, calibrated::EXPERIMENT, regressions::EXPERIMENT, schedulers::EXPERIMENT];

const DRIVES_REPLAYED: Experiment = Experiment { id: "disk/drives", run: drives };

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Parameters {
    drives: Vec<LoggedDrive>,
}

/// The measured drives.
fn logged_drives() -> Vec<LoggedDrive> {
    parameters::<Parameters>("disk/drives").drives
}

/// A drive in the data folder.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LoggedDrive {
    name: String,
    folder: String,
    parameters: String,
    log: String,
    /// DiskSim's demerit figure, ms.
    disksim: f64,
    /// Whether all its buffering is switched off, as in the validation published with it.
    bare: bool,
    /// The known cause, where it comes out worse; see `docs/models/disk.md`.
    known: Option<String>,
}

/// The logs' format.
const FORMAT: &str = "disksim-validate";

/// Requests of a log that were measured, by operation, in ms.
struct Measured(Vec<(Op, f64)>);

fn drives(runner: &Runner) -> Result<Findings, ExperimentError> {
    let folder = runner.data("disksim/disks")?;
    let drives = logged_drives();
    let jobs: Vec<Job> =
        drives.iter().map(|drive| job(drive, &folder)).collect::<Result<_, _>>()?;
    let ran = runner.run(&jobs)?;
    let mut findings = Findings::default();
    for (drive, ran) in drives.iter().zip(&ran) {
        let measured = measured(&folder.join(&drive.folder).join(log_name(drive)))?;
        let (ours, theirs) = (sorted(&ran.latencies, |ns| ns as f64 / 1e6), &measured.0);
        let mut theirs: Vec<f64> = theirs.iter().map(|(_, ms)| *ms).collect();
        theirs.sort_by(f64::total_cmp);
        let floor = floor_of(drive, &folder, runner)
            .map_err(|error| ExperimentError::of_calibration(&drive.name, error))?;
        findings.row(
            Claim::of("disk/rms-demerit")
                .with("drive", &drive.name)
                .published(drive.disksim)
                .ours(demerit(&ours, &theirs))
                .remark(&format!("{}; {}", means(&ours, &theirs), words(floor)))
                .if_it_differs(drive.known.as_deref().unwrap_or_default()),
        );
        findings.plot("disk/response-times", &[("drive", &drive.name)], curves(ran, &theirs));
    }
    Ok(findings)
}

/// The least distance of the drive from its log.
fn floor_of(drive: &LoggedDrive, disks: &Path, runner: &Runner) -> Result<Floor, CalibrateError> {
    let path = disks.join(&drive.folder).join(log_name(drive));
    let log = Log::read(&path, Some(FORMAT), runner.registry())?;
    floor(&start(drive, disks, runner)?, &log)
}

/// The drive with its published parameters, for calibration.
fn start<'r>(
    drive: &LoggedDrive,
    disks: &Path,
    runner: &Runner<'r>,
) -> Result<DiskDrive<'r>, CalibrateError> {
    let text = imported(drive, disks).map_err(|error| CalibrateError::Start(error.to_string()))?;
    let source = SourceText { name: drive.name.clone(), text };
    let started = DiskDrive::of_scenario(&drive.name, source, Path::new(""), runner.registry())?;
    Ok(started.until(runner.interrupted()))
}

fn words(floor: Floor) -> String {
    format!(
        "floor {:.3} ms, between two runs with other angles of the platters; {:.3} ms from such a \
         run to the log",
        floor.between_runs_ms, floor.to_log_ms
    )
}

fn log_name(drive: &LoggedDrive) -> String {
    format!("{}.trace.gz", drive.log)
}

/// The imported drive under its log.
fn job(drive: &LoggedDrive, disks: &Path) -> Result<Job, ExperimentError> {
    Ok(Job::new(&drive.name, imported(drive, disks)?).with_latencies())
}

/// The scenario of a drive and its log.
fn imported(drive: &LoggedDrive, disks: &Path) -> Result<String, ExperimentError> {
    let folder = disks.join(&drive.folder);
    let text = |path: &Path| path.to_string_lossy().into_owned();
    let trace =
        Trace { path: text(&folder.join(log_name(drive))), format: Some(FORMAT.to_owned()) };
    let off = |parameter: &str| Override {
        component: "disk*".to_owned(),
        parameter: parameter.to_owned(),
        value: "0".to_owned(),
    };
    let overrides = match drive.bare {
        true => ["Enable caching in buffer", "Fast write level", "Buffer continuous read"]
            .map(off)
            .to_vec(),
        false => Vec::new(),
    };
    let file = text(&folder.join(format!("{}.parv", drive.parameters)));
    let request = Request { file, overrides, trace: Some(trace) };
    let imported = disksim(&request, &mut SearchPath { include: vec![folder] });
    imported.map(|imported| imported.text).map_err(|error| ExperimentError::of(&drive.name, error))
}

/// The response times in the log at `path`.
fn measured(path: &Path) -> Result<Measured, ExperimentError> {
    let failed = |error: &dyn std::fmt::Display| ExperimentError::of(path.display(), error);
    let opened = trace::open(path, &OpenOptions::default());
    let mut reader = opened.map_err(|error| failed(&error))?;
    let mut all = Vec::new();
    while let Some(record) = reader.next().map_err(|error| failed(&error))? {
        let response = record.response.ok_or_else(|| failed(&"a record has no response time"))?;
        all.push((record.request.op, response.as_ns() as f64 / 1e6));
    }
    Ok(Measured(all))
}

fn sorted(latencies: &[ServedRequest], ms: impl Fn(u64) -> f64) -> Vec<f64> {
    let mut values: Vec<f64> = latencies.iter().map(|served| ms(served.ns)).collect();
    values.sort_by(f64::total_cmp);
    values
}

fn means(ours: &[f64], theirs: &[f64]) -> String {
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len().max(1) as f64;
    format!("mean {:.3} ms, measured {:.3} ms", mean(ours), mean(theirs))
}

fn curves(ran: &JobOutput, theirs: &[f64]) -> [Curve; 2] {
    const POINTS: usize = 400;
    let points = |sorted: &[f64]| -> Vec<(f64, f64)> {
        let share = |at: usize| at as f64 / POINTS as f64;
        (0..=POINTS).map(|at| (quantile(sorted, share(at)) * 1e6, share(at))).collect()
    };
    let ours = sorted(&ran.latencies, |ns| ns as f64 / 1e6);
    [Curve::ours("simulated", points(&ours)), Curve::published("measured", points(theirs))]
}
