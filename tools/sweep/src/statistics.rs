//! Means over seeds and their confidence intervals.

use hybridsim_observe::steady::student_t;

/// A mean over seeds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The mean.
    pub mean: f64,
    /// Half the width of its 95 % confidence interval; `None` with one value.
    pub half_width: Option<f64>,
}

impl Estimate {
    /// The estimate from independent values; `None` without any.
    pub fn of(values: &[f64]) -> Option<Self> {
        let count = values.len();
        let mean = (count > 0).then(|| values.iter().sum::<f64>() / count as f64)?;
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        let half_width = (count > 1).then(|| {
            let variance = squares / (count - 1) as f64;
            student_t(count - 1) * (variance / count as f64).sqrt()
        });
        Some(Self { mean, half_width })
    }

    /// Whether the interval contains zero; `None` with one value, of which nothing is known.
    pub fn may_be_zero(&self) -> Option<bool> {
        self.half_width.map(|half| self.mean.abs() <= half)
    }
}

/// Whether two series of seeds and values may have equal means: the interval of the differences at
/// the seeds that both have contains zero. `None` with fewer than two such seeds.
pub fn may_be_equal(one: &[(u64, f64)], other: &[(u64, f64)]) -> Option<bool> {
    let at = |seed: u64| other.iter().find(|(other, _)| *other == seed);
    let difference = |(seed, value): &(u64, f64)| Some(value - at(*seed)?.1);
    let differences: Vec<f64> = one.iter().filter_map(difference).collect();
    Estimate::of(&differences)?.may_be_zero()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_by_hand() {
        assert_eq!(Estimate::of(&[]), None);
        assert_eq!(Estimate::of(&[4.0]), Some(Estimate { mean: 4.0, half_width: None }));
        // Standard deviation 1, three values: 4.303 / sqrt(3).
        let three = Estimate::of(&[1.0, 2.0, 3.0]).expect("three values");
        assert_eq!(three.mean, 2.0);
        assert!(three.half_width.is_some_and(|half| (half - 2.4843).abs() < 1e-3));
        assert!((student_t(40) - 2.0211).abs() < 1e-3, "{}", student_t(40));
        assert!((student_t(100_000) - 1.96).abs() < 1e-3);
    }

    #[test]
    fn differences_are_judged_seed_by_seed() {
        // A shift that is small beside the spread, yet the same at every seed.
        let seeds = |values: &[f64]| (0..).zip(values.iter().copied()).collect::<Vec<_>>();
        let may = |one: &[f64], other: &[f64]| may_be_equal(&seeds(one), &seeds(other));
        assert_eq!(may(&[10.0, 20.0, 30.0], &[11.0, 21.1, 30.9]), Some(false));
        assert_eq!(may(&[10.0, 20.0, 30.0], &[11.0, 19.0, 30.5]), Some(true));
        assert_eq!(may(&[5.0, 5.0], &[5.0, 5.0]), Some(true));
        assert_eq!(may(&[5.0], &[5.0]), None, "one value says nothing");
        assert_eq!(may(&[], &[]), None);
    }

    #[test]
    fn only_equal_seeds_are_compared() {
        let all = [(0, 10.0), (1, 20.0), (2, 30.0)];
        // By position the values would differ by about 10.
        let later = [(1, 20.5), (2, 29.6), (3, 40.0)];
        assert_eq!(may_be_equal(&all, &later), Some(true));
        assert_eq!(may_be_equal(&all, &later[1..]), None, "one seed in common");
    }
}
