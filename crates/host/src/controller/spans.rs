//! Locks on ranges of one address space, granted in order of arrival.
//!
//! As [`RangeLocks`](crate::volume::locks::RangeLocks), which compares all owners of a key with
//! each other, for many owners with nothing but their addresses: they are sorted by them, so that
//! one costs the logarithm of how many there are, and those near it.

use crate::scheduler::sorted::Sorted;
use hybridsim_engine::schedule::Queued;
use hybridsim_engine::{Lba, Op, Request, SimTime};

/// Ranges up to so long are sorted by where they begin; the others, few, are looked at one by one.
const SHORT: u64 = 4096;

#[derive(Clone, Copy, Debug, Default)]
struct Held {
    from: u64,
    to: u64,
    exclusive: bool,
    /// Number of arrival, among the short ones or the long ones and among all.
    number: (u64, u64),
    /// Earlier owners it waits for.
    blockers: u32,
}

impl Held {
    fn is_short(&self) -> bool {
        self.to - self.from <= SHORT
    }

    fn conflicts(&self, other: &Self) -> bool {
        self.from < other.to && other.from < self.to && (self.exclusive || other.exclusive)
    }
}

/// The locks held and waited for, by owner number.
#[derive(Debug, Default)]
pub struct SpanLocks {
    owners: Vec<Held>,
    short: Sorted,
    shorts: u64,
    /// How long the longest short one has been.
    longest: u64,
    long: Vec<u32>,
    arrivals: u64,
    found: Vec<u32>,
    /// Comparisons made; what a lock costs, for tests.
    #[cfg(test)]
    work: u64,
}

impl SpanLocks {
    /// `owner`, who holds nothing, asks for `from..to`, `exclusive` or shared. Answers whether it
    /// holds it now; otherwise it waits, and [`SpanLocks::release`] of others names it when it
    /// does.
    pub fn acquire(&mut self, owner: u32, from: u64, to: u64, exclusive: bool) -> bool {
        let mut held = Held { from, to, exclusive, number: (0, self.arrivals), blockers: 0 };
        self.find(&held);
        held.blockers = self.found.len() as u32;
        if held.is_short() {
            held.number.0 = self.shorts;
            self.shorts += 1;
            self.longest = self.longest.max(to - from);
            let request = Request::new(Op::Read, Lba(from), 1);
            self.short.push(Queued { key: owner.into(), request, since: SimTime::ZERO });
        } else {
            self.long.push(owner);
        }
        self.arrivals += 1;
        if self.owners.len() <= owner as usize {
            self.owners.resize(owner as usize + 1, Held::default());
        }
        self.owners[owner as usize] = held;
        held.blockers == 0
    }

    /// `owner` gives back what it holds. `granted` is told who holds theirs because of it.
    pub fn release(&mut self, owner: u32, mut granted: impl FnMut(u32)) {
        let held = self.owners[owner as usize];
        if held.is_short() {
            self.short.take((held.from, held.number.0));
        } else {
            self.long.retain(|other| *other != owner);
        }
        self.find(&held);
        let owners = &mut self.owners;
        self.found.sort_unstable_by_key(|later| owners[*later as usize].number.1);
        for &later in &self.found {
            let waiting = &mut owners[later as usize];
            if waiting.number.1 > held.number.1 {
                waiting.blockers -= 1;
                if waiting.blockers == 0 {
                    granted(later);
                }
            }
        }
    }

    /// Who is in the way of `held`, or it in theirs.
    fn find(&mut self, held: &Held) {
        self.found.clear();
        let mut key = self.short.at_or_after(held.from.saturating_sub(self.longest));
        while let Some(at) = key.filter(|at| at.0 < held.to) {
            if let Some(item) = self.short.get(at) {
                self.note(item.key as u32, held);
            }
            key = self.short.after(at);
        }
        for at in 0..self.long.len() {
            self.note(self.long[at], held);
        }
    }

    fn note(&mut self, owner: u32, held: &Held) {
        #[cfg(test)]
        {
            self.work += 1;
        }
        if self.owners[owner as usize].conflicts(held) {
            self.found.push(owner);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::volume::locks::{Range, RangeLocks};
    use proptest::prelude::*;

    proptest! {
        /// They grant what those without an order do, at the same time and in the same order.
        #[test]
        fn the_order_of_addresses_changes_nothing(
            work in prop::collection::vec(
                (0u32..12, 0u64..40_000, 1u64..6_000, any::<bool>()), 1..300,
            ),
        ) {
            let (mut spans, mut ranges) = (SpanLocks::default(), RangeLocks::default());
            let mut here = [false; 12];
            for (owner, from, length, exclusive) in work {
                let to = from + if length % 3 == 0 { length } else { length % 64 + 1 };
                if here[owner as usize] {
                    let (mut a, mut b) = (Vec::new(), Vec::new());
                    spans.release(owner, |owner| a.push(owner));
                    ranges.release(owner, |owner| b.push(owner));
                    prop_assert_eq!(a, b);
                    here[owner as usize] = false;
                } else {
                    let range = Range { key: 0, from, to, exclusive };
                    let held = spans.acquire(owner, from, to, exclusive);
                    prop_assert_eq!(held, ranges.acquire(owner, range));
                    here[owner as usize] = true;
                }
            }
        }
    }

    #[test]
    fn many_owners_cost_little() {
        let mut locks = SpanLocks::default();
        let owners = 2_000;
        for turn in 0..20_000u32 {
            let owner = turn % owners;
            if turn >= owners {
                locks.release(owner, |_| ());
            }
            let from = u64::from(turn.wrapping_mul(2_654_435_761)) % (1 << 26);
            locks.acquire(owner, from, from + 8, turn % 2 == 0);
        }
        assert!(locks.work <= 2 * 20_000, "{} comparisons", locks.work);
    }
}
