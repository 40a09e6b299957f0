//! Ghost lists: the numbers of recently evicted pages.

use super::CachedPage;
use super::index::PageIndex;
use super::list::Lists;
use serde::{Deserialize, Serialize};

/// Lists of page numbers in the order in which they were added, each up to a limit. A page is in
/// one of them at most, so one look-up finds it.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(bound(serialize = "[usize; N]: Serialize", deserialize = "[usize; N]: Deserialize<'de>"))]
pub struct GhostLists<const N: usize> {
    /// Slot by page.
    slots: PageIndex,
    lists: Lists<N>,
    /// Slots that are not in use, of the first `used`; the lists share them.
    free: Vec<u32>,
    used: u32,
}

impl<const N: usize> GhostLists<N> {
    /// Adds a page as the newest of a list and removes the oldest beyond `count_max`.
    #[inline]
    pub fn add(&mut self, list: usize, page: u64, count_max: usize) {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.used += 1;
            self.used - 1
        });
        if let Some(before) = self.slots.insert(page, slot) {
            self.lists.take(before);
            self.free.push(before);
        }
        self.lists.push_to(list, CachedPage { page, slot });
        self.shorten(list, count_max);
    }

    /// Removes the oldest pages of a list beyond `count_max`.
    #[inline]
    pub fn shorten(&mut self, list: usize, count_max: usize) {
        while self.lists.len_of(list) > count_max {
            let Some(oldest) = self.lists.pop_of(list) else { break };
            self.slots.remove(oldest.page);
            self.free.push(oldest.slot);
        }
    }

    /// Removes a page; returns the list it was in.
    #[inline]
    pub fn take(&mut self, page: u64) -> Option<usize> {
        let slot = self.slots.remove(page)?;
        self.free.push(slot);
        self.lists.take(slot)
    }
}

/// The lists of a policy, each of cached pages or of ghosts. Where every page has its number as its
/// slot, evicted pages stay in the lists of the cached ones; elsewhere their slots are given to
/// other pages, so they move to lists of their own, of the same numbers.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(bound(serialize = "[usize; N]: Serialize", deserialize = "[usize; N]: Deserialize<'de>"))]
pub struct CacheLists<const N: usize> {
    pub cached: Lists<N>,
    ghosts: GhostLists<N>,
    /// Pages that left the lists, where they are tracked.
    #[serde(skip)]
    forgotten: Option<Vec<u32>>,
}

impl<const N: usize> CacheLists<N> {
    /// From now on pages are numbered densely from zero; the lists must be empty.
    pub fn number_densely(&mut self) {
        self.ghosts.slots = PageIndex::dense();
    }

    /// From now on every page has its number as its slot, and [`Self::forgotten`] appends pages.
    pub fn track(&mut self) {
        self.cached.number();
        self.forgotten = Some(Vec::new());
    }

    /// Appends the slots of pages that left all lists, where they are tracked.
    #[inline(always)]
    pub fn forgotten(&mut self, out: &mut Vec<u32>) {
        let Some(forgotten) = &mut self.forgotten else { return };
        let cached = &self.cached;
        out.extend(forgotten.drain(..).filter(|slot| cached.list_of(*slot).is_none()));
    }

    /// A page leaves the cache and enters no list.
    #[inline(always)]
    pub fn forget(&mut self, page: CachedPage) {
        self.cached.take(page.slot);
        if let Some(forgotten) = &mut self.forgotten {
            forgotten.push(page.slot);
        }
    }

    /// Number of ghosts in a list.
    #[inline(always)]
    pub const fn ghosts(&self, list: usize) -> usize {
        let lists = if self.forgotten.is_some() { &self.cached } else { &self.ghosts.lists };
        lists.len_of(list)
    }

    /// A page leaves the cache as the newest ghost of a list, of which the oldest beyond
    /// `count_max` are removed.
    #[inline(always)]
    pub fn evict(&mut self, page: CachedPage, list: usize, count_max: usize) {
        if self.forgotten.is_some() {
            self.cached.renew_in(list, page);
            self.shorten(list, count_max);
        } else {
            self.cached.take(page.slot);
            self.ghosts.add(list, page.page, count_max);
        }
    }

    /// Removes the oldest ghosts of a list beyond `count_max`.
    #[inline(always)]
    pub fn shorten(&mut self, list: usize, count_max: usize) {
        if self.ghosts(list) > count_max {
            self.remove_ghosts(list, count_max);
        }
    }

    /// As [`Self::shorten`], whose check alone is small enough to be inlined.
    fn remove_ghosts(&mut self, list: usize, count_max: usize) {
        let Some(forgotten) = &mut self.forgotten else {
            return self.ghosts.shorten(list, count_max);
        };
        while self.cached.len_of(list) > count_max {
            let Some(oldest) = self.cached.pop_of(list) else { break };
            forgotten.push(oldest.slot);
        }
    }

    /// Removes a ghost; returns the list it was in.
    #[inline(always)]
    pub fn take_ghost(&mut self, page: u64) -> Option<usize> {
        match self.forgotten {
            Some(_) => self.cached.take(page as u32),
            None => self.ghosts.take(page),
        }
    }

    /// Moves a page that is no ghost to a list of ghosts.
    pub fn add_ghost(&mut self, list: usize, page: u64) {
        match self.forgotten {
            Some(_) => self.cached.push_to(list, CachedPage { page, slot: page as u32 }),
            None => self.ghosts.add(list, page, usize::MAX),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_are_removed() {
        let mut ghost = GhostLists::<1>::default();
        for page in [1, 2, 3, 1, 4] {
            ghost.add(0, page, 3);
        }
        assert_eq!(ghost.take(2), None, "1 came again, so 2 was the oldest");
        assert_eq!([1, 3, 4, 4].map(|page| ghost.take(page)), [Some(0), Some(0), Some(0), None]);
        assert_eq!(ghost.lists.len_of(0), 0);
    }

    #[test]
    fn repeated_pages_take_no_memory() {
        let mut ghost = GhostLists::<1>::default();
        for turn in 0..10_000 {
            ghost.add(0, turn % 5, 10);
            assert!(ghost.take(turn % 5).is_some() || turn < 5 || ghost.lists.len_of(0) <= 10);
            ghost.add(0, turn % 7, 10);
        }
        assert!(ghost.used <= 11, "{}", ghost.used);
    }
}
