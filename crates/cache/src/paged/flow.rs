//! Who may touch which pages: ranges of pages, shared by reads, exclusive to everything else.
//!
//! A request that overlaps an earlier one, when either is exclusive, waits until that is done. So
//! at any time nothing in flight conflicts, whatever order the media finish in, and requests for
//! the same page are served in the order they came.

use hybridsim_engine::range_locks::RangeLocks;

/// All ranges held or waited for.
#[derive(Debug, Default)]
pub struct Flow {
    locks: RangeLocks,
    owners: Vec<Owner>,
    unblocked: Vec<u32>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Owner {
    /// It asked for a page at all.
    holds: bool,
    cleaning: bool,
}

/// What [`Flow::enter`] found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entered {
    /// Go ahead.
    Free,
    /// Wait for other requests.
    Blocked,
    /// Wait, among others, for pages that are being cleaned.
    BlockedByCleaning,
}

impl Flow {
    /// `owner` asks for pages `first..=last`; none when `first > last`.
    pub fn enter(
        &mut self,
        owner: u32,
        (first, last): (u64, u64),
        exclusive: bool,
        cleaning: bool,
    ) -> Entered {
        let holds = first <= last;
        if self.owners.len() <= owner as usize {
            self.owners.resize(owner as usize + 1, Owner::default());
        }
        self.owners[owner as usize] = Owner { holds, cleaning };
        if !holds || self.locks.acquire(owner, first, last.saturating_add(1), exclusive) {
            return Entered::Free;
        }
        let by_cleaning = |owner: &u32| self.owners[*owner as usize].cleaning;
        match self.locks.blockers().iter().any(by_cleaning) {
            false => Entered::Blocked,
            true => Entered::BlockedByCleaning,
        }
    }

    /// `owner` is done. Those that may go ahead now are in [`Flow::next_unblocked`].
    pub fn leave(&mut self, owner: u32) {
        if !self.owners[owner as usize].holds {
            return;
        }
        let unblocked = &mut self.unblocked;
        let from = unblocked.len();
        self.locks.release(owner, |granted| unblocked.push(granted));
        // Popped from the end: the earliest last.
        unblocked[from..].reverse();
    }

    /// The next one that may go ahead.
    pub fn next_unblocked(&mut self) -> Option<u32> {
        self.unblocked.pop()
    }

    /// Whether anybody uses or waits for a page.
    pub fn touches(&self, page: u64) -> bool {
        self.locks.touches(page)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conflicting_owners_go_in_order() {
        let mut flow = Flow::default();
        assert_eq!(flow.enter(1, (0, 3), false, false), Entered::Free);
        assert_eq!(flow.enter(2, (2, 5), false, false), Entered::Free, "reads share");
        assert_eq!(flow.enter(3, (3, 3), true, false), Entered::Blocked, "a write waits for both");
        assert_eq!(flow.enter(4, (3, 3), false, false), Entered::Blocked, "behind the write");
        assert_eq!(flow.enter(5, (4, 9), false, false), Entered::Free);
        assert_eq!(flow.enter(6, (u64::MAX, 0), true, false), Entered::Free, "no page at all");
        assert_eq!(flow.enter(7, (20, 21), true, true), Entered::Free);
        assert_eq!(flow.enter(8, (21, 21), false, false), Entered::BlockedByCleaning);
        assert!(flow.touches(9) && !flow.touches(10));
        let mut leave = |owner| {
            flow.leave(owner);
            std::iter::from_fn(|| flow.next_unblocked()).collect::<Vec<_>>()
        };
        assert_eq!(leave(1), []);
        assert_eq!(leave(6), []);
        assert_eq!(leave(2), [3]);
        assert_eq!(leave(3), [4]);
        assert_eq!(leave(7), [8]);
    }

    #[test]
    fn several_go_ahead_in_the_order_they_came() {
        let mut flow = Flow::default();
        flow.enter(9, (0, 9), true, false);
        for owner in [5, 3, 8, 1] {
            flow.enter(owner, (u64::from(owner), u64::from(owner)), true, false);
        }
        flow.leave(9);
        let order: Vec<_> = std::iter::from_fn(|| flow.next_unblocked()).collect();
        assert_eq!(order, [5, 3, 8, 1]);
    }
}
