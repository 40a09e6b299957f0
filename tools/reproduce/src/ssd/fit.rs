//! Constants of a drive from a few of its measurements, at most one value for all loads.

use super::drive::{Jobs, Load, Outcome, SaturatedDrive};
use super::tables::{MeasuredValue, median};
use crate::{ExperimentError, Job, Runner};
pub use hybridsim_calibrate::counters::page_us;
use hybridsim_calibrate::counters::{golden, residual, two_times};

/// Hidden capacities that are tried, as parts of the exported one.
const HIDDEN: (f64, f64) = (1.08, 1.60);
/// Drive writes of the runs of the block size and of the hidden capacity.
const WRITES: f64 = 4.0;
/// Range of the factor by which the drive's counter exceeds the pages programmed: any.
const ANY: (f64, f64) = (0.0, f64::INFINITY);
/// Steps of the golden section: the range shrinks to 1 % of the capacity.
const STEPS: u32 = 9;

/// A measured fill level: the share of the capacity in use, the write amplification by the drive's
/// counter, and the rate of the host in MB/s.
#[derive(Clone, Copy, Debug)]
pub struct Fill {
    pub range: f64,
    pub amplification: f64,
    pub host_mb_s: f64,
}

/// Fits hidden capacity and rates to `fills`. The answer is the drive, and by what the drive's
/// counter exceeds the pages programmed (metadata and parity).
///
/// # Errors
/// The first run that fails.
pub fn to_fills(
    runner: &Runner,
    name: &str,
    start: SaturatedDrive,
    fills: &[Fill],
) -> Result<(SaturatedDrive, f64), ExperimentError> {
    let simulate = |hidden: f64| -> Result<Vec<Outcome>, ExperimentError> {
        let drive = SaturatedDrive { hidden_gib: hidden * start.user_gib, ..start };
        let job = |fill: &Fill| {
            let name = format!("{name}: fit, {hidden:.3} times the capacity, range {}", fill.range);
            drive.job(&name, Load::Uniform, fill.range, WRITES)
        };
        let jobs: Vec<Job> = fills.iter().map(job).collect();
        Ok(runner.run(&jobs)?.iter().map(|ran| drive.outcome(&ran.pictures)).collect())
    };
    let amplifications =
        |ran: &[Outcome]| ran.iter().map(|it| it.amplification).collect::<Vec<f64>>();
    let measured: Vec<f64> = fills.iter().map(|fill| fill.amplification).collect();
    let hidden = golden(HIDDEN, STEPS, |hidden| {
        Ok::<_, ExperimentError>(residual(&measured, &amplifications(&simulate(hidden)?), ANY).1)
    })?;
    let ours = simulate(hidden)?;
    let counter = residual(&measured, &amplifications(&ours), ANY).0;
    let point = |(fill, ran): (&Fill, &Outcome)| {
        (ran.amplification, ran.reads(&start), page_us(fill.host_mb_s))
    };
    let (program_us, read_us) = two_times(&fills.iter().zip(&ours).map(point).collect::<Vec<_>>());
    let drive = SaturatedDrive { hidden_gib: hidden * start.user_gib, ..start };
    Ok((with_times(name, &drive, (program_us, read_us))?, counter))
}

/// `drive` with the fitted times of a program and of a read.
///
/// # Errors
/// Unless both are positive and finite: then the rates do not show them.
pub fn with_times(
    name: &str,
    drive: &SaturatedDrive,
    (program_us, read_us): (f64, f64),
) -> Result<SaturatedDrive, ExperimentError> {
    if [program_us, read_us].iter().all(|time| *time > 0.0 && time.is_finite()) {
        return Ok(SaturatedDrive { program_us, read_us, ..*drive });
    }
    let message = format!(
        "the rates measured give {program_us:.3} us a program and {read_us:.3} us a read; both \
         have to be above 0: check the rates in the tables"
    );
    Err(ExperimentError::of(name, message))
}

/// The size of blocks among `sizes` that meets the amplification under sequential streams best:
/// each of `streams` is the load, and what is measured.
///
/// # Errors
/// Without streams; the first run that fails.
pub fn block_gib(
    runner: &Runner,
    name: &str,
    start: SaturatedDrive,
    sizes: &[f64],
    streams: &[(Load, f64)],
) -> Result<f64, ExperimentError> {
    if streams.is_empty() {
        return Err(ExperimentError::of(name, "no streams to fit blocks to"));
    }
    let mut best = (f64::INFINITY, start.block_gib);
    for &block_gib in sizes {
        let drive = SaturatedDrive { block_gib, ..start };
        let loads: Vec<(String, Load, f64)> = streams
            .iter()
            .map(|(load, _)| (format!("fit, blocks of {block_gib} GiB"), *load, WRITES))
            .collect();
        let ran = drive.run(runner, name, &loads)?;
        let error = ran
            .iter()
            .zip(streams)
            .map(|(ran, (_, measured))| libm::log(ran.amplification / measured).powi(2));
        let error = error.sum::<f64>();
        if error < best.0 {
            best = (error, block_gib);
        }
    }
    Ok(best.1)
}

/// The argument at which `value`, which rises or falls throughout `range`, is `target`, by
/// bisection. `name` is what is solved for, in errors.
///
/// # Errors
/// When no value in `range` gives `target`; the first run that fails.
pub fn solve(
    name: &str,
    (mut low, mut high): (f64, f64),
    target: f64,
    value: impl Fn(f64) -> Result<f64, ExperimentError>,
) -> Result<f64, ExperimentError> {
    const HALVINGS: u32 = 8;
    let (at_low, at_high) = (value(low)?, value(high)?);
    if !(at_low.min(at_high)..=at_low.max(at_high)).contains(&target) {
        let message = format!(
            "{target:.4} is not reached between {low} ({at_low:.4}) and {high} ({at_high:.4})"
        );
        return Err(ExperimentError::of(name, message));
    }
    let rises = at_high > at_low;
    for _ in 0..HALVINGS {
        let middle = f64::midpoint(low, high);
        if (value(middle)? < target) == rises {
            low = middle;
        } else {
            high = middle;
        }
    }
    Ok(f64::midpoint(low, high))
}

/// The median of what `keep` finds in `rows`.
pub fn measured(rows: &[MeasuredValue], keep: impl Fn(&MeasuredValue) -> bool) -> f64 {
    let values: Vec<f64> = rows.iter().filter(|row| keep(row)).map(|row| row.value).collect();
    median(&values)
}

#[cfg(test)]
mod tests {
    use super::super::drive::{Collector, SaturatedDrive};
    use super::{solve, with_times};

    #[test]
    fn times_that_rates_do_not_show_are_an_error() {
        let drive = SaturatedDrive {
            user_gib: 64.0,
            hidden_gib: 80.0,
            block_gib: 0.125,
            program_us: 3.0,
            read_us: 1.5,
            read_pages: 4,
            scale: 1024.0,
            collector: Collector::Greedy,
        };
        let fitted = with_times("x", &drive, (2.0, 0.5)).expect("both are positive");
        assert_eq!(fitted, SaturatedDrive { program_us: 2.0, read_us: 0.5, ..drive });
        for times in [(2.0, -0.1), (2.0, 0.0), (f64::NAN, 1.0), (2.0, f64::INFINITY), (-1.0, 1.0)] {
            let error = with_times("the drive", &drive, times).expect_err("no times");
            assert!(error.to_string().starts_with("the drive: the rates measured"), "{error}");
        }
    }

    #[test]
    fn bisection_finds_the_target_from_either_side() {
        for sign in [1.0, -1.0] {
            let found = solve("x", (1.0, 2.0), sign * 1.37, |x| Ok(sign * x));
            let found = found.expect("no run fails");
            assert!((found - 1.37).abs() < 0.01, "{found}");
        }
    }

    #[test]
    fn a_target_outside_the_range_is_an_error() {
        for target in [0.9, 2.1, f64::NAN] {
            let error = solve("the answer", (1.0, 2.0), target, Ok).expect_err("not reached");
            assert!(error.to_string().starts_with("the answer: "), "{error}");
        }
    }
}
