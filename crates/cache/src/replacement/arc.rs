//! ARC: pages referenced once and pages referenced again share the cache; the target sizes adapt to
//! hits in the ghost lists.

use super::ghost::CacheLists;
use super::{Access, CachedPage, Eligible, Replacement, ReplacementEntry};
use hybridsim_config::registry::Description;
use serde::{Deserialize, Serialize};

pub const ENTRY: ReplacementEntry = ReplacementEntry {
    description: Description {
        name: "arc",
        summary: "adaptive replacement cache: recency and frequency lists with adaptive sizes",
        origin: "Megiddo and Modha, FAST 2003 (ARC)",
        params: &[],
    },
    build: |_, pages| Ok(Box::new(Arc::new(pages))),
};

/// The lists: of cached pages, of ghosts, and of expected pages found among these, which will enter
/// T2.
const T1: usize = 0;
const T2: usize = 1;
const B1: usize = 2;
const B2: usize = 3;
const EXPECTED_B1: usize = 4;
const EXPECTED_B2: usize = 5;

/// The lists, and the target length of T1.
#[derive(Debug, Serialize, Deserialize)]
pub struct Arc {
    lists: CacheLists<6>,
    target_once: f64,
    /// The page that victims are chosen for was found in B2.
    last_was_again: bool,
    pages: usize,
}

impl Arc {
    fn new(pages: u32) -> Self {
        let pages = pages as usize;
        Self { lists: CacheLists::default(), target_once: 0.0, last_was_again: false, pages }
    }

    /// Length of T1.
    const fn once(&self) -> usize {
        self.lists.cached.len_of(T1)
    }

    /// The limit of B2.
    fn again_max(&self) -> usize {
        let others = self.once() + self.lists.cached.len_of(T2) + self.lists.ghosts(B1);
        (2 * self.pages).saturating_sub(others)
    }

    /// Removes a page from the ghosts and adapts to it (cases II and III of the paper), unless it
    /// was expected; returns the list it was in.
    #[inline(always)]
    fn adapt(&mut self, page: u64) -> Option<usize> {
        let lengths = [B1, B2].map(|list| self.lists.ghosts(list));
        let found = self.lists.take_ghost(page)?;
        let [once, again] = lengths.map(|length| length as f64);
        if found == B1 {
            let step = (again / once).max(1.0);
            self.target_once = (self.target_once + step).min(self.pages as f64);
        } else if found == B2 {
            let step = (once / again).max(1.0);
            self.target_once = (self.target_once - step).max(0.0);
        }
        Some(found)
    }
}

impl Replacement for Arc {
    fn number_densely(&mut self) -> bool {
        self.lists.number_densely();
        true
    }

    fn expect(&mut self, page: u64) {
        // Drops expected pages that were never added.
        if self.lists.ghosts(EXPECTED_B1) + self.lists.ghosts(EXPECTED_B2) > self.pages {
            self.lists.shorten(EXPECTED_B1, 0);
            self.lists.shorten(EXPECTED_B2, 0);
        }
        let found = self.adapt(page);
        self.last_was_again = matches!(found, Some(B2 | EXPECTED_B2));
        if found.is_some() {
            let list = if self.last_was_again { EXPECTED_B2 } else { EXPECTED_B1 };
            self.lists.add_ghost(list, page);
        }
    }

    #[inline(always)]
    fn update(&mut self, page: CachedPage, access: Access) {
        if access != Access::Add {
            return self.lists.cached.renew_in(T2, page);
        }
        let found = self.adapt(page.page);
        if !matches!(found, Some(EXPECTED_B1 | EXPECTED_B2)) {
            self.last_was_again = found == Some(B2);
        }
        if found.is_some() {
            self.lists.cached.push_to(T2, page);
        } else {
            self.lists.cached.push_to(T1, page);
            // T1 and B1 together are limited to the size of the cache, all lists to twice that.
            self.lists.shorten(B1, self.pages.saturating_sub(self.once()));
            self.lists.shorten(B2, self.again_max());
        }
    }

    fn remove(&mut self, page: CachedPage) {
        self.lists.cached.remove(page);
    }

    #[inline(always)]
    fn evict(&mut self, page: CachedPage) {
        match self.lists.cached.list_of(page.slot) {
            Some(T1) => {
                let others = self.once() - 1;
                self.lists.evict(page, B1, self.pages.saturating_sub(others).max(1));
            }
            Some(T2) => {
                self.lists.evict(page, B2, self.again_max() + 1);
            }
            _ => {}
        }
    }

    fn victims(&mut self, count: usize, eligible: Eligible<'_>, out: &mut Vec<CachedPage>) {
        let wanted = out.len() + count;
        let cached = &self.lists.cached;
        let mut once = cached.iter_of(T1).filter(|page| eligible(*page)).peekable();
        let mut again = cached.iter_of(T2).filter(|page| eligible(*page)).peekable();
        let mut left = self.once() as f64;
        while out.len() < wanted {
            // REPLACE of the paper: at the target length, a hit in B2 decides.
            let beyond = left > self.target_once;
            let tie = left == self.target_once && self.last_was_again;
            let from_once = left > 0.0 && (beyond || tie);
            let next = match (from_once, once.peek().is_some(), again.peek().is_some()) {
                (_, false, false) => break,
                (true, true, _) | (false, true, false) => {
                    left -= 1.0;
                    once.next()
                }
                _ => again.next(),
            };
            out.extend(next);
        }
        self.last_was_again = false;
    }

    #[inline(always)]
    fn evict_next(&mut self, _out: &mut Vec<CachedPage>) -> Option<CachedPage> {
        let left = self.once() as f64;
        let tie = left == self.target_once && self.last_was_again;
        let from_once = left > 0.0 && (left > self.target_once || tie);
        self.last_was_again = false;
        let cached = &self.lists.cached;
        let list = if from_once || cached.len_of(T2) == 0 { T1 } else { T2 };
        let page = cached.oldest_of(list)?;
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

#[cfg(test)]
mod tests {
    use super::*;

    fn page(page: u64) -> CachedPage {
        CachedPage { page, slot: page as u32 }
    }

    fn victim(arc: &mut Arc) -> u64 {
        let mut out = Vec::new();
        arc.victims(1, &|_| true, &mut out);
        out[0].page
    }

    /// Evicts a page and adds another; returns the evicted one.
    fn miss(arc: &mut Arc, number: u64) -> u64 {
        arc.expect(number);
        let gone = victim(arc);
        arc.evict(page(gone));
        arc.update(page(number), Access::Add);
        gone
    }

    /// Two pages used once and two used again.
    fn warm() -> Arc {
        let mut arc = Arc::new(4);
        (1..5).for_each(|number| arc.update(page(number), Access::Add));
        [3, 4].into_iter().for_each(|number| arc.update(page(number), Access::Read));
        arc
    }

    #[test]
    fn it_adapts_before_it_chooses() {
        let mut arc = warm();
        assert_eq!(miss(&mut arc, 5), 1, "the older of 1 and 2");
        // 1 is in B1: the target of T1 becomes one; T1 has two pages and loses one.
        assert_eq!(miss(&mut arc, 1), 2);
        assert_eq!(arc.target_once, 1.0);
        // 2 is still in B1: the target of T1 becomes two; T1 has one page, so T2 loses one.
        assert_eq!(miss(&mut arc, 2), 3);
        assert_eq!(arc.target_once, 2.0);
    }

    #[test]
    fn at_the_target_length_a_hit_in_b2_evicts_from_t1() {
        let mut arc = warm();
        for number in [5, 1, 2] {
            miss(&mut arc, number);
        }
        // T1 holds 5 with a target of two; 3 in B2 makes that one, its length.
        assert_eq!((arc.once(), arc.target_once), (1, 2.0));
        assert_eq!(miss(&mut arc, 3), 5);
        assert_eq!(arc.target_once, 1.0);
    }

    #[test]
    fn a_page_announced_twice_adapts_once() {
        let mut arc = warm();
        miss(&mut arc, 5);
        arc.expect(1);
        arc.expect(1);
        assert_eq!(arc.target_once, 1.0);
    }

    #[test]
    fn trimmed_pages_enter_no_ghost_list() {
        let mut arc = warm();
        arc.remove(page(1));
        arc.remove(page(3));
        assert!(arc.lists.ghosts(B1) + arc.lists.ghosts(B2) == 0);
    }

    #[test]
    fn t1_and_b1_are_no_longer_than_the_cache() {
        let mut arc = Arc::new(4);
        (1..5).for_each(|number| arc.update(page(number), Access::Add));
        for number in 5..50 {
            miss(&mut arc, number);
            assert!(arc.once() + arc.lists.ghosts(B1) <= 4, "{number}");
        }
    }
}
