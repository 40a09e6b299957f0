//! Garbage collection of the page-mapped FTL: copying, and prefetching what it will need.

use super::{Frontier, Logs, PageMap, Pool, Victim, frontier};
use crate::array::{Array, WORD_PAGES};
use crate::event::Cause;
use crate::ftl::Maintenance;
use crate::geometry::{BlockId, PlaneId, Ppn};
use crate::ops::{After, FlashOps};

/// Most pages to prefetch for at once; more would leave the processor's nearest caches again before
/// they are copied.
const PREFETCH_MAX: u32 = 256;

/// For fewer pages there is no prefetch: the processor overlaps their misses by itself, and those
/// of expected writes have been prefetched with them.
const PREFETCH_MIN: u32 = 16;

/// Fewer pages are copied one by one.
const RUN_MIN: u32 = 4;

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
            if offset >= prefetched {
                let log = self.logs.copies(cause, block);
                prefetched = self.prefetch_copies(pool, log, (block, offset), left, flash);
            }
            let moved;
            (moved, next) = if left < RUN_MIN {
                self.copy_page(pool, cause, (block, offset), flash);
                (1, offset + 1)
            } else {
                self.copy_pages(pool, cause, (block, offset), left, flash)
            };
            left -= moved;
        }
        self.pools[pool].victim = None;
        self.reclaim(pool, block, cause, flash);
        Collected::Block
    }

    /// Copies the valid page at `offset` of `block`.
    #[inline]
    fn copy_page(
        &mut self,
        pool: usize,
        cause: Cause,
        (block, offset): (BlockId, u32),
        flash: &mut FlashOps,
    ) {
        let log = self.logs.copies(cause, block);
        if self.pools[pool].open[log].is_full(&self.geometry) {
            self.begin_block(pool, log);
        }
        let frontier = &mut self.pools[pool].open[log];
        let Frontier { block: to, next } = *frontier;
        frontier.next = next + 1;
        let (plane, from) = (PlaneId(pool as u32), self.geometry.page(block, offset));
        let lpn = flash.copy_page(plane, (block, from), (to, next), cause);
        self.map.set(lpn, self.geometry.page(to, next));
        if next + 1 == self.geometry.pages_per_block() {
            self.close(pool, to, flash);
        }
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
        flash.copy_run(PlaneId(pool as u32), run, (to, first), cause);
        map.set_run(run.owners(), page);
        let count = run.pages().len() as u32;
        self.pools[pool].open[log].next = first + count;
        if first + count == pages_per_block {
            self.close(pool, to, flash);
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
        self.prefetch_target(&self.pools[pool], log, budget, flash);
        let left = self.geometry.pages_per_block() - from;
        let first = self.geometry.page(block, from);
        flash.array().prefetch_owners(first, left.min(PREFETCH_MAX));
        self.prefetch_valid((block, from), budget.min(PREFETCH_MAX), flash.array())
    }

    /// Prefetches the entries of the map for the valid pages of `block` from offset `from` on,
    /// `most` at most. Returns the offset from which on pages are left out.
    #[inline]
    fn prefetch_valid(&self, (block, from): (BlockId, u32), most: u32, array: &Array) -> u32 {
        let (mut left, mut next, mut loaded) = (most, Some(from), 0);
        let mut end = u32::MAX;
        'words: while let Some(from) = next {
            let (mut rest, first) = array.valid_word(block, from);
            let word = from - from % WORD_PAGES;
            while rest != 0 {
                let bit = rest.trailing_zeros();
                if left == 0 {
                    end = word + bit;
                    break 'words;
                }
                loaded ^= self.map.load(array.owner(Ppn(first.0 + bit)).0);
                left -= 1;
                rest &= rest - 1;
            }
            next = array.next_valid(block, word + WORD_PAGES);
        }
        std::hint::black_box(loaded);
        end
    }

    /// Prefetches the spare areas of the next pages of a frontier, at most `count`.
    #[inline]
    fn prefetch_target(&self, pool: &Pool, log: usize, count: u32, flash: &FlashOps) {
        let Frontier { block, next } = pool.open[log];
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
        for pool in all.following().take(writes) {
            let pool = &self.pools[pool];
            self.prefetch_target(pool, Logs::host(0), rounds, flash);
            if let (true, Some(Victim { block, next, pace, cause })) =
                (self.incremental, pool.victim)
            {
                let count = pace.saturating_mul(rounds);
                self.prefetch_target(pool, self.logs.copies(cause, block), count, flash);
                // Also those of the writes behind these, so that the walk below seldom waits.
                let left = self.geometry.pages_per_block().saturating_sub(next);
                let first = self.geometry.page(block, next);
                flash.array().prefetch_owners(first, count.saturating_mul(2).min(left));
                self.prefetch_valid((block, next), count.min(PREFETCH_MAX), flash.array());
            }
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
