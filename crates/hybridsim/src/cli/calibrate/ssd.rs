//! An SSD's constants from results of fio: options and output.

use super::{CalibrateArgs, Texts, deliver};
use crate::cli::output::{Exit, Failure, print};
use hybridsim_calibrate::ssd::{
    DirectionResult, JobErrors, JobResult, MeasuredJob, QueuedSsd, REFINED_MAX, SsdCalibration,
    TOLERANCE, calibrate_ssd, every_other, of_depths, read,
};
use hybridsim_config::registry::Registry;
use std::fmt::Write;

const JOB_FILE: &str = include_str!("ssd.fio");

#[derive(clap::Args)]
pub struct SsdArgs {
    /// Fit an SSD's constants to results of fio (JSON), starting from a preset or a file with an
    /// SSD of `timing = "queued"`
    #[arg(
        long,
        value_name = "START",
        conflicts_with_all = ["disk", "device", "page", "erase_time", "capacity", "repetitions"]
    )]
    ssd: Option<String>,
    /// With --ssd: fit to the jobs with so many requests outstanding, such as 1,16, and hold the
    /// others out; by default every other depth or rate is fitted to
    #[arg(long, value_name = "DEPTHS", value_delimiter = ',', conflicts_with = "all")]
    depths: Vec<u64>,
    /// Print the job file for fio whose results `--ssd` takes
    #[arg(long, exclusive = true)]
    job: bool,
}

impl SsdArgs {
    /// Whether its options go together.
    pub const fn is_complete(&self) -> bool {
        self.ssd.is_some() || self.depths.is_empty()
    }

    /// Whether to calibrate an SSD.
    pub const fn is_wanted(&self) -> bool {
        self.ssd.is_some() || self.job
    }
}

/// Prints the job file, or fits, writes the preset and prints the result.
pub fn run(registry: &Registry, args: &CalibrateArgs) -> Result<(), Failure> {
    let own = &args.ssd;
    let Some(start) = &own.ssd else { return print(JOB_FILE) };
    let drive = QueuedSsd::read(start, registry)?;
    let files = args.files.iter().map(|file| read(file)).collect::<Result<Vec<_>, _>>()?;
    let mut jobs = files.concat();
    jobs.sort_by_key(MeasuredJob::key);
    let fits = fits(args, &jobs)?;
    let found = calibrate_ssd(&drive, &jobs, &fits, &|| true)?;
    let texts =
        Texts { warnings: found.warnings(), preset: found.preset(), summary: summary(&found) };
    deliver(args, &found, &texts)
}

/// Which of `jobs` to fit to.
fn fits(args: &CalibrateArgs, jobs: &[MeasuredJob]) -> Result<Vec<bool>, Failure> {
    let depths = &args.ssd.depths;
    if let Some(depth) = depths.iter().find(|depth| jobs.iter().all(|job| job.depth != **depth)) {
        let mut known: Vec<u64> = jobs.iter().map(|job| job.depth).collect();
        known.sort_unstable();
        known.dedup();
        let known: Vec<String> = known.iter().map(u64::to_string).collect();
        let known = known.join(", ");
        let message = format!("--depths: no job has {depth} requests outstanding, only {known}");
        return Err(Failure::usage(message));
    }
    let fits = match (args.all, depths.as_slice()) {
        (true, _) => vec![true; jobs.len()],
        (false, []) => every_other(jobs),
        (false, depths) => of_depths(jobs, depths),
    };
    if !args.all && fits.iter().all(|fits| *fits) {
        let message = match depths.as_slice() {
            [] => {
                "all jobs differ in more than their depth or rate, so none can be held out: \
                 measure several depths or rates, or add --all"
            }
            _ => "--depths names all depths, so none is held out: name fewer, or add --all instead",
        };
        return Err(Failure::Message(Exit::Trace, message.to_owned()));
    }
    Ok(fits)
}

fn summary(found: &SsdCalibration<'_>) -> String {
    let mut text = format!("{}, {} jobs\n\n", found.start, found.jobs.len());
    errors(&mut text, found);
    constants(&mut text, found);
    jobs(&mut text, &found.jobs);
    text
}

fn percent(share: f64) -> String {
    if share.is_nan() { "-".to_owned() } else { format!("{:.1} %", 100.0 * share) }
}

fn errors(text: &mut String, found: &SsdCalibration<'_>) {
    let _ = writeln!(
        text,
        "{:<34} {:>10} {:>10} {:>10} {:>10}",
        "mean error", "requests/s", "at worst", "p50", "p99"
    );
    let rows = [("fitted to", &found.fitted), ("held out", &found.held_out)];
    for (part, both) in rows {
        for (drive, judged) in ["START", "fitted"].iter().zip(both) {
            let JobErrors { jobs, rate_mean, rate_worst, p50_mean, p99_mean } = *judged;
            if jobs == 0 {
                continue;
            }
            let cells = [rate_mean, rate_worst, p50_mean, p99_mean].map(percent);
            let [rate, worst, p50, p99] = cells;
            let name = format!("{jobs} jobs {part}: {drive}");
            let _ = writeln!(text, "{name:<34} {rate:>10} {worst:>10} {p50:>10} {p99:>10}");
        }
    }
    if !found.trivial.is_nan() {
        let _ =
            writeln!(text, "{:<34} {:>10}", "held out: without a drive", percent(found.trivial));
        text.push_str("without a drive: latency at the least depth, at most the highest rate\n");
    }
}

fn constants(text: &mut String, found: &SsdCalibration<'_>) {
    let _ = writeln!(text, "\n{:<20} {:>14} {:>14}   range", "", "START", "fitted");
    let [from, to] = found.dies.map(|(channels, dies)| format!("{channels} x {dies}"));
    let (mut unidentified, mut scaled) = (Vec::new(), Vec::new());
    if found.are_dies_searched {
        let _ = writeln!(text, "{:<20} {from:>14} {to:>14}   powers of two", "channels x dies");
    } else {
        unidentified.push("channels x dies");
    }
    for constant in &found.constants {
        let (Some(to), Some((low, high))) = (&constant.to, &constant.range) else {
            match constant.written == constant.from {
                true => unidentified.push(constant.name),
                false => scaled.push(format!(
                    "{} {} (START {})",
                    constant.name, constant.written, constant.from
                )),
            }
            continue;
        };
        let _ = writeln!(
            text,
            "{:<20} {:>14} {to:>14}   {low} to {high}",
            constant.name, constant.from
        );
    }
    let _ = writeln!(
        text,
        "range: the distance from the measurements increases by at most {TOLERANCE}, the other\n\
         constants being as fitted\n\
         distance: root mean square logarithmic error of requests/s (weight 1), p50 (1/2) and\n\
         p99 (1/4); errors above 0.2 count less than their square"
    );
    if let Some(words) = found.host() {
        let _ = writeln!(text, "{words}");
    }
    if found.is_stopped {
        let _ = writeln!(text, "the search was stopped after {REFINED_MAX} simulations");
    }
    if !unidentified.is_empty() {
        let _ =
            writeln!(text, "as in START, not identified by the jobs: {}", unidentified.join(", "));
    }
    if !scaled.is_empty() {
        let _ = writeln!(
            text,
            "not identified, changed with the dies at the same bandwidth: {}",
            scaled.join(", ")
        );
    }
}

fn jobs(text: &mut String, results: &[JobResult]) {
    let _ = writeln!(
        text,
        "\n{:<34} {:>10} {:>9} {:>8}   p50, us        p99, us",
        "", "requests/s", "simulated", "error"
    );
    for result in results {
        for (at, (theirs, ours)) in
            result.measured.delivered.iter().zip(&result.simulated).enumerate()
        {
            let label = format!(
                "{}{}",
                result.measured.label(),
                if result.fitted { ", fitted" } else { "" }
            );
            let both = |share| {
                let words = |one: &DirectionResult| {
                    one.percentile(share).map_or("-".to_owned(), |us| format!("{us:.0}"))
                };
                format!("{} / {}", words(theirs), words(ours))
            };
            let _ = writeln!(
                text,
                "{label:<34} {:>10.0} {:>9.0} {:>+7.1}%   {:<14} {}",
                theirs.iops,
                ours.iops,
                100.0 * result.rate_error(at),
                both(50.0),
                both(99.0)
            );
        }
    }
    text.push_str("latencies: measured / simulated\n");
}
