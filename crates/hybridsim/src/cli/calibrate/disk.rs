//! A hard disk's constants from measured logs: options and output.

use super::{CalibrateArgs, Texts, deliver};
use crate::cli::output::Failure;
use hybridsim_calibrate::disk::{
    Change, ConstantChange, DiskCalibration, DiskDrive, DiskFit, Floor, Log, Split, calibrate_disk,
};
use hybridsim_config::registry::Registry;
use std::fmt::Write;

#[derive(clap::Args)]
pub struct DiskArgs {
    /// Fit a hard disk's constants to logs, starting from a preset or a file of `import disksim`
    #[arg(
        long,
        value_name = "START",
        conflicts_with_all = ["device", "page", "erase_time", "capacity", "repetitions"]
    )]
    disk: Option<String>,
    /// With --disk: split each log into this many consecutive parts for cross-validation; the
    /// preset has the values fitted to all but the last part
    #[arg(
        long,
        default_value_t = 2,
        requires = "disk",
        value_parser = clap::value_parser!(u8).range(2..=10)
    )]
    parts: u8,
    /// With --disk: fit the values of the preset to the whole logs; the cross-validation estimates
    /// their error
    #[arg(long, requires = "disk")]
    whole: bool,
    /// With --disk: the format of the logs, where their content is ambiguous
    #[arg(long, requires = "disk", value_name = "FORMAT")]
    format: Option<String>,
}

impl DiskArgs {
    /// Whether to calibrate a hard disk.
    pub const fn is_wanted(&self) -> bool {
        self.disk.is_some()
    }
}

/// Reads the logs, fits, writes the preset and prints the result.
pub fn run(registry: &Registry, args: &CalibrateArgs) -> Result<(), Failure> {
    let own = &args.disk;
    let drive = DiskDrive::read(own.disk.as_deref().unwrap_or_default(), registry)?;
    let read = |file| Log::read(file, own.format.as_deref(), registry);
    let logs = args.files.iter().map(|file| read(file)).collect::<Result<Vec<_>, _>>()?;
    let split = Split { parts: usize::from(own.parts), whole: own.whole };
    let found = calibrate_disk(&drive, &logs, split)?;
    let texts =
        Texts { warnings: found.warnings(), preset: found.preset(), summary: summary(&found) };
    deliver(args, &found, &texts)
}

fn summary(found: &DiskCalibration<'_>) -> String {
    let mut text =
        format!("{} on {}: {} requests\n\n", found.start, found.logs.join(", "), found.requests);
    demerits(&mut text, found);
    constants(&mut text, &found.fits);
    if let Some(first) = found.fits.first() {
        classes(&mut text, first);
        distances(&mut text, first);
    }
    text
}

fn demerits(text: &mut String, found: &DiskCalibration<'_>) {
    let _ = writeln!(
        text,
        "{:<52} {:>10} {:>10} {:>10}",
        "rms demerit, ms", "START", "fitted", "floor"
    );
    let mut row = |what: String, change: Change, floor: Option<Floor>| {
        let floor = floor.map_or(String::new(), |it| format!("{:.4}", it.between_runs_ms));
        let Change { before_ms, after_ms } = change;
        let _ = writeln!(text, "{what:<52} {before_ms:>10.4} {after_ms:>10.4} {floor:>10}");
    };
    row("cross-validation, all parts".to_owned(), found.crossed, Some(found.floor));
    for fit in &found.fits {
        let held_out = fit.held_out.as_ref().zip(fit.on_held_out);
        let floor = Some(fit.floor);
        row(
            format!("fitted to {}: on the same", fit.fitted),
            fit.on_fitted,
            floor.filter(|_| held_out.is_none()),
        );
        if let Some((part, change)) = held_out {
            row(format!("fitted to {}: on {part}, held out", fit.fitted), change, floor);
        }
        row("    the same with other angles, mean".to_owned(), fit.other_angles, None);
    }
    for fit in found.fits.iter().filter(|fit| fit.is_close) {
        let _ = writeln!(
            text,
            "nothing is fitted to {}: it is no farther from START than runs of START are apart",
            fit.fitted
        );
    }
    text.push_str(
        "floor: mean demerit between two runs of the drive with other angles of its platters,\n\
         which a log does not say\n",
    );
}

fn constants(text: &mut String, fits: &[DiskFit]) {
    let Some(first) = fits.first() else { return };
    let _ = write!(text, "\n{:<33} {:>12}", "", "START");
    fits.iter().for_each(|fit| {
        let _ = write!(text, " {:>34}", format!("fitted to {}", fit.fitted));
    });
    text.push('\n');
    let mut not_identified = Vec::new();
    for (at, constant) in first.constants.iter().enumerate() {
        let changes: Vec<&ConstantChange> = fits.iter().map(|fit| &fit.constants[at]).collect();
        if changes.iter().all(|change| change.to.is_none()) {
            not_identified.push(constant.name);
            continue;
        }
        let _ = write!(text, "{:<33} {:>12}", constant.name, constant.from);
        for change in changes {
            let cell = match (&change.to, change.gain_ms) {
                (Some(to), Some(gain)) => format!("{to} ({gain:.3})"),
                _ => "unchanged".to_owned(),
            };
            let _ = write!(text, " {cell:>34}");
        }
        text.push('\n');
    }
    text.push_str(
        "in brackets: increase of the mean distance between measured and simulated distributions \
         (ms)\nwith START's value\n",
    );
    for fit in fits {
        let curve = fit.seeks.as_ref().map_or("unchanged".to_owned(), |it| it.words());
        let _ = writeln!(text, "seek curve, ms to add, fitted to {}: {curve}", fit.fitted);
    }
    if !not_identified.is_empty() {
        let _ =
            writeln!(text, "not identified by the log, as in START: {}", not_identified.join(", "));
    }
}

fn classes(text: &mut String, fit: &DiskFit) {
    let part = fit.held_out.as_ref().unwrap_or(&fit.fitted);
    let _ = writeln!(
        text,
        "\n{:<30} {:>8} {:>9} {:>8} {:>8} {:>9} {:>8}\n{:<30} {:>8} {:>9} {:>8} {:>8} {:>9} {:>8}",
        format!("{part}, by class"),
        "requests",
        "mean, ms:",
        "START",
        "fitted",
        "demerit:",
        "",
        "",
        "",
        "measured",
        "",
        "",
        "START",
        "fitted"
    );
    for class in &fit.classes {
        let name = format!("{} {} after {}", class.class.place, class.class.op, class.class.after);
        let _ = writeln!(
            text,
            "{name:<30} {:>8} {:>9.3} {:>8.3} {:>8.3} {:>9.3} {:>8.3}",
            class.requests,
            class.measured_ms,
            class.mean.before_ms,
            class.mean.after_ms,
            class.demerit.before_ms,
            class.demerit.after_ms
        );
    }
}

fn distances(text: &mut String, fit: &DiskFit) {
    if fit.distances.is_empty() {
        return;
    }
    let part = fit.held_out.as_ref().unwrap_or(&fit.fitted);
    let _ = writeln!(
        text,
        "\n{:<30} {:>8} {:>9} {:>8} {:>8}\n{:<30} {:>8} {:>9} {:>8} {:>8}",
        format!("{part}, by seek distance"),
        "requests",
        "mean, ms:",
        "START",
        "fitted",
        "(random, share of the stroke)",
        "",
        "measured",
        "",
        ""
    );
    for band in &fit.distances {
        let (from, to) = (band.from * 100.0, band.to * 100.0);
        let _ = writeln!(
            text,
            "{:<30} {:>8} {:>9.3} {:>8.3} {:>8.3}",
            format!("{} {from:.0} to {to:.0} %", band.op),
            band.requests,
            band.measured_ms,
            band.mean.before_ms,
            band.mean.after_ms
        );
    }
}
