//! Fits to write amplification: lines, the golden section, and the factor of a counter.

/// Microseconds of a 4 KiB page at a rate in MB/s.
pub fn page_us(mb_s: f64) -> f64 {
    4096.0 / mb_s
}

/// By what factor `measured` write amplification exceeds that `simulated`, and the root mean square
/// of the logarithmic errors that are left. The factor is the mean, or the end of `range` next to
/// it.
pub fn residual(measured: &[f64], simulated: &[f64], range: (f64, f64)) -> (f64, f64) {
    let logs: Vec<f64> =
        measured.iter().zip(simulated).map(|(theirs, ours)| libm::log(theirs / ours)).collect();
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let counter = libm::exp(mean(&logs)).clamp(range.0, range.1);
    let squares: Vec<f64> = logs.iter().map(|log| (log - libm::log(counter)).powi(2)).collect();
    (counter, mean(&squares).sqrt())
}

/// The line through `points`: its value at 0, and its slope. NaN for fewer than two values of x.
pub fn line(points: &[(f64, f64)]) -> (f64, f64) {
    let n = points.len() as f64;
    let (x, y) = points.iter().fold((0.0, 0.0), |sum, point| (sum.0 + point.0, sum.1 + point.1));
    let (x, y) = (x / n, y / n);
    let over: f64 = points.iter().map(|point| (point.0 - x) * (point.1 - y)).sum();
    let under: f64 = points.iter().map(|point| (point.0 - x).powi(2)).sum();
    let slope = over / under;
    (y - slope * x, slope)
}

/// What rounding may leave of a determinant that is zero, as a part of its terms.
const SINGULAR: f64 = 1e-9;

/// The times of a program and of a read by `points`, each of which is so many programs, so many
/// reads, and the time that they take: least squares. NaN where all points have them in one
/// proportion.
pub fn two_times(points: &[(f64, f64, f64)]) -> (f64, f64) {
    let sum = |of: fn(&(f64, f64, f64)) -> f64| points.iter().map(of).sum::<f64>();
    let (pp, pr, rr) = (sum(|it| it.0 * it.0), sum(|it| it.0 * it.1), sum(|it| it.1 * it.1));
    let (pt, rt) = (sum(|it| it.0 * it.2), sum(|it| it.1 * it.2));
    let under = pp * rr - pr * pr;
    if under <= SINGULAR * pp * rr {
        return (f64::NAN, f64::NAN);
    }
    ((pt * rr - rt * pr) / under, (rt * pp - pt * pr) / under)
}

/// Where `cost` is least in `range`, by so many `steps` of the golden section.
///
/// # Errors
/// The first of `cost`.
pub fn golden<E>(
    range: (f64, f64),
    steps: u32,
    mut cost: impl FnMut(f64) -> Result<f64, E>,
) -> Result<f64, E> {
    const SECTION: f64 = 0.618_033_988_749_895;
    let (mut low, mut high) = range;
    let inner = |low: f64, high: f64| (high - SECTION * (high - low), low + SECTION * (high - low));
    let (mut left, mut right) = inner(low, high);
    let (mut at_left, mut at_right) = (cost(left)?, cost(right)?);
    for _ in 0..steps {
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

#[cfg(test)]
mod tests {
    use super::{golden, line, residual, two_times};
    use std::convert::Infallible;

    #[test]
    fn the_golden_section_finds_the_least() {
        let found = golden((1.0, 2.0), 9, |x| Ok::<_, Infallible>((x - 1.37).powi(2)));
        let Ok(found) = found;
        assert!((found - 1.37).abs() < 0.01, "{found}");
    }

    #[test]
    fn rates_are_a_line_over_the_copies() {
        let points = [0.1, 0.5, 1.0].map(|copies| (copies, 3.0 + 4.0 * copies));
        let (program, copy) = line(&points);
        assert!((program - 3.0).abs() < 1e-9 && (copy - 4.0).abs() < 1e-9, "{program} {copy}");
        assert!(line(&points[..1]).1.is_nan());
    }

    #[test]
    fn programs_and_reads_are_separated() {
        let points = [(1.1, 0.1), (1.4, 0.2), (1.9, 0.4)];
        let points =
            points.map(|(programs, reads)| (programs, reads, 3.0 * programs + 2.0 * reads));
        let (program, read) = two_times(&points);
        assert!((program - 3.0).abs() < 1e-9 && (read - 2.0).abs() < 1e-9, "{program} {read}");
        assert!(two_times(&points[..1]).1.is_nan());
    }

    #[test]
    fn what_a_counter_adds_is_no_error_as_long_as_counters_add_that_much() {
        let (counter, left) = residual(&[1.1, 2.2], &[1.0, 2.0], (1.0, 1.15));
        assert!((counter - 1.1).abs() < 1e-9 && left < 1e-9, "{counter} {left}");
        let (counter, left) = residual(&[1.3, 2.6], &[1.0, 2.0], (1.0, 1.15));
        assert!((counter - 1.15).abs() < 1e-9 && left > 0.1, "{counter} {left}");
        let (counter, left) = residual(&[1.1, 2.2], &[1.0, 2.0], (1.0, 1.0));
        assert!((counter - 1.0).abs() < 1e-9 && left > 0.09, "{counter} {left}");
    }
}
