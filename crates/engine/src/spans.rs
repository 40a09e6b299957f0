//! Locks on ranges of one address space, granted in order of arrival.
//!
//! An owner waits for every earlier owner whose range overlaps its own, unless both only share.
//! It counts those when it comes and is told when the last of them has gone, so nobody is
//! overtaken for ever. Owners are sorted by address, so that one costs the logarithm of how many
//! there are, and those near it.

use crate::schedule::Queued;
use crate::sorted::Sorted;
use crate::{Lba, Op, Request, SimTime};

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

    /// Those the owner that asked last waits for; until the next [`SpanLocks::release`].
    pub fn blockers(&self) -> &[u32] {
        &self.found
    }

    /// Whether anybody holds `address`, or waits for it.
    pub fn touches(&self, address: u64) -> bool {
        let covers = |owner: u32| {
            let held = &self.owners[owner as usize];
            held.from <= address && address < held.to
        };
        let mut key = self.short.at_or_after(address.saturating_sub(self.longest));
        while let Some(at) = key.filter(|at| at.0 <= address) {
            if self.short.get(at).is_some_and(|item| covers(item.key as u32)) {
                return true;
            }
            key = self.short.after(at);
        }
        self.long.iter().any(|owner| covers(*owner))
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
    use proptest::prelude::*;

    /// The same by comparing everybody with everybody.
    #[derive(Default)]
    struct Model {
        held: Vec<(u32, Held)>,
    }

    impl Model {
        fn acquire(&mut self, owner: u32, from: u64, to: u64, exclusive: bool) -> bool {
            let mut held = Held { from, to, exclusive, ..Held::default() };
            held.blockers =
                self.held.iter().filter(|other| other.1.conflicts(&held)).count() as u32;
            self.held.push((owner, held));
            held.blockers == 0
        }

        fn release(&mut self, owner: u32) -> Vec<u32> {
            let at = self.held.iter().position(|held| held.0 == owner).expect("it holds");
            let (_, gone) = self.held.remove(at);
            let mut granted = Vec::new();
            for (later, held) in &mut self.held[at..] {
                if held.conflicts(&gone) {
                    held.blockers -= 1;
                    granted.extend((held.blockers == 0).then_some(*later));
                }
            }
            granted
        }

        fn touches(&self, address: u64) -> bool {
            self.held.iter().any(|(_, held)| held.from <= address && address < held.to)
        }
    }

    proptest! {
        /// The order of addresses changes nothing: neither who is granted what, nor when.
        #[test]
        fn as_everybody_compared_with_everybody(
            work in prop::collection::vec(
                (0u32..12, 0u64..40_000, 1u64..6_000, any::<bool>()), 1..300,
            ),
        ) {
            let (mut spans, mut model) = (SpanLocks::default(), Model::default());
            let mut here = [false; 12];
            for (owner, from, length, exclusive) in work {
                let to = from + if length % 3 == 0 { length } else { length % 64 + 1 };
                if here[owner as usize] {
                    let mut granted = Vec::new();
                    spans.release(owner, |owner| granted.push(owner));
                    prop_assert_eq!(granted, model.release(owner));
                } else {
                    let held = spans.acquire(owner, from, to, exclusive);
                    prop_assert_eq!(held, model.acquire(owner, from, to, exclusive));
                    prop_assert_eq!(held, spans.blockers().is_empty());
                }
                here[owner as usize] ^= true;
                for address in [from, to, length] {
                    prop_assert_eq!(spans.touches(address), model.touches(address));
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
