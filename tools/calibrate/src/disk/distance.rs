//! The distance between two samples of response times.

use serde::Serialize;

/// A quantile of a sorted sample, linearly interpolated.
pub fn quantile(sorted: &[f64], share: f64) -> f64 {
    let Some(last) = sorted.len().checked_sub(1) else { return f64::NAN };
    let at = share * last as f64;
    let low = at.floor() as usize;
    let high = (low + 1).min(last);
    sorted[low] + (sorted[high] - sorted[low]) * (at - low as f64)
}

/// The demerit figure of Ruemmler and Wilkes: the root mean square horizontal distance of the
/// distributions of two sorted samples, at quantiles (i + 0.5) / 10000. NaN without samples.
pub fn demerit(ours: &[f64], theirs: &[f64]) -> f64 {
    const STEPS: u32 = 10_000;
    let square = |step: u32| {
        let share = (f64::from(step) + 0.5) / f64::from(STEPS);
        (quantile(ours, share) - quantile(theirs, share)).powi(2)
    };
    ((0..STEPS).map(square).sum::<f64>() / f64::from(STEPS)).sqrt()
}

/// Least distance of a model from a log, and the distance of one: a log does not say at which angle
/// the platters stood at a request, so no model can be expected to come closer to it than two runs
/// of itself with other angles come to each other.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Floor {
    /// Mean demerit between two runs with other angles, in ms.
    pub between_runs_ms: f64,
    /// Mean demerit between the run that is farthest from the others and these.
    pub farthest_run_ms: f64,
    /// Mean demerit between such runs and the log.
    pub to_log_ms: f64,
}

impl Floor {
    /// The floor of sorted samples, one of each run.
    pub(super) fn of(runs: &[Vec<f64>], measured: &[f64]) -> Self {
        let mut to_others = vec![0.0; runs.len()];
        for one in 0..runs.len() {
            for other in 0..one {
                let apart = demerit(&runs[one], &runs[other]) / (runs.len() - 1) as f64;
                to_others[one] += apart;
                to_others[other] += apart;
            }
        }
        let mean = |sum: f64| sum / runs.len() as f64;
        Self {
            between_runs_ms: mean(to_others.iter().sum()),
            farthest_run_ms: to_others.iter().copied().fold(0.0, f64::max),
            to_log_ms: mean(runs.iter().map(|run| demerit(run, measured)).sum()),
        }
    }

    /// Whether the log may be a run of the drive itself: it is no farther from the runs than one of
    /// them is from the others.
    pub(super) fn may_be_a_run(&self) -> bool {
        self.to_log_ms <= self.farthest_run_ms
    }
}

/// The distance between two sorted samples, rank by rank, as a sum over `theirs`; `ours` has as
/// many values, or a multiple.
pub(super) fn apart(ours: &[f64], theirs: &[f64]) -> f64 {
    let times = (ours.len() / theirs.len().max(1)).max(1);
    let ranks = ours.chunks(times).zip(theirs);
    let rank = |(ours, theirs): (&[f64], &f64)| {
        ours.iter().map(|ours| (ours - theirs).abs()).sum::<f64>() / times as f64
    };
    ranks.map(rank).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_demerit_figure_is_the_distance_of_distributions() {
        let check = |ours: &[f64], theirs: &[f64], expect: f64| {
            assert!((demerit(ours, theirs) - expect).abs() < 1e-9, "{ours:?} {theirs:?}");
        };
        check(&[1.0, 2.0, 3.0], &[1.0, 2.0, 3.0], 0.0);
        check(&[1.5, 2.5, 3.5], &[1.0, 2.0, 3.0], 0.5);
        // Order plays no part once sorted; samples may differ in size.
        check(&[1.0, 3.0], &[1.0, 2.0, 3.0], 0.0);
        assert!(demerit(&[], &[1.0]).is_nan());
    }

    #[test]
    fn the_floor_is_the_mean_distance_between_runs() {
        let runs = [vec![1.0, 2.0], vec![1.5, 2.5], vec![2.0, 3.0]];
        let floor = Floor::of(&runs, &[1.0, 2.0]);
        assert!((floor.between_runs_ms - (0.5 + 1.0 + 0.5) / 3.0).abs() < 1e-9, "{floor:?}");
        assert!((floor.to_log_ms - 0.5).abs() < 1e-9, "{floor:?}");
        assert!((floor.farthest_run_ms - 0.75).abs() < 1e-9, "{floor:?}");
        assert!(floor.may_be_a_run());
        assert!(!Floor::of(&runs, &[3.0, 4.0]).may_be_a_run());
    }

    #[test]
    fn samples_are_apart_by_rank() {
        assert_eq!(apart(&[1.0, 4.0], &[2.0, 4.5]), 1.5);
        // Twice as many on one side.
        assert_eq!(apart(&[1.0, 3.0, 4.0, 4.0], &[2.0, 4.0]), 1.0);
        assert_eq!(apart(&[], &[]), 0.0);
    }
}
