//! The MLC flash (chang-slc-mlc, section 3.5): a logical block is a chain of one data block and
//! some log blocks. A small cache holds the page mapping of some chains.
//!
//! The first block of a chain is in the L2P table, each next one in the LB table. Firmware finds
//! where a page is within its chain by scanning the logs of the chain; here it is in `page_map`,
//! and [`BlockChains::look_up`] charges the scan if the mapping is not cached.
//!
//! The spare area of a page has its logical page and when its data were written, that of a block's
//! first page when the block was opened; recovery rebuilds all tables from these.

use super::NONE;
use super::operations::{Command, Medium, Operations, Statistic};
use super::trim_record::TrimRecord;
use hybridsim_engine::Contents;
use hybridsim_engine::state::{Loader, Saver, StateError};
use hybridsim_flash::LruList;
use hybridsim_flash::array::Array;
use hybridsim_flash::event::Cause;
use hybridsim_flash::ftl::FtlError;
use hybridsim_flash::geometry::{BlockId, Lpn, Ppn};
use hybridsim_flash::restore;
use hybridsim_flash::wear::{FreeBlocks, WearPolicy};
use serde::{Deserialize, Serialize};

/// Chains examined in search of one to fold.
const CANDIDATES: usize = 64;

/// The spare area of a block's first page.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct BlockHeader {
    /// Blocks are numbered in the order they are opened.
    pub opened: u64,
    /// A data block: filled by a fold, by wear levelling or in the factory, or a log that was
    /// switched (its last page says so).
    pub is_data: bool,
}

#[derive(Clone, Copy, Debug)]
pub struct ChainConfig {
    pub logical_blocks: u32,
    /// Logical blocks whose mapping is cached.
    pub mapping_cache_max: u32,
    /// A chain with this many logs is folded when the last is full.
    pub logs_max: u32,
    /// Every logical block has a full data block initially.
    pub premapped: bool,
}

pub struct BlockChains {
    pub array: Array,
    pub pages_per_block: u32,
    pub sectors_per_page: u32,
    pub config: ChainConfig,
    /// Logical page to physical page.
    pub page_map: Vec<u32>,
    /// L2P table: logical block to the first block of its chain.
    pub l2p: Vec<u32>,
    /// LB table: block to the next block of its chain.
    pub next: Vec<u32>,
    /// The log block of a logical block that is being filled.
    pub last_log: Vec<u32>,
    /// By block: whether every page programmed so far is at its own offset.
    pub in_order: Vec<bool>,
    /// Spare areas.
    pub headers: Vec<BlockHeader>,
    /// Spare areas: when the data of a physical page were written.
    pub written: Vec<u64>,
    pub free: FreeBlocks,
    pub wear: Box<dyn WearPolicy>,
    /// Logical blocks with logs, by last write.
    pub logged: LruList,
    /// Logical blocks whose mapping is cached.
    pub mapping_cache: LruList,
    /// Erases of all blocks.
    pub erases: u64,
    pub opened_last: u64,
    /// Logical blocks with one bit per cell (density control).
    pub dense: Vec<bool>,
    /// Number of dense logical blocks; each takes the space of two.
    pub dense_count: u32,
    pub trims: TrimRecord,
    /// Versions by physical sector, in verified runs.
    pub versions: Contents,
    pub verifying: bool,
}

impl BlockChains {
    pub fn new(array: Array, wear: Box<dyn WearPolicy>, config: ChainConfig) -> Self {
        let geometry = *array.geometry();
        let (blocks, pages_per_block) = (geometry.blocks(), geometry.pages_per_block());
        let logical_blocks = config.logical_blocks;
        let logical = logical_blocks as usize;
        let mut chains = Self {
            pages_per_block,
            sectors_per_page: geometry.sectors_per_page(),
            config,
            page_map: vec![NONE; logical * pages_per_block as usize],
            l2p: vec![NONE; logical],
            next: vec![NONE; blocks as usize],
            last_log: vec![NONE; logical],
            in_order: vec![true; blocks as usize],
            headers: vec![BlockHeader::default(); blocks as usize],
            written: vec![0; geometry.pages() as usize],
            free: FreeBlocks::new(wear.order(), 0, blocks),
            wear,
            logged: LruList::new(logical_blocks),
            mapping_cache: LruList::new(logical_blocks),
            erases: 0,
            opened_last: 0,
            dense: vec![false; logical],
            dense_count: 0,
            trims: TrimRecord::new(logical_blocks, pages_per_block),
            versions: Contents::default(),
            verifying: false,
            array,
        };
        if config.premapped {
            (0..logical_blocks).for_each(|logical| chains.premap(logical));
        }
        chains
    }

    /// Gives `logical` a full data block (chang-slc-mlc, section 5.1).
    fn premap(&mut self, logical: u32) {
        let Some(block) = self.open(true) else { return };
        for offset in 0..self.pages_per_block {
            let lpn = logical * self.pages_per_block + offset;
            let page = block * self.pages_per_block + offset;
            self.array.program(Ppn(page), Lpn(lpn));
            self.page_map[lpn as usize] = page;
        }
        self.l2p[logical as usize] = block;
        self.wear.filled(0, BlockId(block), 0);
    }

    /// Takes a free block.
    pub fn open(&mut self, is_data: bool) -> Option<u32> {
        let BlockId(block) = self.free.take(is_data)?;
        self.write_header(block, is_data);
        self.next[block as usize] = NONE;
        Some(block)
    }

    fn write_header(&mut self, block: u32, is_data: bool) {
        self.opened_last += 1;
        self.headers[block as usize] = BlockHeader { opened: self.opened_last, is_data };
        self.in_order[block as usize] = true;
    }

    #[inline]
    pub const fn logical_block(&self, lpn: u32) -> u32 {
        lpn / self.pages_per_block
    }

    #[inline]
    pub fn has_log(&self, logical: u32) -> bool {
        self.last_log[logical as usize] != NONE
    }

    pub fn medium(&self, logical: u32) -> Medium {
        if self.dense[logical as usize] { Medium::DenseMlc } else { Medium::Mlc }
    }

    /// Time at which the data of `lpn` on the MLC flash were written; 0 for never.
    pub fn written_at(&self, lpn: u32) -> u64 {
        match self.page_map[lpn as usize] {
            NONE => 0,
            page => self.written[page as usize],
        }
    }

    /// The blocks of the chain of `logical`, in order.
    pub fn chain(&self, logical: u32) -> impl Iterator<Item = u32> + '_ {
        let first = self.l2p[logical as usize];
        std::iter::successors((first != NONE).then_some(first), |block| {
            let next = self.next[*block as usize];
            (next != NONE).then_some(next)
        })
    }

    pub fn logs(&self, logical: u32) -> impl Iterator<Item = u32> + '_ {
        self.chain(logical).filter(|block| !self.headers[*block as usize].is_data)
    }

    /// Looks up the mapping of `logical`: scans its logs unless it is cached, and records the pages
    /// scanned as `statistic`.
    pub fn look_up(&mut self, logical: u32, statistic: Statistic, ops: &mut Operations) {
        if self.mapping_cache.contains(logical) {
            self.mapping_cache.touch(logical);
            return;
        }
        let scan: u32 = self.logs(logical).map(|log| self.array.next_page(BlockId(log))).sum();
        if scan > 0 {
            ops.pages(self.medium(logical), Command::Read, Cause::Mapping, scan);
            ops.record(statistic, u64::from(scan));
        }
        if self.config.mapping_cache_max == 0 {
            return;
        }
        if self.mapping_cache.len() >= self.config.mapping_cache_max
            && let Some(victim) = self.mapping_cache.least_recent()
        {
            self.mapping_cache.remove(victim);
        }
        self.mapping_cache.touch(logical);
    }

    /// Free blocks that can become logs: one is reserved for folding, and one for each dense block,
    /// which takes the space of two.
    pub fn free_for_logs(&self) -> usize {
        self.free.len().saturating_sub(1 + self.dense_count as usize)
    }

    pub fn add_log(&mut self, logical: u32) -> Option<u32> {
        let block = self.open(false)?;
        match self.chain(logical).last() {
            Some(end) => self.next[end as usize] = block,
            None => self.l2p[logical as usize] = block,
        }
        self.last_log[logical as usize] = block;
        Some(block)
    }

    /// The chain to fold: of the least recently written the first whose last log is less than half
    /// full, or else the longest (assumed; the paper prefers log blocks that have been rarely used
    /// for long).
    pub fn victim(&self) -> Option<u32> {
        let mut longest = None;
        for logical in self.logged.iter().take(CANDIDATES) {
            let used = self.array.next_page(BlockId(self.last_log[logical as usize]));
            if used * 2 < self.pages_per_block {
                return Some(logical);
            }
            let length = self.chain(logical).count();
            if longest.is_none_or(|(most, _)| length > most) {
                longest = Some((length, logical));
            }
        }
        longest.map(|(_, logical)| logical)
    }

    /// Programs page `offset` of `block` with `lpn`, whose data were written at `written`. In
    /// verified runs the caller writes the versions. Returns the physical page.
    pub fn program(&mut self, block: u32, offset: u32, lpn: u32, written: u64) -> u32 {
        let page = block * self.pages_per_block + offset;
        self.array.program(Ppn(page), Lpn(lpn));
        self.in_order[block as usize] &= offset == lpn % self.pages_per_block;
        let old = std::mem::replace(&mut self.page_map[lpn as usize], page);
        if old != NONE {
            self.array.invalidate(Ppn(old));
        }
        self.written[page as usize] = written;
        self.trims.written(lpn);
        page
    }

    /// The first physical sector of physical page `page`.
    pub fn first_sector(&self, page: u32) -> u64 {
        u64::from(page) * u64::from(self.sectors_per_page)
    }

    pub fn move_versions(&mut self, from: u32, to: u32) {
        let (from, to) = (self.first_sector(from), self.first_sector(to));
        self.versions.copy(from, to, u64::from(self.sectors_per_page));
    }

    /// Replaces the chain of `logical` by data block `target` and erases the other blocks of the
    /// chain. Returns their number.
    pub fn replace_chain(&mut self, logical: u32, target: u32, ops: &mut Operations) -> u32 {
        let mut block = std::mem::replace(&mut self.l2p[logical as usize], target);
        self.last_log[logical as usize] = NONE;
        self.logged.remove(logical);
        let mut erased = 0;
        while block != NONE {
            let next = std::mem::replace(&mut self.next[block as usize], NONE);
            if block != target {
                self.wear.taken(0, BlockId(block));
                self.erase(block, self.dense[logical as usize], ops);
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

    /// Erases the chain of `logical`, which has no valid data, and frees `target`, opened to fold
    /// it. Returns the number of blocks erased.
    pub fn drop_chain(&mut self, logical: u32, target: u32, ops: &mut Operations) -> u32 {
        let erased = self.replace_chain(logical, NONE, ops);
        self.free.put(BlockId(target), self.array.erases(BlockId(target)));
        erased
    }

    /// Makes the full last log of `logical` its data block without copying, if all its pages are in
    /// order and valid (switch merge).
    pub fn switch_if_in_order(&mut self, logical: u32, ops: &mut Operations) {
        let log = self.last_log[logical as usize];
        let whole = self.array.valid(BlockId(log)) == self.pages_per_block;
        if whole && self.in_order[log as usize] {
            self.headers[log as usize].is_data = true;
            self.replace_chain(logical, log, ops);
            ops.record(Statistic::Switch, 1);
        }
    }

    /// Erases `block`, which may start wear levelling.
    fn erase(&mut self, block: u32, dense: bool, ops: &mut Operations) {
        let (mut block, mut cause) = (block, Cause::Gc);
        loop {
            let id = BlockId(block);
            let usable = self.array.erase(id);
            if self.verifying {
                let sectors = u64::from(self.pages_per_block * self.sectors_per_page);
                self.versions.clear(self.first_sector(block * self.pages_per_block), sectors);
            }
            let erases = self.array.erases(id);
            self.erases += 1;
            // With one bit per cell the data occupied a second block.
            for _ in 0..1 + u32::from(dense && cause == Cause::Gc) {
                ops.erase(Medium::Mlc, cause, block, erases);
                ops.record(Statistic::MlcErases, 1);
            }
            if !usable {
                self.wear.retired(0, id);
                return;
            }
            let Some(BlockId(cold)) = self.wear.erased(0, id, erases) else {
                self.free.put(id, erases);
                return;
            };
            if !self.move_data_block(cold, block, ops) {
                self.free.put(id, erases);
            }
            (block, cause) = (cold, Cause::Wear);
        }
    }

    /// Wear levelling: moves the data of data block `from` to the erased block `to`. Returns false
    /// if it has none.
    fn move_data_block(&mut self, from: u32, to: u32, ops: &mut Operations) -> bool {
        let last = self.array.next_page(BlockId(from)).saturating_sub(1);
        let Lpn(lpn) = self.array.owner(Ppn(from * self.pages_per_block + last));
        let logical = self.logical_block(lpn);
        let next = std::mem::replace(&mut self.next[from as usize], NONE);
        let mut offset = self.array.next_valid(BlockId(from), 0);
        if offset.is_none() {
            self.l2p[logical as usize] = next;
            return false;
        }
        self.write_header(to, true);
        let mut count = 0;
        while let Some(at) = offset {
            let (old, new) = (from * self.pages_per_block + at, to * self.pages_per_block + at);
            let Lpn(lpn) = self.array.owner(Ppn(old));
            self.array.relocate(Ppn(old), Ppn(new));
            self.page_map[lpn as usize] = new;
            self.written[new as usize] = self.written[old as usize];
            if self.verifying {
                self.move_versions(old, new);
            }
            count += 1;
            offset = self.array.next_valid(BlockId(from), at + 1);
        }
        let medium = self.medium(logical);
        ops.pages(medium, Command::Read, Cause::Wear, count);
        ops.pages(medium, Command::Program, Cause::Wear, count);
        ops.record(Statistic::WearPrograms, u64::from(count));
        self.next[to as usize] = next;
        self.l2p[logical as usize] = to;
        self.wear.filled(0, BlockId(to), self.array.erases(BlockId(to)));
        true
    }

    /// There is no free block for a log or a fold.
    pub fn worn_out(&self) -> FtlError {
        let retired = self.array.retired_blocks();
        if retired > 0 {
            FtlError::WornOut(format!("{retired} MLC blocks are worn out, no spare block is left"))
        } else {
            FtlError::Full("no spare MLC block is left and no chain has a log".to_owned())
        }
    }

    pub fn save(&self, to: &mut Saver) {
        self.array.save(to);
        to.put(&(&self.page_map, &self.l2p, &self.next, &self.last_log));
        to.put(&(&self.in_order, &self.dense, &self.headers, &self.written));
        to.put(&self.free);
        self.trims.save(to);
        self.wear.save(to);
        to.put(&(&self.logged, &self.mapping_cache));
        to.put(&(self.erases, self.opened_last, self.dense_count));
    }

    pub fn restore(&mut self, from: &mut Loader<'_>) -> Result<(), StateError> {
        self.array.restore(from)?;
        let (blocks, pages) = (self.next.len(), self.written.len());
        let maps = [
            ("the page map", &mut self.page_map, pages),
            ("the L2P table", &mut self.l2p, blocks),
            ("the LB table", &mut self.next, blocks),
            ("the table of logs", &mut self.last_log, blocks),
        ];
        for (name, table, bound) in maps {
            restore::table(from, name, table)?;
            restore::check_below(name, table, bound)?;
        }
        restore::table(from, "the table of ordered blocks", &mut self.in_order)?;
        restore::table(from, "the table of dense blocks", &mut self.dense)?;
        restore::table(from, "the table of block headers", &mut self.headers)?;
        restore::table(from, "the table of write times", &mut self.written)?;
        self.free = from.take()?;
        self.trims.restore(from)?;
        self.wear.restore(from)?;
        self.logged.restore(from)?;
        self.mapping_cache.restore(from)?;
        (self.erases, self.opened_last, self.dense_count) = from.take()?;
        let mut left = blocks;
        for logical in 0..self.l2p.len() as u32 {
            let length = self.chain(logical).take(left + 1).count();
            left = left.checked_sub(length).ok_or_else(|| {
                StateError(format!("the chain of logical block {logical} does not end"))
            })?;
        }
        Ok(())
    }

    pub fn audit(&self) -> Result<(), String> {
        self.array.audit()?;
        let mut mapped = 0u64;
        for (lpn, page) in self.page_map.iter().enumerate().filter(|(_, page)| **page != NONE) {
            let block = page / self.pages_per_block;
            if self.array.owner(Ppn(*page)).0 != lpn as u32 {
                return Err(format!("page {lpn} is mapped to {page}, which has another page"));
            }
            if !self.chain(self.logical_block(lpn as u32)).any(|other| other == block) {
                return Err(format!("page {lpn} is in block {block}, outside of its chain"));
            }
            mapped += 1;
        }
        if mapped != self.array.valid_pages() {
            return Err(format!("{mapped} pages mapped, {} valid", self.array.valid_pages()));
        }
        let chained: usize = (0..self.l2p.len() as u32).map(|b| self.chain(b).count()).sum();
        let used = chained + self.free.len() + self.array.retired_blocks() as usize;
        if used != self.next.len() {
            return Err(format!("{used} of {} blocks are accounted for", self.next.len()));
        }
        for logical in 0..self.l2p.len() as u32 {
            if self.has_log(logical) != self.logged.contains(logical) {
                return Err(format!("logical block {logical}: log and LRU list disagree"));
            }
        }
        Ok(())
    }
}
