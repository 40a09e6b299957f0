//! Garbage collection of the page-mapped FTL: copying, and prefetching what it will need.

use super::{Frontier, Logs, PageMap, Victim, frontier};
use crate::array::{Array, WORD_PAGES};
use crate::event::Cause;
use crate::ftl::{EXPECTED_MAX, Maintenance};
use crate::geometry::{BlockId, Ppn};
use crate::ops::{After, FlashOps};

/// Most pages to prefetch for at once; more would leave the processor's nearest caches again before
/// they are copied.
const PREFETCH_MAX: usize = 256;
const _: () = assert!(PREFETCH_MAX >= 2 * EXPECTED_MAX, "a few for each expected write");

/// For fewer pages there is no prefetch: the processor overlaps their misses by itself, and those
/// of expected writes have been prefetched with them.
const PREFETCH_MIN: u32 = 16;

/// Logical pages that will be copied.
struct Prefetch {
    lpns: [u32; PREFETCH_MAX],
    count: usize,
}

impl Prefetch {
    const fn new() -> Self {
        Self { lpns: [0; PREFETCH_MAX], count: 0 }
    }

    fn lpns(&self) -> impl Iterator<Item = u32> + '_ {
        self.lpns[..self.count].iter().copied()
    }

    /// Adds the logical pages of the valid pages of `block` from offset `from` on, `most` at most.
    /// Returns the offset from which on pages are left out.
    #[inline]
    fn add(&mut self, array: &Array, block: BlockId, from: u32, most: usize) -> u32 {
        let mut slots = self.lpns[self.count..].iter_mut().take(most);
        let mut next = Some(from);
        while let Some(from) = next {
            let (mut rest, first) = array.valid_word(block, from);
            while rest != 0 {
                let bit = rest.trailing_zeros();
                let Some(slot) = slots.next() else { return from - from % WORD_PAGES + bit };
                *slot = array.owner(Ppn(first.0 + bit)).0;
                self.count += 1;
                rest &= rest - 1;
            }
            next = array.next_valid(block, from - from % WORD_PAGES + WORD_PAGES);
        }
        u32::MAX
    }
}

/// The outcome of a step of garbage collection.
pub(super) enum Collected {
    /// The budget is used up before the end of the victim.
    Partly,
    Block,
    /// No block gains anything, or there are too few free pages to copy its valid pages.
    Nothing,
}

impl PageMap {
    /// Copies up to `budget` pages of the victim of `pool`, and erases it when no valid page is
    /// left.
    pub(super) fn collect(&mut self, pool: usize, budget: u32, flash: &mut FlashOps) -> Collected {
        if self.pools[pool].victim.is_none() {
            self.pools[pool].victim = self.choose(pool, false, flash);
        }
        let Some(Victim { block, next, cause, .. }) = self.pools[pool].victim else {
            return Collected::Nothing;
        };
        let (mut next, mut left) = (next, budget);
        let prefetches = left >= PREFETCH_MIN && self.geometry.outgrows_caches();
        let mut prefetched = if prefetches { 0 } else { u32::MAX };
        while let Some(offset) = flash.array().next_valid(block, next) {
            if left == 0 {
                // Only the field: storing the whole struct would wait for the copy made above.
                if let Some(victim) = &mut self.pools[pool].victim {
                    victim.next = next;
                }
                return Collected::Partly;
            }
            let log = self.logs.copies(cause, block);
            if offset >= prefetched {
                prefetched = self.prefetch_copies(pool, log, (block, offset), left, flash);
            }
            let moved;
            (moved, next) = self.copy_pages(pool, cause, (block, offset), left, flash);
            left -= moved;
        }
        self.pools[pool].victim = None;
        self.reclaim(pool, block, cause, flash);
        Collected::Block
    }

    /// Copies some of the next valid pages of `block`, from offset `from` on, at most `budget` and
    /// as many as fit the open block. Returns how many, and the offset to continue at.
    #[inline]
    fn copy_pages(
        &mut self,
        pool: usize,
        cause: Cause,
        (block, from): (BlockId, u32),
        budget: u32,
        flash: &mut FlashOps,
    ) -> (u32, u32) {
        let log = self.logs.copies(cause, block);
        let pages_per_block = self.geometry.pages_per_block();
        if self.pools[pool].open[log].is_full(&self.geometry) {
            self.begin_block(pool, log);
        }
        let Frontier { block: to, next: first } = self.pools[pool].open[log];
        let (page, most) = (self.geometry.page(to, first), budget.min(pages_per_block - first));
        let Self { run, map, .. } = self;
        let end = flash.array().take_run(block, from, most, run);
        flash.copy_run(run, (to, first), cause);
        map.set_run(run.owners(), page);
        let count = run.pages().len() as u32;
        self.pools[pool].open[log].next = first + count;
        if first + count == pages_per_block {
            self.close_if_full(pool, Some(to), flash);
        }
        (count, end)
    }

    /// Erases a victim without valid pages; the wear-levelling policy may choose data for it.
    fn reclaim(&mut self, pool: usize, block: BlockId, cause: Cause, flash: &mut FlashOps) {
        // The block kept for this victim's pages was not needed.
        let wear = cause == Cause::Wear;
        let spare = if wear { self.pools[pool].worn.take() } else { None };
        if let Some(spare) = spare {
            self.pools[pool].free.put(spare, flash.array().erases(spare));
        }
        let usable = flash.erase(block, cause, After::NOTHING);
        let erases = flash.array().erases(block);
        if !usable {
            self.wear.retired(pool, block);
            let limit = &mut self.pools[pool].limit;
            *limit = limit.saturating_sub(self.geometry.pages_per_block());
            return;
        }
        let Some(cold) = self.wear.erased(pool, block, erases) else {
            self.pools[pool].free.put(block, erases);
            return;
        };
        self.policy.removed(pool, cold);
        let valid = flash.array().valid(cold);
        let frontier = self.pools[pool].open[Logs::host(0)];
        let host_pages = self.geometry.pages_per_block() - frontier.next;
        let pace = valid.div_ceil(host_pages.max(1)).max(1);
        self.pools[pool].worn = Some(block);
        self.pools[pool].victim = Some(Victim { block: cold, next: 0, pace, cause: Cause::Wear });
    }

    /// Chooses a victim whose valid pages fit the free pages and, with `must_gain`, one that holds
    /// an invalid page.
    pub(super) fn choose(
        &mut self,
        pool: usize,
        must_gain: bool,
        flash: &mut FlashOps,
    ) -> Option<Victim> {
        let Self { policy, pools, logs, geometry, .. } = self;
        let most = u64::from(geometry.pages_per_block() - u32::from(must_gain));
        let valid_max = |block| pools[pool].room(logs.copies(Cause::Gc, block), geometry).min(most);
        let block = frontier::take_victim(&mut **policy, pool, valid_max, flash)?;
        Some(self.take(pool, block, Cause::Gc, flash))
    }

    /// Takes `block`, no candidate of the policy any more, as a victim.
    fn take(&mut self, pool: usize, block: BlockId, cause: Cause, flash: &FlashOps) -> Victim {
        self.wear.taken(pool, block);
        let valid = flash.array().valid(block);
        let gained = (self.geometry.pages_per_block() - valid).max(1);
        Victim { block, next: 0, pace: valid.div_ceil(gained), cause }
    }

    /// Paces incremental garbage collection with host writes.
    #[inline]
    pub(super) fn keep_pace(&mut self, pool: usize, flash: &mut FlashOps) {
        if !self.incremental {
            return;
        }
        let budget = match &self.pools[pool].victim {
            Some(victim) => victim.pace,
            None if self.pools[pool].free.len() <= self.free_low => {
                match self.choose(pool, false, flash) {
                    Some(victim) => self.pools[pool].victim.insert(victim).pace,
                    None => return,
                }
            }
            None => return,
        };
        self.collect(pool, budget, flash);
    }

    /// Prefetches what copying up to `budget` pages of `block` from offset `from` on will need:
    /// their entries are scattered over a table larger than the processor's caches. Returns the
    /// offset of the first page left out.
    #[cold]
    fn prefetch_copies(
        &self,
        pool: usize,
        log: usize,
        (block, from): (BlockId, u32),
        budget: u32,
        flash: &FlashOps,
    ) -> u32 {
        let (array, mut copies) = (flash.array(), Prefetch::new());
        self.prefetch_target(pool, log, budget, flash);
        let left = self.geometry.pages_per_block() - from;
        array.prefetch_owners(self.geometry.page(block, from), left.min(PREFETCH_MAX as u32));
        let end = copies.add(array, block, from, budget as usize);
        self.map.prefetch(copies.lpns());
        end
    }

    /// Prefetches the spare areas of the next pages of a frontier, at most `count`.
    #[inline]
    fn prefetch_target(&self, pool: usize, log: usize, count: u32, flash: &FlashOps) {
        let Frontier { block, next } = self.pools[pool].open[log];
        let left = self.geometry.pages_per_block() - next;
        if left > 0 {
            flash.array().prefetch_owners(self.geometry.page(block, next), count.min(left));
        }
    }

    /// Prefetches what the next `writes` host writes will need of the pools that take them.
    pub(super) fn prefetch_writes(&self, writes: usize, flash: &FlashOps) {
        // With several groups it is not known here which of them takes a write.
        let [all] = &*self.rotations else { return };
        let rounds = writes.div_ceil(self.pools.len()) as u32;
        let rotation = || all.following().take(writes);
        for pool in rotation() {
            self.prefetch_target(pool, Logs::host(0), rounds, flash);
            if let (true, Some(victim)) = (self.incremental, self.pools[pool].victim) {
                let count = victim.pace.saturating_mul(rounds);
                self.prefetch_target(
                    pool,
                    self.logs.copies(victim.cause, victim.block),
                    count,
                    flash,
                );
                let left = self.geometry.pages_per_block().saturating_sub(victim.next);
                let first = self.geometry.page(victim.block, victim.next);
                flash.array().prefetch_owners(first, count.saturating_mul(2).min(left));
            }
        }
        if self.incremental {
            let mut copies = Prefetch::new();
            for pool in rotation() {
                let Some(victim) = self.pools[pool].victim else { continue };
                let count = victim.pace.saturating_mul(rounds);
                copies.add(flash.array(), victim.block, victim.next, count as usize);
            }
            self.map.prefetch(copies.lpns());
        }
    }
}

impl Maintenance for PageMap {
    /// Makes `block` the victim of its pool. Returns false if it is still written or another block
    /// is being collected, and for a block without data.
    fn refresh(&mut self, block: BlockId, flash: &mut FlashOps) -> bool {
        let array = flash.array();
        let pool = self.geometry.plane_of(block).0 as usize;
        let valid = array.valid(block);
        let closed = array.next_page(block) == self.geometry.pages_per_block();
        let is_victim = self.pools[pool].victim.is_some();
        let frontier = self.pools[pool].open[Logs::host(0)];
        let log = self.logs.copies(Cause::Refresh, block);
        let room = self.pools[pool].room(log, &self.geometry);
        if !closed || is_victim || valid == 0 || u64::from(valid) > room {
            return false;
        }
        self.policy.removed(pool, block);
        let victim = self.take(pool, block, Cause::Refresh, flash);
        // It ends before the host needs another block, which could not be collected meanwhile.
        let host_pages = match array.geometry().pages_per_block() - frontier.next {
            0 => array.geometry().pages_per_block(),
            left => left,
        };
        let pace = valid.div_ceil(host_pages);
        self.pools[pool].victim = Some(Victim { pace, ..victim });
        true
    }
}
