//! Where DFTL writes pages, and its garbage collection.

use super::{Dftl, Frontier, Plane, TranslationPool, frontier};
use crate::event::Cause;
use crate::ftl::{FtlError, Maintenance};
use crate::geometry::{BlockId, Lpn, Ppn};
use crate::ops::{After, FlashOps};

impl Dftl {
    /// Selects the next plane that can take one more data page, and ensures that its frontier has a
    /// free page.
    pub(super) fn select_plane(&mut self, flash: &mut FlashOps) -> Result<Option<usize>, FtlError> {
        for _ in 0..self.planes.len() {
            let plane = self.rotation.next_page();
            let is_full = self.planes[plane].valid >= self.planes[plane].limit;
            if !is_full && (self.takes_data(plane) || self.open_data_block(plane, flash)?) {
                return Ok(Some(plane));
            }
            self.rotation.skip();
        }
        Ok(None)
    }

    /// Whether the data frontier of `plane` has a free page for the host. Without a free block,
    /// after one wore out, its free pages are reserved for garbage collection.
    #[inline]
    fn takes_data(&self, plane: usize) -> bool {
        let plane = &self.planes[plane];
        !plane.frontier.is_full(&self.geometry) && plane.free_for_data() > 0
    }

    /// Ensures that the data frontier of `plane` has a free page.
    #[cold]
    fn open_data_block(&mut self, plane: usize, flash: &mut FlashOps) -> Result<bool, FtlError> {
        let mut attempts = self.attempts();
        while self.planes[plane].free_for_data() <= self.free_low {
            attempts -= 1;
            if attempts == 0 || !self.collect(plane, false, flash)? {
                if self.planes[plane].free_for_data() > 1 {
                    break;
                }
                return Ok(false); // Worn-out blocks have used up the reserve.
            }
            if self.planes[plane].valid >= self.planes[plane].limit {
                return Ok(false); // Blocks wore out just now, and collecting may gain nothing.
            }
            if self.takes_data(plane) {
                return Ok(true); // The collection opened a block and left pages in it.
            }
        }
        self.planes[plane].begin_block();
        Ok(true)
    }

    /// Most blocks to collect for one free block. A policy that ignores valid pages, such as FIFO,
    /// may collect full blocks for a while, which gains nothing.
    const fn attempts(&self) -> u32 {
        self.geometry.blocks_per_plane() * 4
    }

    /// Takes the next page of the data frontier; also returns the block if that was its last page.
    #[inline]
    pub(super) fn take_data_page(&mut self, plane: usize) -> (Ppn, Option<BlockId>) {
        let plane = &mut self.planes[plane];
        if plane.frontier.is_full(&self.geometry) {
            plane.begin_block();
        }
        plane.frontier.take_page(&self.geometry)
    }

    #[inline]
    pub(super) fn close_if_full(&mut self, pool: usize, filled: Option<BlockId>, flash: &FlashOps) {
        if let Some(block) = filled {
            self.policy.closed(pool, block, flash.array().valid(block));
        }
    }

    /// Collects one data block of `plane`; returns false if there is none whose valid pages fit the
    /// free pages and, with `must_gain`, that holds an invalid page.
    pub(super) fn collect(
        &mut self,
        plane: usize,
        must_gain: bool,
        flash: &mut FlashOps,
    ) -> Result<bool, FtlError> {
        let gains = u64::from(self.geometry.pages_per_block() - u32::from(must_gain));
        let valid_max = self.free_pages(plane).min(gains);
        let victim = frontier::take_victim(&mut *self.policy, plane, |_| valid_max, flash);
        let Some(victim) = victim else { return Ok(false) };
        self.move_data(plane, victim, Cause::Gc, flash)?;
        Ok(true)
    }

    /// Pages of `plane` that data can be copied to.
    fn free_pages(&self, plane: usize) -> u64 {
        let plane = &self.planes[plane];
        plane.frontier.room(plane.free_for_data() as usize, &self.geometry)
    }

    /// Copies the data of `victim`, no candidate of the policy any more, and erases it.
    fn move_data(
        &mut self,
        plane: usize,
        victim: BlockId,
        cause: Cause,
        flash: &mut FlashOps,
    ) -> Result<(), FtlError> {
        let mut offset = 0;
        while let Some(at) = flash.array().next_valid(victim, offset) {
            offset = at + 1;
            let from = self.geometry.page(victim, at);
            let lpn = flash.array().owner(from);
            let (to, filled) = self.take_data_page(plane);
            flash.copy(from, to, cause, After::NOTHING);
            self.map[lpn.0 as usize] = to;
            match self.cache.find(lpn) {
                // Lazy copying: the translation page is written when the entry is evicted.
                Some(slot) => self.cache.mark_dirty(slot),
                None => self.copied.push(lpn),
            }
            self.close_if_full(plane, filled, flash);
        }
        self.erase(plane, victim, cause, flash);
        self.update_copied(flash)
    }

    /// Pages that translation pages of `pool` can be copied to.
    fn free_translation_pages(&self, pool: usize) -> u64 {
        let TranslationPool { plane, frontier } = &self.pools[pool];
        let Plane { free, reserved, .. } = &self.planes[*plane];
        frontier.room(free.len().min(*reserved as usize), &self.geometry)
    }

    /// Erases `victim`; if that wears it out the plane takes a block less of data.
    fn erase(&mut self, plane: usize, victim: BlockId, cause: Cause, flash: &mut FlashOps) {
        let Plane { free, limit, .. } = &mut self.planes[plane];
        if !free.recycle(victim, cause, After::NOTHING, flash) {
            *limit = limit.saturating_sub(self.geometry.pages_per_block());
        }
    }

    /// Writes the entries of copied pages that are not cached.
    fn update_copied(&mut self, flash: &mut FlashOps) -> Result<(), FtlError> {
        let copied = std::mem::take(&mut self.copied);
        let done = if self.batch {
            self.update_in_batches(&copied, flash)
        } else {
            copied.iter().try_for_each(|lpn| {
                self.update_translation(self.cache.translation_page(*lpn), flash)?;
                self.store(*lpn);
                Ok(())
            })
        };
        self.copied = copied;
        self.copied.clear();
        done
    }

    /// Reads and writes each translation page once; its dirty entries in the cache are included.
    fn update_in_batches(&mut self, copied: &[Lpn], flash: &mut FlashOps) -> Result<(), FtlError> {
        for lpn in copied {
            let page = self.cache.translation_page(*lpn);
            if !std::mem::replace(&mut self.is_touched[page as usize], true) {
                self.touched.push(page);
            }
        }
        let touched = std::mem::take(&mut self.touched);
        let done = touched.iter().try_for_each(|&page| {
            self.is_touched[page as usize] = false;
            self.update_translation(page, flash)?;
            self.entries_written(page);
            Ok(())
        });
        if done.is_ok() && !self.stored.is_empty() {
            copied.iter().for_each(|lpn| self.store(*lpn));
        }
        self.touched = touched;
        self.touched.clear();
        done
    }

    /// Reads translation page `page`, if it exists and is not in the host's memory, and writes its
    /// new version.
    pub(super) fn write_translation(
        &mut self,
        page: u32,
        flash: &mut FlashOps,
    ) -> Result<After, FtlError> {
        let pool = page as usize % self.pools.len();
        if !self.ensure_translation_page(pool, flash) {
            self.read_only = true;
            return Err(self.device_full(flash));
        }
        let (to, filled) = self.take_translation_page(pool);
        let old = std::mem::replace(&mut self.directory[page as usize], to);
        let owner = Lpn(self.map.len() as u32 + page);
        let mut after = After::NOTHING;
        match self.host.as_mut().filter(|host| host.holds(page)) {
            Some(host) => {
                host.clean(page);
                flash.note_host_access();
            }
            None if old != Ppn::NONE => {
                after = flash.read(old, Cause::Mapping, After::NOTHING);
            }
            None => {}
        }
        let after = flash.program(to, owner, Cause::Mapping, after);
        if old != Ppn::NONE {
            let valid = flash.invalidate(old);
            let block = self.geometry.block_of(old);
            self.policy.invalidated(self.planes.len() + pool, block, valid);
        }
        self.close_if_full(self.planes.len() + pool, filled, flash);
        Ok(after)
    }

    #[inline]
    fn take_translation_page(&mut self, pool: usize) -> (Ppn, Option<BlockId>) {
        let pool = &mut self.pools[pool];
        if pool.frontier.is_full(&self.geometry) {
            let plane = &mut self.planes[pool.plane];
            pool.frontier = Frontier::new(plane.free.take(false).expect("a block is free"));
            plane.reserved -= 1;
        }
        pool.frontier.take_page(&self.geometry)
    }

    /// Ensures that the frontier of translation pool `pool` has a free page; returns false if
    /// worn-out blocks make that impossible.
    #[inline]
    fn ensure_translation_page(&mut self, pool: usize, flash: &mut FlashOps) -> bool {
        if !self.pools[pool].frontier.is_full(&self.geometry) {
            return true;
        }
        for _ in 0..self.attempts() {
            let plane = &self.planes[self.pools[pool].plane];
            if plane.free.is_empty() || plane.reserved == 0 {
                return false;
            }
            // Taking a page opens the next block and leaves a free one to copy to.
            let enough = plane.reserved > 1 || !self.pools[pool].frontier.is_full(&self.geometry);
            if enough || !self.collect_translation(pool, flash) {
                return enough;
            }
        }
        false
    }

    /// Collects one block of translation pages, which changes the directory only.
    #[cold]
    fn collect_translation(&mut self, pool: usize, flash: &mut FlashOps) -> bool {
        let pages_per_block = u64::from(self.geometry.pages_per_block());
        let policy_pool = self.planes.len() + pool;
        let victim =
            frontier::take_victim(&mut *self.policy, policy_pool, |_| pages_per_block, flash);
        let Some(victim) = victim else { return false };
        self.move_translations(pool, victim, Cause::Gc, flash);
        true
    }

    /// Copies the translation pages of `victim`, which the policy has given up, and erases it.
    fn move_translations(
        &mut self,
        pool: usize,
        victim: BlockId,
        cause: Cause,
        flash: &mut FlashOps,
    ) {
        let policy_pool = self.planes.len() + pool;
        let mut offset = 0;
        while let Some(at) = flash.array().next_valid(victim, offset) {
            offset = at + 1;
            let from = self.geometry.page(victim, at);
            let page = flash.array().owner(from).0 - self.map.len() as u32;
            let (to, filled) = self.take_translation_page(pool);
            flash.copy(from, to, cause, After::NOTHING);
            self.directory[page as usize] = to;
            self.close_if_full(policy_pool, filled, flash);
        }
        let plane = self.pools[pool].plane;
        // The pool keeps its share; a worn-out block reduces the blocks for data.
        self.planes[plane].reserved += 1;
        self.erase(plane, victim, cause, flash);
    }
}

impl Maintenance for Dftl {
    /// Moves the data or translation pages of `block` to others at once. Returns false if it is
    /// still written, has no valid page, or too few pages are free.
    fn refresh(&mut self, block: BlockId, flash: &mut FlashOps) -> bool {
        let array = flash.array();
        let closed = array.next_page(block) == self.geometry.pages_per_block();
        let Some(first) = array.next_valid(block, 0).filter(|_| closed && !self.read_only) else {
            return false;
        };
        let (valid, plane) = (u64::from(array.valid(block)), self.geometry.plane_of(block).0);
        let owner = array.owner(self.geometry.page(block, first)).0;
        if let Some(page) = owner.checked_sub(self.map.len() as u32) {
            let pool = page as usize % self.pools.len();
            let fits = valid <= self.free_translation_pages(pool);
            if fits {
                self.policy.removed(self.planes.len() + pool, block);
                self.move_translations(pool, block, Cause::Refresh, flash);
            }
            return fits;
        }
        let fits = valid <= self.free_pages(plane as usize);
        if fits {
            self.policy.removed(plane as usize, block);
            // Where entries of the map cannot be written, the device takes no more writes.
            let _ = self.move_data(plane as usize, block, Cause::Refresh, flash);
        }
        fits
    }

    fn power_lost(&mut self) {
        if let Some(host) = &mut self.host {
            host.power_lost();
        }
    }
}
