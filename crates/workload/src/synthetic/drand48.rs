//! DiskSim's random numbers: one `drand48` stream for everything, and DiskSim's algorithms for the
//! distributions.
//!
//! `drand48` is the 48-bit linear congruential generator of System V and POSIX. All users share the
//! stream, so a workload equals DiskSim's only if its numbers are drawn in DiskSim's order.

use super::arrivals::REDRAWS_MAX;
use hybridsim_engine::sample::Distribution;

const MULTIPLIER: u64 = 0x5_DEEC_E66D;
const INCREMENT: u64 = 0xB;
const MASK: u64 = (1 << 48) - 1;

#[derive(Clone, Copy, Debug)]
pub struct Drand48(u64);

impl Drand48 {
    /// As `srand48`: uses the low 32 bits of the seed.
    pub const fn new(seed: u64) -> Self {
        Self((seed & 0xFFFF_FFFF) << 16 | 0x330E)
    }

    /// A number in `[0, 1)` with 48 random bits.
    pub fn unit(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(MULTIPLIER).wrapping_add(INCREMENT) & MASK;
        self.0 as f64 / (1u64 << 48) as f64
    }

    /// A whole number in `0..bound`.
    pub fn below(&mut self, bound: u64) -> u64 {
        (self.unit() * bound as f64) as u64
    }

    /// Draws a value with as many numbers of the stream as DiskSim.
    pub fn draw(&mut self, distribution: &Distribution) -> f64 {
        match *distribution {
            Distribution::Constant(value) => value,
            Distribution::Uniform { min, max } => min + (max - min) * self.unit(),
            Distribution::Normal { mean, stddev } => mean + stddev * self.normal(),
            Distribution::Exponential { base, mean } => base + mean * self.exponential(),
            Distribution::Poisson { base, mean } => base + self.poisson(mean),
            Distribution::TwoValued { default, second, probability } => {
                if self.unit() < probability { second } else { default }
            }
        }
    }

    fn exponential(&mut self) -> f64 {
        -libm::log(1.0 - self.unit())
    }

    /// A half-normal by rejection from an exponential, then a sign.
    fn normal(&mut self) -> f64 {
        let mut size = 0.0;
        for _ in 0..REDRAWS_MAX {
            let bound = self.exponential();
            size = self.exponential();
            if bound - (size - 1.0) * (size - 1.0) / 2.0 > 0.0 {
                break;
            }
        }
        if self.unit() < 0.5 { -size } else { size }
    }

    /// Counts the factors until their product is below `e^-mean`.
    fn poisson(&mut self, mean: f64) -> f64 {
        let least = libm::exp(-mean);
        let (mut product, mut count) = (self.unit(), 0.0);
        // For means above 745 the bound underflows to 0, as the product does eventually.
        while product >= least && product > 0.0 {
            product *= self.unit();
            count += 1.0;
        }
        count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The C library's `srand48(1)` and `drand48()`; POSIX prescribes the numbers.
    #[test]
    fn the_numbers_are_those_of_posix() {
        let mut stream = Drand48::new(1);
        let expect = [0.041_630_344_771_878_214, 0.454_492_444_728_629_15, 0.834_817_218_166_914_9];
        for expected in expect {
            let got = stream.unit();
            assert!((got - expected).abs() < 1e-12, "{got} instead of {expected}");
        }
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
            let mut stream = Drand48::new(3);
            let draws = 100_000;
            let sum: f64 = (0..draws).map(|_| stream.draw(&distribution)).sum();
            let error = (sum / f64::from(draws) / distribution.mean() - 1.0).abs();
            assert!(error < 0.01, "{distribution:?}: off by {error}");
        }
        let normal = Distribution::Normal { mean: 0.0, stddev: 1.0 };
        let mut stream = Drand48::new(3);
        let squares: f64 = (0..100_000).map(|_| stream.draw(&normal).powi(2)).sum();
        assert!((squares / 1e5 - 1.0).abs() < 0.02, "variance {}", squares / 1e5);
    }
}
