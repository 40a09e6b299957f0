//! The MLC flash (chang-slc-mlc, section 3.5): logical blocks are chains of one data block and some
//! log blocks, and a small cache knows where the sectors of a chain are.
//!
//! The first block of a chain is in the L2P table, each next one in the LB table. What the two
//! leave open, the place of every page, firmware finds by scanning the logs of a chain; here it
//! stands in `map`, and [`Mlc::look_up`] charges the scan where the cache does not hold the chain.
//!
//! The spare area of a page tells its logical page and when its data was written, that of a
//! block's first page when the block was opened; `recovery` rebuilds all tables from these.

use super::recent::Recent;
use super::trims::Trims;
use super::work::{Act, Medium, Number, Work};
use crate::array::Array;
use crate::event::Cause;
use crate::ftl::FtlError;
use crate::geometry::{BlockId, Lpn, Ppn};
use crate::wear::{FreeBlocks, WearPolicy};
use hybridsim_engine::Contents;

/// No block, page or log.
pub const NONE: u32 = u32::MAX;

/// Chains looked at in search of one to fold.
const CANDIDATES: usize = 64;

/// What the spare area of a block's first page says.
#[derive(Clone, Copy, Debug, Default)]
pub struct Label {
    /// Blocks are numbered as they are opened.
    pub opened: u64,
    /// It is a data block: filled by a fold, a copy for wear levelling or in the factory, or a
    /// log that was switched (its last page says so).
    pub is_data: bool,
}

/// The MLC flash with its tables.
pub struct Mlc {
    /// The cells.
    pub array: Array,
    /// Pages of a block.
    pub per_block: u32,
    /// Sectors of a page.
    pub sectors: u32,
    /// Logical page to physical page.
    pub map: Vec<u32>,
    /// L2P table: logical block to the first block of its chain.
    pub l2p: Vec<u32>,
    /// LB table: block to the next of its chain.
    pub next: Vec<u32>,
    /// The log block of a logical block that is written to; [`NONE`] without logs.
    pub last: Vec<u32>,
    /// Whether every page programmed so far lies at its own offset, by block.
    pub in_order: Vec<bool>,
    /// Spare areas: see [`Label`].
    pub labels: Vec<Label>,
    /// Spare areas: when the data of a page was written, by physical page.
    pub written: Vec<u64>,
    /// Free blocks.
    pub spares: FreeBlocks,
    /// Wear levelling.
    pub wear: Box<dyn WearPolicy>,
    /// Logical blocks with logs, by last write.
    pub chains: Recent,
    /// Logical blocks whose mapping is cached.
    pub cached: Recent,
    /// How many may be.
    pub cache_size: u32,
    /// A chain with so many logs is folded when the last is full.
    pub logs_max: u32,
    /// Erases of all blocks.
    pub erases: u64,
    /// Blocks opened so far.
    pub opened: u64,
    /// Logical blocks kept with one bit to the cell (density control).
    pub dense: Vec<bool>,
    /// How many; each takes the space of two.
    pub dense_count: u32,
    /// When logical pages were trimmed: a record on flash.
    pub trims: Trims,
    /// Stamps by physical sector, in verified runs.
    pub cells: Contents,
    /// Whether the run is verified.
    pub verifying: bool,
}

impl Mlc {
    /// Erased flash that offers `logical_blocks`; `premapped` ones have a full data block.
    pub fn new(
        array: Array,
        logical_blocks: u32,
        wear: Box<dyn WearPolicy>,
        cache_size: u32,
        logs_max: u32,
        premapped: bool,
    ) -> Self {
        let geometry = *array.geometry();
        let (blocks, per_block) = (geometry.blocks(), geometry.pages_per_block());
        let mut mlc = Self {
            per_block,
            sectors: geometry.sectors_per_page(),
            map: vec![NONE; logical_blocks as usize * per_block as usize],
            l2p: vec![NONE; logical_blocks as usize],
            next: vec![NONE; blocks as usize],
            last: vec![NONE; logical_blocks as usize],
            in_order: vec![true; blocks as usize],
            labels: vec![Label::default(); blocks as usize],
            written: vec![0; geometry.pages() as usize],
            spares: FreeBlocks::new(wear.order(), 0, blocks),
            wear,
            chains: Recent::new(logical_blocks),
            cached: Recent::new(logical_blocks),
            cache_size,
            logs_max,
            erases: 0,
            opened: 0,
            dense: vec![false; logical_blocks as usize],
            dense_count: 0,
            trims: Trims::new(logical_blocks, per_block),
            cells: Contents::default(),
            verifying: false,
            array,
        };
        if premapped {
            (0..logical_blocks).for_each(|logical| mlc.map_in_factory(logical));
        }
        mlc
    }

    /// Gives `logical` a data block full of what was there before (chang-slc-mlc, section 5.1).
    fn map_in_factory(&mut self, logical: u32) {
        let Some(block) = self.open(true) else { return };
        for offset in 0..self.per_block {
            let lpn = logical * self.per_block + offset;
            let page = block * self.per_block + offset;
            self.array.program(Ppn(page), Lpn(lpn));
            self.map[lpn as usize] = page;
        }
        self.l2p[logical as usize] = block;
        self.wear.filled(0, BlockId(block), 0);
    }

    /// A free block, to be filled.
    pub fn open(&mut self, data: bool) -> Option<u32> {
        let BlockId(block) = self.spares.take(data)?;
        self.opened += 1;
        let at = block as usize;
        self.labels[at] = Label { opened: self.opened, is_data: data };
        self.in_order[at] = true;
        self.next[at] = NONE;
        Some(block)
    }

    /// The logical block of page `lpn`.
    #[inline]
    pub const fn logical(&self, lpn: u32) -> u32 {
        lpn / self.per_block
    }

    /// Whether `logical` has log blocks.
    #[inline]
    pub fn has_log(&self, logical: u32) -> bool {
        self.last[logical as usize] != NONE
    }

    /// The blocks of the chain of `logical`, in order.
    pub fn chain(&self, logical: u32) -> impl Iterator<Item = u32> + '_ {
        let first = self.l2p[logical as usize];
        std::iter::successors((first != NONE).then_some(first), |block| {
            let next = self.next[*block as usize];
            (next != NONE).then_some(next)
        })
    }

    /// The logs of `logical`, in order.
    pub fn logs(&self, logical: u32) -> impl Iterator<Item = u32> + '_ {
        self.chain(logical).filter(|block| !self.labels[*block as usize].is_data)
    }

    /// The mapping of `logical` is needed: scans the chain unless it is cached, and tells how many
    /// pages as `number`.
    pub fn look_up(&mut self, logical: u32, number: Number, work: &mut Work) {
        if self.cached.contains(logical) {
            self.cached.touch(logical);
            return;
        }
        let scan: u32 = self.logs(logical).map(|log| self.array.next_page(BlockId(log))).sum();
        if scan > 0 {
            let dense = self.dense[logical as usize];
            work.pages(Medium::Mlc, Act::Read, Cause::Mapping, dense, scan);
            work.tell(number, u64::from(scan));
        }
        if self.cache_size == 0 {
            return;
        }
        if self.cached.len() >= self.cache_size
            && let Some(oldest) = self.cached.oldest()
        {
            self.cached.remove(oldest);
        }
        self.cached.touch(logical);
    }

    /// Spare blocks that can become logs: one is kept for folding, and one for each block that
    /// density control lets take the space of two.
    pub fn spare_logs(&self) -> usize {
        self.spares.len().saturating_sub(1 + self.dense_count as usize)
    }

    /// Appends a log to the chain of `logical`.
    pub fn add_log(&mut self, logical: u32) -> Option<u32> {
        let block = self.open(false)?;
        match self.chain(logical).last() {
            Some(end) => self.next[end as usize] = block,
            None => self.l2p[logical as usize] = block,
        }
        self.last[logical as usize] = block;
        Some(block)
    }

    /// The chain to fold: of those not written to for longest the first whose last log is less
    /// than half full, or else the one with most logs (assumed; the paper prefers log blocks that
    /// are little used for long).
    pub fn victim(&self) -> Option<u32> {
        let mut longest = None;
        for logical in self.chains.back_to_front().take(CANDIDATES) {
            let used = self.array.next_page(BlockId(self.last[logical as usize]));
            if used * 2 < self.per_block {
                return Some(logical);
            }
            let length = self.chain(logical).count();
            if longest.is_none_or(|(most, _)| length > most) {
                longest = Some((length, logical));
            }
        }
        longest.map(|(_, logical)| logical)
    }

    /// Programs the next page of `block` with `lpn`, whose data is as old as `written`. The stamps
    /// are the caller's to put there. Answers the physical page.
    pub fn program(&mut self, block: u32, offset: u32, lpn: u32, written: u64) -> u32 {
        let page = block * self.per_block + offset;
        self.array.program(Ppn(page), Lpn(lpn));
        self.in_order[block as usize] &= offset == lpn % self.per_block;
        let old = std::mem::replace(&mut self.map[lpn as usize], page);
        if old != NONE {
            self.array.invalidate(Ppn(old));
        }
        self.written[page as usize] = written;
        self.trims.written(lpn);
        page
    }

    /// Sector of the cells where physical page `page` begins.
    pub fn cell(&self, page: u32) -> u64 {
        u64::from(page) * u64::from(self.sectors)
    }

    /// Moves stamps from page to page.
    pub fn move_stamps(&mut self, from: u32, to: u32) {
        for sector in 0..u64::from(self.sectors) {
            let stamp = self.cells.get(self.cell(from) + sector);
            let at = self.cell(to) + sector;
            if stamp != 0 || self.cells.get(at) != 0 {
                self.cells.write(at, &[stamp]);
            }
        }
    }

    /// After its chain was collected in `target`: that becomes the data block of `logical`, and
    /// the blocks of the old chain are erased. Answers how many.
    pub fn replace_chain(&mut self, logical: u32, target: u32, work: &mut Work) -> u32 {
        let mut block = std::mem::replace(&mut self.l2p[logical as usize], target);
        self.last[logical as usize] = NONE;
        self.chains.remove(logical);
        let mut erased = 0;
        while block != NONE {
            let next = std::mem::replace(&mut self.next[block as usize], NONE);
            if block != target {
                self.wear.taken(0, BlockId(block));
                self.release(block, self.dense[logical as usize], work);
                erased += 1;
            }
            block = next;
        }
        if target == NONE {
            return erased;
        }
        self.next[target as usize] = NONE;
        self.wear.filled(0, BlockId(target), self.array.erases(BlockId(target)));
        erased
    }

    /// The last log of `logical` is full and in order: it becomes the data block, nothing is
    /// copied.
    pub fn switch_if_in_order(&mut self, logical: u32, work: &mut Work) -> bool {
        let log = self.last[logical as usize];
        let whole = self.array.valid(BlockId(log)) == self.per_block;
        if !whole || !self.in_order[log as usize] {
            return false;
        }
        self.labels[log as usize].is_data = true;
        self.replace_chain(logical, log, work);
        work.tell(Number::Switch, 1);
        true
    }

    /// Erases `block`, and levels wear.
    pub fn release(&mut self, block: u32, dense: bool, work: &mut Work) {
        let (mut block, mut cause) = (block, Cause::Gc);
        loop {
            let id = BlockId(block);
            let usable = self.array.erase(id);
            if self.verifying {
                let sectors = u64::from(self.per_block * self.sectors);
                self.cells.clear(self.cell(block * self.per_block), sectors);
            }
            let erases = self.array.erases(id);
            self.erases += 1;
            work.erase(Medium::Mlc, cause, block, erases);
            work.tell(Number::MlcErases, 1);
            if dense && cause == Cause::Gc {
                // With one bit to the cell its data took a second block.
                work.erase(Medium::Mlc, cause, block, erases);
                work.tell(Number::MlcErases, 1);
            }
            if !usable {
                self.wear.retired(0, id);
                return;
            }
            let Some(BlockId(cold)) = self.wear.erased(0, id, erases, true) else {
                self.spares.put(id, erases);
                return;
            };
            if !self.move_block(cold, block, work) {
                self.spares.put(id, erases);
            }
            (block, cause) = (cold, Cause::Wear);
        }
    }

    /// Wear levelling: the data of data block `from` moves into the erased block `to`; false when
    /// it has none.
    fn move_block(&mut self, from: u32, to: u32, work: &mut Work) -> bool {
        let last = self.array.next_page(BlockId(from)).saturating_sub(1);
        let Lpn(lpn) = self.array.owner(Ppn(from * self.per_block + last));
        let logical = self.logical(lpn);
        let Some(offset) = self.array.next_valid(BlockId(from), 0) else {
            let next = std::mem::replace(&mut self.next[from as usize], NONE);
            self.l2p[logical as usize] = next;
            return false;
        };
        self.opened += 1;
        self.labels[to as usize] = Label { opened: self.opened, is_data: true };
        self.in_order[to as usize] = true;
        let (mut offset, mut count) = (Some(offset), 0);
        while let Some(at) = offset {
            let (old, new) = (from * self.per_block + at, to * self.per_block + at);
            let Lpn(lpn) = self.array.owner(Ppn(old));
            self.array.relocate(Ppn(old), Ppn(new));
            self.map[lpn as usize] = new;
            self.written[new as usize] = self.written[old as usize];
            if self.verifying {
                self.move_stamps(old, new);
            }
            count += 1;
            offset = self.array.next_valid(BlockId(from), at + 1);
        }
        let dense = self.dense[logical as usize];
        work.pages(Medium::Mlc, Act::Read, Cause::Wear, dense, count);
        work.pages(Medium::Mlc, Act::Program, Cause::Wear, dense, count);
        work.tell(Number::WearPrograms, u64::from(count));
        self.next[to as usize] = std::mem::replace(&mut self.next[from as usize], NONE);
        self.l2p[logical as usize] = to;
        self.wear.filled(0, BlockId(to), self.array.erases(BlockId(to)));
        true
    }

    /// Nothing of `logical` is needed any more: `target`, opened for it, stays free, its chain is
    /// erased. Answers how many blocks.
    pub fn drop_chain(&mut self, logical: u32, target: u32, work: &mut Work) -> u32 {
        let erased = self.replace_chain(logical, NONE, work);
        self.spares.put(BlockId(target), self.array.erases(BlockId(target)));
        erased
    }

    /// No room is left for a log or a fold.
    pub fn worn_out(&self) -> FtlError {
        let retired = self.array.retired_blocks();
        if retired > 0 {
            FtlError::WornOut(format!("{retired} MLC blocks are worn out, no spare block is left"))
        } else {
            FtlError::Full("no spare MLC block is left and no chain has a log".to_owned())
        }
    }

    /// Checks the tables against one another.
    ///
    /// # Errors
    /// What does not agree.
    pub fn audit(&self) -> Result<(), String> {
        self.array.audit()?;
        let mut mapped = 0u64;
        for (lpn, page) in self.map.iter().enumerate().filter(|(_, page)| **page != NONE) {
            let block = page / self.per_block;
            if self.array.owner(Ppn(*page)).0 != lpn as u32 {
                return Err(format!("page {lpn} is mapped to {page}, which is of another"));
            }
            if !self.chain(self.logical(lpn as u32)).any(|other| other == block) {
                return Err(format!("page {lpn} is in block {block}, not in its chain"));
            }
            mapped += 1;
        }
        if mapped != self.array.valid_pages() {
            return Err(format!("{mapped} pages mapped, {} valid", self.array.valid_pages()));
        }
        let chained: usize = (0..self.l2p.len() as u32).map(|b| self.chain(b).count()).sum();
        let used = chained + self.spares.len() + self.array.retired_blocks() as usize;
        if used != self.next.len() {
            return Err(format!("{used} of {} blocks are accounted for", self.next.len()));
        }
        for logical in 0..self.l2p.len() as u32 {
            if self.has_log(logical) != self.chains.contains(logical) {
                return Err(format!("logical block {logical} is listed wrongly"));
            }
        }
        Ok(())
    }
}
