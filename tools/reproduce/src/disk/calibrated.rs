//! Measured drives with constants fitted to one half of their log, replayed on the other.

use super::super::{Claim, Experiment, ExperimentError, Findings, Runner};
use super::{FORMAT, log_name, logged_drives, start, words};
use hybridsim_calibrate::CalibrateError;
use hybridsim_calibrate::disk::{
    ClassChange, DiskCalibration, DiskFit, Log, Split, calibrate_disk,
};
use std::path::Path;

/// The goal, in floors.
const AIM: f64 = 1.5;

pub const EXPERIMENT: Experiment = Experiment { id: "disk/calibrated", run };

const HALVES: Split = Split { parts: 2, whole: false };

fn run(runner: &Runner) -> Result<Findings, ExperimentError> {
    let folder = runner.data("disksim/disks")?;
    let (mut findings, mut worst) = (Findings::default(), f64::NEG_INFINITY);
    for drive in &logged_drives() {
        let found = calibrated(drive, &folder, runner)
            .map_err(|error| ExperimentError::of_calibration(&drive.name, error))?;
        runner.done(&drive.name)?;
        let worse = found.fits.iter().map(|fit| fit.other_angles);
        worst = worse.map(|it| it.after_ms - it.before_ms).fold(worst, f64::max);
        let aim = AIM * found.floor.between_runs_ms;
        findings.row(
            Claim::of("disk/demerit-on-the-other-half")
                .with("drive", &drive.name)
                .between("no such figure; 1.5 times the floor is an aim", f64::NEG_INFINITY, aim)
                .ours(found.crossed.after_ms)
                .remark(&summary(&found))
                .if_it_differs(&left(&found)),
        );
    }
    findings.row(Claim::of("disk/largest-increase-of-a-demerit").ours(worst));
    Ok(findings)
}

fn calibrated<'r>(
    drive: &super::LoggedDrive,
    disks: &Path,
    runner: &Runner<'r>,
) -> Result<DiskCalibration<'r>, CalibrateError> {
    let path = disks.join(&drive.folder).join(log_name(drive));
    let log = Log::read(&path, Some(FORMAT), runner.registry())?;
    calibrate_disk(&start(drive, disks, runner)?, &[log], HALVES)
}

/// Figures before and after, and what moved.
fn summary(found: &DiskCalibration<'_>) -> String {
    let half = |fit: &DiskFit| {
        let (part, change) = fit.held_out.as_deref().zip(fit.on_held_out)?;
        let moved = fit.constants.iter().filter_map(|constant| {
            Some(format!("{} {} to {}", constant.name, constant.from, constant.to.as_ref()?))
        });
        let curve = fit.seeks.as_ref().map(|it| format!("seek curve {}", it.words()));
        let moved: Vec<String> = moved.chain(curve).collect();
        let moved = if moved.is_empty() { "nothing moved".to_owned() } else { moved.join(", ") };
        Some(format!(
            "{part} {:.3} before, {:.3} after, with other angles {:.3} and {:.3}, floor {:.3} \
             ({moved})",
            change.before_ms,
            change.after_ms,
            fit.other_angles.before_ms,
            fit.other_angles.after_ms,
            fit.floor.between_runs_ms
        ))
    };
    let halves: Vec<String> = found.fits.iter().filter_map(half).collect();
    format!(
        "{:.3} ms with the published parameters; {}; {}",
        found.crossed.before_ms,
        words(found.floor),
        halves.join("; ")
    )
}

/// The class of requests the largest part of what is left comes from.
fn left(found: &DiskCalibration<'_>) -> String {
    let square = |class: &ClassChange| class.requests as f64 * class.demerit.after_ms.powi(2);
    let shares = found.fits.iter().flat_map(|fit| {
        let all: f64 = fit.classes.iter().map(square).sum();
        fit.classes.iter().map(move |class| (square(class), square(class) / all, class.class))
    });
    let Some((_, share, class)) = shares.max_by(|a, b| a.0.total_cmp(&b.0)) else {
        return String::new();
    };
    let after = match class.after {
        "any" => String::new(),
        before => format!(" after a {before}"),
    };
    format!(
        "none of these constants explains the rest, whose largest part, class by class ({:.0} % of \
         the squares of one half), are {} {}s{after} (docs/models/disk.md)",
        share * 100.0,
        class.place,
        class.op
    )
}
