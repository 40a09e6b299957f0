//! Where the time of requests went: by operation, and by how long they took.

use crate::logarithm::{BUCKETS, bucket, lower_bound};
use hybridsim_engine::event::Times;
use hybridsim_engine::{CommonEvent, EventRecord, EventSink, LatencyPhase, Op};

/// Requests and the time they spent in each part, in ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spent {
    /// Requests.
    pub requests: u64,
    /// Time by part.
    pub ns: [u128; LatencyPhase::COUNT],
}

impl Spent {
    fn sum<'a>(of: impl Iterator<Item = &'a Self>) -> Self {
        of.fold(Self::default(), |mut sum, spent| {
            sum.add(spent);
            sum
        })
    }

    fn add(&mut self, other: &Self) {
        // Most buckets of most operations are empty.
        if other.requests == 0 {
            return;
        }
        self.requests += other.requests;
        for (ours, theirs) in self.ns.iter_mut().zip(other.ns) {
            *ours += theirs;
        }
    }

    /// Mean time per request, by part; all zero without requests.
    pub fn mean_ns(&self) -> [f64; LatencyPhase::COUNT] {
        let requests = self.requests.max(1) as f64;
        self.ns.map(|ns| ns as f64 / requests)
    }
}

/// The slowest requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slowest {
    /// They took at least this long, in ns.
    pub threshold_ns: u64,
    /// Their latency by phase.
    pub spent: Spent,
}

/// The fold.
#[derive(Clone, Debug)]
pub struct Breakdown {
    /// By bucket of latency, then by operation.
    spent: Vec<[Spent; Op::COUNT]>,
    pending: [(u8, u64); LatencyPhase::COUNT],
    pending_len: usize,
}

impl Default for Breakdown {
    fn default() -> Self {
        Self {
            spent: vec![Default::default(); BUCKETS],
            pending: [(0, 0); LatencyPhase::COUNT],
            pending_len: 0,
        }
    }
}

impl Breakdown {
    /// Requests of one operation.
    pub fn of(&self, op: Op) -> Spent {
        Spent::sum(self.spent.iter().map(|row| &row[op.index()]))
    }

    /// All requests.
    pub fn all(&self) -> Spent {
        Spent::sum(self.spent.iter().flatten())
    }

    /// The slowest requests, at least the share `share` (0 to 1) of all: as many buckets of equal
    /// latency (within 12.5 %) as it takes. `None` without requests.
    pub fn slowest(&self, share: f64) -> Option<Slowest> {
        let wanted = (self.all().requests as f64 * share).max(1.0);
        let mut spent = Spent::default();
        for (at, row) in self.spent.iter().enumerate().rev() {
            row.iter().for_each(|of_op| spent.add(of_op));
            if spent.requests as f64 >= wanted {
                return Some(Slowest { threshold_ns: lower_bound(at), spent });
            }
        }
        None
    }

    #[inline(always)]
    fn complete(&mut self, op: Op, latency_ns: u64) {
        let spent = &mut self.spent[bucket(latency_ns)][op.index()];
        spent.requests += 1;
        for &(phase, ns) in &self.pending[..self.pending_len] {
            spent.ns[usize::from(phase)] += u128::from(ns);
        }
        self.pending_len = 0;
    }

    /// Phases reported twice for one request are added.
    #[inline]
    fn spend(&mut self, phase: u8, ns: u64) {
        if ns == 0 {
            return;
        }
        if let Some(slot) = self.pending.get_mut(self.pending_len) {
            *slot = (phase, ns);
            self.pending_len += 1;
        } else if let Some(slot) = self.pending.iter_mut().find(|slot| slot.0 == phase) {
            slot.1 = slot.1.saturating_add(ns);
        }
    }
}

impl Breakdown {
    #[inline(always)]
    pub(crate) fn add(&mut self, record: &EventRecord) {
        match record.event() {
            Some(CommonEvent::PhaseTime { phase, duration, .. }) => {
                self.spend(phase as u8, duration.as_ns());
            }
            Some(CommonEvent::PhaseTimes { .. }) => {
                for (phase, ns) in Times::of(record) {
                    self.spend(phase, ns);
                }
            }
            Some(CommonEvent::Completed { op, latency, .. }) => self.complete(op, latency.as_ns()),
            _ => {}
        }
    }
}

impl EventSink for Breakdown {
    fn take(&mut self, events: &[EventRecord]) {
        events.iter().for_each(|record| self.add(record));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{ns, record};
    use hybridsim_engine::Lba;

    fn request(fold: &mut Breakdown, op: Op, breakdown: &[(LatencyPhase, u64)]) {
        let spent =
            |&(phase, time)| record(0, 0, CommonEvent::PhaseTime { op, phase, duration: ns(time) });
        let mut events: Vec<EventRecord> = breakdown.iter().map(spent).collect();
        let latency = ns(breakdown.iter().map(|phase| phase.1).sum());
        events.push(record(0, 0, CommonEvent::Completed { op, sectors: 1, lba: Lba(0), latency }));
        fold.take(&events);
    }

    #[test]
    fn parts_are_kept_by_operation() {
        let mut fold = Breakdown::default();
        request(&mut fold, Op::Read, &[(LatencyPhase::Queue, 10), (LatencyPhase::Seek, 90)]);
        request(&mut fold, Op::Read, &[(LatencyPhase::Seek, 10)]);
        request(&mut fold, Op::Write, &[(LatencyPhase::Gc, 1000)]);
        assert_eq!(fold.of(Op::Read).mean_ns()[LatencyPhase::Seek as usize], 50.0);
        assert_eq!(fold.of(Op::Read).mean_ns()[LatencyPhase::Gc as usize], 0.0);
        assert_eq!(fold.all().requests, 3);
        assert_eq!(fold.all().ns[LatencyPhase::Gc as usize], 1000);
    }

    #[test]
    fn the_slowest_are_distinguished() {
        let mut fold = Breakdown::default();
        (0..990).for_each(|_| request(&mut fold, Op::Read, &[(LatencyPhase::FlashRead, 100)]));
        (0..10).for_each(|_| request(&mut fold, Op::Read, &[(LatencyPhase::Gc, 5000)]));
        let slowest = fold.slowest(0.01).expect("there are requests");
        assert_eq!(slowest.spent.requests, 10);
        assert!((4500..=5000).contains(&slowest.threshold_ns), "{}", slowest.threshold_ns);
        assert_eq!(slowest.spent.mean_ns()[LatencyPhase::Gc as usize], 5000.0);
        assert_eq!(fold.slowest(0.011).expect("all").spent.requests, 1000);
        assert_eq!(Breakdown::default().slowest(0.01), None);
    }

    #[test]
    fn phases_reported_repeatedly_still_add_up() {
        let mut fold = Breakdown::default();
        let breakdown: Vec<(LatencyPhase, u64)> =
            (0..100).map(|_| (LatencyPhase::Queue, 1)).collect();
        request(&mut fold, Op::Write, &breakdown);
        assert_eq!(fold.all().ns[LatencyPhase::Queue as usize], 100);
    }
}
