//! The page directory: which pages of the disk are cached, in which slots of the flash, and which
//! of their sectors are valid there.
//!
//! A page may be cached in part. One bit per sector marks the sectors whose newest version is in
//! flash; the newest version of the others is on the disk. A write smaller than a page therefore
//! needs no read-modify-write.

use crate::replacement::CachedPage;
use hybridsim_engine::state::StateError;
use hybridsim_engine::{Op, Request};
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

/// Largest page, in sectors: one bit each in a word.
pub const PAGE_SECTORS_MAX: u64 = 64;

/// A flash page of the cache.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct PageSlot {
    /// The disk page cached in this slot.
    pub page: u64,
    /// One bit per valid sector; 0 when the slot is free.
    pub valid: u64,
    /// Sectors whose write to flash has been acknowledged; these survive a power failure.
    durable: u64,
    /// Never evicted or destaged.
    pub pinned: bool,
    /// Empty, but not yet available: its trim has not completed.
    retired: bool,
}

const EMPTY: PageSlot = PageSlot { page: 0, valid: 0, durable: 0, pinned: false, retired: false };

/// The page directory of a cache.
#[derive(Debug, Serialize, Deserialize)]
pub struct PageDirectory {
    /// Page size in sectors.
    pub page_sectors: u64,
    /// Capacity in pages.
    pub pages: u32,
    slots_of: FxHashMap<u64, u32>,
    /// As long as the highest slot used so far.
    slots: Vec<PageSlot>,
    free: Vec<u32>,
    pinned: u32,
    retired: u32,
}

/// The bits of sectors `from..to` of a page.
pub const fn bits(from: u64, to: u64) -> u64 {
    let length = to - from;
    if length >= 64 { u64::MAX } else { ((1 << length) - 1) << from }
}

impl PageDirectory {
    /// An empty directory.
    pub fn new(page_sectors: u64, pages: u32) -> Self {
        Self {
            page_sectors,
            pages,
            slots_of: FxHashMap::default(),
            slots: Vec::new(),
            free: Vec::new(),
            pinned: 0,
            retired: 0,
        }
    }

    /// First and last page of a request. A flush has none: its first page is after its last.
    pub fn pages_of(&self, request: &Request) -> (u64, u64) {
        if request.op == Op::Flush {
            return (u64::MAX, 0);
        }
        (request.lba.0 / self.page_sectors, (request.end().0 - 1) / self.page_sectors)
    }

    /// The sectors of `page` within the request: the first, and the one after the last.
    pub fn sectors_in(&self, request: &Request, page: u64) -> (u64, u64) {
        let start = page * self.page_sectors;
        let from = request.lba.0.max(start) - start;
        (from, self.page_sectors.min(request.end().0 - start))
    }

    /// The slot of a page, if it is cached.
    pub fn find(&self, page: u64) -> Option<u32> {
        if self.slots_of.is_empty() {
            return None;
        }
        self.slots_of.get(&page).copied()
    }

    /// The state of a slot.
    pub fn slot(&self, slot: u32) -> &PageSlot {
        &self.slots[slot as usize]
    }

    /// Pages cached.
    pub fn used(&self) -> u32 {
        self.slots_of.len() as u32
    }

    /// Free pages.
    pub fn free(&self) -> u32 {
        self.pages - self.used() - self.retired
    }

    /// Whether any cached page may be destaged or evicted.
    pub fn has_unpinned(&self) -> bool {
        self.used() > self.pinned
    }

    /// Number of cached pages in `first..=last`.
    pub fn count(&self, first: u64, last: u64) -> u64 {
        if self.used() == 0 {
            return 0;
        }
        if last - first >= u64::from(self.used()) {
            return self.iter().filter(|page| (first..=last).contains(&page.page)).count() as u64;
        }
        (first..=last).filter(|page| self.find(*page).is_some()).count() as u64
    }

    /// Number of pages of a request whose requested sectors are all valid.
    pub fn count_valid(&self, request: &Request) -> u64 {
        if self.used() == 0 {
            return 0;
        }
        let (first, last) = self.pages_of(request);
        let is_valid = |page: &CachedPage| self.has_sectors(page.slot, request, page.page);
        if last - first >= u64::from(self.used()) {
            let inside = self.iter().filter(|page| (first..=last).contains(&page.page));
            return inside.filter(is_valid).count() as u64;
        }
        let cached = |page| Some(CachedPage { page, slot: self.find(page)? });
        (first..=last).filter_map(cached).filter(is_valid).count() as u64
    }

    /// Whether all sectors of `page`, which is cached in `slot`, that a request has are valid.
    pub fn has_sectors(&self, slot: u32, request: &Request, page: u64) -> bool {
        let (from, to) = self.sectors_in(request, page);
        let wanted = bits(from, to);
        self.slot(slot).valid & wanted == wanted
    }

    /// All cached pages, by slot.
    pub fn iter(&self) -> impl Iterator<Item = CachedPage> + '_ {
        let used = (0..).zip(&self.slots).filter(|(_, slot)| slot.valid != 0);
        used.map(|(slot, state)| CachedPage { page: state.page, slot })
    }

    /// Allocates a slot for a page that is not cached. One must be free, and the caller marks
    /// sectors of it valid before doing anything else.
    pub fn add(&mut self, page: u64) -> u32 {
        debug_assert!(self.free() > 0, "no free page");
        let new = PageSlot { page, ..EMPTY };
        let slot = match self.free.pop() {
            Some(slot) => {
                self.slots[slot as usize] = new;
                slot
            }
            None => {
                self.slots.push(new);
                self.slots.len() as u32 - 1
            }
        };
        self.slots_of.insert(page, slot);
        slot
    }

    /// Marks sectors `from..to` of a slot valid.
    pub fn mark(&mut self, slot: u32, from: u64, to: u64) {
        self.slots[slot as usize].valid |= bits(from, to);
    }

    /// Pins a slot. Returns `false` if it was pinned before.
    pub fn pin(&mut self, slot: u32) -> bool {
        let state = &mut self.slots[slot as usize];
        let new = !state.pinned;
        state.pinned = true;
        self.pinned += u32::from(new);
        new
    }

    /// Invalidates sectors `from..to` of a slot. Returns `true` when no valid sector is left.
    pub fn unmark(&mut self, slot: u32, from: u64, to: u64) -> bool {
        let state = &mut self.slots[slot as usize];
        state.valid &= !bits(from, to);
        state.durable &= state.valid;
        state.valid == 0
    }

    /// Marks `sectors` sectors from flash sector `at` on as durable: their write has completed.
    pub fn acknowledge(&mut self, at: u64, sectors: u32) {
        let (mut at, end) = (at, at + u64::from(sectors));
        while at < end {
            let (slot, from) = (at / self.page_sectors, at % self.page_sectors);
            let to = self.page_sectors.min(from + (end - at));
            // Metadata pages follow the slots.
            if let Some(state) = self.slots.get_mut(slot as usize) {
                state.durable |= bits(from, to) & state.valid;
            }
            at += to - from;
        }
    }

    /// Power failure: only durable sectors remain. Retired slots stay retired.
    pub fn keep_durable(&mut self) {
        let lost = |slot: &PageSlot| slot.valid != 0 && slot.durable == 0;
        for slot in 0..self.slots.len() as u32 {
            if self.slots.get(slot as usize).is_some_and(lost) {
                self.remove(slot);
            }
        }
        self.slots.iter_mut().for_each(|slot| slot.valid = slot.durable);
        let slots = &self.slots;
        let is_free = |slot: &u32| {
            let state = &slots[*slot as usize];
            state.valid == 0 && !state.retired
        };
        self.free.clear();
        self.free.extend((0..slots.len() as u32).rev().filter(is_free));
    }

    /// Removes a page; its slot becomes free with [`PageDirectory::release`].
    pub fn retire(&mut self, slot: u32) {
        let state = &mut self.slots[slot as usize];
        self.slots_of.remove(&state.page);
        self.pinned -= u32::from(state.pinned);
        *state = PageSlot { retired: true, ..EMPTY };
        self.retired += 1;
    }

    /// Frees a retired slot.
    pub fn release(&mut self, slot: u32) {
        self.retired -= 1;
        self.slots[slot as usize].retired = false;
        self.free.push(slot);
    }

    /// Collects the retired slots, ascending.
    pub fn retired(&self, into: &mut Vec<u32>) {
        into.clear();
        if self.retired > 0 {
            let retired = (0..).zip(&self.slots).filter(|(_, slot)| slot.retired);
            into.extend(retired.map(|(at, _)| at));
        }
    }

    /// Removes a page and frees its slot.
    pub fn remove(&mut self, slot: u32) {
        let state = &mut self.slots[slot as usize];
        self.slots_of.remove(&state.page);
        self.pinned -= u32::from(state.pinned);
        *state = EMPTY;
        self.free.push(slot);
        self.start_over_if_empty();
    }

    /// Allocates slots in ascending order again once no page is cached, which keeps sequential
    /// writes contiguous.
    pub fn start_over_if_empty(&mut self) {
        if self.slots_of.is_empty() && self.retired == 0 {
            self.free.clear();
            self.slots.clear();
        }
    }

    /// Replaces the directory by a saved one.
    ///
    /// # Errors
    /// If the saved one has another page size or capacity.
    pub fn restore(&mut self, saved: Self) -> Result<(), StateError> {
        let sizes = |of: &Self| (of.page_sectors, of.pages);
        if sizes(&saved) != sizes(self) {
            return Err(StateError(format!(
                "it is of a cache of {} pages of {} sectors, this one has {} of {}",
                saved.pages, saved.page_sectors, self.pages, self.page_sectors
            )));
        }
        *self = saved;
        Ok(())
    }
}
