//! Distributions, written on `libm` so that every platform draws the same numbers.

use crate::rng::Stream;

/// Something numbers are drawn from.
#[derive(Clone, Debug, PartialEq)]
pub enum Distribution {
    /// Always the same.
    Constant(f64),
    /// Evenly between two bounds.
    Uniform {
        /// Smallest value.
        min: f64,
        /// Largest value.
        max: f64,
    },
    /// Normal.
    Normal {
        /// Mean.
        mean: f64,
        /// Standard deviation.
        stddev: f64,
    },
    /// `base` plus an exponential.
    Exponential {
        /// Smallest value.
        base: f64,
        /// Mean of what is added to `base`.
        mean: f64,
    },
    /// `base` plus a Poisson count.
    Poisson {
        /// Smallest value.
        base: f64,
        /// Mean of what is added to `base`.
        mean: f64,
    },
    /// One of two values.
    TwoValued {
        /// The usual value.
        default: f64,
        /// The other one.
        second: f64,
        /// Probability of the other one.
        probability: f64,
    },
}

impl Distribution {
    /// Draws one value.
    pub fn draw(&self, stream: &mut Stream) -> f64 {
        match *self {
            Self::Constant(value) => value,
            Self::Uniform { min, max } => min + (max - min) * stream.unit(),
            Self::Normal { mean, stddev } => mean + stddev * standard_normal(stream),
            Self::Exponential { base, mean } => base + mean * standard_exponential(stream),
            Self::Poisson { base, mean } => base + poisson(stream, mean),
            Self::TwoValued { default, second, probability } => {
                if stream.chance(probability) {
                    second
                } else {
                    default
                }
            }
        }
    }

    /// The expected value.
    pub fn mean(&self) -> f64 {
        match *self {
            Self::Constant(value) => value,
            Self::Uniform { min, max } => (min + max) / 2.0,
            Self::Normal { mean, .. } => mean,
            Self::Exponential { base, mean } | Self::Poisson { base, mean } => base + mean,
            Self::TwoValued { default, second, probability } => {
                default + (second - default) * probability
            }
        }
    }
}

/// An exponential with mean 1.
pub fn standard_exponential(stream: &mut Stream) -> f64 {
    -libm::log(1.0 - stream.unit())
}

/// A normal with mean 0 and standard deviation 1 (Box and Muller, one of the pair).
pub fn standard_normal(stream: &mut Stream) -> f64 {
    let radius = libm::sqrt(2.0 * standard_exponential(stream));
    radius * libm::cos(std::f64::consts::TAU * stream.unit())
}

/// Mean from which Poisson counts are drawn by rejection.
const POISSON_COUNTED_MAX: f64 = 1000.0;

/// Poisson by counting exponential gaps, which takes a time proportional to the mean; above
/// [`POISSON_COUNTED_MAX`] by rejection.
fn poisson(stream: &mut Stream, mean: f64) -> f64 {
    if mean > POISSON_COUNTED_MAX {
        return poisson_by_rejection(stream, mean);
    }
    let (mut left, mut count) = (mean, 0.0);
    while left > 0.0 {
        left -= standard_exponential(stream);
        if left > 0.0 {
            count += 1.0;
        }
    }
    count
}

/// Poisson in constant time: transformed rejection (PTRS, Hormann 1993), exact for a mean of at
/// least 10. The constants are those of the paper.
fn poisson_by_rejection(stream: &mut Stream, mean: f64) -> f64 {
    let b = 0.931 + 2.53 * libm::sqrt(mean);
    let a = -0.059 + 0.024_83 * b;
    let inverse_alpha = 1.1239 + 1.1328 / (b - 3.4);
    let quick = 0.9277 - 3.6224 / (b - 2.0);
    loop {
        let (u, v) = (stream.unit() - 0.5, stream.unit());
        let distance = 0.5 - u.abs();
        let count = libm::floor((2.0 * a / distance + b) * u + mean + 0.43);
        if distance >= 0.07 && v <= quick {
            return count;
        }
        if count < 0.0 || (distance < 0.013 && v > distance) {
            continue;
        }
        let drawn = libm::log(v * inverse_alpha / (a / (distance * distance) + b));
        if drawn <= count * libm::log(mean) - mean - libm::lgamma(count + 1.0) {
            return count;
        }
    }
}

/// Zipf over ranks `0..n` with exponent `theta`: rank k has weight `(k + 1)^-theta`.
///
/// Rejection-inversion (Hormann and Derflinger 1996), constant time and memory for any `n`.
#[derive(Clone, Debug)]
pub struct Zipf {
    n: f64,
    theta: f64,
    h_first: f64,
    h_last: f64,
    shortcut: f64,
}

impl Zipf {
    /// Ranks `0..n`, `n` at least 1, `theta` at least 0.
    pub fn new(n: u64, theta: f64) -> Self {
        let n = n.max(1) as f64;
        let h_first = h_integral(1.5, theta) - 1.0;
        let h_last = h_integral(n + 0.5, theta);
        let shortcut = 2.0 - h_inverse(h_integral(2.5, theta) - h(2.0, theta), theta);
        Self { n, theta, h_first, h_last, shortcut }
    }

    /// Draws a rank, 0 the most popular.
    pub fn draw(&self, stream: &mut Stream) -> u64 {
        loop {
            let u = self.h_last + stream.unit() * (self.h_first - self.h_last);
            let x = h_inverse(u, self.theta);
            let k = libm::floor(x + 0.5).clamp(1.0, self.n);
            if k - x <= self.shortcut || u >= h_integral(k + 0.5, self.theta) - h(k, self.theta) {
                return k as u64 - 1;
            }
        }
    }
}

fn h(x: f64, theta: f64) -> f64 {
    libm::exp(-theta * libm::log(x))
}

fn h_integral(x: f64, theta: f64) -> f64 {
    let log_x = libm::log(x);
    expm1_over(log_x * (1.0 - theta)) * log_x
}

fn h_inverse(x: f64, theta: f64) -> f64 {
    let t = (x * (1.0 - theta)).max(-1.0);
    libm::exp(log1p_over(t) * x)
}

/// `(e^x - 1) / x`, continuous at 0.
fn expm1_over(x: f64) -> f64 {
    if x.abs() > 1e-8 { libm::expm1(x) / x } else { 1.0 + x / 2.0 }
}

/// `ln(1 + x) / x`, continuous at 0.
fn log1p_over(x: f64) -> f64 {
    if x.abs() > 1e-8 { libm::log1p(x) / x } else { 1.0 - x / 2.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample_mean(distribution: &Distribution) -> f64 {
        let mut stream = Stream::new(3, "sample");
        let n = 200_000;
        (0..n).map(|_| distribution.draw(&mut stream)).sum::<f64>() / f64::from(n)
    }

    #[test]
    fn sample_means_meet_the_expected_value() {
        for distribution in [
            Distribution::Constant(4.0),
            Distribution::Uniform { min: 1.0, max: 5.0 },
            Distribution::Normal { mean: 7.0, stddev: 2.0 },
            Distribution::Exponential { base: 1.0, mean: 3.0 },
            Distribution::Poisson { base: 2.0, mean: 40.0 },
            Distribution::TwoValued { default: 8.0, second: 16.0, probability: 0.25 },
        ] {
            let mean = sample_mean(&distribution);
            let error = (mean / distribution.mean() - 1.0).abs();
            assert!(error < 0.01, "{distribution:?}: {mean}");
        }
    }

    #[test]
    fn large_poisson_counts_take_constant_time_and_have_their_mean_and_variance() {
        for mean in [1_001.0, 20_000.0, 1e6] {
            let mut stream = Stream::new(4, "poisson");
            let n = 40_000;
            let counts: Vec<f64> = (0..n).map(|_| poisson(&mut stream, mean)).collect();
            let average = counts.iter().sum::<f64>() / f64::from(n);
            let variance =
                counts.iter().map(|count| (count - average).powi(2)).sum::<f64>() / f64::from(n);
            // Five standard deviations of either estimate.
            let error = (average - mean).abs() / libm::sqrt(mean / f64::from(n));
            assert!(error < 5.0, "mean {mean}: {average}");
            let spread = (variance / mean - 1.0).abs();
            assert!(spread < 5.0 * libm::sqrt(2.0 / f64::from(n)), "mean {mean}: {variance}");
        }
    }

    #[test]
    fn zipf_frequencies_follow_the_power_law() {
        for theta in [0.0, 0.6, 0.99, 1.0, 1.3] {
            let n = 20;
            let zipf = Zipf::new(n, theta);
            let mut stream = Stream::new(5, "zipf");
            let mut seen = vec![0u32; n as usize];
            let draws = 400_000;
            for _ in 0..draws {
                seen[zipf.draw(&mut stream) as usize] += 1;
            }
            let norm: f64 = (1..=n).map(|k| (k as f64).powf(-theta)).sum();
            for (rank, &count) in seen.iter().enumerate() {
                let expected = f64::from(draws) * ((rank + 1) as f64).powf(-theta) / norm;
                let error = (f64::from(count) - expected).abs() / expected.sqrt();
                assert!(error < 5.0, "theta {theta} rank {rank}: {count} against {expected}");
            }
        }
    }

    #[test]
    fn zipf_of_one_rank_is_that_rank() {
        let mut stream = Stream::new(5, "zipf");
        let zipf = Zipf::new(1, 0.9);
        assert!((0..1000).all(|_| zipf.draw(&mut stream) == 0));
    }
}
