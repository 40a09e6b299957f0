//! 2Q: new pages enter a FIFO queue; pages that are added again soon after leaving it enter an LRU
//! list.

use super::ghost::CacheLists;
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

/// The lists: A1in, Am and A1out.
const FRESH: usize = 0;
const KEPT: usize = 1;
const LEFT: usize = 2;

/// The lists, and the limits of A1in and A1out.
#[derive(Debug, Serialize, Deserialize)]
pub struct TwoQueue {
    lists: CacheLists<3>,
    fresh_max: usize,
    left_max: usize,
}

impl TwoQueue {
    /// A1in has a quarter of the cache, A1out as many entries as half of it.
    fn new(pages: u32) -> Self {
        let pages = pages as usize;
        Self {
            lists: CacheLists::default(),
            fresh_max: (pages / 4).max(1),
            left_max: (pages / 2).max(1),
        }
    }
}

impl Replacement for TwoQueue {
    fn number_densely(&mut self) -> bool {
        self.lists.number_densely();
        true
    }

    fn update(&mut self, page: CachedPage, access: Access) {
        if access == Access::Add {
            let list = if self.lists.take_ghost(page.page).is_some() { KEPT } else { FRESH };
            self.lists.cached.push_to(list, page);
        } else if self.lists.cached.list_of(page.slot) == Some(KEPT) {
            self.lists.cached.renew_in(KEPT, page);
        }
    }

    fn remove(&mut self, page: CachedPage) {
        self.lists.cached.remove(page);
    }

    fn evict(&mut self, page: CachedPage) {
        if self.lists.cached.list_of(page.slot) == Some(FRESH) {
            self.lists.evict(page, LEFT, self.left_max);
        } else {
            self.lists.forget(page);
        }
    }

    fn victims(&mut self, count: usize, eligible: Eligible<'_>, out: &mut Vec<CachedPage>) {
        let wanted = out.len() + count;
        let cached = &self.lists.cached;
        let mut fresh = cached.iter_of(FRESH).filter(|page| eligible(*page));
        let beyond = cached.len_of(FRESH).saturating_sub(self.fresh_max);
        out.extend(fresh.by_ref().take(beyond.min(count)));
        let kept = cached.iter_of(KEPT).filter(|page| eligible(*page));
        out.extend(kept.take(wanted - out.len()));
        out.extend(fresh.take(wanted - out.len()));
    }

    fn evict_next(&mut self, _out: &mut Vec<CachedPage>) -> Option<CachedPage> {
        let cached = &self.lists.cached;
        let spared = cached.len_of(FRESH) <= self.fresh_max && cached.len_of(KEPT) > 0;
        let page = cached.oldest_of(if spared { KEPT } else { FRESH })?;
        self.evict(page);
        Some(page)
    }

    fn number_slots(&mut self) -> bool {
        self.lists.track();
        true
    }

    fn forgotten(&mut self, out: &mut Vec<u32>) {
        self.lists.forgotten(out);
    }

    fn touch(&self, slot: u32) -> u64 {
        self.lists.cached.touch(slot)
    }
}
