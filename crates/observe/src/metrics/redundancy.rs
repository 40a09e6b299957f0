//! Failed members and rebuilds of arrays.

use super::level::{Level, mean};
use hybridsim_engine::{RedundancyChange, SimDuration};
use serde::{Deserialize, Serialize};

/// The redundancy of an array over time.
#[derive(Clone, Debug, Default)]
pub(crate) struct RedundancyFold {
    /// Degraded columns, from the first change on.
    degraded: Option<Level>,
    /// Time with a degraded column, up to the last change.
    degraded_ns: u64,
    failures: u64,
    rebuilds: u64,
    rebuild_ns: u64,
    rebuild_ns_max: u64,
}

impl RedundancyFold {
    pub(crate) fn measured_from(&self, from_ns: u64) -> Self {
        let degraded = self.degraded.map(|level| level.measured_from(from_ns));
        Self { degraded, ..Self::default() }
    }

    pub(crate) fn add(
        &mut self,
        change: RedundancyChange,
        degraded: u32,
        took: SimDuration,
        now: u64,
    ) {
        let degraded = u64::from(degraded);
        let level = self.degraded.get_or_insert_with(|| Level::new(now, degraded));
        self.degraded_ns += level.positive_until(now);
        level.set(now, degraded);
        match change {
            RedundancyChange::MemberFailed => self.failures += 1,
            RedundancyChange::RebuildEnded => {
                self.rebuilds += 1;
                self.rebuild_ns = self.rebuild_ns.saturating_add(took.as_ns());
                self.rebuild_ns_max = self.rebuild_ns_max.max(took.as_ns());
            }
            _ => {}
        }
    }

    /// `None` for a component without a failed member.
    pub(crate) fn results(&self, end_ns: u64) -> Option<Redundancy> {
        let level = self.degraded?;
        let degraded_ns = self.degraded_ns + level.positive_until(end_ns);
        (self.failures > 0 || degraded_ns > 0).then(|| Redundancy {
            member_failures: self.failures,
            degraded_ns,
            degraded_columns_max: level.max,
            rebuilds: self.rebuilds,
            rebuild_ns_mean: mean(self.rebuild_ns, self.rebuilds),
            rebuild_ns_max: (self.rebuilds > 0).then_some(self.rebuild_ns_max),
        })
    }
}

/// Failed members and rebuilds; only of arrays that had any.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Redundancy {
    /// Members and spares that failed.
    pub member_failures: u64,
    /// Time during which at least one column (member of the layout) was failed or not rebuilt.
    pub degraded_ns: u64,
    /// Maximum number of columns degraded at once.
    pub degraded_columns_max: u64,
    /// Rebuilds that ended.
    pub rebuilds: u64,
    /// Mean time of these rebuilds.
    pub rebuild_ns_mean: Option<f64>,
    /// Longest of these rebuilds.
    pub rebuild_ns_max: Option<u64>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use RedundancyChange::*;

    #[test]
    fn degraded_time_lasts_from_the_failure_to_the_end_of_the_rebuild() {
        let (none, took) = (SimDuration::ZERO, SimDuration::from_ns(40));
        let mut fold = RedundancyFold::default();
        assert_eq!(fold.results(100), None);
        fold.add(MemberFailed, 1, none, 10);
        fold.add(RebuildStarted, 1, none, 10);
        fold.add(MemberFailed, 2, none, 30);
        fold.add(RebuildEnded, 1, took, 50);
        fold.add(RebuildEnded, 0, SimDuration::from_ns(20), 70);
        let result = fold.results(100).expect("a member failed");
        assert_eq!((result.member_failures, result.degraded_ns, result.rebuilds), (2, 60, 2));
        assert_eq!((result.degraded_columns_max, result.rebuild_ns_max), (2, Some(40)));
        assert_eq!(result.rebuild_ns_mean, Some(30.0));
        // A window that begins while the array is degraded.
        let mut fold = RedundancyFold::default();
        fold.add(MemberFailed, 1, none, 10);
        let mut later = fold.measured_from(40);
        assert_eq!(later.results(60).map(|result| result.degraded_ns), Some(20));
        later.add(RebuildEnded, 0, took, 50);
        let result = later.results(90).expect("it was degraded");
        assert_eq!((result.degraded_ns, result.member_failures), (10, 0));
        assert_eq!(fold.results(60).map(|result| result.degraded_ns), Some(50));
    }
}
