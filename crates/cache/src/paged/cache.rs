//! What is in the cache: pages of the disk, where they are in flash, which of their sectors.
//!
//! A page may be cached in part: a bit per sector says which sectors are newest in flash. The
//! others are newest on the disk. So a small write never has to read the rest of its page.

use crate::replacement::CachedPage;
use hybridsim_engine::{Op, Request};
use rustc_hash::FxHashMap;

/// A page holds at most as many sectors as a word has bits.
pub const PAGE_SECTORS_MAX: u64 = 64;

/// A flash page of the cache.
#[derive(Clone, Copy, Debug)]
pub struct Slot {
    /// The page of the disk it holds.
    pub page: u64,
    /// A bit per sector held; 0 when the slot is free.
    pub valid: u64,
    /// Those whose write to flash has been acknowledged: a power failure leaves these.
    durable: u64,
    /// Must stay.
    pub pinned: bool,
    /// Holds nothing and must not be used yet.
    retired: bool,
}

const EMPTY: Slot = Slot { page: 0, valid: 0, durable: 0, pinned: false, retired: false };

/// The cache's directory.
#[derive(Debug)]
pub struct Cache {
    /// Sectors in a page.
    pub page_sectors: u64,
    /// Pages there is room for.
    pub pages: u32,
    slots_of: FxHashMap<u64, u32>,
    /// Grows to the highest slot ever used.
    slots: Vec<Slot>,
    free: Vec<u32>,
    pinned: u32,
    /// Slots that hold nothing and must not be used yet.
    retired: u32,
}

/// The bits of sectors `from..to` of a page.
pub const fn bits(from: u64, to: u64) -> u64 {
    let length = to - from;
    if length >= 64 { u64::MAX } else { ((1 << length) - 1) << from }
}

impl Cache {
    /// An empty cache.
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

    /// Pages a request touches: first and last. A flush touches none: the first is after the last.
    pub fn pages_of(&self, request: &Request) -> (u64, u64) {
        if request.op == Op::Flush {
            return (u64::MAX, 0);
        }
        (request.lba.0 / self.page_sectors, (request.end().0 - 1) / self.page_sectors)
    }

    /// The sectors of `page` that lie in the request: first, and first after.
    pub fn sectors_in(&self, request: &Request, page: u64) -> (u64, u64) {
        let start = page * self.page_sectors;
        let from = request.lba.0.max(start) - start;
        (from, self.page_sectors.min(request.end().0 - start))
    }

    /// Where a page is, if it is here.
    pub fn find(&self, page: u64) -> Option<u32> {
        if self.slots_of.is_empty() {
            return None;
        }
        self.slots_of.get(&page).copied()
    }

    /// A slot in use.
    pub fn slot(&self, slot: u32) -> &Slot {
        &self.slots[slot as usize]
    }

    /// Pages cached.
    pub fn used(&self) -> u32 {
        self.slots_of.len() as u32
    }

    /// Pages not used.
    pub fn free(&self) -> u32 {
        self.pages - self.used() - self.retired
    }

    /// Whether there is a page that may go.
    pub fn has_unpinned(&self) -> bool {
        self.used() > self.pinned
    }

    /// How many pages of `first..=last` are cached.
    pub fn count(&self, first: u64, last: u64) -> u64 {
        if last - first >= u64::from(self.used()) {
            return self.iter().filter(|page| (first..=last).contains(&page.page)).count() as u64;
        }
        (first..=last).filter(|page| self.find(*page).is_some()).count() as u64
    }

    /// All cached pages, in order of slots.
    pub fn iter(&self) -> impl Iterator<Item = CachedPage> + '_ {
        let used = (0..).zip(&self.slots).filter(|(_, slot)| slot.valid != 0);
        used.map(|(slot, state)| CachedPage { page: state.page, slot })
    }

    /// Makes room for a page that is not here; there must be a free one. Write to it at once.
    pub fn add(&mut self, page: u64) -> u32 {
        debug_assert!(self.free() > 0, "no free page");
        let new = Slot { page, ..EMPTY };
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

    /// Sectors `from..to` of a slot are newest in flash now.
    pub fn mark(&mut self, slot: u32, from: u64, to: u64) {
        self.slots[slot as usize].valid |= bits(from, to);
    }

    /// Pins a slot; `false` when it was pinned already.
    pub fn pin(&mut self, slot: u32) -> bool {
        let state = &mut self.slots[slot as usize];
        let new = !state.pinned;
        state.pinned = true;
        self.pinned += u32::from(new);
        new
    }

    /// Sectors `from..to` of a slot are needed no more; `true` when no sector is left.
    pub fn unmark(&mut self, slot: u32, from: u64, to: u64) -> bool {
        let state = &mut self.slots[slot as usize];
        state.valid &= !bits(from, to);
        state.durable &= state.valid;
        state.valid == 0
    }

    /// Flash has acknowledged a write of `sectors` sectors from its sector `at` on.
    pub fn acknowledge(&mut self, at: u64, sectors: u32) {
        let (mut at, end) = (at, at + u64::from(sectors));
        while at < end {
            let (slot, from) = (at / self.page_sectors, at % self.page_sectors);
            let to = self.page_sectors.min(from + (end - at));
            // The journal lies behind the slots.
            if let Some(state) = self.slots.get_mut(slot as usize) {
                state.durable |= bits(from, to) & state.valid;
            }
            at += to - from;
        }
    }

    /// The power failed: only what was acknowledged is here. Retired slots stay retired.
    pub fn keep_durable(&mut self) {
        let lost = |slot: &Slot| slot.valid != 0 && slot.durable == 0;
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

    /// Takes a page out; its slot is not free until [`Cache::release`].
    pub fn retire(&mut self, slot: u32) {
        let state = &mut self.slots[slot as usize];
        self.slots_of.remove(&state.page);
        self.pinned -= u32::from(state.pinned);
        *state = Slot { retired: true, ..EMPTY };
        self.retired += 1;
    }

    /// A retired slot may be used again.
    pub fn release(&mut self, slot: u32) {
        self.retired -= 1;
        self.slots[slot as usize].retired = false;
        self.free.push(slot);
    }

    /// Puts the retired slots into `into`, in order.
    pub fn retired(&self, into: &mut Vec<u32>) {
        into.clear();
        if self.retired > 0 {
            let retired = (0..).zip(&self.slots).filter(|(_, slot)| slot.retired);
            into.extend(retired.map(|(at, _)| at));
        }
    }

    /// Frees a slot.
    pub fn remove(&mut self, slot: u32) {
        let state = &mut self.slots[slot as usize];
        self.slots_of.remove(&state.page);
        self.pinned -= u32::from(state.pinned);
        *state = EMPTY;
        self.free.push(slot);
        if self.slots_of.is_empty() && self.retired == 0 {
            // Hand slots out in order again, so that what is written in a row lies in a row.
            self.free.clear();
            self.slots.clear();
        }
    }
}
