//! Segments: their states, and the choice of those to clean.

use serde::{Deserialize, Serialize};
use std::collections::{HashSet, VecDeque};

hybridsim_config::choices! {
    /// Choice of the segment to clean.
    pub enum Policy { Greedy = "greedy", CostBenefit = "cost-benefit", Fifo = "fifo" }
}

/// The state of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum State {
    Free,
    /// Blocks are appended to it.
    Open,
    /// No block is appended any more.
    Closed,
    /// Its valid blocks are being moved.
    Victim,
    /// It has no valid blocks; the device is flushed, so that copies of them are durable.
    Emptied,
    /// The device has been flushed. It is reset once no read of it is outstanding.
    Settled,
    Resetting,
    /// It could not be read or reset, and is not used again.
    Retired,
}

/// A segment.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Segment {
    pub state: State,
    /// Valid blocks.
    pub valid: u32,
    /// Blocks appended, summary not included.
    pub written: u32,
    /// Segments closed before it.
    pub closed: u64,
    /// Blocks that the host had written when it wrote the youngest block of the segment.
    pub youngest: u64,
    /// Reads and writes outstanding.
    pub readers: u32,
    pub writers: u32,
    /// It ends with a summary.
    pub summary: bool,
    /// Its zone may be active although the segment is closed.
    pub unfinished: bool,
}

const FREE: Segment = Segment {
    state: State::Free,
    valid: 0,
    written: 0,
    closed: 0,
    youngest: 0,
    readers: 0,
    writers: 0,
    summary: false,
    unfinished: false,
};

/// All segments.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Segments {
    all: Vec<Segment>,
    /// In the order in which they became free.
    free: VecDeque<u32>,
    /// Segments that become free once they are reset.
    pub emptied: u32,
    closed: u64,
    /// Where the next search for a victim begins.
    cursor: u32,
}

impl Segments {
    pub fn new(segments: u32) -> Self {
        let all = vec![FREE; segments as usize];
        Self { all, free: (0..segments).collect(), emptied: 0, closed: 0, cursor: 0 }
    }

    pub fn len(&self) -> u32 {
        self.all.len() as u32
    }

    pub fn free(&self) -> u32 {
        self.free.len() as u32
    }

    pub fn get(&self, at: u32) -> &Segment {
        &self.all[at as usize]
    }

    pub fn get_mut(&mut self, at: u32) -> &mut Segment {
        &mut self.all[at as usize]
    }

    /// Opens the segment that has been free for longest, if more than `keep` are free.
    pub fn open(&mut self, keep: u32) -> Option<u32> {
        if self.free() <= keep {
            return None;
        }
        let at = self.free.pop_front()?;
        *self.get_mut(at) = Segment { state: State::Open, ..FREE };
        Some(at)
    }

    /// No block is appended to it any more.
    pub fn close(&mut self, at: u32) {
        self.closed += 1;
        let closed = self.closed;
        let segment = self.get_mut(at);
        (segment.state, segment.closed) = (State::Closed, closed);
    }

    /// The segment was reset.
    pub fn set_free(&mut self, at: u32) {
        *self.get_mut(at) = FREE;
        self.emptied -= 1;
        self.free.push_back(at);
    }

    /// The closed segment to clean: the best of the next `search` segments, or else of the first
    /// after them that has blocks that are not valid.
    pub fn victim(
        &mut self,
        policy: Policy,
        search: u32,
        (blocks, now): (u32, u64),
    ) -> Option<u32> {
        let count = self.len();
        let mut best: Option<(u32, &Segment)> = None;
        let mut searched = 0;
        while searched < count && (searched < search || best.is_none()) {
            let at = (self.cursor + searched) % count;
            let it = &self.all[at as usize];
            searched += 1;
            let gains = it.state == State::Closed && it.writers == 0 && it.valid < blocks;
            if gains && best.is_none_or(|best| policy.prefers((it, best.1), blocks, now)) {
                best = Some((at, it));
            }
        }
        let found = best.map(|best| best.0);
        self.cursor = (self.cursor + searched) % count;
        found
    }

    /// Whether a saved state can be that of `count` segments of `blocks` blocks, after the host has
    /// written `clock` blocks.
    pub fn is_consistent(&self, count: u32, blocks: u32, clock: u64) -> bool {
        let is_free = |at: &u32| self.all.get(*at as usize).map(|it| it.state) == Some(State::Free);
        let fits = |it: &Segment| {
            let most = match it.state {
                State::Free => 0,
                State::Open => blocks - 1,
                State::Closed | State::Retired => blocks,
                _ => return false,
            };
            it.valid <= it.written
                && it.written <= most
                && it.youngest <= clock
                && (it.readers, it.writers) == (0, 0)
        };
        let free: HashSet<_> = self.free.iter().collect();
        self.len() == count
            && self.cursor < count
            && self.emptied == 0
            && free.len() == self.free.len()
            && self.all.iter().all(fits)
            && self.free.iter().all(is_free)
            && self.free.len() == self.all.iter().filter(|it| it.state == State::Free).count()
    }
}

impl Policy {
    /// Whether the first of two segments is cleaned rather than the second.
    fn prefers(self, (one, other): (&Segment, &Segment), blocks: u32, now: u64) -> bool {
        let by_age = one.closed < other.closed;
        match self {
            Self::Greedy if one.valid != other.valid => one.valid < other.valid,
            Self::Greedy | Self::Fifo => by_age,
            Self::CostBenefit => {
                // A segment that was just closed is still preferred to one without free blocks.
                let benefit = |it: &Segment| {
                    u128::from(blocks - it.valid) * u128::from(now - it.youngest + 1)
                };
                let cost = |it: &Segment| u128::from(blocks + it.valid);
                let (a, b) = (benefit(one) * cost(other), benefit(other) * cost(one));
                a > b || (a == b && by_age)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Closed segments with so many valid blocks of 10, and the age of the youngest.
    fn closed(segments: &[(u32, u64)]) -> Segments {
        let mut all = Segments::new(segments.len() as u32);
        for &(valid, age) in segments {
            let at = all.open(0).expect("one is free");
            let youngest = 100 - age;
            *all.get_mut(at) = Segment { valid, written: 10, youngest, ..*all.get(at) };
            all.close(at);
        }
        all
    }

    #[test]
    fn policies_choose_what_they_are_named_after() {
        let segments = [(10, 90), (8, 80), (4, 3), (4, 2), (9, 95)];
        let choose = |policy| closed(&segments).victim(policy, 10, (10, 100));
        assert_eq!(choose(Policy::Fifo), Some(1), "a full segment gains nothing");
        assert_eq!(choose(Policy::Greedy), Some(2), "the older of two");
        assert_eq!(choose(Policy::CostBenefit), Some(1), "0.2 * 81 / 1.8 of 0.6 * 4 / 1.4");
    }

    #[test]
    fn saved_states_that_would_end_a_run_are_rejected() {
        let saved = || {
            let mut segments = Segments::new(5);
            let at = segments.open(0).expect("one is free");
            segments.get_mut(at).written = 3;
            segments
        };
        let is_accepted = |change: fn(&mut Segments)| {
            let mut segments = saved();
            change(&mut segments);
            segments.is_consistent(5, 10, 100)
        };
        assert!(is_accepted(|_| {}));
        assert!(!is_accepted(|it| it.all[0].written = 10), "it is full, but open");
        assert!(!is_accepted(|it| it.all[0].youngest = 101), "younger than the last write");
        assert!(!is_accepted(|it| it.all[0].state = State::Victim), "it is never cleaned");
        assert!(!is_accepted(|it| it.all[0].readers = 1), "it is never reset");
        assert!(!is_accepted(|it| it.free[0] = it.free[1]), "free twice");
        assert!(!is_accepted(|it| it.emptied = 1), "it never becomes free");
    }

    #[test]
    fn a_search_continues_where_the_last_one_ended() {
        let mut segments = closed(&[(5, 9), (6, 9), (3, 9), (4, 9), (10, 9)]);
        let mut next = || segments.victim(Policy::Greedy, 2, (10, 100));
        assert_eq!([next(), next(), next()], [Some(0), Some(2), Some(0)]);
        assert_eq!(closed(&[(10, 9); 3]).victim(Policy::Greedy, 2, (10, 100)), None);
    }
}
