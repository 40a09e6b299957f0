//! A shared bus with a schedule table: a transfer takes the first gap that is long enough
//! (flashsim, figure 4), so transfers scheduled for later do not block the time before them.

use hybridsim_engine::{SimDuration, SimTime};
use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Slot {
    start: SimTime,
    end: SimTime,
}

/// Entries of a table from which on those that have ended are dropped.
const KEPT_MAX: usize = 16;

/// Reservations of one bus, at least those that have not ended, in order of time; adjacent ones are
/// merged.
#[derive(Debug, Serialize, Deserialize)]
pub struct Bus {
    slots: Vec<Slot>,
    /// Size of the schedule table; when it is full, transfers queue behind the last.
    slots_max: usize,
    /// No transfer is shorter, so shorter gaps are not kept.
    shortest: SimDuration,
}

impl Bus {
    /// A bus whose schedule table has `slots_max` entries, or as many as it needs, for transfers of
    /// `shortest` at least.
    pub fn new(slots_max: Option<usize>, shortest: SimDuration) -> Self {
        let slots_max = slots_max.unwrap_or(usize::MAX).max(1);
        let slots = Vec::with_capacity(slots_max.min(1024) + 1);
        Self { slots, slots_max, shortest }
    }

    /// Whether the reservations are in order and fit in the table, after a restore.
    pub fn is_consistent(&self) -> bool {
        let slots = &self.slots;
        let ordered = slots.iter().zip(slots.iter().skip(1)).all(|(a, b)| a.end < b.start);
        ordered && slots.len() <= self.slots_max && slots.iter().all(|slot| slot.start < slot.end)
    }

    /// No later reservation may start before `now`. Reservations that have ended are dropped once
    /// the table is full or long.
    #[inline(always)]
    pub fn advance(&mut self, now: SimTime) {
        // Those that have ended only take entries of the table.
        if self.slots.len() >= self.slots_max.min(KEPT_MAX) {
            self.drop_ended(now);
        }
    }

    #[inline(never)]
    fn drop_ended(&mut self, now: SimTime) {
        let ended = self.slots.iter().position(|slot| slot.end > now);
        self.slots.drain(..ended.unwrap_or(self.slots.len()));
    }

    /// Reserves the first gap of `length` from `earliest` on and returns its start.
    // Always inlined: most transfers follow the last.
    #[inline(always)]
    pub fn reserve(&mut self, earliest: SimTime, length: SimDuration) -> SimTime {
        if length.is_zero() {
            return earliest;
        }
        let full = self.slots.len() >= self.slots_max;
        let shortest = self.shortest;
        let adjoins = |end: SimTime| end == earliest || earliest.since(end) < shortest;
        match self.slots.last_mut() {
            Some(last) if last.end > earliest => return self.reserve_inside(earliest, length),
            Some(last) if adjoins(last.end) || full => last.end = earliest + length,
            _ => self.slots.push(Slot { start: earliest, end: earliest + length }),
        }
        earliest
    }

    #[inline(never)]
    fn reserve_inside(&mut self, earliest: SimTime, length: SimDuration) -> SimTime {
        let full = self.slots.len() >= self.slots_max;
        let mut at = self.slots.partition_point(|slot| slot.end <= earliest);
        let mut start = earliest;
        if let Some(last) = self.slots.last().filter(|_| full) {
            (at, start) = (self.slots.len(), earliest.max(last.end));
        }
        while let Some(slot) = self.slots.get(at) {
            if start + length <= slot.start {
                break;
            }
            start = start.max(slot.end);
            at += 1;
        }
        self.insert(at, start, length);
        start
    }

    /// Inserts a slot before position `at`, merged with those next to it, together with a gap that
    /// is shorter than any transfer.
    fn insert(&mut self, at: usize, start: SimTime, length: SimDuration) {
        let end = start + length;
        let full = self.slots.len() >= self.slots_max && at == self.slots.len();
        let shortest = self.shortest;
        let adjoins = |from: SimTime, to: SimTime| from == to || to.since(from) < shortest;
        let merges_before = at > 0 && (full || adjoins(self.slots[at - 1].end, start));
        let merges_after = self.slots.get(at).is_some_and(|slot| adjoins(end, slot.start));
        match (merges_before, merges_after) {
            (true, true) => {
                self.slots[at - 1].end = self.slots[at].end;
                self.slots.remove(at);
            }
            (true, false) => self.slots[at - 1].end = end,
            (false, true) => self.slots[at].start = start,
            (false, false) => self.slots.insert(at, Slot { start, end }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hybridsim_engine::Stream;

    fn reserve(bus: &mut Bus, earliest: u64, length: u64) -> u64 {
        bus.reserve(SimTime::from_ns(earliest), SimDuration::from_ns(length)).as_ns()
    }

    #[test]
    fn a_slot_goes_into_the_first_gap_long_enough() {
        let mut bus = Bus::new(Some(64), SimDuration::ZERO);
        assert_eq!(reserve(&mut bus, 0, 10), 0);
        assert_eq!(reserve(&mut bus, 30, 10), 30);
        assert_eq!(reserve(&mut bus, 0, 21), 40, "the gap of 20 is one too short");
        assert_eq!(reserve(&mut bus, 5, 20), 10, "this one fits exactly");
        assert_eq!(bus.slots.len(), 1, "all merged");
        assert_eq!(reserve(&mut bus, 3, 0), 3, "an empty transfer takes no slot");
        bus.drop_ended(SimTime::from_ns(61));
        assert!(bus.slots.is_empty());
    }

    #[test]
    fn reservations_never_overlap_and_never_start_early() {
        for slots_max in [1, 3, 64] {
            let mut bus = Bus::new(Some(slots_max), SimDuration::ZERO);
            let mut stream = Stream::new(slots_max as u64, "bus");
            let mut taken: Vec<(u64, u64)> = Vec::new();
            let mut now = 0;
            for _ in 0..3_000 {
                now += stream.below(12);
                bus.advance(SimTime::from_ns(now));
                let (earliest, length) = (now + stream.below(80), 1 + stream.below(9));
                let start = reserve(&mut bus, earliest, length);
                assert!(start >= earliest);
                let clash = taken.iter().any(|&(s, e)| start < e && s < start + length);
                assert!(!clash, "{start} + {length}");
                taken.push((start, start + length));
                taken.retain(|&(_, end)| end > now);
                assert!(bus.slots.len() <= slots_max);
            }
        }
    }

    #[test]
    fn first_fit_agrees_with_trying_every_instant() {
        let mut bus = Bus::new(None, SimDuration::ZERO);
        let mut stream = Stream::new(9, "bus");
        let mut used = vec![false; 4_000];
        for _ in 0..300 {
            let (earliest, length) = (stream.below(900), 1 + stream.below(7));
            let free = |start: u64| (start..start + length).all(|ns| !used[ns as usize]);
            let expected = (earliest..).find(|&start| free(start)).expect("free time at the end");
            assert_eq!(reserve(&mut bus, earliest, length), expected);
            used[expected as usize..(expected + length) as usize].fill(true);
        }
    }

    #[test]
    fn gaps_shorter_than_any_transfer_change_no_reservation() {
        let shortest = SimDuration::from_ns(5);
        let mut all = Bus::new(None, SimDuration::ZERO);
        let mut usable = Bus::new(None, shortest);
        let mut stream = Stream::new(11, "bus");
        let mut now = 0;
        for _ in 0..5_000 {
            now += stream.below(20);
            for bus in [&mut all, &mut usable] {
                bus.advance(SimTime::from_ns(now));
            }
            let (earliest, length) = (now + stream.below(900), 5 + stream.below(6));
            assert_eq!(reserve(&mut all, earliest, length), reserve(&mut usable, earliest, length));
        }
        let gaps = usable.slots.iter().zip(usable.slots.iter().skip(1));
        assert!(gaps.clone().count() > 5, "{} slots", usable.slots.len());
        assert!(gaps.into_iter().all(|(slot, next)| next.start.since(slot.end) >= shortest));
    }
}
