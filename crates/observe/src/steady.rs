//! The steady state of one long run: its warm-up by MSER-5 and confidence intervals by batch means.
//!
//! Completed requests are averaged in batches of five in order of completion. Whenever as many
//! batches as are kept have been closed, neighbours are merged and later batches are twice as
//! long, so memory is constant and a request costs an addition. At the end MSER-5 (White, Cobb and
//! Spratt, WSC 2000) cuts off the batches whose removal makes the mean most certain. The rest is
//! divided into twenty batches, whose means are taken as independent (Law, Simulation Modeling and
//! Analysis).

use crate::results::{Interval, SteadyState};
use hybridsim_engine::{CommonEvent, EventRecord, SimTime};
use statrs::distribution::{ContinuousCDF, StudentsT};

/// Requests of the first batches.
const FIRST: u32 = 5;
/// Batches kept.
const KEPT: usize = 1024;
/// Batches of the confidence interval, and how many kept ones each needs.
const BATCHES: usize = 20;
const PER_BATCH_MIN: usize = 5;
/// Successive batch means that correlate by more are not independent: twice the standard error of
/// the estimate for twenty independent ones, 2 / sqrt(20).
const CORRELATION_MAX: f64 = 0.45;

/// The two-sided 95 % quantile of Student's t.
///
/// # Panics
/// Without a degree of freedom.
pub fn student_t(degrees: usize) -> f64 {
    let t = StudentsT::new(0.0, 1.0, degrees as f64).expect("there is a degree of freedom");
    t.inverse_cdf(0.975)
}

/// Requests that have completed one after the other.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Batch {
    /// Sum of their latencies.
    ns: f64,
    /// Completion of the last request.
    end: SimTime,
}

/// The fold.
#[derive(Clone, Debug, PartialEq)]
pub struct SteadyFold {
    batches: Vec<Batch>,
    /// Requests of a batch, and those still missing in the current one.
    size: u64,
    missing: u64,
    sum: u64,
}

impl Default for SteadyFold {
    fn default() -> Self {
        let size = u64::from(FIRST);
        Self { batches: Vec::new(), size, missing: size, sum: 0 }
    }
}

impl SteadyFold {
    #[inline(always)]
    pub(crate) fn add(&mut self, record: &EventRecord) {
        if let Some(CommonEvent::Completed { latency, .. }) = record.event() {
            self.completed(latency.as_ns(), record.time);
        }
    }

    #[inline(always)]
    fn completed(&mut self, ns: u64, at: SimTime) {
        self.sum = self.sum.saturating_add(ns);
        self.missing -= 1;
        if self.missing == 0 {
            self.close(at);
        }
    }

    #[inline(never)]
    fn close(&mut self, end: SimTime) {
        self.batches.push(Batch { ns: self.sum as f64, end });
        if self.batches.len() == KEPT {
            let merged = self.batches.chunks_exact(2);
            let merged = merged.map(|two| Batch { ns: two[0].ns + two[1].ns, end: two[1].end });
            self.batches = merged.collect();
            self.size *= 2;
        }
        (self.sum, self.missing) = (0, self.size);
    }

    /// The steady state of a window that began at `since`; `None` with too few requests to judge.
    pub fn finish(&self, since: SimTime) -> Option<SteadyState> {
        let per_request = |batch: &Batch| batch.ns / self.size as f64;
        let means: Vec<f64> = self.batches.iter().map(per_request).collect();
        let cut = mser(&means)?;
        // The same number of kept batches in each, counted from the end.
        let each = (means.len() - cut) / BATCHES;
        if each < PER_BATCH_MIN {
            return None;
        }
        let first = means.len() - each * BATCHES;
        let latency: Vec<f64> = means[first..].chunks_exact(each).map(mean).collect();
        let end_of = |at: usize| if at == 0 { since } else { self.batches[at - 1].end };
        let time = |at: usize| {
            let (from, to) = (first + at * each, first + (at + 1) * each);
            end_of(to).since(end_of(from)).as_ns().max(1) as f64
        };
        let times: Vec<f64> = (0..BATCHES).map(time).collect();
        // A minimum in the second half of the run says that it has not settled.
        let settled = 2 * cut <= means.len();
        let independent = |values: &[f64]| correlation(values) <= CORRELATION_MAX;
        let is_long_enough = settled && independent(&latency) && independent(&times);
        Some(SteadyState {
            warmup_requests: cut as u64 * self.size,
            warmup_ns: end_of(cut).since(since).as_ns(),
            batches: BATCHES as u64,
            batch_requests: each as u64 * self.size,
            mean_ns: interval(&latency),
            iops: rate((each as u64 * self.size) as f64, interval(&times)),
            is_long_enough,
        })
    }
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// The number of first values to leave out: the one that minimises the variance of the rest,
/// divided by the square of their number. `None` with too few values.
fn mser(values: &[f64]) -> Option<usize> {
    let count = values.len();
    if count < BATCHES * PER_BATCH_MIN {
        return None;
    }
    // The last values alone would always seem certain.
    let last = count - BATCHES * PER_BATCH_MIN;
    let (mut sum, mut squares, mut best) = (0.0, 0.0, (f64::INFINITY, 0));
    // Deviations from the overall mean keep the squares small.
    let middle = mean(values);
    for at in (0..count).rev() {
        let value = values[at] - middle;
        (sum, squares) = (sum + value, squares + value * value);
        let left = (count - at) as f64;
        let error = (squares - sum * sum / left) / (left * left);
        if at <= last && error <= best.0 {
            best = (error, at);
        }
    }
    Some(best.1)
}

/// Mean and half the width of the 95 % confidence interval of independent values.
fn interval(values: &[f64]) -> Interval {
    let (mean, count) = (mean(values), values.len() as f64);
    let squares: f64 = values.iter().map(|value| (value - mean) * (value - mean)).sum();
    let half = student_t(values.len() - 1) * (squares / (count - 1.0) / count).sqrt();
    Interval { mean, half_width: half }
}

/// Requests per second of batches of `requests` each, by the interval of their times in ns. The
/// mean of the rates of the batches would be too high, since each takes another time.
fn rate(requests: f64, time: Interval) -> Interval {
    let mean = requests * 1e9 / time.mean;
    Interval { mean, half_width: mean * time.half_width / time.mean }
}

/// The correlation of each value with the next.
fn correlation(values: &[f64]) -> f64 {
    let mean = mean(values);
    let squares: f64 = values.iter().map(|value| (value - mean) * (value - mean)).sum();
    let products: f64 = values.windows(2).map(|two| (two[0] - mean) * (two[1] - mean)).sum();
    if squares > 0.0 { products / squares } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hybridsim_engine::Stream;

    /// The steady state of latencies one microsecond apart.
    fn of(values: impl Iterator<Item = f64>) -> Option<SteadyState> {
        let mut fold = SteadyFold::default();
        for (at, value) in (1..).zip(values) {
            fold.completed(value as u64, SimTime::from_ns(at * 1000));
        }
        assert!(fold.batches.len() < KEPT);
        fold.finish(SimTime::ZERO)
    }

    /// An autoregressive process with mean 1,000,000, of which each value keeps `keep`, after a
    /// start far above it.
    fn process(seed: u64, keep: f64, start: f64, count: usize) -> impl Iterator<Item = f64> {
        let mut stream = Stream::new(seed, "process");
        let mut deviation = start;
        (0..count).map(move |_| {
            // The sum of twelve uniform numbers is close to normal.
            let noise: f64 = (0..12).map(|_| stream.below(1 << 20) as f64).sum::<f64>();
            let noise = noise / f64::from(1 << 20) - 6.0;
            deviation = keep * deviation + 20_000.0 * noise;
            1e6 + deviation
        })
    }

    #[test]
    fn intervals_cover_the_mean_of_correlated_latencies() {
        for keep in [0.0, 0.6, 0.9, 0.97] {
            let (mut covered, mut long) = (0, 0);
            for seed in 0..200 {
                let steady = of(process(seed, keep, 0.0, 60_000)).expect("many requests");
                let Interval { mean, half_width } = steady.mean_ns;
                covered += u32::from((mean - 1e6).abs() <= half_width);
                long += u32::from(steady.is_long_enough);
            }
            assert!((180..=196).contains(&covered), "{keep}: {covered} of 200");
            assert!(long > 180, "{keep}: {long} of 200 are long enough");
        }
    }

    #[test]
    fn the_start_is_cut_off() {
        let (mut cut, mut covered) = (0, 0);
        for seed in 0..100 {
            let steady = of(process(seed, 0.995, 3e6, 100_000)).expect("many requests");
            let Interval { mean, half_width } = steady.mean_ns;
            // After 540 requests the start is no larger than the standard deviation.
            cut += u32::from((300..=5_000).contains(&steady.warmup_requests));
            covered += u32::from((mean - 1e6).abs() <= half_width);
        }
        assert!(cut > 90, "{cut} of 100");
        assert!(covered >= 90, "{covered} of 100");
    }

    #[test]
    fn a_short_run_says_so() {
        assert_eq!(of(process(1, 0.0, 0.0, 400)), None, "fewer than 100 batches of five");
        assert!(of(process(1, 0.0, 0.0, 700)).is_some());
        let mut short = 0;
        for seed in 0..50 {
            let steady = of(process(seed, 0.9995, 0.0, 10_000)).expect("enough to judge");
            short += u32::from(!steady.is_long_enough);
        }
        assert!(short > 35, "{short} of 50 are too short for 2,000 requests of memory");
        let growing = of((0..100_000).map(|at| 1e6 + f64::from(at) * 100.0)).expect("many");
        assert!(!growing.is_long_enough, "an overloaded system never settles");
    }

    #[test]
    fn throughput_is_that_of_the_times() {
        let steady = of((0..10_000).map(|_| 5.0)).expect("many requests");
        assert!((steady.iops.mean - 1e6).abs() < 1e-6, "one each microsecond");
        assert_eq!((steady.mean_ns.mean, steady.mean_ns.half_width), (5.0, 0.0));
        assert_eq!((steady.warmup_requests, steady.warmup_ns), (0, 0));
        assert!(steady.is_long_enough);
        assert_eq!(steady.batches * steady.batch_requests, 10_000 / 400 * 400);
    }

    #[test]
    fn throughput_of_bursts_is_requests_by_time() {
        let mut fold = SteadyFold::default();
        let (mut stream, mut now) = (Stream::new(1, "bursts"), SimTime::ZERO);
        for at in 0..40_000 {
            // Bursts of 500 a microsecond apart, and pauses of up to two seconds.
            let pause = if at % 500 == 0 { stream.below(2_000_000_000) } else { 0 };
            now = SimTime::from_ns(now.as_ns() + 1_000 + pause);
            fold.completed(5, now);
        }
        let steady = fold.finish(SimTime::ZERO).expect("many requests");
        assert_eq!(steady.batches * steady.batch_requests, 40_000, "all of them");
        let Interval { mean, half_width } = steady.iops;
        let expected = 40_000.0 * 1e9 / now.as_ns() as f64;
        assert!((mean - expected).abs() < 1e-6 * expected, "{mean} {expected}");
        assert!(half_width > 0.05 * mean && half_width < 0.5 * mean, "{half_width} of {mean}");
    }

    #[test]
    fn quantiles_of_students_t() {
        for (degrees, t) in [(1, 12.7062), (2, 4.3027), (19, 2.0930), (100_000, 1.9600)] {
            assert!((student_t(degrees) - t).abs() < 1e-4, "{degrees}: {}", student_t(degrees));
        }
    }
}
