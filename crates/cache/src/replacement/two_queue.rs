//! 2Q: new pages enter a FIFO queue; pages that are added again soon after leaving it enter an LRU
//! list.

use super::ghost::Ghosts;
use super::list::SlotList;
use super::{Access, CachedPage, Eligible, Replacement, ReplacementEntry};
use hybridsim_config::registry::Description;
use serde::{Deserialize, Serialize};

pub const ENTRY: ReplacementEntry = ReplacementEntry {
    description: Description {
        name: "2q",
        summary: "new pages in a queue of their own; those that come back are kept by last use",
        origin: "Johnson and Shasha, VLDB 1994 (2Q, full version)",
        params: &[],
    },
    build: |_, pages| Ok(Box::new(TwoQueue::new(pages))),
};

/// The number of the ghost list.
const A1OUT: usize = 0;

/// The queues.
#[derive(Debug, Serialize, Deserialize)]
pub struct TwoQueue {
    fresh: SlotList,
    /// Pages evicted from `fresh` (A1out).
    left: Ghosts,
    kept: SlotList,
    fresh_max: usize,
    left_max: usize,
}

impl TwoQueue {
    /// A1in has a quarter of the cache, A1out as many entries as half of it.
    fn new(pages: u32) -> Self {
        let pages = pages as usize;
        Self {
            fresh: SlotList::default(),
            left: Ghosts::default(),
            kept: SlotList::default(),
            fresh_max: (pages / 4).max(1),
            left_max: (pages / 2).max(1),
        }
    }
}

impl Replacement for TwoQueue {
    fn number_densely(&mut self) -> bool {
        self.left.number_densely();
        true
    }

    fn update(&mut self, page: CachedPage, access: Access) {
        if access == Access::Add {
            match self.left.take(page.page) {
                Some(_) => self.kept.push(page),
                None => self.fresh.push(page),
            }
        } else if self.kept.contains(page) {
            self.kept.renew(page);
        }
    }

    fn remove(&mut self, page: CachedPage) {
        self.fresh.remove(page);
        self.kept.remove(page);
    }

    fn evict(&mut self, page: CachedPage) {
        if self.fresh.contains(page) {
            self.fresh.remove(page);
            self.left.add(A1OUT, page.page, self.left_max);
        } else {
            self.kept.remove(page);
            self.left.forget(page.page);
        }
    }

    fn victims(&mut self, count: usize, eligible: Eligible<'_>, out: &mut Vec<CachedPage>) {
        let wanted = out.len() + count;
        let mut fresh = self.fresh.iter().filter(|page| eligible(*page));
        let beyond = self.fresh.len().saturating_sub(self.fresh_max);
        out.extend(fresh.by_ref().take(beyond.min(count)));
        let kept = self.kept.iter().filter(|page| eligible(*page));
        out.extend(kept.take(wanted - out.len()));
        out.extend(fresh.take(wanted - out.len()));
    }

    fn evict_next(&mut self, _out: &mut Vec<CachedPage>) -> Option<CachedPage> {
        if self.fresh.len() <= self.fresh_max
            && let Some(page) = self.kept.pop()
        {
            self.left.forget(page.page);
            return Some(page);
        }
        let page = self.fresh.pop()?;
        self.left.add(A1OUT, page.page, self.left_max);
        Some(page)
    }

    fn track_ghosts(&mut self) -> bool {
        self.left.track();
        true
    }

    fn forgotten(&mut self) -> Option<u64> {
        self.left.forgotten()
    }

    fn touch(&self, slot: u32) -> u64 {
        self.kept.touch(slot)
    }
}
