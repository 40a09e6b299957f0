//! Page locks: ranges of pages, shared by reads and exclusive to everything else.
//!
//! A request that overlaps an earlier one, when either is exclusive, waits until that one has
//! completed. No two requests in flight conflict, whatever order the media complete them in, and
//! requests for the same page are served in order of arrival.

use hybridsim_engine::range_locks::RangeLocks;

/// All page ranges that are locked or waited for.
#[derive(Debug, Default)]
pub struct PageLocks {
    locks: RangeLocks,
    owners: Vec<Owner>,
    granted: Vec<u32>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Owner {
    /// The range is not empty.
    holds: bool,
    destages: bool,
}

/// The result of [`PageLocks::acquire`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lock {
    /// Locked.
    Granted,
    /// Waits for other requests.
    Blocked,
    /// Waits for pages that are being destaged, among others.
    BlockedByDestage,
}

impl PageLocks {
    /// `owner` requests pages `first..=last`; none when `first > last`.
    pub fn acquire(
        &mut self,
        owner: u32,
        (first, last): (u64, u64),
        exclusive: bool,
        destages: bool,
    ) -> Lock {
        let holds = first <= last;
        if self.owners.len() <= owner as usize {
            self.owners.resize(owner as usize + 1, Owner::default());
        }
        self.owners[owner as usize] = Owner { holds, destages };
        if !holds || self.locks.acquire(owner, first, last.saturating_add(1), exclusive) {
            return Lock::Granted;
        }
        let destages = |owner: &u32| self.owners[*owner as usize].destages;
        match self.locks.blockers().iter().any(destages) {
            false => Lock::Blocked,
            true => Lock::BlockedByDestage,
        }
    }

    /// Releases the pages of `owner`. [`PageLocks::next_granted`] returns the owners this unblocks.
    pub fn release(&mut self, owner: u32) {
        if !self.owners[owner as usize].holds {
            return;
        }
        let granted = &mut self.granted;
        let from = granted.len();
        self.locks.release(owner, |unblocked| granted.push(unblocked));
        // Popped from the end: the earliest last.
        granted[from..].reverse();
    }

    /// The next owner whose lock has been granted.
    pub fn next_granted(&mut self) -> Option<u32> {
        self.granted.pop()
    }

    /// Whether any owner holds or waits for a page.
    pub fn is_locked(&self, page: u64) -> bool {
        self.locks.touches(page, page + 1)
    }

    /// Whether any owner holds or waits for a page of `first..end`.
    pub fn is_any_locked(&self, first: u64, end: u64) -> bool {
        self.locks.touches(first, end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conflicting_owners_are_served_in_order() {
        let mut locks = PageLocks::default();
        assert_eq!(locks.acquire(1, (0, 3), false, false), Lock::Granted);
        assert_eq!(locks.acquire(2, (2, 5), false, false), Lock::Granted, "reads share");
        assert_eq!(locks.acquire(3, (3, 3), true, false), Lock::Blocked, "a write waits for both");
        assert_eq!(locks.acquire(4, (3, 3), false, false), Lock::Blocked, "queued after the write");
        assert_eq!(locks.acquire(5, (4, 9), false, false), Lock::Granted);
        assert_eq!(locks.acquire(6, (u64::MAX, 0), true, false), Lock::Granted, "an empty range");
        assert_eq!(locks.acquire(7, (20, 21), true, true), Lock::Granted);
        assert_eq!(locks.acquire(8, (21, 21), false, false), Lock::BlockedByDestage);
        assert!(locks.is_locked(9) && !locks.is_locked(10));
        let mut release = |owner| {
            locks.release(owner);
            std::iter::from_fn(|| locks.next_granted()).collect::<Vec<_>>()
        };
        assert_eq!(release(1), []);
        assert_eq!(release(6), []);
        assert_eq!(release(2), [3]);
        assert_eq!(release(3), [4]);
        assert_eq!(release(7), [8]);
    }

    #[test]
    fn locks_are_granted_in_order_of_arrival() {
        let mut locks = PageLocks::default();
        locks.acquire(9, (0, 9), true, false);
        for owner in [5, 3, 8, 1] {
            locks.acquire(owner, (u64::from(owner), u64::from(owner)), true, false);
        }
        locks.release(9);
        let order: Vec<_> = std::iter::from_fn(|| locks.next_granted()).collect();
        assert_eq!(order, [5, 3, 8, 1]);
    }
}
