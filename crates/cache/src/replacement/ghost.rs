//! Ghost lists: the numbers of recently evicted pages.

use super::CachedPage;
use super::index::PageIndex;
use super::list::SlotList;
use serde::{Deserialize, Serialize};

/// Two lists of page numbers in the order in which they were added, each up to a limit. A page is
/// in one of them at most, so one look-up finds it. Where pages that leave the lists are tracked,
/// page numbers are small and reused, and a page has its number as its slot.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Ghosts {
    /// By page, twice its slot in its list, plus the number of that list.
    entries: PageIndex,
    lists: [SlotList; 2],
    /// Slots that are not in use, of the first `used`; both lists share them.
    free: Vec<u32>,
    used: u32,
    /// Pages that left the lists and are not cached, where they are tracked.
    #[serde(skip)]
    forgotten: Option<Vec<u64>>,
}

impl Ghosts {
    /// From now on pages are numbered densely from zero; the lists must be empty.
    pub fn number_densely(&mut self) {
        debug_assert!(self.entries.is_empty());
        self.entries = PageIndex::dense();
    }

    /// From now on [`Self::forgotten`] returns pages.
    pub fn track(&mut self) {
        self.forgotten = Some(Vec::new());
    }

    /// As [`super::Replacement::forgotten`].
    #[inline]
    pub fn forgotten(&mut self) -> Option<u64> {
        self.forgotten.as_mut()?.pop()
    }

    /// A page leaves the cache and is in no list.
    #[inline]
    pub fn forget(&mut self, page: u64) {
        if let Some(forgotten) = &mut self.forgotten {
            forgotten.push(page);
        }
    }

    /// Number of pages of a list.
    pub fn len(&self, list: usize) -> usize {
        self.lists[list].len()
    }

    /// Adds a page as the newest of a list and removes the oldest beyond `count_max`.
    #[inline]
    pub fn add(&mut self, list: usize, page: u64, count_max: usize) {
        if self.forgotten.is_some() {
            self.take(page);
            self.lists[list].push(CachedPage { page, slot: page as u32 });
            return self.shorten(list, count_max);
        }
        let slot = self.free.pop().unwrap_or_else(|| {
            self.used += 1;
            self.used - 1
        });
        if let Some(entry) = self.entries.insert(page, 2 * slot + list as u32) {
            self.unlist(page, entry);
        }
        self.lists[list].push(CachedPage { page, slot });
        self.shorten(list, count_max);
    }

    /// Removes the oldest pages of a list beyond `count_max`.
    #[inline]
    pub fn shorten(&mut self, list: usize, count_max: usize) {
        while self.lists[list].len() > count_max {
            let Some(oldest) = self.lists[list].pop() else { break };
            match &mut self.forgotten {
                Some(forgotten) => forgotten.push(oldest.page),
                None => {
                    self.entries.remove(oldest.page);
                    self.free.push(oldest.slot);
                }
            }
        }
    }

    /// Removes a page; returns the list it was in.
    #[inline]
    pub fn take(&mut self, page: u64) -> Option<usize> {
        if self.forgotten.is_some() {
            let listed = CachedPage { page, slot: page as u32 };
            let list = (0..2).find(|list| self.lists[*list].contains(listed))?;
            self.lists[list].remove(listed);
            return Some(list);
        }
        let entry = self.entries.remove(page)?;
        Some(self.unlist(page, entry))
    }

    #[inline]
    fn unlist(&mut self, page: u64, entry: u32) -> usize {
        let (slot, list) = (entry / 2, entry as usize % 2);
        self.lists[list].remove(CachedPage { page, slot });
        self.free.push(slot);
        list
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_are_removed() {
        let mut ghost = Ghosts::default();
        for page in [1, 2, 3, 1, 4] {
            ghost.add(0, page, 3);
        }
        assert_eq!(ghost.take(2), None, "1 came again, so 2 was the oldest");
        assert_eq!([1, 3, 4, 4].map(|page| ghost.take(page)), [Some(0), Some(0), Some(0), None]);
        assert_eq!(ghost.len(0), 0);
    }

    #[test]
    fn repeated_pages_take_no_memory() {
        let mut ghost = Ghosts::default();
        for turn in 0..10_000 {
            ghost.add(0, turn % 5, 10);
            assert!(ghost.take(turn % 5).is_some() || turn < 5 || ghost.len(0) <= 10);
            ghost.add(0, turn % 7, 10);
        }
        assert!(ghost.used <= 11, "{}", ghost.used);
    }
}
