//! The cached mapping table: the part of the map that a controller caches in memory.
//!
//! Segmented LRU (Karedla, Love, Wherry 1994, as DFTL uses it): a new entry enters the probationary
//! segment, and the protected segment when it is used again; the least recently used entry of a
//! full protected segment returns to the probationary segment, whose least recently used entry is
//! evicted first. Without a protected segment it is plain LRU.
//!
//! Dirty entries are also listed by translation page, so that a write of the page includes them
//! all. Every step takes constant time.

use crate::geometry::Lpn;
use serde::{Deserialize, Serialize};

const NONE: u32 = u32::MAX;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot(u32);

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct CachedEntry {
    lpn: u32,
    /// The next entry of the same hash bucket.
    chain: u32,
    newer: u32,
    older: u32,
    /// Neighbours in the list of dirty entries of the same translation page.
    dirty_previous: u32,
    dirty_next: u32,
    protected: bool,
    dirty: bool,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Segment {
    newest: u32,
    oldest: u32,
    count: u32,
}

/// The cached mapping table; the FTL holds the addresses.
#[derive(Debug, Serialize, Deserialize)]
pub struct MappingCache {
    entries: Vec<CachedEntry>,
    buckets: Vec<u32>,
    shift: u32,
    /// Probationary, protected.
    segments: [Segment; 2],
    protected_max: u32,
    capacity: u32,
    /// The slot freed by [`MappingCache::remove`].
    vacant: u32,
    /// The first dirty entry of each translation page.
    dirty_heads: Vec<u32>,
    entries_per_page: u32,
}

impl MappingCache {
    /// A table of `capacity` entries, of which `protected_max` can be protected, for a map of
    /// `pages` translation pages.
    pub fn new(capacity: u32, protected_max: u32, pages: u32, entries_per_page: u32) -> Self {
        let empty = Segment { newest: NONE, oldest: NONE, count: 0 };
        let capacity = capacity.max(1);
        let bits = (u64::from(capacity) * 2).next_power_of_two().trailing_zeros().min(31);
        Self {
            entries: Vec::with_capacity(capacity as usize),
            buckets: vec![NONE; 1 << bits],
            shift: 32 - bits,
            segments: [empty; 2],
            protected_max: protected_max.min(capacity),
            capacity,
            vacant: NONE,
            dirty_heads: vec![NONE; pages as usize],
            entries_per_page,
        }
    }

    pub const fn capacity(&self) -> u32 {
        self.capacity
    }

    /// The translation page that holds the entry of `lpn`.
    #[inline]
    pub const fn translation_page(&self, lpn: Lpn) -> u32 {
        lpn.0 / self.entries_per_page
    }

    #[inline]
    const fn bucket(&self, lpn: u32) -> usize {
        (lpn.wrapping_mul(0x9E37_79B1) >> self.shift) as usize
    }

    #[inline]
    pub fn find(&self, lpn: Lpn) -> Option<Slot> {
        let mut at = self.buckets[self.bucket(lpn.0)];
        while at != NONE {
            let entry = &self.entries[at as usize];
            if entry.lpn == lpn.0 {
                return Some(Slot(at));
            }
            at = entry.chain;
        }
        None
    }

    #[inline]
    pub fn is_full(&self) -> bool {
        self.vacant == NONE && self.entries.len() as u32 == self.capacity
    }

    #[inline]
    pub fn lpn(&self, slot: Slot) -> Lpn {
        Lpn(self.entries[slot.0 as usize].lpn)
    }

    /// Whether the entry of `slot` differs from its translation page in flash.
    #[inline]
    pub fn is_dirty(&self, slot: Slot) -> bool {
        self.entries[slot.0 as usize].dirty
    }

    /// The entry to evict; none when the table is empty.
    #[inline]
    pub fn victim(&self) -> Option<Slot> {
        let [probation, protected] = &self.segments;
        let oldest = if probation.oldest == NONE { protected.oldest } else { probation.oldest };
        (oldest != NONE).then_some(Slot(oldest))
    }

    #[inline]
    pub fn touch(&mut self, slot: Slot) {
        let segment = usize::from(self.entries[slot.0 as usize].protected);
        self.unlink(slot.0);
        if segment == 1 || self.protected_max == 0 {
            self.link(slot.0, segment);
            return;
        }
        if self.segments[1].count == self.protected_max {
            let oldest = self.segments[1].oldest;
            self.unlink(oldest);
            self.link(oldest, 0);
        }
        self.link(slot.0, 1);
    }

    /// Inserts a clean entry of `lpn`, which must not be cached, into a table that is not full.
    #[inline]
    pub fn insert(&mut self, lpn: Lpn) -> Slot {
        debug_assert!(!self.is_full() && self.find(lpn).is_none(), "the cache is full or holds it");
        let bucket = self.bucket(lpn.0);
        let entry = CachedEntry {
            lpn: lpn.0,
            chain: self.buckets[bucket],
            newer: NONE,
            older: NONE,
            dirty_previous: NONE,
            dirty_next: NONE,
            protected: false,
            dirty: false,
        };
        let at = if self.vacant == NONE {
            self.entries.push(entry);
            self.entries.len() as u32 - 1
        } else {
            let at = std::mem::replace(&mut self.vacant, NONE);
            self.entries[at as usize] = entry;
            at
        };
        self.buckets[bucket] = at;
        self.link(at, 0);
        Slot(at)
    }

    /// Removes the entry of `slot`. At most one slot is vacant at a time.
    #[inline]
    pub fn remove(&mut self, slot: Slot) {
        debug_assert!(self.vacant == NONE && !self.is_dirty(slot), "a dirty entry would be lost");
        let CachedEntry { lpn, chain, .. } = self.entries[slot.0 as usize];
        let bucket = self.bucket(lpn);
        if self.buckets[bucket] == slot.0 {
            self.buckets[bucket] = chain;
        } else {
            let mut at = self.buckets[bucket];
            while self.entries[at as usize].chain != slot.0 {
                at = self.entries[at as usize].chain;
            }
            self.entries[at as usize].chain = chain;
        }
        self.unlink(slot.0);
        self.vacant = slot.0;
    }

    #[inline]
    pub fn mark_dirty(&mut self, slot: Slot) {
        let entry = &self.entries[slot.0 as usize];
        if entry.dirty {
            return;
        }
        let page = (entry.lpn / self.entries_per_page) as usize;
        let head = std::mem::replace(&mut self.dirty_heads[page], slot.0);
        let entry = &mut self.entries[slot.0 as usize];
        (entry.dirty, entry.dirty_previous, entry.dirty_next) = (true, NONE, head);
        if head != NONE {
            self.entries[head as usize].dirty_previous = slot.0;
        }
    }

    #[inline]
    pub fn clean(&mut self, slot: Slot) {
        let entry = &mut self.entries[slot.0 as usize];
        let (previous, next) = (entry.dirty_previous, entry.dirty_next);
        let page = (entry.lpn / self.entries_per_page) as usize;
        if !std::mem::replace(&mut entry.dirty, false) {
            return;
        }
        if previous == NONE {
            self.dirty_heads[page] = next;
        } else {
            self.entries[previous as usize].dirty_next = next;
        }
        if next != NONE {
            self.entries[next as usize].dirty_previous = previous;
        }
    }

    /// A dirty entry of translation page `page`, if any.
    #[inline]
    pub fn any_dirty(&self, page: u32) -> Option<Slot> {
        let head = self.dirty_heads[page as usize];
        (head != NONE).then_some(Slot(head))
    }

    #[inline]
    fn link(&mut self, at: u32, segment: usize) {
        let newest = std::mem::replace(&mut self.segments[segment].newest, at);
        let entry = &mut self.entries[at as usize];
        (entry.newer, entry.older, entry.protected) = (NONE, newest, segment == 1);
        if newest == NONE {
            self.segments[segment].oldest = at;
        } else {
            self.entries[newest as usize].newer = at;
        }
        self.segments[segment].count += 1;
    }

    #[inline]
    fn unlink(&mut self, at: u32) {
        let CachedEntry { newer, older, protected, .. } = self.entries[at as usize];
        let segment = &mut self.segments[usize::from(protected)];
        segment.count -= 1;
        if newer == NONE {
            segment.newest = older;
        }
        if older == NONE {
            segment.oldest = newer;
        }
        if newer != NONE {
            self.entries[newer as usize].older = older;
        }
        if older != NONE {
            self.entries[older as usize].newer = newer;
        }
    }

    pub fn audit(&self) -> Result<(), String> {
        let cached = self.entries.len() as u32 - u32::from(self.vacant != NONE);
        let (mut found, mut dirty) = (0, 0);
        for segment in &self.segments {
            let (mut at, mut count) = (segment.newest, 0);
            while at != NONE && count <= cached {
                let entry = &self.entries[at as usize];
                if self.find(Lpn(entry.lpn)) != Some(Slot(at)) {
                    return Err(format!("cached page {} is not in the index", entry.lpn));
                }
                dirty += u32::from(entry.dirty);
                (at, count) = (entry.older, count + 1);
            }
            if count != segment.count {
                return Err(format!("{count} entries in a segment of {}", segment.count));
            }
            found += count;
        }
        let mut listed = 0;
        for &head in &self.dirty_heads {
            let mut at = head;
            while at != NONE && listed <= cached {
                (at, listed) = (self.entries[at as usize].dirty_next, listed + 1);
            }
        }
        if (cached, dirty) != (found, listed) || self.segments[1].count > self.protected_max {
            return Err(format!("{cached} cached, {found} listed; {dirty} dirty, {listed} listed"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn use_page(cache: &mut MappingCache, lpn: u32) {
        match cache.find(Lpn(lpn)) {
            Some(slot) => cache.touch(slot),
            None => {
                if cache.is_full() {
                    let victim = cache.victim().expect("a full table has a victim");
                    cache.clean(victim);
                    cache.remove(victim);
                }
                let slot = cache.insert(Lpn(lpn));
                cache.mark_dirty(slot);
            }
        }
        cache.audit().expect("consistent lists");
    }

    fn cached(capacity: u32, protected: u32, uses: &[u32]) -> Vec<u32> {
        let mut cache = MappingCache::new(capacity, protected, 10, 10);
        uses.iter().for_each(|&lpn| use_page(&mut cache, lpn));
        (0..100).filter(|&lpn| cache.find(Lpn(lpn)).is_some()).collect()
    }

    #[test]
    fn without_a_protected_segment_the_least_recently_used_entry_is_evicted() {
        assert_eq!(cached(3, 0, &[1, 2, 3, 1, 4]), [1, 3, 4]);
        assert_eq!(cached(1, 0, &[1, 2, 2, 3]), [3]);
    }

    #[test]
    fn an_entry_used_twice_survives_a_scan() {
        assert_eq!(cached(4, 2, &[1, 1, 2, 3, 4, 5, 6, 7]), [1, 5, 6, 7]);
    }

    #[test]
    fn an_entry_that_loses_protection_becomes_probationary() {
        // 1 and 2 are protected, then 3 replaces 1, which outlives the older 4.
        assert_eq!(cached(4, 2, &[1, 2, 3, 4, 1, 2, 3, 5]), [1, 2, 3, 5]);
        assert_eq!(cached(2, 2, &[1, 2, 1, 2, 3, 4]), [2, 4]);
    }

    #[test]
    fn dirty_entries_are_found_by_translation_page() {
        let mut cache = MappingCache::new(8, 4, 10, 10);
        for lpn in [11, 25, 13, 19] {
            use_page(&mut cache, lpn);
        }
        let mut found = Vec::new();
        while let Some(slot) = cache.any_dirty(1) {
            found.push(cache.lpn(slot).0);
            cache.clean(slot);
        }
        assert_eq!(found, [19, 13, 11]);
        assert!(cache.any_dirty(2).is_some() && cache.any_dirty(0).is_none());
    }
}
