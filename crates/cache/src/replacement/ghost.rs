//! Ghost lists: the numbers of recently evicted pages.

use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// Page numbers in the order in which they were added, up to a limit.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Ghost {
    order: VecDeque<(u64, u64)>,
    /// The turn at which a page was last added; other entries of it in `order` are stale.
    turns: FxHashMap<u64, u64>,
    turn: u64,
}

impl Ghost {
    /// Number of pages.
    pub fn len(&self) -> usize {
        self.turns.len()
    }

    /// Whether the list is empty.
    pub fn is_empty(&self) -> bool {
        self.turns.is_empty()
    }

    /// Adds a page as the newest and removes the oldest beyond `count_max`.
    pub fn add(&mut self, page: u64, count_max: usize) {
        self.turn += 1;
        self.turns.insert(page, self.turn);
        self.order.push_back((page, self.turn));
        self.shorten(count_max);
    }

    /// Removes the oldest pages beyond `count_max`.
    pub fn shorten(&mut self, count_max: usize) {
        while self.turns.len() > count_max || self.order.len() > 2 * count_max.max(8) {
            let Some((page, turn)) = self.order.pop_front() else { break };
            if self.turns.get(&page) != Some(&turn) {
                continue;
            }
            if self.turns.len() > count_max {
                self.turns.remove(&page);
            } else {
                // Not stale and within the limit: `order` has too many stale entries.
                self.order.push_back((page, turn));
                self.compact();
            }
        }
    }

    fn compact(&mut self) {
        let turns = &self.turns;
        self.order.retain(|(page, turn)| turns.get(page) == Some(turn));
        self.order.make_contiguous().sort_unstable_by_key(|(_, turn)| *turn);
    }

    /// Removes a page; returns whether it was in the list.
    pub fn take(&mut self, page: u64) -> bool {
        self.turns.remove(&page).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_are_removed() {
        let mut ghost = Ghost::default();
        for page in [1, 2, 3, 1, 4] {
            ghost.add(page, 3);
        }
        assert!(!ghost.take(2), "1 came again, so 2 was the oldest");
        assert!(ghost.take(1) && ghost.take(3) && ghost.take(4) && !ghost.take(4));
        assert!(ghost.is_empty());
    }

    #[test]
    fn repeated_pages_take_no_memory() {
        let mut ghost = Ghost::default();
        for turn in 0..10_000 {
            ghost.add(turn % 5, 10);
            assert!(ghost.take(turn % 5) || turn < 5 || ghost.len() <= 10);
            ghost.add(turn % 7, 10);
        }
        assert!(ghost.order.len() <= 20, "{}", ghost.order.len());
    }
}
