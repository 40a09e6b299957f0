//! After a power failure: all tables are rebuilt from the spare areas.
//!
//! A page's spare area names what is in it and says how new that is; of several copies the newest
//! counts, and of equally new ones that on the MLC flash, as data only ever move there. The first
//! page of a block says when the block was opened, which orders chains and the ring. Lost are the
//! cache of mappings, the marks of virtual sectors, k, and what the filter and the throttle had
//! counted; erase counts are on flash too. Trims are taken to be recorded there when they are
//! answered.

use super::hash::NONE as NO_SECTOR;
use super::log::SlcLog;
use super::mlc::{Mlc, NONE};
use super::store::Store;
use super::work::{Act, Medium};
use crate::array::PageState;
use crate::event::Cause;
use crate::geometry::{BlockId, Lpn, Ppn};
use crate::wear::FreeBlocks;

impl Mlc {
    /// Rebuilds map, chains and free blocks. Answers how many blocks hold something.
    ///
    /// # Errors
    /// When the newest copy of a page is one the books say is not needed: a defect.
    fn rebuild(&mut self) -> Result<u32, String> {
        for table in [&mut self.map, &mut self.l2p, &mut self.next, &mut self.last] {
            table.fill(NONE);
        }
        self.chains.clear();
        self.cached.clear();
        self.spares = FreeBlocks::none(self.wear.order(), 0, self.next.len() as u32);
        let mut filled = Vec::new();
        for block in 0..self.next.len() as u32 {
            let id = BlockId(block);
            let programmed = self.array.next_page(id);
            if programmed > 0 {
                self.find_pages(block, programmed);
                let last = Ppn(block * self.per_block + programmed - 1);
                let logical = self.logical(self.array.owner(last).0);
                let label = self.labels[block as usize];
                filled.push((logical, !label.is_data, label.opened, block));
            } else if !self.array.is_retired(id) {
                self.spares.put(id, self.array.erases(id));
            }
        }
        filled.sort_unstable();
        let mut previous = None;
        for &(logical, is_log, _, block) in &filled {
            match previous.filter(|(other, _)| *other == logical) {
                Some((_, before)) => self.next[before as usize] = block,
                None => self.l2p[logical as usize] = block,
            }
            if is_log {
                self.last[logical as usize] = block;
            }
            previous = Some((logical, block));
        }
        // The chain whose last log was opened last comes first.
        filled.sort_unstable_by_key(|(_, _, opened, _)| *opened);
        for &(logical, _, _, block) in &filled {
            if self.last[logical as usize] == block {
                self.chains.touch(logical);
            }
        }
        let valid = |page: &u32| self.array.state(Ppn(*page)) == PageState::Valid;
        match self.map.iter().find(|page| **page != NONE && !valid(page)) {
            None => Ok(filled.len() as u32),
            Some(page) => Err(format!("page {page} was found newest, but is not valid")),
        }
    }

    /// Maps what `block` holds the newest of.
    fn find_pages(&mut self, block: u32, programmed: u32) {
        self.in_order[block as usize] = true;
        for offset in 0..programmed {
            let page = block * self.per_block + offset;
            if self.array.state(Ppn(page)) == PageState::Free {
                continue;
            }
            let Lpn(lpn) = self.array.owner(Ppn(page));
            self.in_order[block as usize] &= lpn % self.per_block == offset;
            if self.trims.last(lpn) >= self.written[page as usize].max(1) {
                continue;
            }
            let age = |page: u32| {
                let block = page / self.per_block;
                (self.written[page as usize], self.labels[block as usize].opened, page)
            };
            let known = self.map[lpn as usize];
            if known == NONE || age(known) < age(page) {
                self.map[lpn as usize] = page;
            }
        }
    }
}

impl SlcLog {
    /// Finds head and tail by when blocks were opened, and clears the tables.
    fn rebuild_ring(&mut self) {
        self.forget_all();
        let holds = |block: &u32| self.array.next_page(BlockId(*block)) > 0;
        let opened = |block: &u32| self.opened[*block as usize];
        let filled = || (0..self.blocks()).filter(holds);
        let ends = filled().min_by_key(opened).zip(filled().max_by_key(opened));
        let used = (filled().count() as u32).saturating_sub(1);
        // An empty log may begin anywhere; where the head is, the erase counts tell.
        let (tail, head) = ends.unwrap_or((self.head, self.head));
        (self.tail, self.head, self.used) = (tail, head, used);
    }

    /// The newest copy of each sector: (sector, when written, place).
    fn newest(&self) -> Vec<(u32, u64, u32)> {
        let mut copies: Vec<(u32, u64, u64, u32)> = Vec::new();
        for (place, sector) in (0..).zip(&self.names) {
            if *sector != NO_SECTOR {
                let opened = self.opened[self.block_of(place) as usize];
                copies.push((*sector, self.written[place as usize], opened, place));
            }
        }
        copies.sort_unstable();
        let mut newest: Vec<(u32, u64, u32)> = Vec::new();
        for (sector, written, _, place) in copies {
            match newest.last_mut().filter(|(other, ..)| *other == sector) {
                Some(known) => *known = (sector, written, place),
                None => newest.push((sector, written, place)),
            }
        }
        newest
    }
}

impl Store {
    /// Rebuilds everything; the work is that of reading spare areas, and of moving sectors the
    /// rebuilt hash table has no bucket for.
    ///
    /// # Errors
    /// When what is found contradicts the books, or the flash is worn out.
    pub fn rebuild(&mut self) -> Result<(), String> {
        let blocks = self.mlc.rebuild()?;
        self.work.pages(Medium::Mlc, Act::Read, Cause::Mapping, false, blocks);
        let Some(cache) = &mut self.cache else { return Ok(()) };
        cache.filter.forget();
        cache.throttle.forget();
        cache.write_back.forget();
        cache.sectors_of.fill(0);
        cache.log.rebuild_ring();
        let pages = (0..cache.log.blocks()).map(|b| cache.log.array.next_page(BlockId(b))).sum();
        self.work.pages(Medium::Slc, Act::Read, Cause::Mapping, false, pages);
        let mut homeless = Vec::new();
        for (sector, written, place) in cache.log.newest() {
            let lpn = sector / self.mlc.sectors;
            let page = self.mlc.map[lpn as usize];
            let on_mlc = if page == NONE { 0 } else { self.mlc.written[page as usize] };
            if written > on_mlc && written > self.mlc.trims.last(lpn) {
                cache.sectors_of[self.mlc.logical(lpn) as usize] += 1;
                if !cache.log.found(sector, place) {
                    homeless.push(lpn);
                }
            }
        }
        homeless.dedup();
        for lpn in homeless {
            self.move_page(lpn).map_err(|error| error.to_string())?;
        }
        self.audit()
    }
}
