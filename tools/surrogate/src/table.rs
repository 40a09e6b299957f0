//! Tables over read share, request size and load, and what lies between their knots.

use serde::Serialize;

/// Probabilities of the quantiles in a [`Distribution`].
pub const PROBABILITIES: [f64; QUANTILES] =
    [0.0, 0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.98, 0.99, 0.995, 0.999, 1.0];
const QUANTILES: usize = 13;
const BANDS: usize = QUANTILES - 1;
/// Place of the 99th percentile.
const P99: usize = 9;
/// Relative error of a value at an end of an axis.
const ROUNDING: f64 = 1e-9;
/// Significant digits of what a table holds.
const DIGITS: i32 = 4;

/// Latencies in microseconds: the quantiles of [`PROBABILITIES`], then the mean latency in each
/// band between two of them.
///
/// Within a band from `a` to `b` with mean `m` the latency is `a + (b - a) * t^k`, with `t` from 0
/// to 1 and `k = (b - m) / (m - a)`, whose mean is `m`: quantiles and the mean of the whole are
/// kept.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Distribution(pub [f64; QUANTILES + BANDS]);

impl Distribution {
    /// The distribution of latencies in ns; `None` without one.
    pub fn of(mut ns: Vec<u64>) -> Option<Self> {
        let count = ns.len();
        if count == 0 {
            return None;
        }
        ns.sort_unstable();
        // Logarithms are interpolated, and a latency may be 0.
        let us = |ns: f64| rounded(ns.max(1.0) / 1e3);
        let mut values = [0.0; QUANTILES + BANDS];
        // Sum of the latencies up to a probability, with a part of the one there.
        let mut sums = [0.0; QUANTILES];
        let (mut sum, mut next) = (0.0, 0);
        for (at, probability) in PROBABILITIES.into_iter().enumerate() {
            let place = probability * count as f64;
            let whole = (place as usize).min(count);
            sum += ns[next..whole].iter().map(|ns| *ns as f64).sum::<f64>();
            next = whole;
            let rest = ns.get(whole).map_or(0.0, |ns| (place - whole as f64) * *ns as f64);
            sums[at] = sum + rest;
            values[at] = us(ns[(place.ceil() as usize).max(1) - 1] as f64);
        }
        for band in 0..BANDS {
            let width = (PROBABILITIES[band + 1] - PROBABILITIES[band]) * count as f64;
            values[QUANTILES + band] = us((sums[band + 1] - sums[band]) / width);
        }
        Some(Self(values))
    }

    /// The mean in microseconds.
    pub fn mean(&self) -> f64 {
        let widths = PROBABILITIES.windows(2).map(|ends| ends[1] - ends[0]);
        widths.zip(&self.0[QUANTILES..]).map(|(width, mean)| width * mean).sum()
    }

    /// The quantile at a probability, 0 to 1, in microseconds.
    pub fn quantile(&self, probability: f64) -> f64 {
        let probability = probability.clamp(0.0, 1.0);
        let band = PROBABILITIES.partition_point(|it| *it < probability).clamp(1, BANDS) - 1;
        let [from, to] = [band, band + 1].map(|at| PROBABILITIES[at]);
        let [least, most, mean] = [band, band + 1, QUANTILES + band].map(|at| self.0[at]);
        // A constant band's values may differ by what interpolation rounds.
        let power = (most - mean).max(0.0) / (mean - least).max(f64::MIN_POSITIVE);
        least + (most - least) * ((probability - from) / (to - from)).powf(power)
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
    /// Fractions of requests that are reads, 0 to 1.
    pub read_share: Vec<f64>,
    /// Request sizes in bytes.
    pub bytes: Vec<f64>,
    /// Queue depths, or rates as fractions of the throughput.
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
            let mut sum = [0.0; QUANTILES + BANDS];
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
    let nearest = at.max(*knots.first()?).min(*knots.last()?);
    // Rates are computed from shares of them.
    if (at - nearest).abs() > ROUNDING * nearest || at.is_nan() {
        return None;
    }
    let at = nearest;
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
    /// Whether reads find data that was written; others do not access flash.
    pub holds_data: bool,
    /// Largest part of the capacity that a load wrote.
    pub written_share: f64,
    /// The tables against loads that they were not fitted to.
    pub validation: Validation,
}

/// Relative errors on loads drawn at random, reads and writes together; absent where each load
/// within the tables is one that they were fitted to.
#[derive(Clone, Debug, Serialize)]
pub struct Validation {
    /// Number of loads, of closed and open loops.
    pub loads: usize,
    /// Errors of mean latencies.
    pub mean: Option<ErrorSummary>,
    /// Errors of 99th percentiles.
    pub p99: Option<ErrorSummary>,
    /// Differences of the 99th percentiles between two simulations of a load with other requests.
    /// Where the table is exact, its errors are about 0.7 of them.
    pub p99_repeated: Option<ErrorSummary>,
    /// The load with the largest error of a mean, in words.
    pub worst: String,
}

/// Relative errors: `0.05` is 5 %.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ErrorSummary {
    /// Mean absolute error.
    pub mean: f64,
    /// Median absolute error.
    pub median: f64,
    /// 90th percentile of absolute errors.
    pub p90: f64,
    /// Largest absolute error.
    pub max: f64,
}

impl ErrorSummary {
    /// The spread of `errors`; `None` without one.
    pub fn of(mut errors: Vec<f64>) -> Option<Self> {
        let last = errors.len().checked_sub(1)?;
        errors.iter_mut().for_each(|error| *error = error.abs());
        errors.sort_by(f64::total_cmp);
        let at = |part: f64| rounded(errors[(part * last as f64).ceil() as usize]);
        let mean = rounded(errors.iter().sum::<f64>() / errors.len() as f64);
        Some(Self { mean, median: at(0.5), p90: at(0.9), max: at(1.0) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let knots = [vec![0.0, 0.5, 1.0], vec![4096.0, 65536.0], vec![1.0, 4.0, 16.0]];
        Table::new(Loop::Closed, &knots, |[share, bytes, load]| {
            let one = |us| Some(Distribution([us; QUANTILES + BANDS]));
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
        // A rate that was computed may be beyond the end by its rounding.
        let last = |load: f64| table.at([0.0, 4096.0, load]);
        assert!(last(16.0 * (1.0 + 1e-12)) == last(16.0) && last(16.0 * (1.0 + 1e-6)).is_none());
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
        let one = |us| Some(Distribution([us; QUANTILES + BANDS]));
        let table = Table::new(Loop::Open, &knots, |[_, _, load]| {
            Measured([one(10.0 / (1.0 - load)), None])
        });
        let [read, _] = table.at([1.0, 512.0, 0.8]).expect("within").0;
        let between = read.expect("reads").mean();
        assert!((between / 50.0 - 1.0).abs() < 1e-12, "{between}");
    }

    #[test]
    fn a_distribution_keeps_the_mean_and_the_quantiles() {
        let close = |one: f64, other: f64, most: f64| {
            assert!((one / other - 1.0).abs() < most, "{one} {other}");
        };
        let of = |ns: Vec<u64>| Distribution::of(ns).expect("latencies");
        let exponential = |at: u32| (-1e6 * (1.0 - (f64::from(at) + 0.5) / 1e5).ln()) as u64;
        let it = of((0..100_000).rev().map(exponential).collect());
        close(it.mean(), 1000.0, 1e-3);
        for probability in [0.05f64, 0.3, 0.6, 0.85, 0.97, 0.99, 0.997] {
            close(it.quantile(probability), -1000.0 * (1.0 - probability).ln(), 0.03);
        }
        assert!((0..=1000).map(|at| it.quantile(f64::from(at) / 1000.0)).is_sorted());
        assert_eq!([-0.5, 1.5].map(|at| it.quantile(at)), [0.0, 1.0].map(|at| it.quantile(at)));
        // A few are far longer: collection of garbage, or a miss.
        let it = of((0..1000).map(|at| if at < 975 { 40_000 } else { 3_000_000 }).collect());
        close(it.mean(), 0.975 * 40.0 + 0.025 * 3000.0, 1e-3);
        assert_eq!([0.5, 0.95, 0.98, 0.99].map(|at| it.quantile(at)), [40.0, 40.0, 3000.0, 3000.0]);
        let steps = 100_000;
        let drawn: f64 = (0..steps).map(|at| it.quantile((at as f64 + 0.5) / steps as f64)).sum();
        close(drawn / steps as f64, it.mean(), 1e-3);
        let alone = of(vec![0]);
        assert_eq!([alone.mean(), alone.quantile(0.0), alone.quantile(1.0)], [0.001; 3]);
        assert_eq!(Distribution::of(Vec::new()), None);
    }

    #[test]
    fn four_digits_are_kept() {
        for (value, expected) in
            [(123_456.0, 123_500.0), (0.012_344, 0.012_34), (0.0, 0.0), (9.9999, 10.0)]
        {
            assert_eq!(rounded(value), expected);
        }
        let spread = ErrorSummary::of(vec![-0.3, 0.1, 0.2]);
        assert_eq!(spread, Some(ErrorSummary { mean: 0.2, median: 0.2, p90: 0.3, max: 0.3 }));
        assert_eq!(ErrorSummary::of(Vec::new()), None);
    }
}
