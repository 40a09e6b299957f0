//! Locks on ranges, granted in order of arrival.
//!
//! An owner waits for every earlier owner whose range overlaps its own, unless both only share.
//! It counts those when it comes and is told when the last of them has gone, so nobody is
//! overtaken for ever, and what an owner costs depends on who else is there, never on who was.

/// No owner.
const NONE: u32 = u32::MAX;

/// What an owner asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// What the range is a range of: a stripe, a group of copies.
    pub key: u64,
    /// First sector.
    pub from: u64,
    /// First sector after it.
    pub to: u64,
    /// Whether nobody else may hold any of it; otherwise others may share.
    pub exclusive: bool,
}

impl Range {
    fn conflicts(&self, other: &Self) -> bool {
        self.key == other.key
            && self.from < other.to
            && other.from < self.to
            && (self.exclusive || other.exclusive)
    }
}

#[derive(Clone, Copy, Debug)]
struct Held {
    range: Range,
    /// Earlier owners it waits for.
    blockers: u32,
    earlier: u32,
    later: u32,
}

#[derive(Clone, Copy, Debug)]
struct Bucket {
    first: u32,
    last: u32,
}

/// The locks held and waited for, by owner number.
#[derive(Debug)]
pub struct RangeLocks {
    buckets: Vec<Bucket>,
    owners: Vec<Held>,
    /// Comparisons made; what a lock costs, for tests.
    #[cfg(test)]
    pub work: u64,
}

const BUCKETS: usize = 1024;

impl Default for RangeLocks {
    fn default() -> Self {
        Self {
            buckets: vec![Bucket { first: NONE, last: NONE }; BUCKETS],
            owners: Vec::new(),
            #[cfg(test)]
            work: 0,
        }
    }
}

impl RangeLocks {
    /// `owner`, who holds nothing, asks for `range`. Answers whether it holds it now; otherwise it
    /// waits, and [`RangeLocks::release`] of others names it when it does.
    pub fn acquire(&mut self, owner: u32, range: Range) -> bool {
        let bucket = bucket_of(range.key);
        let Bucket { first, last } = self.buckets[bucket];
        let mut blockers = 0;
        let mut at = first;
        while at != NONE {
            blockers += u32::from(self.conflict(at, &range));
            at = self.owners[at as usize].later;
        }
        let held = Held { range, blockers, earlier: last, later: NONE };
        if self.owners.len() <= owner as usize {
            self.owners.resize(owner as usize + 1, held);
        }
        self.owners[owner as usize] = held;
        match last {
            NONE => self.buckets[bucket].first = owner,
            last => self.owners[last as usize].later = owner,
        }
        self.buckets[bucket].last = owner;
        blockers == 0
    }

    /// `owner` gives back what it holds. `granted` is told who holds theirs because of it.
    pub fn release(&mut self, owner: u32, mut granted: impl FnMut(u32)) {
        let Held { range, earlier, later, .. } = self.owners[owner as usize];
        let bucket = bucket_of(range.key);
        match earlier {
            NONE => self.buckets[bucket].first = later,
            earlier => self.owners[earlier as usize].later = later,
        }
        match later {
            NONE => self.buckets[bucket].last = earlier,
            later => self.owners[later as usize].earlier = earlier,
        }
        let mut at = later;
        while at != NONE {
            let next = self.owners[at as usize].later;
            if self.conflict(at, &range) {
                let waiting = &mut self.owners[at as usize];
                waiting.blockers -= 1;
                if waiting.blockers == 0 {
                    granted(at);
                }
            }
            at = next;
        }
    }

    fn conflict(&mut self, owner: u32, range: &Range) -> bool {
        #[cfg(test)]
        {
            self.work += 1;
        }
        self.owners[owner as usize].range.conflicts(range)
    }
}

fn bucket_of(key: u64) -> usize {
    // Fibonacci hashing: neighbouring stripes go to different buckets.
    (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 54) as usize % BUCKETS
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(key: u64, from: u64, to: u64, exclusive: bool) -> Range {
        Range { key, from, to, exclusive }
    }

    fn release(locks: &mut RangeLocks, owner: u32) -> Vec<u32> {
        let mut granted = Vec::new();
        locks.release(owner, |owner| granted.push(owner));
        granted
    }

    #[test]
    fn overlap_waits_in_order_of_arrival() {
        let mut locks = RangeLocks::default();
        assert!(locks.acquire(0, range(7, 0, 8, true)));
        assert!(locks.acquire(1, range(7, 8, 16, true)), "next to it");
        assert!(locks.acquire(2, range(8, 0, 8, true)), "another stripe");
        assert!(!locks.acquire(3, range(7, 4, 12, true)));
        assert!(!locks.acquire(4, range(7, 4, 5, false)), "nobody overtakes");
        assert_eq!(release(&mut locks, 0), []);
        assert_eq!(release(&mut locks, 1), [3]);
        assert_eq!(release(&mut locks, 3), [4]);
        assert_eq!(release(&mut locks, 4), []);
        assert!(locks.acquire(0, range(7, 0, 8, true)));
    }

    #[test]
    fn sharers_share() {
        let mut locks = RangeLocks::default();
        assert!(locks.acquire(0, range(1, 0, 8, false)));
        assert!(locks.acquire(1, range(1, 4, 9, false)));
        assert!(!locks.acquire(2, range(1, 4, 9, true)));
        assert!(!locks.acquire(3, range(1, 0, 8, false)));
        assert!(!locks.acquire(4, range(1, 0, 8, false)));
        assert_eq!(release(&mut locks, 0), []);
        assert_eq!(release(&mut locks, 1), [2]);
        assert_eq!(release(&mut locks, 2), [3, 4]);
    }

    #[test]
    fn what_was_costs_nothing() {
        let mut locks = RangeLocks::default();
        for turn in 0..10_000u64 {
            let owner = (turn % 4) as u32;
            if turn >= 4 {
                release(&mut locks, owner);
            }
            locks.acquire(owner, range(turn % 3, 0, 8, turn % 2 == 0));
        }
        assert!(locks.work <= 8 * 10_000, "{} comparisons", locks.work);
    }
}
