//! Who may touch which pages: ranges of pages, shared by reads, exclusive to everything else.
//!
//! A request that overlaps an earlier one, when either is exclusive, waits until that is done. So
//! at any time nothing in flight conflicts, whatever order the media finish in, and requests for
//! the same page are served in the order they came.

/// A range of pages somebody uses or waits for.
#[derive(Clone, Copy, Debug)]
struct Held {
    owner: u32,
    number: u64,
    first: u64,
    last: u64,
    exclusive: bool,
    cleaning: bool,
    /// Earlier ones it waits for.
    waits_for: u32,
    /// Later ones that wait for it.
    waited_by: u32,
}

/// All ranges held or waited for. The cost of entering is linear in their number.
#[derive(Debug, Default)]
pub struct Flow {
    held: Vec<Held>,
    numbers: u64,
    unblocked: Vec<(u64, u32)>,
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

impl Held {
    fn conflicts(&self, first: u64, last: u64, exclusive: bool) -> bool {
        (self.exclusive || exclusive) && self.first <= last && first <= self.last
    }
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
        let (mut waits_for, mut by_cleaning) = (0, false);
        for held in &mut self.held {
            if first <= last && held.conflicts(first, last, exclusive) {
                held.waited_by += 1;
                waits_for += 1;
                by_cleaning |= held.cleaning;
            }
        }
        let number = self.numbers;
        self.numbers += 1;
        let held =
            Held { owner, number, first, last, exclusive, cleaning, waits_for, waited_by: 0 };
        self.held.push(held);
        match (waits_for, by_cleaning) {
            (0, _) => Entered::Free,
            (_, false) => Entered::Blocked,
            (_, true) => Entered::BlockedByCleaning,
        }
    }

    /// `owner` is done. Those that may go ahead now are in [`Flow::next_unblocked`].
    pub fn leave(&mut self, owner: u32) {
        let at = self.held.iter().position(|held| held.owner == owner).expect("entered before");
        let gone = self.held.swap_remove(at);
        if gone.waited_by == 0 {
            return;
        }
        let from = self.unblocked.len();
        for held in &mut self.held {
            let waited = held.number > gone.number
                && held.first <= held.last
                && held.conflicts(gone.first, gone.last, gone.exclusive);
            if waited {
                held.waits_for -= 1;
                if held.waits_for == 0 {
                    self.unblocked.push((held.number, held.owner));
                }
            }
        }
        // Popped from the end: the earliest last.
        self.unblocked[from..].sort_unstable_by(|a, b| b.cmp(a));
    }

    /// The next one that may go ahead.
    pub fn next_unblocked(&mut self) -> Option<u32> {
        self.unblocked.pop().map(|(_, owner)| owner)
    }

    /// Whether anybody uses or waits for a page.
    pub fn touches(&self, page: u64) -> bool {
        self.held.iter().any(|held| held.first <= page && page <= held.last)
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
