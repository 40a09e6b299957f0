//! Mean, spread and quantiles of a stream of whole numbers, in 30 kB.

use super::Distribution;

/// Significant bits of a bucket: 64 buckets per power of two.
const BITS: u32 = 6;
const BUCKETS: usize = (65 - BITS as usize) << BITS;

/// Accumulates values into a [`Distribution`].
pub struct Quantiles {
    buckets: Vec<u64>,
    count: u64,
    mean: f64,
    squares: f64,
    min: u64,
    max: u64,
}

impl Default for Quantiles {
    fn default() -> Self {
        let buckets = vec![0; BUCKETS];
        Self { buckets, count: 0, mean: 0.0, squares: 0.0, min: u64::MAX, max: 0 }
    }
}

#[inline]
fn bucket(value: u64) -> usize {
    let shift = (64 - value.leading_zeros()).saturating_sub(BITS + 1);
    ((shift as usize) << BITS) + (value >> shift) as usize
}

fn middle(bucket: usize) -> u64 {
    let shift = (bucket >> BITS).saturating_sub(1);
    let low = ((bucket - (shift << BITS)) as u64) << shift;
    low + ((1u64 << shift) - 1) / 2
}

impl Quantiles {
    #[inline]
    pub fn add(&mut self, value: u64) {
        self.buckets[bucket(value)] += 1;
        self.count += 1;
        let difference = value as f64 - self.mean;
        self.mean += difference / self.count as f64;
        self.squares += difference * (value as f64 - self.mean);
        self.min = self.min.min(value);
        self.max = self.max.max(value);
    }

    fn quantile(&self, share: f64) -> u64 {
        let rank = ((self.count as f64 * share).ceil() as u64).max(1);
        let mut below = 0;
        for (index, &count) in self.buckets.iter().enumerate() {
            below += count;
            if below >= rank {
                return middle(index).clamp(self.min, self.max);
            }
        }
        self.max
    }

    /// Distribution of the values added; `None` when there are none.
    pub fn finish(&self) -> Option<Distribution> {
        (self.count > 0).then(|| Distribution {
            count: self.count,
            mean: self.mean,
            stddev: libm::sqrt(self.squares / self.count as f64),
            min: self.min,
            p50: self.quantile(0.5),
            p90: self.quantile(0.9),
            p99: self.quantile(0.99),
            p999: self.quantile(0.999),
            max: self.max,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_is_within_a_percent_of_its_bucket() {
        let mut values: Vec<u64> = (0..2_000).collect();
        values.extend((11..64).flat_map(|bit| [(1 << bit) - 1, 1 << bit, (1 << bit) + 1]));
        values.push(u64::MAX);
        for value in values {
            let error = middle(bucket(value)).abs_diff(value) as f64;
            assert!(error <= value as f64 / 127.0, "{value}: {error}");
        }
    }

    #[test]
    fn known_quantiles() {
        let mut quantiles = Quantiles::default();
        assert_eq!(quantiles.finish(), None);
        (1..=100_000).for_each(|value| quantiles.add(value));
        let d = quantiles.finish().expect("values");
        assert_eq!((d.count, d.min, d.max), (100_000, 1, 100_000));
        assert!((d.mean - 50_000.5).abs() < 1e-6);
        assert!((d.stddev - 28_867.5).abs() < 0.1, "{}", d.stddev);
        for (is, expect) in [(d.p50, 50_000.0), (d.p90, 90_000.0), (d.p99, 99_000.0)] {
            assert!((is as f64 / expect - 1.0).abs() < 0.008, "{is}");
        }
    }
}
