//! How long requests took: exact sums, and a histogram with three significant digits.

use hdrhistogram::Histogram;
use hybridsim_engine::{CommonEvent, EventRecord, EventSink, Op};
use std::ops::Range;

/// Classes of the histogram have the width of a power of two, of which a value holds at least this
/// many: so the width is at most 0.1 % of it.
const CLASSES_PER_OCTAVE: u64 = 1024;
const OCTAVE_BITS: u32 = CLASSES_PER_OCTAVE.ilog2();
/// The highest class holds everything above.
const NS_MAX: u64 = i64::MAX as u64;
const CLASSES: usize = class_of(NS_MAX) + 1;

/// The class of a latency, numbered as hdrhistogram does with three significant digits.
#[inline(always)]
const fn class_of(ns: u64) -> usize {
    let shift = (ns | CLASSES_PER_OCTAVE).ilog2() - OCTAVE_BITS;
    ((shift as u64 * CLASSES_PER_OCTAVE) + (ns >> shift)) as usize
}

const fn highest_of(class: usize) -> u64 {
    let shift = (class as u64 / CLASSES_PER_OCTAVE).saturating_sub(1);
    ((class as u64 - shift * CLASSES_PER_OCTAVE + 1) << shift) - 1
}

/// Latencies of one kind of request, in ns.
#[derive(Clone, Debug, PartialEq)]
pub struct Latencies {
    counts: Box<[u64]>,
    count: u64,
    sum: u128,
    /// `None` once the sum of squares no longer fits.
    squares: Option<u128>,
    min: u64,
    max: u64,
}

impl Default for Latencies {
    fn default() -> Self {
        let counts = vec![0; CLASSES].into_boxed_slice();
        Self { counts, count: 0, sum: 0, squares: Some(0), min: u64::MAX, max: 0 }
    }
}

impl Latencies {
    /// Adds one request that took `ns`.
    #[inline]
    pub fn record(&mut self, ns: u64) {
        self.counts[class_of(ns.min(NS_MAX))] += 1;
        self.count += 1;
        self.sum += u128::from(ns);
        let square = u128::from(ns) * u128::from(ns);
        self.squares = self.squares.and_then(|squares| squares.checked_add(square));
        self.min = self.min.min(ns);
        self.max = self.max.max(ns);
    }

    /// Adds everything `other` has seen.
    pub fn merge(&mut self, other: &Self) {
        let classes = other.classes();
        let theirs = &other.counts[classes.clone()];
        self.counts[classes].iter_mut().zip(theirs).for_each(|(ours, theirs)| *ours += theirs);
        self.count += other.count;
        self.sum += other.sum;
        self.squares = match (self.squares, other.squares) {
            (Some(ours), Some(theirs)) => ours.checked_add(theirs),
            _ => None,
        };
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
    }

    /// Requests seen.
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// Sum of all latencies.
    pub const fn sum(&self) -> u128 {
        self.sum
    }

    /// The shortest, `None` before the first request.
    pub fn min(&self) -> Option<u64> {
        (self.count() > 0).then_some(self.min)
    }

    /// The longest, `None` before the first request.
    pub fn max(&self) -> Option<u64> {
        (self.count() > 0).then_some(self.max)
    }

    /// The exact mean, `None` before the first request.
    pub fn mean(&self) -> Option<f64> {
        let count = self.count();
        (count > 0).then(|| {
            let whole = self.sum / u128::from(count);
            let rest = self.sum % u128::from(count);
            whole as f64 + rest as f64 / count as f64
        })
    }

    /// The population's standard deviation, from integer sums: `None` before the first request,
    /// or when the sum of squares does not fit into 128 bits.
    pub fn stddev(&self) -> Option<f64> {
        let count = u128::from(self.count());
        let squares = self.squares.filter(|_| count > 0)?;
        // With m the mean rounded down, sum((x - m)^2) = squares - m*sum - m*(sum - n*m).
        let (mean, rest) = (self.sum / count, self.sum % count);
        let deviations = squares - mean * self.sum - mean * rest;
        let offset = rest as f64 / count as f64;
        let variance = deviations as f64 / count as f64 - offset * offset;
        Some(variance.max(0.0).sqrt())
    }

    /// The latency that the share `quantile` (0 to 1) of the requests did not exceed, within
    /// 0.1 %; `None` before the first request.
    pub fn quantile(&self, quantile: f64) -> Option<u64> {
        if quantile == 0.0 {
            return self.min();
        }
        let rank = ((quantile.min(1.0) * self.count as f64).ceil() as u64).max(1);
        self.recorded().find(|(_, seen)| *seen >= rank).map(|(value, _)| value)
    }

    /// The classes from the shortest to the longest latency; all others are empty.
    fn classes(&self) -> Range<usize> {
        match self.count {
            0 => 0..0,
            _ => class_of(self.min.min(NS_MAX))..class_of(self.max.min(NS_MAX)) + 1,
        }
    }

    /// The classes with requests, and their counts.
    fn used(&self) -> impl Iterator<Item = (usize, u64)> + '_ {
        let classes = self.classes();
        let counts = self.counts[classes.clone()].iter().copied();
        classes.zip(counts).filter(|(_, count)| *count > 0)
    }

    /// The classes with requests: their highest latency, and the requests up to it.
    fn recorded(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        let mut seen = 0;
        self.used().map(move |(class, count)| {
            seen += count;
            (highest_of(class).clamp(self.min, self.max), seen)
        })
    }

    /// The counts for the tables of hdrhistogram.
    fn histogram(&self) -> Histogram<u64> {
        let mut histogram = Histogram::new_with_bounds(1, NS_MAX, 3)
            .expect("three digits between 1 ns and 292 years are valid bounds");
        for (class, count) in self.used() {
            histogram.saturating_record_n(highest_of(class), count);
        }
        histogram
    }

    /// The distribution as points (latency in ns, requests that took at most that long).
    ///
    /// Neighbours are merged where neither the latency grows by 2 % nor the share of slower
    /// requests shrinks by 5 %, so there are at most about 1,500 points.
    pub fn points(&self) -> Vec<(u64, u64)> {
        let total = self.count();
        let mut points = Vec::new();
        let (mut last_value, mut last_slower) = (0u64, u64::MAX);
        let mut skipped = None;
        for (value, seen) in self.recorded() {
            let slower = total - seen;
            let apart = value as f64 > last_value as f64 * 1.02
                || (slower as f64) < last_slower as f64 * 0.95
                || seen == total;
            if apart || points.is_empty() {
                points.push((value, seen));
                (last_value, last_slower, skipped) = (value, slower, None);
            } else {
                skipped = Some((value, seen));
            }
        }
        points.extend(skipped);
        points
    }
}

/// A row of a table of percentiles.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct QuantileRow {
    /// Latency in ns, within 0.1 %.
    pub ns: u64,
    /// The share of requests, 0 to 1, that the row stands for.
    pub quantile: f64,
    /// Requests that took at most `ns`.
    pub count: u64,
}

impl Latencies {
    /// The percentiles in steps that become finer towards the longest latency: `steps` of them in
    /// every half of the distance that is left to 100 %, as HdrHistogram tables have them.
    pub fn quantile_rows(&self, steps: u32) -> Vec<QuantileRow> {
        let mut count = 0;
        let mut row = |step: hdrhistogram::iterators::IterationValue<u64>| {
            count += step.count_since_last_iteration();
            let ns = step.value_iterated_to().clamp(self.min, self.max);
            QuantileRow { ns, quantile: step.quantile_iterated_to(), count }
        };
        if self.count() == 0 {
            return Vec::new();
        }
        self.histogram().iter_quantiles(steps).map(&mut row).collect()
    }

    /// Requests that took at most `ns`, whose latencies are known within 0.1 %.
    pub fn count_up_to(&self, ns: u64) -> u64 {
        if ns >= self.max {
            return self.count;
        }
        self.counts[..=class_of(ns.min(NS_MAX))].iter().sum()
    }
}

/// The fold: latencies by operation.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LatencyFold {
    by_op: [Latencies; Op::ALL.len()],
}

impl LatencyFold {
    /// Latencies of one operation.
    pub const fn of(&self, op: Op) -> &Latencies {
        &self.by_op[op.index()]
    }

    /// Latencies of all operations.
    pub fn all(&self) -> Latencies {
        let mut all = Latencies::default();
        self.by_op.iter().for_each(|one| all.merge(one));
        all
    }
}

impl LatencyFold {
    #[inline(always)]
    pub(crate) fn add(&mut self, record: &EventRecord) {
        if let Some(CommonEvent::Completed { op, latency, .. }) = record.event() {
            self.by_op[op.index()].record(latency.as_ns());
        }
    }
}

impl EventSink for LatencyFold {
    fn take(&mut self, events: &[EventRecord]) {
        events.iter().for_each(|record| self.add(record));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{ns, record as event_record};
    use hybridsim_engine::Lba;
    use proptest::prelude::*;

    fn record(values: &[u64]) -> Latencies {
        let mut latencies = Latencies::default();
        values.iter().for_each(|&value| latencies.record(value));
        latencies
    }

    #[test]
    fn nothing_seen_is_nothing_known() {
        let none = Latencies::default();
        assert_eq!((none.count(), none.min(), none.max()), (0, None, None));
        assert_eq!((none.mean(), none.stddev(), none.quantile(0.5)), (None, None, None));
        assert!(none.points().is_empty());
    }

    #[test]
    fn a_small_set_by_hand() {
        let set = record(&[2, 4, 4, 4, 5, 5, 7, 9]);
        assert_eq!(set.mean(), Some(5.0));
        assert_eq!(set.stddev(), Some(2.0));
        assert_eq!((set.min(), set.max()), (Some(2), Some(9)));
        assert_eq!(set.quantile(0.5), Some(4));
        assert_eq!(set.points(), [(2, 1), (4, 4), (5, 6), (7, 7), (9, 8)]);
    }

    #[test]
    fn percentile_rows_by_hand() {
        let set = record(&[10, 20, 30, 40]);
        let rows = set.quantile_rows(1);
        let halves: Vec<(u64, u64)> = rows.iter().map(|row| (row.ns, row.count)).collect();
        assert_eq!(halves, [(10, 1), (20, 2), (30, 3), (40, 4), (40, 4)]);
        assert_eq!(rows.iter().map(|row| row.quantile).collect::<Vec<_>>()[1..3], [0.5, 0.75]);
        assert_eq!(rows.last().map(|row| row.quantile), Some(1.0));
        assert!(Latencies::default().quantile_rows(5).is_empty());
        assert_eq!([9, 10, 39, 40, u64::MAX].map(|ns| set.count_up_to(ns)), [0, 1, 3, 4, 4]);
    }

    #[test]
    fn extreme_latencies_do_not_overflow() {
        let set = record(&[u64::MAX, u64::MAX, 0]);
        assert_eq!((set.min(), set.max()), (Some(0), Some(u64::MAX)));
        assert_eq!(set.stddev(), None, "the squares do not fit");
        assert!(set.mean().is_some_and(|mean| (mean / (u64::MAX as f64) - 2.0 / 3.0).abs() < 1e-9));
    }

    #[test]
    fn operations_are_kept_apart_and_add_up() {
        let mut fold = LatencyFold::default();
        for (op, latency) in [(Op::Read, 10), (Op::Write, 30), (Op::Read, 20)] {
            let event =
                CommonEvent::Completed { op, sectors: 1, lba: Lba(0), latency: ns(latency) };
            fold.take(&[event_record(100, 0, event)]);
        }
        assert_eq!(fold.of(Op::Read).mean(), Some(15.0));
        assert_eq!(fold.of(Op::Write).count(), 1);
        assert_eq!(fold.of(Op::Trim).count(), 0);
        assert_eq!((fold.all().count(), fold.all().mean()), (3, Some(20.0)));
    }

    #[test]
    fn classes_are_those_of_hdrhistogram() {
        let mut set = Latencies::default();
        let values = (0..64).flat_map(|bit| [(1u64 << bit) - 1, 1 << bit, 3 << bit >> 1]);
        values.for_each(|ns| set.record(ns));
        let histogram = set.histogram();
        assert_eq!((histogram.len(), histogram.distinct_values()), (set.count(), CLASSES));
        for quantile in [0.0, 0.1, 0.25, 0.5, 0.77, 0.9, 0.99, 1.0] {
            let expected = histogram.value_at_quantile(quantile).clamp(set.min, set.max);
            assert_eq!(set.quantile(quantile), Some(expected));
        }
        for ns in (0..63).flat_map(|bit| [1u64 << bit, (1 << bit) + (1 << bit >> 3)]) {
            let expected = if ns >= set.max { set.count } else { histogram.count_between(0, ns) };
            assert_eq!(set.count_up_to(ns), expected, "{ns}");
            assert_eq!(highest_of(class_of(ns)), histogram.highest_equivalent(ns), "{ns}");
        }
    }

    proptest! {
        #[test]
        fn agrees_with_sorting(mut values in prop::collection::vec(0u64..10_000_000_000, 1..300)) {
            let set = record(&values);
            values.sort_unstable();
            let n = values.len() as f64;
            let mean = values.iter().sum::<u64>() as f64 / n;
            let variance = values.iter().map(|&v| (v as f64 - mean).powi(2)).sum::<f64>() / n;
            prop_assert!((set.mean().unwrap() - mean).abs() <= mean * 1e-9 + 1e-9);
            prop_assert!((set.stddev().unwrap() - variance.sqrt()).abs() <= mean * 1e-6 + 1e-6);
            for quantile in [0.5, 0.9, 0.99, 1.0] {
                let rank = ((quantile * n).ceil() as usize).clamp(1, values.len());
                let exact = values[rank - 1] as f64;
                let ours = set.quantile(quantile).unwrap() as f64;
                prop_assert!((ours - exact).abs() <= exact * 0.001 + 1.0, "{ours} {exact}");
            }
            let points = set.points();
            prop_assert_eq!(points.last().unwrap().1, values.len() as u64);
            prop_assert!(points.windows(2).all(|w| w[0].0 <= w[1].0 && w[0].1 < w[1].1));
        }

        #[test]
        fn merging_is_recording_both(
            left in prop::collection::vec(0u64..1_000_000, 0..50),
            right in prop::collection::vec(0u64..1_000_000, 0..50),
        ) {
            let mut merged = record(&left);
            merged.merge(&record(&right));
            let both = record(&[left, right].concat());
            prop_assert_eq!(merged.count(), both.count());
            prop_assert_eq!(merged.mean(), both.mean());
            prop_assert_eq!(merged.stddev(), both.stddev());
            prop_assert_eq!(merged.quantile(0.9), both.quantile(0.9));
            prop_assert_eq!(merged.points(), both.points());
        }
    }
}
