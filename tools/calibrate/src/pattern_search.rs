//! Pattern search after Hooke and Jeeves ("Direct search" solution of numerical and statistical
//! problems, 1961): one direction after the other by a step, then a leap along what all of them
//! moved together; steps are halved where nothing is gained.
//!
//! It needs neither smoothness nor random numbers. A drive's latencies are a step function of most
//! of its constants (a request misses a revolution or does not), each of which affects only some
//! classes of requests: simplex methods collapse on such functions.

/// The search space: coordinates with their ranges, and directions, each a few coordinates with
/// their first steps.
#[derive(Clone, Debug, Default)]
pub(crate) struct Space {
    /// Least and greatest value of every coordinate.
    pub ranges: Vec<(f64, f64)>,
    /// The directions: usually every coordinate alone and some that compensate for each other.
    pub directions: Vec<Vec<(usize, f64)>>,
}

/// Minimum relative gain.
const GAIN_MIN: f64 = 1e-4;

impl Space {
    /// The minimum of `cost` found from `start` on, with steps halved `halvings` times.
    pub fn search(
        &self,
        start: &[f64],
        halvings: u32,
        cost: &mut dyn FnMut(&[f64]) -> f64,
    ) -> (Vec<f64>, f64) {
        let mut best = start.to_vec();
        let mut least = cost(&best);
        let (mut scale, mut left) = (1.0, halvings);
        while left > 0 {
            let before = best.clone();
            if !self.explore(scale, &mut best, &mut least, cost) {
                scale /= 2.0;
                left -= 1;
                continue;
            }
            // A leap of the same length, and an exploration from there.
            let moved = best.iter().zip(&before).filter(|(new, old)| new != old).count();
            if moved > 1 {
                let leap = |at: usize| self.clamp(at, 2.0 * best[at] - before[at]);
                let mut there: Vec<f64> = (0..best.len()).map(leap).collect();
                let mut value = cost(&there);
                self.explore(scale, &mut there, &mut value, cost);
                if value < least * (1.0 - GAIN_MIN) {
                    (best, least) = (there, value);
                }
            }
        }
        (best, least)
    }

    fn clamp(&self, at: usize, value: f64) -> f64 {
        value.clamp(self.ranges[at].0, self.ranges[at].1)
    }

    /// Tries a step in each direction, forth and back.
    fn explore(
        &self,
        scale: f64,
        best: &mut Vec<f64>,
        least: &mut f64,
        cost: &mut dyn FnMut(&[f64]) -> f64,
    ) -> bool {
        let mut gained = false;
        for direction in &self.directions {
            for scale in [scale, -scale] {
                let mut there = best.clone();
                for &(at, step) in direction {
                    there[at] = self.clamp(at, best[at] + scale * step);
                }
                if there == *best {
                    continue;
                }
                let value = cost(&there);
                if value < *least * (1.0 - GAIN_MIN) {
                    (*best, *least, gained) = (there, value, true);
                    break;
                }
            }
        }
        gained
    }
}

/// The best of `count` values evenly spread over `range`, if any has a cost below `least`; and its
/// cost.
pub(crate) fn scan(
    (low, high): (f64, f64),
    count: u32,
    least: f64,
    mut cost: impl FnMut(f64) -> f64,
) -> Option<(f64, f64)> {
    let value = |number: u32| low + f64::from(number) / f64::from(count - 1) * (high - low);
    let tried = (0..count).map(value).map(|value| (value, cost(value)));
    tried.filter(|tried| tried.1 < least * (1.0 - GAIN_MIN)).min_by(|a, b| a.1.total_cmp(&b.1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scan_sees_what_is_behind_a_worse_step() {
        // Down to 0.3 at 0.5, up to 1.3, then down to 0 at 3: a search from 0 stays at 0.5.
        let cost = |x: f64| if x < 1.5 { 0.3 + (x - 0.5).abs() } else { (x - 3.0).abs() } + 0.1;
        let space = Space { ranges: vec![(0.0, 4.0)], directions: vec![vec![(0, 0.4)]] };
        let (found, least) = space.search(&[0.0], 6, &mut |at| cost(at[0]));
        assert!((found[0] - 0.5).abs() < 0.02, "{found:?}");
        let (value, _) = scan((0.0, 4.0), 9, least, cost).expect("a better value");
        assert_eq!(value, 3.0);
        assert_eq!(scan((0.0, 4.0), 9, 0.1, cost), None);
    }

    fn check(together: &[(usize, f64)], expect: [f64; 2], mut cost: impl FnMut(&[f64]) -> f64) {
        let mut directions = vec![vec![(0, 0.4)], vec![(1, 0.4)]];
        directions.extend((!together.is_empty()).then(|| together.to_vec()));
        let space = Space { ranges: vec![(0.0, 10.0); 2], directions };
        let (found, _) = space.search(&[2.0, 3.0], 6, &mut cost);
        for (at, (found, expect)) in found.iter().zip(expect).enumerate() {
            assert!((found - expect).abs() < 0.02, "{at}: {found} instead of {expect}");
        }
    }

    #[test]
    fn a_narrow_valley_is_followed_where_it_is_known() {
        let sum = |at: &[f64]| at[0] + 10.0 * at[1];
        let cost = |at: &[f64]| 1.0 + (sum(at) - 13.0).abs() + 0.1 * (at[0] - 3.0).abs();
        check(&[(0, 0.4), (1, -0.04)], [3.0, 1.0], cost);
    }

    #[test]
    fn stairs_are_walked_down_and_ranges_kept() {
        let stairs = |at: &[f64]| 1.0 + (at[0] * 20.0).round() / 20.0 + (at[1] - 12.0).abs();
        check(&[], [0.0, 10.0], stairs);
    }

    #[test]
    fn what_does_not_matter_stays() {
        check(&[], [5.0, 3.0], |at| 1.0 + (at[0] - 5.0).powi(2));
    }
}
