//! ARC: pages referenced once and pages referenced again share the cache; the target sizes adapt to
//! hits in the ghost lists.

use super::ghost::Ghosts;
use super::index::PageIndex;
use super::list::SlotList;
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

/// The numbers of the ghost lists.
const B1: usize = 0;
const B2: usize = 1;

/// The lists T1, T2, B1 and B2, and the target length of T1.
#[derive(Debug, Serialize, Deserialize)]
pub struct Arc {
    once: SlotList,
    again: SlotList,
    /// B1 and B2.
    ghosts: Ghosts,
    target_once: f64,
    /// Expected pages found in B1 (0) or B2 (1), which will enter T2.
    expected: PageIndex,
    /// The last expected page, if it was in neither.
    unknown: Option<u64>,
    /// The page that victims are chosen for was found in B2.
    last_was_again: bool,
    pages: usize,
}

impl Arc {
    fn new(pages: u32) -> Self {
        Self {
            once: SlotList::default(),
            again: SlotList::default(),
            ghosts: Ghosts::default(),
            target_once: 0.0,
            expected: PageIndex::default(),
            unknown: None,
            last_was_again: false,
            pages: pages as usize,
        }
    }

    /// Adapts to a page found in B1 or B2 (cases II and III of the paper), and removes it there.
    /// Returns whether it was found.
    fn adapt(&mut self, page: u64) -> bool {
        let (once, again) = (self.ghosts.len(B1), self.ghosts.len(B2));
        self.last_was_again = false;
        match self.ghosts.take(page) {
            Some(B1) => {
                let step = (again as f64 / once as f64).max(1.0);
                self.target_once = (self.target_once + step).min(self.pages as f64);
            }
            Some(_) => {
                let step = (once as f64 / again as f64).max(1.0);
                self.target_once = (self.target_once - step).max(0.0);
                self.last_was_again = true;
            }
            None => return false,
        }
        true
    }

    /// Limits T1 and B1 together to the size of the cache.
    fn shorten(&mut self) {
        self.ghosts.shorten(B1, self.pages.saturating_sub(self.once.len()));
    }
}

impl Replacement for Arc {
    fn number_densely(&mut self) -> bool {
        self.ghosts.number_densely();
        self.expected = PageIndex::dense();
        true
    }

    fn expect(&mut self, page: u64) {
        // Drops expected pages that were never added.
        if self.expected.len() > self.pages {
            self.expected.clear();
        }
        if let Some(again) = self.expected.get(page) {
            self.last_was_again = again == 1;
        } else if self.adapt(page) {
            self.expected.insert(page, u32::from(self.last_was_again));
        } else {
            self.unknown = Some(page);
        }
    }

    fn update(&mut self, page: CachedPage, access: Access) {
        if access != Access::Add {
            if self.again.contains(page) {
                return self.again.renew(page);
            }
            self.once.remove(page);
            self.again.push(page);
        } else if self.unknown.take_if(|unknown| *unknown == page.page).is_some() {
            self.last_was_again = false;
            self.once.push(page);
            self.shorten();
        } else if self.expected.remove(page.page).is_some() || self.adapt(page.page) {
            self.again.push(page);
        } else {
            self.once.push(page);
            self.shorten();
        }
    }

    fn remove(&mut self, page: CachedPage) {
        self.once.remove(page);
        self.again.remove(page);
    }

    fn evict(&mut self, page: CachedPage) {
        // It may be in a ghost list from now on.
        self.unknown.take_if(|unknown| *unknown == page.page);
        if self.once.contains(page) {
            self.once.remove(page);
            self.ghosts.add(B1, page.page, self.pages.saturating_sub(self.once.len()).max(1));
        } else if self.again.contains(page) {
            self.again.remove(page);
            let others = self.once.len() + self.again.len() + self.ghosts.len(B1);
            self.ghosts.add(B2, page.page, (2 * self.pages).saturating_sub(others).max(1));
        }
    }

    fn victims(&mut self, count: usize, eligible: Eligible<'_>, out: &mut Vec<CachedPage>) {
        let wanted = out.len() + count;
        let mut once = self.once.iter().filter(|page| eligible(*page)).peekable();
        let mut again = self.again.iter().filter(|page| eligible(*page)).peekable();
        let mut left = self.once.len() as f64;
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

    fn evict_next(&mut self, _out: &mut Vec<CachedPage>) -> Option<CachedPage> {
        let left = self.once.len() as f64;
        let tie = left == self.target_once && self.last_was_again;
        let from_once = !self.once.is_empty() && (left > self.target_once || tie);
        self.last_was_again = false;
        let list = if from_once || self.again.is_empty() { &self.once } else { &self.again };
        let page = list.oldest()?;
        self.evict(page);
        Some(page)
    }

    fn track_ghosts(&mut self) -> bool {
        self.ghosts.track();
        true
    }

    fn forgotten(&mut self) -> Option<u64> {
        self.ghosts.forgotten()
    }

    fn touch(&self, slot: u32) -> u64 {
        self.once.touch(slot) ^ self.again.touch(slot)
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
        assert_eq!((arc.once.len(), arc.target_once), (1, 2.0));
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
        assert!(arc.ghosts.len(B1) + arc.ghosts.len(B2) == 0);
    }

    #[test]
    fn t1_and_b1_are_no_longer_than_the_cache() {
        let mut arc = Arc::new(4);
        (1..5).for_each(|number| arc.update(page(number), Access::Add));
        for number in 5..50 {
            miss(&mut arc, number);
            assert!(arc.once.len() + arc.ghosts.len(B1) <= 4, "{number}");
        }
    }
}
