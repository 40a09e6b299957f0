//! The median of the measured data-centre drives, at the same shares of their saturated rates.

use super::offered::{ABOVE_NOMINAL, Ladder, OfferedRate, READ_SHARE, THREAD};
use super::tables::{MeasuredValue, median};

/// The device of the rows of the median.
pub const NAME: &str = "median of the measured drives";

/// Steps of the nominal offered rates, per second.
const STEP: f64 = 10_000.0;
/// Largest share of its saturated rate at which a drive counts as not saturated.
const BELOW_SATURATION: f64 = 0.98;
/// Shares that are left out, as some of the drives are saturated there by their nominal rates.
const NEAR_SATURATION: std::ops::Range<f64> = 0.97..1.03;

/// One piece of a drive.
struct Piece<'a> {
    /// Without the number of the piece.
    model: &'a str,
    ladder: Ladder<'a>,
    saturated: f64,
}

impl<'a> Piece<'a> {
    fn new(device: &'a str, all: &'a [MeasuredValue]) -> Self {
        let ladder = Ladder::new(device, all);
        let saturated = ladder.rates.iter().map(OfferedRate::total).fold(0.0, f64::max);
        Self { model: device.split(" #").next().unwrap_or(device), ladder, saturated }
    }

    /// The `metric` where the piece delivers `share` of its saturated rate, by linear interpolation
    /// of its logarithm; below the lowest share that was measured (0.05 to 0.30) and above the
    /// highest before saturation (0.87 to 0.97), that at the nearest.
    fn at(&self, metric: &str, share: f64) -> f64 {
        let value = |rate: &OfferedRate| self.ladder.value(rate.offered, metric);
        if share >= 1.0 {
            return self.ladder.rates.last().map_or(f64::NAN, value);
        }
        let below = |rate: &&OfferedRate| rate.total() < BELOW_SATURATION * self.saturated;
        let points: Vec<(f64, f64)> = (self.ladder.rates.iter().filter(below))
            .map(|rate| (rate.total() / self.saturated, libm::log(value(rate))))
            .collect();
        let next = points.partition_point(|point| point.0 < share);
        let (Some(from), Some(to)) = (points.get(next.saturating_sub(1)), points.get(next)) else {
            return points.last().map_or(f64::NAN, |point| libm::exp(point.1));
        };
        let part = if to.0 > from.0 { (share - from.0) / (to.0 - from.0) } else { 1.0 };
        libm::exp(from.1 + part.max(0.0) * (to.1 - from.1))
    }
}

/// The rows of the median drive from those of all pieces in `rows`: each model counts once.
pub fn rows(rows: &[MeasuredValue]) -> Vec<MeasuredValue> {
    let mut names: Vec<&str> = rows.iter().map(|row| row.device.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    let pieces: Vec<Piece<'_>> = names.into_iter().map(|name| Piece::new(name, rows)).collect();
    let most = over_models(&pieces, |piece| piece.saturated);
    let mut found = Vec::new();
    let mut offered = STEP;
    while offered + ABOVE_NOMINAL < 1.2 * most {
        let total = offered + ABOVE_NOMINAL;
        let share = total / most;
        if !NEAR_SATURATION.contains(&share) {
            found.extend(at_rate(&pieces, offered, total.min(most), share));
        }
        offered += STEP;
    }
    found
}

fn at_rate(pieces: &[Piece<'_>], offered: f64, total: f64, share: f64) -> Vec<MeasuredValue> {
    let reads = THREAD / 2.0 + READ_SHARE * (total - THREAD);
    let rates = [("achieved reads", reads), ("achieved writes", total - reads)];
    let metrics = ["read", "write"].into_iter().flat_map(|kind| {
        ["p50", "p99", "p99.9"].map(|which| {
            let metric = format!("{kind} {which}");
            let value = over_models(pieces, |piece| piece.at(&metric, share));
            (metric, value)
        })
    });
    let rates = rates.map(|(metric, value)| (metric.to_owned(), value));
    let row = |(metric, value)| MeasuredValue {
        device: NAME.to_owned(),
        workload: String::new(),
        condition: String::new(),
        x: Some(offered),
        metric,
        value,
    };
    rates.into_iter().chain(metrics).map(row).collect()
}

/// The median over models of `value`; that of a model is the geometric mean over its pieces.
fn over_models(pieces: &[Piece<'_>], value: impl Fn(&Piece<'_>) -> f64) -> f64 {
    let mut models: Vec<&str> = pieces.iter().map(|piece| piece.model).collect();
    models.dedup();
    let of = |model: &str| {
        let of_model = pieces.iter().filter(|piece| piece.model == model);
        let values: Vec<f64> = of_model.map(|piece| libm::log(value(piece))).collect();
        libm::exp(values.iter().sum::<f64>() / values.len() as f64)
    };
    median(&models.into_iter().map(of).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn models_count_once_at_the_same_share_of_their_saturated_rates() {
        let row = |device: &str, x: f64, metric: &str, value: f64| MeasuredValue {
            device: device.to_owned(),
            workload: String::new(),
            condition: String::new(),
            x: Some(x),
            metric: metric.to_owned(),
            value,
        };
        let mut all = Vec::new();
        // Reads take 100 us per share of the saturated rate, twice that on the second model, which
        // has two pieces, and ten times on the third.
        for (device, saturated, us) in
            [("a", 5e4, 100.0), ("b #0", 1e5, 200.0), ("b #1", 1e5, 200.0), ("c", 2e5, 1000.0)]
        {
            for share in [0.1, 0.5, 0.9, 1.0, 1.0] {
                let x = share * saturated + all.len() as f64;
                all.push(row(device, x, "achieved reads", 0.5 * share * saturated));
                all.push(row(device, x, "achieved writes", 0.5 * share * saturated));
                for metric in ["read p50", "read p99", "write p50"] {
                    all.push(row(device, x, metric, us * share));
                }
            }
        }
        let found = rows(&all);
        let at = |x: f64, metric: &str| {
            let same = |row: &&MeasuredValue| row.x == Some(x) && row.metric == metric;
            found.iter().find(same).expect("a row").value
        };
        // 45,000 of the 100,000/s of the middle model in all.
        let halfway = (at(40_000.0, "achieved reads"), at(40_000.0, "achieved writes"));
        assert!((halfway.0 + halfway.1 - 45_000.0).abs() < 1e-6, "{halfway:?}");
        let expected = 20.0 * libm::pow(5.0, 0.35 / 0.4);
        assert!((at(40_000.0, "read p50") - expected).abs() < 1e-6);
        assert!((at(110_000.0, "read p50") - 200.0).abs() < 1e-6, "saturated");
    }
}
