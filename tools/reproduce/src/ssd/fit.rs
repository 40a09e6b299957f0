//! Constants of a drive from a few of its measurements, at most one value for all loads.

use super::drive::{Drive, Load};
use super::tables::{Measured, median};
use crate::{ExperimentError, Job, Runner};

/// Hidden capacities that are tried, as parts of the exported one.
const HIDDEN: (f64, f64) = (1.08, 1.60);
/// Drive writes of the runs of the block size and of the hidden capacity.
const WRITES: f64 = 4.0;
/// Steps of the golden section: the range shrinks to 1 % of the capacity.
const STEPS: u32 = 9;

/// What is measured at one fill level: the share of the capacity in use, the write amplification
/// by the drive's counter, and the rate of the host in MB/s.
#[derive(Clone, Copy, Debug)]
pub struct Fill {
    pub range: f64,
    pub amplification: f64,
    pub host_mb_s: f64,
}

/// Microseconds of a 4 KiB page at a rate in MB/s.
pub fn page_us(mb_s: f64) -> f64 {
    4096.0 / mb_s
}

/// Fits hidden capacity and rates to `fills`. The answer is the drive, and by what the drive's
/// counter exceeds the pages programmed (metadata and parity).
///
/// # Errors
/// The first run that fails.
pub fn to_fills(
    runner: &Runner,
    name: &str,
    start: Drive,
    fills: &[Fill],
) -> Result<(Drive, f64), ExperimentError> {
    let simulate = |hidden: f64| -> Result<Vec<f64>, ExperimentError> {
        let drive = Drive { hidden_gib: hidden * start.user_gib, ..start };
        let job = |fill: &Fill| {
            let name = format!("{name}: fit, {hidden:.3} times the capacity, range {}", fill.range);
            drive.job(&name, Load::Uniform, fill.range, WRITES)
        };
        let jobs: Vec<Job> = fills.iter().map(job).collect();
        Ok(runner.run(&jobs)?.iter().map(|ran| drive.outcome(ran).amplification).collect())
    };
    let logs = |ours: &[f64]| -> Vec<f64> {
        fills.iter().zip(ours).map(|(fill, ours)| libm::log(fill.amplification / ours)).collect()
    };
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let spread = |ours: &[f64]| {
        let logs = logs(ours);
        logs.iter().map(|log| (log - mean(&logs)).powi(2)).sum::<f64>()
    };
    let hidden = golden(HIDDEN, |hidden| Ok(spread(&simulate(hidden)?)))?;
    let ours = simulate(hidden)?;
    let counter = libm::exp(mean(&logs(&ours)));
    let (program_us, copy_us) = line(fills, &ours);
    let drive = Drive { hidden_gib: hidden * start.user_gib, program_us, copy_us, ..start };
    Ok((drive, counter))
}

/// The time of a page as a line over the copies it causes: (at none, for each).
fn line(fills: &[Fill], amplification: &[f64]) -> (f64, f64) {
    let points: Vec<(f64, f64)> = fills
        .iter()
        .zip(amplification)
        .map(|(fill, ours)| (ours - 1.0, page_us(fill.host_mb_s)))
        .collect();
    let n = points.len() as f64;
    let (x, y) = points.iter().fold((0.0, 0.0), |sum, point| (sum.0 + point.0, sum.1 + point.1));
    let (x, y) = (x / n, y / n);
    let over: f64 = points.iter().map(|point| (point.0 - x) * (point.1 - y)).sum();
    let under: f64 = points.iter().map(|point| (point.0 - x).powi(2)).sum();
    let copy = over / under;
    (y - copy * x, copy)
}

/// The size of blocks among `sizes` that meets the amplification under sequential streams best:
/// each of `streams` is the load, and what is measured.
///
/// # Errors
/// Without streams; the first run that fails.
pub fn block_gib(
    runner: &Runner,
    name: &str,
    start: Drive,
    sizes: &[f64],
    streams: &[(Load, f64)],
) -> Result<f64, ExperimentError> {
    if streams.is_empty() {
        return Err(ExperimentError::Failed(format!("{name}: no streams to fit blocks to")));
    }
    let mut best = (f64::INFINITY, start.block_gib);
    for &block_gib in sizes {
        let drive = Drive { block_gib, ..start };
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

/// Where `cost` is least in `range`, by the golden section.
fn golden(
    range: (f64, f64),
    cost: impl Fn(f64) -> Result<f64, ExperimentError>,
) -> Result<f64, ExperimentError> {
    const SECTION: f64 = 0.618_033_988_749_895;
    let (mut low, mut high) = range;
    let inner = |low: f64, high: f64| (high - SECTION * (high - low), low + SECTION * (high - low));
    let (mut left, mut right) = inner(low, high);
    let (mut at_left, mut at_right) = (cost(left)?, cost(right)?);
    for _ in 0..STEPS {
        if at_left < at_right {
            (high, right, at_right) = (right, left, at_left);
            left = inner(low, high).0;
            at_left = cost(left)?;
        } else {
            (low, left, at_left) = (left, right, at_right);
            right = inner(low, high).1;
            at_right = cost(right)?;
        }
    }
    Ok(f64::midpoint(low, high))
}

/// Where `value`, which rises or falls throughout `range`, is `target`, by bisection. `name` is
/// what is solved for, in errors.
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
        return Err(ExperimentError::Failed(format!(
            "{name}: {target:.4} is not reached between {low} ({at_low:.4}) and {high} \
             ({at_high:.4})"
        )));
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
pub fn measured(rows: &[Measured], keep: impl Fn(&Measured) -> bool) -> f64 {
    let values: Vec<f64> = rows.iter().filter(|row| keep(row)).map(|row| row.value).collect();
    median(&values)
}

#[cfg(test)]
mod tests {
    use super::{Fill, golden, line, solve};

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

    #[test]
    fn the_golden_section_finds_the_least() {
        let found = golden((1.0, 2.0), |x| Ok((x - 1.37).powi(2))).expect("no run fails");
        assert!((found - 1.37).abs() < 0.01, "{found}");
    }

    #[test]
    fn rates_are_a_line_over_the_copies() {
        let fill = |amplification: f64| Fill {
            range: 1.0,
            amplification,
            host_mb_s: 4096.0 / (3.0 + 4.0 * (amplification - 1.0)),
        };
        let fills = [fill(1.1), fill(1.5), fill(2.0)];
        let (program, copy) = line(&fills, &[1.1, 1.5, 2.0]);
        assert!((program - 3.0).abs() < 1e-9 && (copy - 4.0).abs() < 1e-9, "{program} {copy}");
    }
}
