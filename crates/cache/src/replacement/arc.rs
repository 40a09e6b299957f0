//! ARC: pages seen once and pages seen again share the cache in a proportion that learns from
//! which of the two should have been kept.

use super::ghost::Ghost;
use super::list::SlotList;
use super::{Access, CachedPage, Replacement, ReplacementEntry};
use hybridsim_config::registry::Description;
use rustc_hash::FxHashMap;

/// The registered entry.
pub const ENTRY: ReplacementEntry = ReplacementEntry {
    description: Description {
        name: "arc",
        summary: "pages seen once and pages seen again, in a proportion that adapts",
        origin: "Megiddo and Modha, FAST 2003 (ARC)",
        params: &[],
    },
    build: |_, pages| Ok(Box::new(Arc::new(pages))),
};

/// The lists T1, T2, B1 and B2, and the wanted length of T1.
#[derive(Debug)]
pub struct Arc {
    once: SlotList,
    again: SlotList,
    once_left: Ghost,
    again_left: Ghost,
    wanted_once: f64,
    /// Pages on their way that were found in B1 or (true) B2: they come into T2.
    coming: FxHashMap<u64, bool>,
    /// The one victims are chosen for was found in B2.
    last_was_again: bool,
    pages: usize,
}

impl Arc {
    fn new(pages: u32) -> Self {
        Self {
            once: SlotList::default(),
            again: SlotList::default(),
            once_left: Ghost::default(),
            again_left: Ghost::default(),
            wanted_once: 0.0,
            coming: FxHashMap::default(),
            last_was_again: false,
            pages: pages as usize,
        }
    }

    /// Adapts to a page that comes back (cases II and III of the paper); it is forgotten in B1 or
    /// B2. Whether it was there.
    fn adapt(&mut self, page: u64) -> bool {
        let (once, again) = (self.once_left.len() as f64, self.again_left.len() as f64);
        self.last_was_again = false;
        if self.once_left.take(page) {
            let step = (again / once).max(1.0);
            self.wanted_once = (self.wanted_once + step).min(self.pages as f64);
        } else if self.again_left.take(page) {
            let step = (once / again).max(1.0);
            self.wanted_once = (self.wanted_once - step).max(0.0);
            self.last_was_again = true;
        } else {
            return false;
        }
        true
    }

    /// T1 and B1 together are no longer than the cache.
    fn shorten(&mut self) {
        self.once_left.shorten(self.pages.saturating_sub(self.once.len()));
    }
}

impl Replacement for Arc {
    fn expect(&mut self, page: u64) {
        // A page that was told of and never came must not be known for ever.
        if self.coming.len() > self.pages {
            self.coming.clear();
        }
        if let Some(again) = self.coming.get(&page) {
            self.last_was_again = *again;
        } else if self.adapt(page) {
            self.coming.insert(page, self.last_was_again);
        }
    }

    fn update(&mut self, page: CachedPage, access: Access) {
        if access != Access::Add {
            self.once.remove(page);
            self.again.remove(page);
            self.again.push(page);
        } else if self.coming.remove(&page.page).is_some() || self.adapt(page.page) {
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
        if self.once.contains(page) {
            self.once.remove(page);
            self.once_left.add(page.page, self.pages.saturating_sub(self.once.len()).max(1));
        } else if self.again.contains(page) {
            self.again.remove(page);
            let others = self.once.len() + self.again.len() + self.once_left.len();
            self.again_left.add(page.page, (2 * self.pages).saturating_sub(others).max(1));
        }
    }

    fn victims(
        &mut self,
        count: usize,
        eligible: &dyn Fn(CachedPage) -> bool,
        out: &mut Vec<CachedPage>,
    ) {
        let wanted = out.len() + count;
        let mut once = self.once.iter().filter(|page| eligible(*page)).peekable();
        let mut again = self.again.iter().filter(|page| eligible(*page)).peekable();
        let mut left = self.once.len() as f64;
        while out.len() < wanted {
            // REPLACE of the paper: at the wanted length, what comes back to T2 decides.
            let beyond = left > self.wanted_once;
            let tie = left == self.wanted_once && self.last_was_again;
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

    /// Makes room for a page and lets it in; which one had to go.
    fn miss(arc: &mut Arc, number: u64) -> u64 {
        arc.expect(number);
        let gone = victim(arc);
        arc.evict(page(gone));
        arc.update(page(number), Access::Add);
        gone
    }

    /// Two pages used once and two used again.
    fn begun() -> Arc {
        let mut arc = Arc::new(4);
        (1..5).for_each(|number| arc.update(page(number), Access::Add));
        [3, 4].into_iter().for_each(|number| arc.update(page(number), Access::Read));
        arc
    }

    #[test]
    fn it_adapts_before_it_chooses() {
        let mut arc = begun();
        assert_eq!(miss(&mut arc, 5), 1, "the older of 1 and 2");
        // 1 is in B1: T1 is wanted one longer, two pages are in it, so it gives another one up.
        assert_eq!(miss(&mut arc, 1), 2);
        assert_eq!(arc.wanted_once, 1.0);
        // Now 2, still in B1, makes T1 wanted two long, of which it has one: T2 gives way.
        assert_eq!(miss(&mut arc, 2), 3);
        assert_eq!(arc.wanted_once, 2.0);
    }

    #[test]
    fn at_the_wanted_length_what_comes_back_to_t2_takes_from_t1() {
        let mut arc = begun();
        for number in [5, 1, 2] {
            miss(&mut arc, number);
        }
        // T1 holds 5 and is wanted two long; 3 in B2 makes that one, just what it has.
        assert_eq!((arc.once.len(), arc.wanted_once), (1, 2.0));
        assert_eq!(miss(&mut arc, 3), 5);
        assert_eq!(arc.wanted_once, 1.0);
    }

    #[test]
    fn told_twice_it_adapts_once() {
        let mut arc = begun();
        miss(&mut arc, 5);
        arc.expect(1);
        arc.expect(1);
        assert_eq!(arc.wanted_once, 1.0);
    }

    #[test]
    fn what_is_trimmed_is_not_remembered() {
        let mut arc = begun();
        arc.remove(page(1));
        arc.remove(page(3));
        assert!(arc.once_left.is_empty() && arc.again_left.is_empty());
    }

    #[test]
    fn pages_seen_once_and_those_that_left_are_no_more_than_the_cache() {
        let mut arc = Arc::new(4);
        (1..5).for_each(|number| arc.update(page(number), Access::Add));
        for number in 5..50 {
            miss(&mut arc, number);
            assert!(arc.once.len() + arc.once_left.len() <= 4, "{number}");
        }
    }
}
