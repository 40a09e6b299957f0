//! Tables over read share, request size and load, and what lies between their knots.

use serde::Serialize;

/// Probabilities of the quantiles in a [`Distribution`].
pub const PROBABILITIES: [f64; 13] =
    [0.0, 0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.98, 0.99, 0.995, 0.999, 1.0];
/// The place of the 99th percentile in them, and of the last before the tail.
const P99: usize = 9;
const TAIL: usize = 11;
/// Significant digits of what a table holds.
const DIGITS: i32 = 4;

/// Latencies in microseconds: the quantiles of [`PROBABILITIES`], between which they are linear.
///
/// The last is not the longest latency, but gives the tail its mean; all are scaled so that the
/// mean of the whole is that of the latencies.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Distribution(pub [f64; PROBABILITIES.len()]);

impl Distribution {
    /// The distribution of latencies in ns; `None` without one.
    pub fn of(mut ns: Vec<u64>) -> Option<Self> {
        let last = ns.len().checked_sub(1)?;
        ns.sort_unstable();
        // Logarithms are interpolated, and a latency may be 0.
        let us = |ns: f64| ns.max(1.0) / 1e3;
        let at = |probability: f64| (probability * last as f64).round() as usize;
        let mut quantiles = PROBABILITIES.map(|probability| us(ns[at(probability)] as f64));
        let mean = |part: &[u64]| us(part.iter().sum::<u64>() as f64 / part.len() as f64);
        let before = quantiles[TAIL];
        quantiles[TAIL + 1] = (2.0 * mean(&ns[at(PROBABILITIES[TAIL])..]) - before).max(before);
        let scale = mean(&ns) / Self(quantiles).mean();
        Some(Self(quantiles.map(|value| rounded(scale * value))))
    }

    /// The mean in microseconds.
    pub fn mean(&self) -> f64 {
        let steps = self.0.windows(2).zip(PROBABILITIES.windows(2));
        steps.map(|(value, part)| (part[1] - part[0]) * (value[0] + value[1]) / 2.0).sum()
    }

    /// The 99th percentile in microseconds.
    pub const fn p99(&self) -> f64 {
        self.0[P99]
    }
}

/// Latencies of a load: of its reads and of its writes, where there are any.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Measured(pub [Option<Distribution>; 2]);

impl Measured {
    /// Mean latency in microseconds of a mix with so many reads; `None` without those of an
    /// operation that it has.
    pub fn mean_us(&self, read_share: f64) -> Option<f64> {
        let [read, write] = self.0.map(|it| it.map(|it| it.mean()));
        let part = |share: f64, mean: Option<f64>| match share > 0.0 {
            true => Some(share * mean?),
            false => Some(0.0),
        };
        Some(part(read_share, read)? + part(1.0 - read_share, write)?)
    }
}

fn rounded(value: f64) -> f64 {
    if value <= 0.0 {
        return value;
    }
    let digits = DIGITS - 1 - value.log10().floor() as i32;
    let scale = 10f64.powi(digits.abs());
    if digits >= 0 { (value * scale).round() / scale } else { (value / scale).round() * scale }
}

/// How requests of a [`Table`] arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Loop {
    /// Closed loop; the load is the number of requests outstanding.
    Closed,
    /// Open loop with random arrivals; the load is their rate as a part of the throughput of the
    /// closed loop with the most requests outstanding.
    Open,
}

impl Loop {
    /// The axis of a load, on which interpolation is linear.
    fn axis(self, load: f64) -> f64 {
        match self {
            Self::Closed => load.ln(),
            Self::Open => -(1.0 - load).ln(),
        }
    }
}

/// Latencies at the knots of a grid: by read share, then by size, then by load.
///
/// In between, logarithms are interpolated linearly over the read share, the logarithm of the
/// size, and the logarithm of the depth or of the part of the time that an open loop leaves idle.
#[derive(Clone, Debug, Serialize)]
pub struct Table {
    /// Parts of requests that read, 0 to 1.
    pub read_share: Vec<f64>,
    /// Sizes of requests in bytes.
    pub bytes: Vec<f64>,
    /// Requests outstanding, or rates as parts of the throughput.
    pub load: Vec<f64>,
    /// Latencies of reads; `null` where nothing is read.
    pub read: Vec<Option<Distribution>>,
    /// Latencies of writes; `null` where nothing is written.
    pub write: Vec<Option<Distribution>>,
    #[serde(skip)]
    kind: Loop,
}

impl Table {
    /// A table with these knots; `at` gives the latencies at each.
    pub(crate) fn new(
        kind: Loop,
        knots: &[Vec<f64>; 3],
        at: impl Fn([f64; 3]) -> Measured,
    ) -> Self {
        let [read_share, bytes, load] = knots.clone();
        let mut it = Self { read_share, bytes, load, read: vec![], write: vec![], kind };
        for &share in &knots[0] {
            for &bytes in &knots[1] {
                for &load in &knots[2] {
                    let Measured([read, write]) = at([share, bytes, load]);
                    it.read.push(read);
                    it.write.push(write);
                }
            }
        }
        it
    }

    /// The number of knots.
    pub fn knots(&self) -> usize {
        self.read.len()
    }

    /// The latencies at `[read share, bytes, load]`, `None` outside the table. Those of an
    /// operation are `None` between a knot that has them and one that does not.
    pub fn at(&self, [share, bytes, load]: [f64; 3]) -> Option<Measured> {
        let axes = [
            between(&self.read_share, share, |it| it)?,
            between(&self.bytes, bytes, f64::ln)?,
            between(&self.load, load, |it| self.kind.axis(it))?,
        ];
        let lengths = [&self.read_share, &self.bytes, &self.load].map(Vec::len);
        let interpolated = |knots: &[Option<Distribution>]| {
            let mut sum = [0.0; PROBABILITIES.len()];
            for corner in 0..8 {
                let (mut place, mut weight) = (0, 1.0);
                for (number, axis) in axes.iter().enumerate() {
                    let (knot, share) = axis[(corner >> number) & 1];
                    place = place * lengths[number] + knot;
                    weight *= share;
                }
                if weight > 0.0 {
                    let knot = knots[place]?.0;
                    sum.iter_mut().zip(knot).for_each(|(sum, value)| *sum += weight * value.ln());
                }
            }
            Some(Distribution(sum.map(f64::exp)))
        };
        Some(Measured([interpolated(&self.read), interpolated(&self.write)]))
    }

    /// Requests per second of the closed loop at a load, by Little's law; `None` outside the table.
    pub fn iops(&self, at: [f64; 3]) -> Option<f64> {
        Some(at[2] * 1e6 / self.at(at)?.mean_us(at[0])?)
    }
}

/// The knots beside `at`, with their weights; `None` outside.
fn between(knots: &[f64], at: f64, axis: impl Fn(f64) -> f64) -> Option<[(usize, f64); 2]> {
    let (first, last) = (*knots.first()?, *knots.last()?);
    if !(first..=last).contains(&at) {
        return None;
    }
    let upper = knots.partition_point(|knot| *knot < at);
    if knots[upper] == at {
        return Some([(upper, 1.0), (upper, 0.0)]);
    }
    let [from, to] = [knots[upper - 1], knots[upper]].map(&axis);
    let weight = (axis(at) - from) / (to - from);
    Some([(upper - 1, 1.0 - weight), (upper, weight)])
}

/// The tables of a state of the devices, and how far they are off.
#[derive(Clone, Debug, Serialize)]
pub struct StateTables {
    /// Closed loops.
    pub closed: Table,
    /// Open loops.
    pub open: Table,
    /// The tables against loads that they were not fitted to.
    pub judged: Judged,
}

/// Relative errors on loads drawn at random, reads and writes together.
#[derive(Clone, Debug, Serialize)]
pub struct Judged {
    /// Loads: closed and open loops.
    pub loads: usize,
    /// Errors of the means.
    pub mean: Spread,
    /// Errors of the 99th percentiles.
    pub p99: Spread,
    /// Differences of the 99th percentiles between two simulations of a load with different seeds:
    /// what no table can be better than.
    pub p99_repeated: Spread,
    /// The load with the largest error of a mean, in words.
    pub worst: String,
}

/// Relative errors: `0.05` is 5 %.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Spread {
    /// Mean of their sizes.
    pub mean: f64,
    /// Half of them are at most so large.
    pub median: f64,
    /// Nine of ten are at most so large.
    pub p90: f64,
    /// The largest.
    pub max: f64,
}

impl Spread {
    /// The spread of `errors`.
    pub fn of(mut errors: Vec<f64>) -> Self {
        errors.iter_mut().for_each(|error| *error = error.abs());
        errors.sort_by(f64::total_cmp);
        let Some(last) = errors.len().checked_sub(1) else { return Self::default() };
        let at = |part: f64| rounded(errors[(part * last as f64).ceil() as usize]);
        let mean = rounded(errors.iter().sum::<f64>() / errors.len() as f64);
        Self { mean, median: at(0.5), p90: at(0.9), max: at(1.0) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let knots = [vec![0.0, 0.5, 1.0], vec![4096.0, 65536.0], vec![1.0, 4.0, 16.0]];
        Table::new(Loop::Closed, &knots, |[share, bytes, load]| {
            let one = |us| Some(Distribution([us; PROBABILITIES.len()]));
            let us = load * bytes.sqrt() * (1.0 + share).exp();
            let read = if share > 0.0 { one(us) } else { None };
            let write = if share < 1.0 { one(2.0 * us) } else { None };
            Measured([read, write])
        })
    }

    #[test]
    fn powers_are_interpolated_exactly_and_nothing_outside() {
        let table = table();
        let close = |one: f64, other: f64| (one / other - 1.0).abs() < 1e-12;
        let at = |it: [f64; 3]| table.at(it).expect("within the table");
        let [read, write] = at([0.5, 16384.0, 8.0]).0.map(|it| it.expect("both").mean());
        let us = 8.0 * 128.0 * 1.5f64.exp();
        assert!(close(read, us) && close(write, 2.0 * us), "{read} {write}");
        assert!(close(table.iops([0.5, 16384.0, 8.0]).expect("both"), 8e6 / (1.5 * us)));
        let [read, write] = at([1.0, 8192.0, 2.0]).0;
        assert!(close(read.expect("reads").p99(), 2.0 * 8192f64.sqrt() * 2f64.exp()));
        assert!(write.is_none());
        // Between a knot with reads and one without there is no latency of reads.
        let [read, write] = at([0.25, 4096.0, 1.0]).0;
        assert!(read.is_none() && write.is_some());
        assert_eq!(table.iops([0.25, 4096.0, 1.0]), None);
        for outside in
            [[-0.1, 4096.0, 1.0], [0.0, 4095.0, 1.0], [0.0, 4096.0, 17.0], [0.0, f64::NAN, 1.0]]
        {
            assert!(table.at(outside).is_none(), "{outside:?}");
        }
    }

    #[test]
    fn open_loops_follow_the_time_left_idle() {
        let knots = [vec![1.0], vec![512.0], vec![0.5, 0.9]];
        let one = |us| Some(Distribution([us; PROBABILITIES.len()]));
        let table = Table::new(Loop::Open, &knots, |[_, _, load]| {
            Measured([one(10.0 / (1.0 - load)), None])
        });
        let [read, _] = table.at([1.0, 512.0, 0.8]).expect("within").0;
        let between = read.expect("reads").mean();
        assert!((between / 50.0 - 1.0).abs() < 1e-12, "{between}");
    }

    #[test]
    fn a_distribution_keeps_the_mean_and_the_quantiles() {
        // Exponential, by its quantiles.
        let ns = |at: u32| (-1e6 * (1.0 - (f64::from(at) + 0.5) / 1e5).ln()) as u64;
        let it = Distribution::of((0..100_000).rev().map(ns).collect()).expect("latencies");
        let close = |one: f64, other: f64, most: f64| (one / other - 1.0).abs() < most;
        assert!(close(it.mean(), 1000.0, 1e-3), "{}", it.mean());
        assert!(close(it.p99(), 1000.0 * 100f64.ln(), 0.03), "{}", it.p99());
        assert!(it.0.is_sorted());
        assert_eq!(Distribution::of(vec![0]).map(|it| it.mean()), Some(0.001));
        assert_eq!(Distribution::of(Vec::new()), None);
    }

    #[test]
    fn four_digits_are_kept() {
        for (value, expected) in
            [(123_456.0, 123_500.0), (0.012_344, 0.012_34), (0.0, 0.0), (9.9999, 10.0)]
        {
            assert_eq!(rounded(value), expected);
        }
        let spread = Spread::of(vec![-0.3, 0.1, 0.2]);
        assert_eq!(spread, Spread { mean: 0.2, median: 0.2, p90: 0.3, max: 0.3 });
    }
}
