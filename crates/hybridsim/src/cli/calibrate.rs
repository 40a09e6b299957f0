//! The command that fits a device's parameters to measured latencies.

mod counters;
mod disk;
mod ssd;

use super::output::{Exit, Failure, apart, note, print_beside, probe, write_path};
use hybridsim_calibrate::{
    self, CalibrateError, Calibration, Estimate, KnownParameters, Line, Measure, Reading,
    calibrate, preset,
};
use hybridsim_config::registry::Registry;
use hybridsim_config::units;
use hybridsim_report::json::pretty;
use serde::Serialize;
use std::fmt::Write;
use std::path::{Path, PathBuf};

#[derive(clap::Args)]
pub struct CalibrateArgs {
    /// Measured latencies: CSV with op, bytes and latency_ns; fio's JSON; fio's latency logs. With
    /// --disk, request logs in any trace format with response times; with --ssd, fio's JSON
    #[arg(required_unless_present_any = ["device", "job", "counters"])]
    files: Vec<PathBuf>,
    #[command(flatten)]
    disk: disk::DiskArgs,
    #[command(flatten)]
    ssd: ssd::SsdArgs,
    #[command(flatten)]
    counters: counters::CounterArgs,
    /// With --ssd or --counters: fit to everything that is measured, and hold none out
    #[arg(long)]
    all: bool,
    /// Measure this file or block device, with direct I/O; it is only read
    #[arg(long, value_name = "PATH")]
    device: Option<PathBuf>,
    /// Write to it as well: ALL DATA ON IT IS LOST
    #[arg(long, requires = "device")]
    write: bool,
    /// Use the page cache, where direct I/O is not possible
    #[arg(long, requires = "device")]
    buffered: bool,
    /// Requests measured at each length
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    repetitions: u32,
    /// Bytes per flash page
    #[arg(long, default_value = "2KiB", value_name = "BYTES")]
    page: String,
    /// Block erase time, from a datasheet: it cannot be measured from outside
    #[arg(long, default_value = "1.5ms", value_name = "TIME")]
    erase_time: String,
    /// Capacity of the device, for the preset; measured with --device
    #[arg(long, value_name = "BYTES")]
    capacity: Option<String>,
    /// Write a preset with the parameters into this file
    #[arg(short, long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Replace existing files
    #[arg(long)]
    force: bool,
    /// Write the latencies measured with --device into this file, as CSV
    #[arg(long, requires = "device", value_name = "FILE")]
    readings: Option<PathBuf>,
    /// Print one JSON document instead of text
    #[arg(long)]
    json: bool,
}

/// Lengths measured with `--device`.
const LENGTHS: [u64; 7] = [4 << 10, 8 << 10, 16 << 10, 32 << 10, 64 << 10, 128 << 10, 256 << 10];

impl From<CalibrateError> for Failure {
    fn from(error: CalibrateError) -> Self {
        let exit = match error {
            CalibrateError::Readings(_) => Exit::Trace,
            CalibrateError::Start(_) => Exit::Usage,
            CalibrateError::Fit(_) | CalibrateError::Device(_) | CalibrateError::Interrupted => {
                Exit::Run
            }
        };
        Self::Message(exit, error.to_string())
    }
}

/// Measures or reads, fits, and prints the result.
pub fn run(registry: &Registry, args: &CalibrateArgs) -> Result<(), Failure> {
    // Before anything is measured or fitted, which takes long.
    for path in [&args.out, &args.readings].into_iter().flatten() {
        if path.exists() && !args.force {
            let message = format!("{} exists; add --force to replace it", path.display());
            return Err(Failure::usage(message));
        }
        apart(&args.files, Some(path))?;
        probe(path)?;
    }
    if args.all && !args.ssd.is_wanted() && !args.counters.is_wanted() {
        return Err(Failure::usage("--all needs --ssd or --counters"));
    }
    if !args.ssd.is_complete() {
        return Err(Failure::usage("--depths needs --ssd"));
    }
    if args.disk.is_wanted() {
        return disk::run(registry, args);
    }
    if args.ssd.is_wanted() {
        return ssd::run(registry, args);
    }
    if args.counters.is_wanted() {
        return counters::run(registry, args);
    }
    let wrong =
        |option: &'static str| move |error: String| Failure::usage(format!("{option}: {error}"));
    let page_bytes = units::bytes(&args.page).map_err(wrong("--page"))?;
    let erase = units::duration(&args.erase_time).map_err(wrong("--erase-time"))?;
    let capacity = args.capacity.as_deref().map(units::bytes).transpose();
    let mut capacity = capacity.map_err(wrong("--capacity"))?;
    if !page_bytes.is_multiple_of(512) || page_bytes == 0 || erase.is_zero() {
        let message = "--page must be a multiple of 512 bytes and --erase-time must not be zero";
        return Err(Failure::usage(message));
    }
    let (mut readings, mut kept) = (Vec::new(), Ok(()));
    for file in &args.files {
        readings.extend(hybridsim_calibrate::read(file)?.1);
    }
    if let Some(path) = &args.device {
        let (size, measured) = hybridsim_calibrate::measure(&Measure {
            path: path.clone(),
            write: args.write,
            buffered: args.buffered,
            repetitions: args.repetitions,
            lengths: LENGTHS.to_vec(),
        })?;
        capacity.get_or_insert(size);
        kept = keep(args, &measured);
        readings.extend(measured);
    }
    let known = KnownParameters { page_bytes, erase_ns: erase.as_ns() as f64 };
    let calibration = calibrate(&readings, known)?;
    let name = args.out.as_deref().and_then(Path::file_stem);
    let name = name.map_or("device".into(), |stem| stem.to_string_lossy());
    deliver(
        args,
        &calibration,
        &Texts {
            warnings: doubts(&calibration),
            preset: preset(&name, &calibration, capacity.unwrap_or(1 << 30)),
            summary: summary(&calibration),
        },
    )?;
    kept.map_err(Failure::after_results)
}

struct Texts {
    warnings: Vec<String>,
    preset: String,
    summary: String,
}

/// Prints the warnings, writes the preset and prints the result.
fn deliver(args: &CalibrateArgs, found: &impl Serialize, texts: &Texts) -> Result<(), Failure> {
    texts.warnings.iter().for_each(|warning| note(&format!("warning: {warning}")));
    let saved = args.out.as_ref().map_or(Ok(()), |out| write_path(out, &texts.preset));
    print_beside(saved, &if args.json { pretty(found) } else { texts.summary.clone() })?;
    if let Some(out) = &args.out {
        note(&format!("preset: {}", out.display()));
    }
    Ok(())
}

/// Below this coefficient of determination the line does not explain the latencies.
const R_SQUARED_MIN: f64 = 0.9;

/// Reasons to doubt the parameters.
fn doubts(calibration: &Calibration) -> Vec<String> {
    let lines = [("reads", &calibration.read), ("writes", &calibration.write)];
    let doubt = |(name, line): (&str, &Option<Line>)| {
        let line = line.as_ref()?;
        let scatters = line.r_squared < R_SQUARED_MIN
            || line.page_ns.margin.is_some_and(|margin| margin >= line.page_ns.value);
        scatters.then(|| {
            format!(
                "{name} do not fit a line (R^2 {:.2}, time per page {}): their parameters are \
                 unreliable; measure at more lengths on an otherwise idle device",
                line.r_squared,
                micros(&line.page_ns)
            )
        })
    };
    lines.into_iter().filter_map(doubt).collect()
}

fn keep(args: &CalibrateArgs, measured: &[Reading]) -> Result<(), Failure> {
    match &args.readings {
        Some(path) => write_path(path, &hybridsim_calibrate::write_csv(measured)),
        None => Ok(()),
    }
}

fn summary(calibration: &Calibration) -> String {
    let mut text = String::new();
    let KnownParameters { page_bytes, erase_ns } = calibration.known;
    for (name, line) in [("read", &calibration.read), ("write", &calibration.write)] {
        let Some(Line { page_ns, overhead_ns, r_squared, points }) = line else {
            let _ = writeln!(text, "{name:<6} not measured at two lengths");
            continue;
        };
        let _ = writeln!(
            text,
            "{name:<6} {} per {page_bytes} B page, command overhead {}, R^2 {r_squared:.4}, \
             {} lengths",
            micros(page_ns),
            micros(overhead_ns),
            points.len()
        );
    }
    for scattered in &calibration.scattered {
        let margin =
            scattered.erases.margin.map_or(String::new(), |margin| format!(" +- {margin:.3}"));
        let _ = writeln!(
            text,
            "random writes of {} B: {:.3}{margin} erases of {:.0} us each; {:.3} as konanki prints \
             the formula, without the overhead",
            scattered.bytes,
            scattered.erases.value,
            erase_ns / 1e3,
            scattered.printed_erases
        );
    }
    text
}

fn micros(estimate: &Estimate) -> String {
    let margin = estimate.margin.map_or(String::new(), |margin| format!(" +- {:.2}", margin / 1e3));
    format!("{:.2}{margin} us", estimate.value / 1e3)
}
