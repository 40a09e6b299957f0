//! Folding and garbage collection: pages move to native blocks, block by block.

use super::{Moving, Pool, SlcCache};
use crate::event::Cause;
use crate::ftl::Maintenance;
use crate::ftl::frontier::{self, Frontier};
use crate::geometry::{BlockId, PlaneId};
use crate::ops::{After, FlashOps};

/// Most pages that an idle device moves in each plane in one step: a request that arrives meanwhile
/// waits for one step at most.
pub(super) const IDLE_PAGES: u32 = 32;

impl SlcCache {
    /// Pages of `pool` that data can be moved to.
    fn room(&self, pool: usize) -> u64 {
        let Pool { moved, free, .. } = &self.pools[pool];
        moved.room(free.len(), &self.geometry)
    }

    /// Moves up to `budget` pages of `moving`, for which there is room. Returns whether no valid
    /// page is left.
    fn move_pages(
        &mut self,
        pool: usize,
        moving: &mut Moving,
        budget: u32,
        cause: Cause,
        flash: &mut FlashOps,
    ) -> bool {
        let pages_per_block = self.geometry.pages_per_block();
        let mut left = budget;
        while let Some(from) = flash.array().next_valid(moving.block, moving.next) {
            if left == 0 {
                return false;
            }
            let Pool { moved, free, .. } = &mut self.pools[pool];
            if moved.is_full(&self.geometry) {
                *moved = Frontier::new(free.take(true).expect("there is room"));
            }
            let Frontier { block: to, next: first } = *moved;
            let most = left.min(pages_per_block - first);
            moving.next = flash.array().take_run(moving.block, from, most, &mut self.run);
            flash.copy_run(PlaneId(pool as u32), &self.run, (to, first), cause);
            self.map.set_run(self.run.owners(), self.geometry.page(to, first));
            let count = self.run.pages().len() as u32;
            moved.next += count;
            left -= count;
            if moved.is_full(&self.geometry) {
                self.policy.closed(pool, to, flash.array().valid(to));
            }
        }
        true
    }

    /// The block to fold next: the one being folded, or the oldest full one.
    fn next_fold(&self, pool: usize) -> Option<Moving> {
        let Pool { folding, full, .. } = &self.pools[pool];
        folding.or_else(|| full.front().map(|&block| Moving { block, next: 0 }))
    }

    /// Whether there is room for the valid pages of `block` of the cache.
    fn can_fold(&self, pool: usize, block: BlockId, flash: &FlashOps) -> bool {
        let valid = u64::from(flash.array().valid(block));
        // A static block gives no native block back, and the last free one has to remain.
        let kept =
            if self.is_static(block) { u64::from(self.geometry.pages_per_block()) } else { 0 };
        valid == 0 || self.room(pool) >= valid + kept
    }

    /// Folds the oldest full block of the cache, after collecting what it needs. Returns false when
    /// there is nothing to fold, or no room.
    pub(super) fn fold(&mut self, pool: usize, flash: &mut FlashOps) -> bool {
        while let Some(moving) = self.next_fold(pool) {
            if self.can_fold(pool, moving.block, flash) {
                self.begin_fold(pool, moving);
                self.fold_on(pool, u32::MAX, flash);
                return true;
            }
            if !self.collect(pool, (true, u32::MAX), flash) {
                return false;
            }
        }
        false
    }

    /// Begins to fold `moving`, the block of [`SlcCache::next_fold`].
    fn begin_fold(&mut self, pool: usize, moving: Moving) {
        let Pool { folding, full, .. } = &mut self.pools[pool];
        if folding.replace(moving).is_none() {
            full.pop_front();
        }
    }

    /// Moves up to `budget` pages out of the block being folded, if any, and erases it when no
    /// valid page is left.
    fn fold_on(&mut self, pool: usize, budget: u32, flash: &mut FlashOps) {
        let Some(mut moving) = self.pools[pool].folding else { return };
        let done = self.move_pages(pool, &mut moving, budget, Cause::Fold, flash);
        self.pools[pool].folding = (!done).then_some(moving);
        if done {
            self.erase_cached(pool, moving.block, flash);
        }
    }

    fn erase_cached(&mut self, pool: usize, block: BlockId, flash: &mut FlashOps) {
        if self.is_static(block) {
            if flash.erase(block, Cause::Fold, After::NOTHING) {
                self.pools[pool].free_static.push_back(block);
            }
            return;
        }
        self.pools[pool].dynamic -= 1;
        self.recycle(pool, block, Cause::Fold, flash);
    }

    /// Erases a block of native or dynamic use without valid pages.
    fn recycle(&mut self, pool: usize, block: BlockId, cause: Cause, flash: &mut FlashOps) {
        let Pool { free, limit, .. } = &mut self.pools[pool];
        if !free.recycle(block, cause, After::NOTHING, flash) {
            *limit = limit.saturating_sub(self.geometry.pages_per_block());
        }
    }

    /// Moves up to `budget` pages of a block that is to be freed, and erases it when no valid page
    /// is left: the victim of the policy, or the oldest block of the dynamic cache if that has
    /// fewer valid pages. Returns false when there is none, or with `must_gain` none that holds an
    /// invalid page.
    pub(super) fn collect(
        &mut self,
        pool: usize,
        (must_gain, budget): (bool, u32),
        flash: &mut FlashOps,
    ) -> bool {
        let room = self.room(pool);
        let valid = |block: BlockId, flash: &FlashOps| flash.array().valid(block);
        if let Some(moving) = self.pools[pool].folding
            && !self.is_static(moving.block)
            && u64::from(valid(moving.block, flash)) <= room
        {
            self.fold_on(pool, budget, flash);
            return true;
        }
        if self.pools[pool].collecting.is_none() {
            let cached = self.oldest_dynamic(pool);
            let cached = cached.map(|(at, block)| (at, block, valid(block, flash)));
            let cached = cached.filter(|(_, _, valid)| u64::from(*valid) <= room);
            let below = cached.map(|(_, _, valid)| valid);
            self.pools[pool].collecting = self.choose(pool, must_gain, below, flash);
            if self.pools[pool].collecting.is_none()
                && let Some((at, block, _)) = cached
            {
                let Pool { folding, full, .. } = &mut self.pools[pool];
                full.remove(at);
                // The one being folded is the next again.
                if let Some(moving) = folding.replace(Moving { block, next: 0 }) {
                    full.push_front(moving.block);
                }
                self.fold_on(pool, budget, flash);
                return true;
            }
        }
        self.collect_on(pool, budget, flash)
    }

    /// The oldest full block of the dynamic cache, and its place among the full ones.
    fn oldest_dynamic(&self, pool: usize) -> Option<(usize, BlockId)> {
        let mut full = self.pools[pool].full.iter().copied().enumerate();
        full.find(|(_, block)| !self.is_static(*block))
    }

    /// Moves up to `budget` pages out of the victim, if there is one and room for it, and erases it
    /// when no valid page is left.
    fn collect_on(&mut self, pool: usize, budget: u32, flash: &mut FlashOps) -> bool {
        let Some(mut moving) = self.pools[pool].collecting else { return false };
        if u64::from(flash.array().valid(moving.block)) > self.room(pool) {
            return false;
        }
        let done = self.move_pages(pool, &mut moving, budget, Cause::Gc, flash);
        self.pools[pool].collecting = (!done).then_some(moving);
        if done {
            self.recycle(pool, moving.block, Cause::Gc, flash);
        }
        true
    }

    /// Takes a victim with fewer than `below` valid pages, for which there is room.
    fn choose(
        &mut self,
        pool: usize,
        must_gain: bool,
        below: Option<u32>,
        flash: &mut FlashOps,
    ) -> Option<Moving> {
        let pages_per_block = self.geometry.pages_per_block();
        let gains = u64::from(pages_per_block - u32::from(must_gain));
        let mut valid_max = self.room(pool).min(gains);
        if let Some(below) = below {
            valid_max = valid_max.min(u64::from(below.checked_sub(1)?));
        }
        let block = frontier::take_victim(&mut *self.policy, pool, |_| valid_max, flash)?;
        Some(Moving { block, next: 0 })
    }

    /// One step of the background work of `pool`, which moves [`IDLE_PAGES`] at most; false without
    /// any.
    pub(super) fn idle_step(&mut self, pool: usize, flash: &mut FlashOps) -> bool {
        let Pool { folding, full, .. } = &self.pools[pool];
        let cached = full.len() + usize::from(folding.is_some());
        if cached > self.sizes.low
            && let Some(moving) = self.next_fold(pool)
        {
            if !self.can_fold(pool, moving.block, flash) {
                return self.collect(pool, (true, IDLE_PAGES), flash);
            }
            self.begin_fold(pool, moving);
            self.fold_on(pool, IDLE_PAGES, flash);
            return true;
        }
        let Pool { free, collecting, .. } = &self.pools[pool];
        if collecting.is_none() {
            if free.len() > self.free_low_idle {
                return false;
            }
            self.pools[pool].collecting = self.choose(pool, true, None, flash);
        }
        self.collect_on(pool, IDLE_PAGES, flash)
    }
}

impl Maintenance for SlcCache {
    /// Folds `block` of the cache, or collects it. Returns false if it is still written, another
    /// block of its plane is being moved, or too few pages are free.
    fn refresh(&mut self, block: BlockId, flash: &mut FlashOps) -> bool {
        let pool = self.geometry.plane_of(block).0 as usize;
        let valid = flash.array().valid(block);
        let moving = Moving { block, next: 0 };
        if flash.array().is_slc(block) {
            let Pool { folding, full, .. } = &self.pools[pool];
            let at = full.iter().position(|full| *full == block);
            let Some(at) = at.filter(|_| folding.is_none() && valid > 0) else { return false };
            let fits = self.can_fold(pool, block, flash);
            if fits {
                self.pools[pool].full.remove(at);
                self.pools[pool].folding = Some(moving);
                self.fold_on(pool, u32::MAX, flash);
            }
            return fits;
        }
        let closed = flash.array().next_page(block) == self.geometry.pages_per_block();
        let fits = u64::from(valid) <= self.room(pool) && self.pools[pool].collecting.is_none();
        let can = closed && valid > 0 && fits;
        if can {
            self.policy.removed(pool, block);
            self.pools[pool].collecting = Some(moving);
            self.collect_on(pool, u32::MAX, flash);
        }
        can
    }
}
