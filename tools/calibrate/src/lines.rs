//! Straight lines through latencies, and how far they can be trusted.

use super::{CalibrateError, Kind, KnownParameters, Reading};
use serde::Serialize;
use statrs::distribution::{ContinuousCDF, StudentsT};
use std::collections::BTreeMap;

/// A value and the half-width of its 95 % confidence interval.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Estimate {
    /// The value.
    pub value: f64,
    /// Plus or minus; `None` when there are too few readings.
    pub margin: Option<f64>,
}

/// `L(n) = n slope + overhead`.
#[derive(Clone, Debug, Serialize)]
pub struct Line {
    /// ns per page.
    pub page_ns: Estimate,
    /// ns per request.
    pub overhead_ns: Estimate,
    /// Share of the variation of the shortest latencies that the line explains.
    pub r_squared: f64,
    /// Bytes, shortest latency and number of readings at each length.
    pub points: Vec<(u64, f64, usize)>,
}

impl Line {
    fn at(&self, pages: f64) -> f64 {
        self.page_ns.value * pages + self.overhead_ns.value
    }
}

/// Scattered writes of one length.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct ScatteredWrites {
    pub bytes: u64,
    /// Mean latency.
    pub mean_ns: f64,
    /// Erases each of them costs on average.
    pub erases: Estimate,
    /// Erases by the formula as konanki prints it, `L(n) = n W + k E`: the command overhead counts
    /// as erases.
    pub printed_erases: f64,
    /// Readings.
    pub count: usize,
}

/// Readings sorted by what they are of.
pub struct LatencyFit {
    by: BTreeMap<(Kind, u64), Vec<f64>>,
    known: KnownParameters,
}

impl LatencyFit {
    pub fn new(readings: &[Reading], known: KnownParameters) -> Self {
        let mut by: BTreeMap<(Kind, u64), Vec<f64>> = BTreeMap::new();
        for reading in readings {
            by.entry((reading.kind, reading.bytes)).or_default().push(reading.ns);
        }
        Self { by, known }
    }

    fn of(&self, kind: Kind) -> impl Iterator<Item = (u64, &[f64])> {
        let all = self.by.range((kind, 0)..=(kind, u64::MAX));
        all.map(|((_, bytes), times)| (*bytes, times.as_slice()))
    }

    fn pages(&self, bytes: u64) -> f64 {
        bytes as f64 / self.known.page_bytes as f64
    }

    /// The least-squares line through the shortest latency at each length, by relative error;
    /// `None` without any.
    ///
    /// # Errors
    /// When it has no positive slope, so that no device has these latencies.
    pub fn line(&self, kind: Kind) -> Result<Option<Line>, CalibrateError> {
        let shortest = |times: &[f64]| times.iter().copied().fold(f64::INFINITY, f64::min);
        let points: Vec<(u64, f64, usize)> =
            self.of(kind).map(|(bytes, times)| (bytes, shortest(times), times.len())).collect();
        if points.len() < 2 {
            return Ok(None);
        }
        let xy: Vec<(f64, f64)> = points.iter().map(|(b, ns, _)| (self.pages(*b), *ns)).collect();
        let (slope, intercept, r_squared) = least_squares(&xy);
        if slope.value <= 0.0 {
            return Err(CalibrateError::Fit(format!(
                "longer {}s are not slower than short ones ({:.1} ns per page): these latencies \
                 are not of a device's own speed; is a cache in between?",
                kind.word(),
                slope.value
            )));
        }
        Ok(Some(Line { page_ns: slope, overhead_ns: intercept, r_squared, points }))
    }

    /// Erases that scattered writes cost beyond the line of writes in order.
    pub fn scattered(&self, line: &Line) -> Vec<ScatteredWrites> {
        self.of(Kind::ScatteredWrite)
            .map(|(bytes, times)| {
                let (mean, margin) = mean(times);
                let extra = mean - line.at(self.pages(bytes));
                let printed_erases = (extra + line.overhead_ns.value) / self.known.erase_ns;
                let erases = Estimate {
                    value: extra / self.known.erase_ns,
                    margin: margin.map(|margin| margin / self.known.erase_ns),
                };
                ScatteredWrites { bytes, mean_ns: mean, erases, printed_erases, count: times.len() }
            })
            .collect()
    }
}

/// The quantile of Student's distribution that leaves 2.5 % above it.
fn student(freedom: usize) -> Option<f64> {
    let distribution = StudentsT::new(0.0, 1.0, freedom as f64).ok()?;
    Some(distribution.inverse_cdf(0.975))
}

fn mean(values: &[f64]) -> (f64, Option<f64>) {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    if values.len() < 2 {
        return (mean, None);
    }
    let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (count - 1.0);
    (mean, student(values.len() - 1).map(|t| t * (variance / count).sqrt()))
}

/// Slope, intercept and R squared. What disturbs a measurement is taken to grow with its length,
/// so a point counts by the inverse square of its latency.
fn least_squares(points: &[(f64, f64)]) -> (Estimate, Estimate, f64) {
    let weight = |y: f64| 1.0 / (y * y).max(f64::MIN_POSITIVE);
    let weights: f64 = points.iter().map(|(_, y)| weight(*y)).sum();
    let mean_x = points.iter().map(|(x, y)| weight(*y) * x).sum::<f64>() / weights;
    let mean_y = points.iter().map(|(_, y)| weight(*y) * y).sum::<f64>() / weights;
    let sum = |of: &dyn Fn(f64, f64) -> f64| {
        points.iter().map(|(x, y)| weight(*y) * of(x - mean_x, y - mean_y)).sum::<f64>()
    };
    let (spread_x, spread_y) = (sum(&|x, _| x * x), sum(&|_, y| y * y));
    let slope = sum(&|x, y| x * y) / spread_x;
    let intercept = mean_y - slope * mean_x;
    let left = sum(&|x, y| (y - slope * x).powi(2));
    let r_squared = if spread_y > 0.0 { 1.0 - left / spread_y } else { 1.0 };
    let margins = points.len().checked_sub(2).filter(|freedom| *freedom > 0).and_then(|freedom| {
        let variance = left / freedom as f64;
        let t = student(freedom)?;
        let of_slope = (variance / spread_x).sqrt();
        let of_intercept = (variance * (1.0 / weights + mean_x.powi(2) / spread_x)).sqrt();
        Some((t * of_slope, t * of_intercept))
    });
    let slope = Estimate { value: slope, margin: margins.map(|margins| margins.0) };
    let intercept = Estimate { value: intercept, margin: margins.map(|margins| margins.1) };
    (slope, intercept, r_squared)
}

#[cfg(test)]
mod tests {
    use super::*;
    use hybridsim_engine::Stream;
    use hybridsim_engine::sample::standard_exponential;

    const KNOWN: KnownParameters = KnownParameters { page_bytes: 2048, erase_ns: 1.5e6 };
    const PAGES: [u64; 7] = [1, 2, 4, 8, 16, 32, 64];

    fn near(name: &str, got: f64, expect: f64, share: f64) {
        assert!((got / expect - 1.0).abs() <= share, "{name}: {got} instead of {expect}");
    }

    /// Ten readings at each length, disturbed by `noise` of their length on average.
    fn readings(kind: Kind, page: f64, overhead: f64, noise: f64, seed: u64) -> Vec<Reading> {
        let mut stream = Stream::new(seed, "noise");
        let mut all = Vec::new();
        for pages in PAGES {
            for _ in 0..10 {
                let clean = page * pages as f64 + overhead;
                let ns = clean + noise * clean * standard_exponential(&mut stream);
                all.push(Reading { kind, bytes: pages * KNOWN.page_bytes, ns });
            }
        }
        all
    }

    #[test]
    fn a_line_without_noise_is_found_exactly() {
        let fit = LatencyFit::new(&readings(Kind::Read, 130e3, 500e3, 0.0, 1), KNOWN);
        let line = fit.line(Kind::Read).expect("a line").expect("reads");
        near("page", line.page_ns.value, 130e3, 1e-9);
        near("overhead", line.overhead_ns.value, 500e3, 1e-9);
        assert!(line.r_squared > 1.0 - 1e-12);
        assert!(fit.line(Kind::Write).expect("nothing wrong").is_none());
    }

    #[test]
    fn noise_of_ten_percent_costs_less_than_two() {
        for seed in 0..40 {
            let fit = LatencyFit::new(&readings(Kind::Write, 400e3, 500e3, 0.1, seed), KNOWN);
            let line = fit.line(Kind::Write).expect("a line").expect("writes");
            near("page", line.page_ns.value, 400e3, 0.02);
            let margin = line.page_ns.margin.expect("seven lengths suffice");
            assert!(margin < 0.05 * 400e3, "seed {seed}: {margin}");
        }
    }

    #[test]
    fn erases_are_what_scattered_writes_take_longer() {
        let mut all = readings(Kind::Write, 400e3, 500e3, 0.0, 1);
        let mut stream = Stream::new(9, "erases");
        // One write in four pays for two erases.
        for _ in 0..20_000 {
            let erases = if stream.chance(0.25) { 2.0 } else { 0.0 };
            let ns = 2.0 * 400e3 + 500e3 + erases * KNOWN.erase_ns;
            all.push(Reading { kind: Kind::ScatteredWrite, bytes: 4096, ns });
        }
        let fit = LatencyFit::new(&all, KNOWN);
        let line = fit.line(Kind::Write).expect("a line").expect("writes");
        let scattered = fit.scattered(&line);
        assert_eq!((scattered.len(), scattered[0].bytes), (1, 4096));
        near("erases", scattered[0].erases.value, 0.5, 0.03);
        // An overhead of 500 us is a third of an erase.
        near("printed", scattered[0].printed_erases, 0.5 + 1.0 / 3.0, 0.03);
        let margin = scattered[0].erases.margin.expect("many readings suffice");
        assert!((scattered[0].erases.value - 0.5).abs() < 2.0 * margin, "{margin}");
    }

    #[test]
    fn a_cache_in_between_is_found_out() {
        let flat = PAGES.map(|pages| Reading {
            kind: Kind::Read,
            bytes: pages * 2048,
            ns: 1000.0 - pages as f64,
        });
        let error =
            LatencyFit::new(&flat, KNOWN).line(Kind::Read).expect_err("it falls").to_string();
        assert!(error.contains("cache"), "{error}");
    }
}
