//! Backlogs: times in which requests queued at the host because the system did not keep up.

/// Waiting requests at which a backlog begins.
const BEGINS: u64 = 256;
/// Waiting requests at which it ends.
const ENDS: u64 = 32;

/// One backlog.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Backlog {
    pub from_ns: u64,
    pub until_ns: u64,
    /// Most requests that waited at once.
    pub peak: u64,
}

impl Backlog {
    pub const fn lasted_ns(&self) -> u64 {
        self.until_ns.saturating_sub(self.from_ns)
    }
}

/// The longest backlog of a run, by the depths of the host's queue.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Backlogs {
    current: Option<Backlog>,
    longest: Option<Backlog>,
}

impl Backlogs {
    /// The queue has `depth` requests from `now_ns` on.
    #[inline]
    pub fn add(&mut self, now_ns: u64, depth: u64) {
        if let Some(current) = &mut self.current {
            current.peak = current.peak.max(depth);
            if depth <= ENDS {
                self.longest = self.longest(now_ns);
                self.current = None;
            }
        } else if depth >= BEGINS {
            self.current = Some(Backlog { from_ns: now_ns, until_ns: now_ns, peak: depth });
        }
    }

    /// The longest backlog up to `now_ns`.
    pub fn longest(&self, now_ns: u64) -> Option<Backlog> {
        let current = self.current.map(|it| Backlog { until_ns: now_ns, ..it });
        let both = [self.longest, current].into_iter().flatten();
        both.max_by_key(Backlog::lasted_ns)
    }

    /// Later in the same run: what is waiting still is.
    #[must_use]
    pub const fn measured_later(&self) -> Self {
        Self { current: self.current, longest: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_backlog_is_known_with_its_peak() {
        let mut backlogs = Backlogs::default();
        let depths = [(0, 255), (10, 256), (20, 900), (30, 100), (40, 32), (50, 300), (55, 0)];
        depths.into_iter().for_each(|(now, depth)| backlogs.add(now, depth));
        let longest = Backlog { from_ns: 10, until_ns: 40, peak: 900 };
        assert_eq!(backlogs.longest(99), Some(longest));
        backlogs.add(60, 5_000);
        let unfinished = Backlog { from_ns: 60, until_ns: 99, peak: 5_000 };
        assert_eq!(backlogs.longest(99), Some(unfinished));
        assert_eq!(backlogs.measured_later().longest(70).map(|it| it.from_ns), Some(60));
        assert_eq!(Backlogs::default().longest(99), None);
    }
}
