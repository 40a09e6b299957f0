//! After a power failure all tables are rebuilt from the spare areas.
//!
//! The spare area of a page has its logical page or sectors and the age of their data; of several
//! copies the newest is valid, and of equally new ones that on the MLC flash, as data only ever
//! move there. The header of a block says when it was opened, which orders chains and the ring. The
//! mapping cache, virtual entries, k, and the counters of filter and throttle are lost; erase
//! counts are on flash too. Trims are assumed to be recorded there before they complete.

use super::HybridFtl;
use crate::slc_mlc::NONE;
use crate::slc_mlc::block_chains::BlockChains;
use crate::slc_mlc::operations::{Command, Medium};
use crate::slc_mlc::slc_log::SlcLog;
use hybridsim_flash::array::PageState;
use hybridsim_flash::event::Cause;
use hybridsim_flash::geometry::{BlockId, Lpn, Ppn};
use hybridsim_flash::wear::FreeBlocks;

impl BlockChains {
    /// Rebuilds page map, chains and free blocks. Returns how many blocks are in use.
    ///
    /// # Errors
    /// When the newest copy of a page is not valid: a defect.
    fn rebuild(&mut self) -> Result<u32, String> {
        for table in [&mut self.page_map, &mut self.l2p, &mut self.next, &mut self.last_log] {
            table.fill(NONE);
        }
        self.logged.clear();
        self.mapping_cache.clear();
        self.free = FreeBlocks::none(self.wear.order(), 0, self.next.len() as u32);
        let mut used = Vec::new();
        for block in 0..self.next.len() as u32 {
            let id = BlockId(block);
            let programmed = self.array.next_page(id);
            if programmed > 0 {
                self.map_newest_pages(block, programmed);
                let last = Ppn(block * self.pages_per_block + programmed - 1);
                let logical = self.logical_block(self.array.owner(last).0);
                let header = self.headers[block as usize];
                used.push((logical, !header.is_data, header.opened, block));
            } else if !self.array.is_retired(id) {
                self.free.put(id, self.array.erases(id));
            }
        }
        used.sort_unstable();
        let mut previous = None;
        for &(logical, is_log, _, block) in &used {
            match previous.filter(|(other, _)| *other == logical) {
                Some((_, before)) => self.next[before as usize] = block,
                None => self.l2p[logical as usize] = block,
            }
            if is_log {
                self.last_log[logical as usize] = block;
            }
            previous = Some((logical, block));
        }
        // The order in which their last logs were opened approximates the order of last writes.
        used.sort_unstable_by_key(|(_, _, opened, _)| *opened);
        for &(logical, _, _, block) in &used {
            if self.last_log[logical as usize] == block {
                self.logged.touch(logical);
            }
        }
        let valid = |page: &u32| self.array.state(Ppn(*page)) == PageState::Valid;
        match self.page_map.iter().find(|page| **page != NONE && !valid(page)) {
            None => Ok(used.len() as u32),
            Some(page) => Err(format!("page {page} is the newest copy, but is not valid")),
        }
    }

    /// Maps the pages of `block` that are the newest copies so far.
    fn map_newest_pages(&mut self, block: u32, programmed: u32) {
        self.in_order[block as usize] = true;
        for offset in 0..programmed {
            let page = block * self.pages_per_block + offset;
            if self.array.state(Ppn(page)) == PageState::Free {
                continue;
            }
            let Lpn(lpn) = self.array.owner(Ppn(page));
            self.in_order[block as usize] &= lpn % self.pages_per_block == offset;
            if self.trims.trimmed_at(lpn) >= self.written[page as usize].max(1) {
                continue;
            }
            let age = |page: u32| {
                let block = page / self.pages_per_block;
                (self.written[page as usize], self.headers[block as usize].opened, page)
            };
            let known = self.page_map[lpn as usize];
            if known == NONE || age(known) < age(page) {
                self.page_map[lpn as usize] = page;
            }
        }
    }
}

impl SlcLog {
    /// Finds head and tail by the order in which blocks were opened, and clears the tables.
    fn rebuild_ring(&mut self) {
        self.clear_tables();
        let used = |block: &u32| self.array.next_page(BlockId(*block)) > 0;
        let opened = |block: &u32| self.opened[*block as usize];
        let blocks = || (0..self.blocks()).filter(used);
        let ends = blocks().min_by_key(opened).zip(blocks().max_by_key(opened));
        let length = (blocks().count() as u32).saturating_sub(1);
        // An empty log keeps its position, which erase counts reveal.
        let (tail, head) = ends.unwrap_or((self.ring.head, self.ring.head));
        (self.ring.tail, self.ring.head, self.ring.used) = (tail, head, length);
    }

    /// The newest copy of each sector: (sector, when written, slot).
    fn newest_copies(&self) -> Vec<(u32, u64, u32)> {
        let mut copies: Vec<(u32, u64, u64, u32)> = Vec::new();
        for (slot, sector) in (0..).zip(&self.sectors) {
            if *sector != NONE {
                let opened = self.opened[self.block_of(slot) as usize];
                copies.push((*sector, self.written[slot as usize], opened, slot));
            }
        }
        copies.sort_unstable();
        let mut newest: Vec<(u32, u64, u32)> = Vec::new();
        for (sector, written, _, slot) in copies {
            match newest.last_mut().filter(|(other, ..)| *other == sector) {
                Some(known) => *known = (sector, written, slot),
                None => newest.push((sector, written, slot)),
            }
        }
        newest
    }
}

impl HybridFtl {
    /// Rebuilds all tables: reads spare areas, and moves sectors without a bucket in the rebuilt
    /// hash table.
    ///
    /// # Errors
    /// When the tables are inconsistent, or the flash is worn out.
    pub fn rebuild(&mut self) -> Result<(), String> {
        let blocks = self.mlc.rebuild()?;
        self.operations.pages(Medium::Mlc, Command::Read, Cause::Mapping, blocks);
        let Some(slc) = &mut self.slc else { return Ok(()) };
        slc.filter.reset();
        slc.throttle.reset();
        slc.write_back.reset();
        slc.sectors_of.fill(0);
        slc.log.rebuild_ring();
        let pages = (0..slc.log.blocks()).map(|b| slc.log.array.next_page(BlockId(b))).sum();
        self.operations.pages(Medium::Slc, Command::Read, Cause::Mapping, pages);
        let mut without_bucket = Vec::new();
        for (sector, written, slot) in slc.log.newest_copies() {
            let lpn = sector / self.mlc.sectors_per_page;
            if written > self.mlc.written_at(lpn) && written > self.mlc.trims.trimmed_at(lpn) {
                slc.sectors_of[self.mlc.logical_block(lpn) as usize] += 1;
                if !slc.log.insert_recovered(sector, slot) {
                    without_bucket.push(lpn);
                }
            }
        }
        without_bucket.dedup();
        for lpn in without_bucket {
            self.move_page(lpn).map_err(|error| error.to_string())?;
        }
        self.audit()
    }
}
