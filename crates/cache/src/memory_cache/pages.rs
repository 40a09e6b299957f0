//! The pages of a memory cache: what each holds, and the eviction order.
//!
//! Pages that may be evicted are indexed by their rank in the eviction order, so that finding the
//! next one takes logarithmic time however many dirty or pinned pages precede it.

use crate::replacement::CachedPage;
use crate::replacement::list::SlotList;
use hybridsim_engine::Stream;
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// The eviction order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum EvictionOrder {
    Fifo,
    Lru,
    /// Segmented LRU: pages used again are in a protected segment of this many pages.
    Slru(usize),
    Random,
    Lifo,
}

/// A page: one bit per sector.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct CachePage {
    /// Page number on the device.
    pub number: u64,
    pub valid: u64,
    /// Sectors the device does not have yet.
    pub dirty: u64,
    /// Whether a write-back of some of it is outstanding.
    pub flushing: bool,
    /// Requests that prevent its eviction.
    pub pins: u32,
    /// Number of the write that made it dirty.
    pub since: u64,
    /// Position in the eviction order.
    rank: u64,
}

impl CachePage {
    /// Whether the page may be evicted; in `strict` order, after a write-back if it is dirty.
    fn evictable(&self, strict: bool) -> bool {
        (strict || self.dirty == 0) && !self.flushing && self.pins == 0
    }
}

/// Rank of protected pages: after all others.
const PROTECTED: u64 = 1 << 63;

/// All pages of a cache.
#[derive(Debug, Serialize, Deserialize)]
pub struct PageTable {
    slots: Vec<CachePage>,
    free: Vec<u32>,
    by_number: FxHashMap<u64, u32>,
    /// Dirty pages keep their turn in the eviction order.
    strict: bool,
    /// Evictable pages by rank.
    evictable: BTreeSet<(u64, u32)>,
    /// Dirty pages in the order in which they became dirty.
    dirty: SlotList,
    /// The protected segment, least recently used first.
    protected: SlotList,
    order: EvictionOrder,
    ticks: u64,
    writes: u64,
    stream: Stream,
}

impl PageTable {
    /// `count` free pages. The page evicted next is the first clean one or, with `strict`, the
    /// first one, which is written back if it is dirty.
    pub fn new(count: u32, order: EvictionOrder, strict: bool, stream: Stream) -> Self {
        Self {
            slots: vec![CachePage::default(); count as usize],
            free: (0..count).rev().collect(),
            by_number: FxHashMap::default(),
            strict,
            evictable: BTreeSet::new(),
            dirty: SlotList::default(),
            protected: SlotList::default(),
            order,
            ticks: 0,
            writes: 0,
            stream,
        }
    }

    /// Number of pages.
    pub fn count(&self) -> usize {
        self.slots.len()
    }

    /// Whether `other` has the same size and eviction order.
    pub fn is_like(&self, other: &Self) -> bool {
        self.count() == other.count() && (self.order, self.strict) == (other.order, other.strict)
    }

    /// Free and evictable pages.
    pub fn available(&self) -> usize {
        self.free.len() + self.evictable.len()
    }

    /// The first dirty page among those that `count` allocations would evict.
    pub fn first_dirty_victim(&self, count: usize) -> Option<u32> {
        let next = self.evictable.iter().take(count.saturating_sub(self.free.len()));
        let mut slots = next.map(|(_, slot)| *slot);
        slots.find(|slot| self.slots[*slot as usize].dirty != 0)
    }

    /// The slot of page `number`, if it is cached.
    pub fn find(&self, number: u64) -> Option<u32> {
        self.by_number.get(&number).copied()
    }

    /// The page in `slot`.
    pub fn get(&self, slot: u32) -> &CachePage {
        &self.slots[slot as usize]
    }

    fn listed(&self, slot: u32) -> CachedPage {
        CachedPage { page: self.slots[slot as usize].number, slot }
    }

    /// Changes the page in `slot`.
    pub fn change(&mut self, slot: u32, change: impl FnOnce(&mut CachePage)) {
        let strict = self.strict;
        let page = &mut self.slots[slot as usize];
        let (was_evictable, was_dirty) = (page.evictable(strict), page.dirty != 0);
        change(page);
        let (is_evictable, is_dirty, rank) = (page.evictable(strict), page.dirty != 0, page.rank);
        if is_dirty && !was_dirty {
            self.writes += 1;
            page.since = self.writes;
            self.dirty.push(self.listed(slot));
        } else if was_dirty && !is_dirty {
            self.dirty.remove(self.listed(slot));
        }
        match (was_evictable, is_evictable) {
            (true, false) => {
                self.evictable.remove(&(rank, slot));
            }
            (false, true) => {
                self.evictable.insert((rank, slot));
            }
            _ => {}
        }
    }

    fn set_rank(&mut self, slot: u32, rank: u64) {
        let page = &mut self.slots[slot as usize];
        if page.evictable(self.strict) {
            self.evictable.remove(&(page.rank, slot));
            self.evictable.insert((rank, slot));
        }
        page.rank = rank;
    }

    /// The page in `slot` has been used.
    pub fn touch(&mut self, slot: u32) {
        self.ticks += 1;
        let tick = self.ticks;
        match self.order {
            EvictionOrder::Lru => self.set_rank(slot, tick),
            EvictionOrder::Slru(most) => {
                self.set_rank(slot, tick | PROTECTED);
                self.protected.renew(self.listed(slot));
                while self.protected.len() > most
                    && let Some(oldest) = self.protected.oldest()
                {
                    self.protected.remove(oldest);
                    let rank = self.slots[oldest.slot as usize].rank;
                    self.set_rank(oldest.slot, rank & !PROTECTED);
                }
            }
            EvictionOrder::Fifo | EvictionOrder::Random | EvictionOrder::Lifo => {}
        }
    }

    /// Allocates a slot for page `number`, evicting another page if necessary. `None` when no page
    /// is evictable, or the next one is dirty.
    pub fn allocate(&mut self, number: u64) -> Option<u32> {
        if let Some(slot) = self.find(number) {
            return Some(slot);
        }
        let slot = match self.free.pop() {
            Some(slot) => slot,
            None => {
                let (_, slot) = *self.evictable.first()?;
                if self.slots[slot as usize].dirty != 0 {
                    return None;
                }
                self.evict(slot);
                self.free.pop()?
            }
        };
        self.ticks += 1;
        let rank = match self.order {
            EvictionOrder::Random => self.stream.bits() >> 1,
            EvictionOrder::Lifo => (1 << 62) - self.ticks,
            EvictionOrder::Fifo | EvictionOrder::Lru | EvictionOrder::Slru(_) => self.ticks,
        };
        self.slots[slot as usize] = CachePage { number, rank, ..CachePage::default() };
        self.by_number.insert(number, slot);
        self.evictable.insert((rank, slot));
        Some(slot)
    }

    /// Evicts the page in `slot` if it is clean and unused.
    pub fn evict(&mut self, slot: u32) {
        let page = self.slots[slot as usize];
        if page.evictable(false) {
            self.evictable.remove(&(page.rank, slot));
            self.by_number.remove(&page.number);
            self.protected.remove(self.listed(slot));
            self.slots[slot as usize] = CachePage { pins: 1, ..CachePage::default() };
            self.free.push(slot);
        }
    }

    /// The page that has been dirty for longest and is neither pinned nor being written back, and
    /// the number of the write that made it dirty.
    pub fn oldest_dirty(&self) -> Option<(u64, u32)> {
        let mut slots = self.dirty.iter().map(|page| page.slot);
        let slot = slots.find(|slot| {
            let page = &self.slots[*slot as usize];
            !page.flushing && page.pins == 0
        })?;
        Some((self.slots[slot as usize].since, slot))
    }

    /// Number of the last write.
    pub fn writes(&self) -> u64 {
        self.writes
    }

    /// Whether a page made dirty by write `number` or an earlier one is still dirty.
    pub fn is_dirty_until(&self, number: u64) -> bool {
        let oldest = self.dirty.oldest();
        oldest.is_some_and(|page| self.slots[page.slot as usize].since <= number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dirty_pages_keep_their_turn_only_strictly() {
        for strictly in [false, true] {
            let mut pages =
                PageTable::new(2, EvictionOrder::Lru, strictly, Stream::new(1, "pages"));
            let first = pages.allocate(7).expect("there is room");
            pages.change(first, |page| page.dirty = 1);
            pages.allocate(8).expect("there is room");
            assert_eq!(pages.available(), 1 + usize::from(strictly));
            assert_eq!(pages.first_dirty_victim(1), strictly.then_some(first));
            assert_eq!(pages.allocate(9).is_some(), !strictly);
            pages.change(first, |page| page.dirty = 0);
            assert_eq!(pages.first_dirty_victim(1), None);
            assert!(pages.allocate(10).is_some());
            assert_eq!(pages.find(7).is_some(), !strictly && pages.find(8).is_some());
        }
    }

    #[test]
    fn writes_are_numbered_by_when_a_page_became_dirty() {
        let mut pages = PageTable::new(4, EvictionOrder::Slru(1), false, Stream::new(1, "lines"));
        let slots = [7, 8].map(|number| pages.allocate(number).expect("there is room"));
        for slot in slots {
            pages.change(slot, |page| page.dirty = 1);
            pages.touch(slot);
        }
        assert_eq!(pages.protected.iter().map(|page| page.slot).collect::<Vec<_>>(), [slots[1]]);
        assert_eq!(pages.oldest_dirty(), Some((1, slots[0])));
        pages.change(slots[0], |page| page.dirty = 0);
        pages.change(slots[0], |page| page.dirty = 1);
        assert_eq!(pages.oldest_dirty(), Some((2, slots[1])));
        assert!(!pages.is_dirty_until(1) && pages.is_dirty_until(2));
        pages.change(slots[1], |page| page.pins = 1);
        assert_eq!(pages.oldest_dirty(), Some((3, slots[0])));
    }
}
