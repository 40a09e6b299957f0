//! Locks on ranges of one address space, granted in order of arrival.
//!
//! A request waits for every earlier request whose range overlaps its own, unless both are shared.
//! The number of those blockers is counted on arrival and decreases as they release their ranges,
//! so no request is overtaken indefinitely. Short ranges are sorted by address: a lock costs the
//! logarithm of the number of requests, plus those nearby.

use crate::sorted::SortedMap;

/// Ranges up to this length are sorted by start address; longer ones, which are few, are compared
/// one by one.
const SHORT: u64 = 4096;

#[derive(Clone, Copy, Debug, Default)]
struct Held {
    from: u64,
    to: u64,
    exclusive: bool,
    /// Arrival number.
    number: u64,
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

/// The locks held and waited for. Owners are numbered by the caller, densely.
#[derive(Debug, Default)]
pub struct RangeLocks {
    owners: Vec<Held>,
    /// Owners of short ranges by start address and arrival number.
    short: SortedMap<(u64, u64), u32>,
    /// Length of the longest short range so far.
    longest: u64,
    long: Vec<u32>,
    arrivals: u64,
    /// Owners that wait for others.
    waiting: usize,
    found: Vec<u32>,
    /// Comparisons made; the cost of a lock, for tests.
    #[cfg(test)]
    comparisons: u64,
}

impl RangeLocks {
    /// `owner`, which holds nothing, requests `from..to`, `exclusive` or shared. Returns whether it
    /// holds the range now; otherwise a later [`RangeLocks::release`] grants it.
    pub fn acquire(&mut self, owner: u32, from: u64, to: u64, exclusive: bool) -> bool {
        let mut held = Held { from, to, exclusive, number: self.arrivals, blockers: 0 };
        self.find(&held);
        held.blockers = self.found.len() as u32;
        if held.is_short() {
            self.longest = self.longest.max(to - from);
            self.short.insert((from, held.number), owner);
        } else {
            self.long.push(owner);
        }
        self.arrivals += 1;
        if self.owners.len() <= owner as usize {
            self.owners.resize(owner as usize + 1, Held::default());
        }
        self.owners[owner as usize] = held;
        self.waiting += usize::from(held.blockers != 0);
        held.blockers == 0
    }

    /// The owners that the last call to [`RangeLocks::acquire`] has to wait for. Valid until the
    /// next [`RangeLocks::release`].
    pub fn blockers(&self) -> &[u32] {
        &self.found
    }

    /// Whether any owner holds an address of `from..to` or waits for one.
    pub fn touches(&self, from: u64, to: u64) -> bool {
        let meets = |owner: u32| {
            let held = &self.owners[owner as usize];
            held.from < to && from < held.to
        };
        let mut short = self.short.from((from.saturating_sub(self.longest), 0));
        short.by_ref().take_while(|entry| entry.0.0 < to).any(|entry| meets(entry.1))
            || self.long.iter().any(|owner| meets(*owner))
    }

    /// `owner` releases its range. Calls `granted` for every owner that holds its range as a
    /// result, in order of arrival.
    pub fn release(&mut self, owner: u32, mut granted: impl FnMut(u32)) {
        let held = self.owners[owner as usize];
        if held.is_short() {
            self.short.remove((held.from, held.number));
        } else {
            self.long.retain(|other| *other != owner);
        }
        self.waiting -= usize::from(held.blockers != 0);
        // The usual case, without a search for those that waited for this owner.
        if self.waiting == 0 {
            return;
        }
        self.find(&held);
        let owners = &mut self.owners;
        self.found.sort_unstable_by_key(|later| owners[*later as usize].number);
        for &later in &self.found {
            let waiting = &mut owners[later as usize];
            if waiting.number > held.number {
                waiting.blockers -= 1;
                if waiting.blockers == 0 {
                    self.waiting -= 1;
                    granted(later);
                }
            }
        }
    }

    /// Collects the owners that conflict with `held`.
    fn find(&mut self, held: &Held) {
        self.found.clear();
        let near = (held.from.saturating_sub(self.longest), 0)..(held.to, 0);
        let short = self.short.range(near).map(|entry| entry.1);
        for owner in short.chain(self.long.iter().copied()) {
            #[cfg(test)]
            {
                self.comparisons += 1;
            }
            if self.owners[owner as usize].conflicts(held) {
                self.found.push(owner);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Reference implementation: compares every owner with every other.
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

        fn touches(&self, from: u64, to: u64) -> bool {
            self.held.iter().any(|(_, held)| held.from < to && from < held.to)
        }
    }

    proptest! {
        /// Sorting by address changes neither which locks are granted nor when.
        #[test]
        fn agrees_with_comparing_all_pairs(
            work in prop::collection::vec(
                (0u32..12, 0u64..40_000, 1u64..6_000, any::<bool>()), 1..300,
            ),
        ) {
            let (mut locks, mut model) = (RangeLocks::default(), Model::default());
            let mut holds = [false; 12];
            for (owner, from, length, exclusive) in work {
                let to = from + if length % 3 == 0 { length } else { length % 64 + 1 };
                if holds[owner as usize] {
                    let mut granted = Vec::new();
                    locks.release(owner, |owner| granted.push(owner));
                    prop_assert_eq!(granted, model.release(owner));
                } else {
                    let held = locks.acquire(owner, from, to, exclusive);
                    prop_assert_eq!(held, model.acquire(owner, from, to, exclusive));
                    prop_assert_eq!(held, locks.blockers().is_empty());
                }
                holds[owner as usize] ^= true;
                for (at, end) in [(from, from + 1), (to, to + length), (length, length + 100)] {
                    prop_assert_eq!(locks.touches(at, end), model.touches(at, end));
                }
            }
        }
    }

    #[test]
    fn many_owners_cost_little() {
        let mut locks = RangeLocks::default();
        let owners = 2_000;
        for turn in 0..20_000u32 {
            let owner = turn % owners;
            if turn >= owners {
                locks.release(owner, |_| ());
            }
            let from = u64::from(turn.wrapping_mul(2_654_435_761)) % (1 << 26);
            locks.acquire(owner, from, from + 8, turn % 2 == 0);
        }
        assert!(locks.comparisons <= 2 * 20_000, "{} comparisons", locks.comparisons);
    }
}
