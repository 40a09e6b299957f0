//! Where DFTL's pages go, and how room is made for them.

use super::{Dftl, Frontier};
use crate::event::Cause;
use crate::ftl::FtlError;
use crate::geometry::{BlockId, Lpn, Ppn};
use crate::ops::{After, FlashOps};

impl Dftl {
    /// Finds a plane with room for one more page of data, and makes that room.
    pub(super) fn place(&mut self, flash: &mut FlashOps) -> Result<Option<usize>, FtlError> {
        for _ in 0..self.planes.len() {
            let plane = self.turn;
            self.turn = if plane + 1 == self.planes.len() { 0 } else { plane + 1 };
            if self.planes[plane].valid >= self.planes[plane].limit {
                continue;
            }
            if self.takes_data(plane) || self.open_data_block(plane, flash)? {
                return Ok(Some(plane));
            }
        }
        Ok(None)
    }

    /// Whether the data frontier of `plane` has a free page for the host. Once a block retired
    /// that was to be the free one, what is left of the frontier is all there is to move pages to.
    #[inline]
    fn takes_data(&self, plane: usize) -> bool {
        let plane = &self.planes[plane];
        plane.frontier.next < self.geometry.pages_per_block() && plane.free_for_data() > 0
    }

    /// Makes sure that the data frontier of `plane` has a free page.
    #[cold]
    fn open_data_block(&mut self, plane: usize, flash: &mut FlashOps) -> Result<bool, FtlError> {
        let mut attempts = self.attempts();
        while self.planes[plane].free_for_data() <= self.free_low {
            attempts -= 1;
            if attempts == 0 || !self.collect(plane, false, flash)? {
                if self.planes[plane].free_for_data() > 1 {
                    break;
                }
                return Ok(false); // Retired blocks ate the reserve.
            }
            if self.planes[plane].valid >= self.planes[plane].limit {
                return Ok(false); // Blocks retired just now: collecting might gain nothing.
            }
            if self.takes_data(plane) {
                return Ok(true); // Moved pages left room in the block they were moved to.
            }
        }
        let block = self.planes[plane].free.pop_front().expect("more than one is free");
        self.planes[plane].frontier = Frontier { block, next: 0 };
        Ok(true)
    }

    /// How many blocks to collect for one that is needed, at most. A policy that does not look at
    /// valid pages, as FIFO, may collect full blocks for a while, which gains nothing.
    const fn attempts(&self) -> u32 {
        self.geometry.blocks_per_plane() * 4
    }

    /// Takes the next page of the data frontier of `plane`, and says which block it filled.
    #[inline]
    pub(super) fn take_data_page(&mut self, plane: usize) -> (Ppn, Option<BlockId>) {
        let pages_per_block = self.geometry.pages_per_block();
        let plane = &mut self.planes[plane];
        if plane.frontier.next == pages_per_block {
            let block = plane.free.pop_front().expect("room was made");
            plane.frontier = Frontier { block, next: 0 };
        }
        let page = self.geometry.page(plane.frontier.block, plane.frontier.next);
        plane.frontier.next += 1;
        (page, (plane.frontier.next == pages_per_block).then_some(plane.frontier.block))
    }

    #[inline]
    pub(super) fn close_if_full(&mut self, pool: usize, filled: Option<BlockId>, flash: &FlashOps) {
        if let Some(block) = filled {
            self.policy.closed(pool, block, flash.array().valid(block));
        }
    }

    /// The block of `pool` to collect, if at most `room` pages have to be moved.
    fn choose(&mut self, pool: usize, room: u64, flash: &mut FlashOps) -> Option<BlockId> {
        let block = self.policy.choose(pool, flash.array());
        flash.note_search(self.policy.searched());
        let block = block?;
        let valid = flash.array().valid(block);
        if u64::from(valid) > room {
            return None;
        }
        self.policy.removed(pool, block);
        Some(block)
    }

    /// Collects one data block of `plane`; false when none is worth it or fits. With `must_gain`
    /// it holds an invalid page.
    pub(super) fn collect(
        &mut self,
        plane: usize,
        must_gain: bool,
        flash: &mut FlashOps,
    ) -> Result<bool, FtlError> {
        let pages_per_block = u64::from(self.geometry.pages_per_block());
        let frontier = self.planes[plane].frontier;
        let room = pages_per_block - u64::from(frontier.next)
            + u64::from(self.planes[plane].free_for_data()) * pages_per_block;
        let room = if must_gain { room.min(pages_per_block - 1) } else { room };
        let Some(victim) = self.choose(plane, room, flash) else { return Ok(false) };
        let mut offset = 0;
        while let Some(at) = flash.array().next_valid(victim, offset) {
            offset = at + 1;
            let from = self.geometry.page(victim, at);
            let lpn = flash.array().owner(from);
            let (to, filled) = self.take_data_page(plane);
            flash.copy(from, to, Cause::Gc, After::NOTHING);
            self.map[lpn.0 as usize] = to;
            match self.cache.find(lpn) {
                // Lazy copying: the translation page is written when the entry leaves the cache.
                Some(slot) => self.cache.mark_dirty(slot),
                None => self.moved.push(lpn),
            }
            self.close_if_full(plane, filled, flash);
        }
        if flash.erase(victim, Cause::Gc, After::NOTHING) {
            self.planes[plane].free.push_back(victim);
        } else {
            self.lose_block(plane);
        }
        self.update_moved(flash)?;
        Ok(true)
    }

    /// A block of `plane` is worn out: data has to do with less.
    fn lose_block(&mut self, plane: usize) {
        let limit = &mut self.planes[plane].limit;
        *limit = limit.saturating_sub(self.geometry.pages_per_block());
    }

    /// Writes the entries of moved pages back that are not cached.
    fn update_moved(&mut self, flash: &mut FlashOps) -> Result<(), FtlError> {
        let moved = std::mem::take(&mut self.moved);
        let done = if self.batch {
            self.update_in_batches(&moved, flash)
        } else {
            moved.iter().try_for_each(|lpn| {
                self.write_translation(self.cache.translation_page(*lpn), flash)?;
                self.store(*lpn);
                Ok(())
            })
        };
        self.moved = moved;
        self.moved.clear();
        done
    }

    /// One read and one write for each translation page; changed entries in the cache go along.
    fn update_in_batches(&mut self, moved: &[Lpn], flash: &mut FlashOps) -> Result<(), FtlError> {
        for lpn in moved {
            let page = self.cache.translation_page(*lpn);
            if !std::mem::replace(&mut self.is_touched[page as usize], true) {
                self.touched.push(page);
            }
        }
        let touched = std::mem::take(&mut self.touched);
        let done = touched.iter().try_for_each(|&page| {
            self.is_touched[page as usize] = false;
            self.write_translation(page, flash)?;
            self.write_back_all(page);
            Ok(())
        });
        if done.is_ok() && !self.stored.is_empty() {
            moved.iter().for_each(|lpn| self.store(*lpn));
        }
        self.touched = touched;
        self.touched.clear();
        done
    }

    /// Reads translation page `page`, if there is one, and writes it anew.
    pub(super) fn write_translation(
        &mut self,
        page: u32,
        flash: &mut FlashOps,
    ) -> Result<After, FtlError> {
        let pool = page as usize % self.pools.len();
        if !self.make_translation_room(pool, flash) {
            self.dead = true;
            return Err(self.no_room(flash));
        }
        let (to, filled) = self.take_translation_page(pool);
        let old = std::mem::replace(&mut self.directory[page as usize], to);
        let owner = Lpn(self.map.len() as u32 + page);
        let mut after = After::NOTHING;
        if old != Ppn::NONE {
            after = flash.read(old, Cause::Mapping, After::NOTHING);
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
        let pages_per_block = self.geometry.pages_per_block();
        let pool = &mut self.pools[pool];
        if pool.frontier.next == pages_per_block {
            let plane = &mut self.planes[pool.plane];
            let block = plane.free.pop_front().expect("room was made");
            plane.reserved -= 1;
            pool.frontier = Frontier { block, next: 0 };
        }
        let page = self.geometry.page(pool.frontier.block, pool.frontier.next);
        pool.frontier.next += 1;
        (page, (pool.frontier.next == pages_per_block).then_some(pool.frontier.block))
    }

    /// Makes sure that the frontier of translation pool `pool` has a free page; false when the
    /// device is worn out.
    #[inline]
    fn make_translation_room(&mut self, pool: usize, flash: &mut FlashOps) -> bool {
        let pages_per_block = self.geometry.pages_per_block();
        if self.pools[pool].frontier.next < pages_per_block {
            return true;
        }
        for _ in 0..self.attempts() {
            let plane = &self.planes[self.pools[pool].plane];
            if plane.free.is_empty() || plane.reserved == 0 {
                return false;
            }
            // Taking a page opens the next block and leaves one to move into.
            let room = plane.reserved > 1 || self.pools[pool].frontier.next < pages_per_block;
            if room || !self.collect_translation(pool, flash) {
                return room;
            }
        }
        false
    }

    /// Collects one block of translation pages; only the directory has to know.
    #[cold]
    fn collect_translation(&mut self, pool: usize, flash: &mut FlashOps) -> bool {
        let pages_per_block = u64::from(self.geometry.pages_per_block());
        let policy_pool = self.planes.len() + pool;
        let Some(victim) = self.choose(policy_pool, pages_per_block, flash) else { return false };
        let mut offset = 0;
        while let Some(at) = flash.array().next_valid(victim, offset) {
            offset = at + 1;
            let from = self.geometry.page(victim, at);
            let page = flash.array().owner(from).0 - self.map.len() as u32;
            let (to, filled) = self.take_translation_page(pool);
            flash.copy(from, to, Cause::Gc, After::NOTHING);
            self.directory[page as usize] = to;
            self.close_if_full(policy_pool, filled, flash);
        }
        let plane = self.pools[pool].plane;
        // The pool keeps its share; a block that is worn out is lost to data.
        self.planes[plane].reserved += 1;
        if flash.erase(victim, Cause::Gc, After::NOTHING) {
            self.planes[plane].free.push_back(victim);
        } else {
            self.lose_block(plane);
        }
        true
    }
}
