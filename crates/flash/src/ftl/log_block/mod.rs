//! The log-block scheme: blocks are mapped whole, and overwritten pages go to log blocks.
//!
//! konanki, figures 4.2 and 4.3. Every logical block has a data block; `x` blocks are set aside as
//! log blocks, each of which serves one data block and takes its pages in the order of writing. A
//! full log block is merged: it becomes the data block itself if it holds all pages of the block in
//! order (switch merge), otherwise the newest pages of both are copied to a free block (full
//! merge). There are always `x` free and log blocks together.
//!
//! Where the figures are silent or wrong: a write advances by one page, not by two; when fewer
//! than two blocks are free and another log block is needed, the oldest log block is merged
//! (`merge_when = "short"` does so before every page, as the figure has it); one
//! block is always free, because a full merge needs it. When worn-out blocks leave none, a full
//! merge goes through the controller's memory into one of its own two blocks.
//!
//! The paper sends every write to a log block even when its page in the data block is erased,
//! erases a data block that was never programmed, and has no partial merge (a log block that holds
//! the first pages in order is completed and switched); parameters choose otherwise, as BAST does.

#[cfg(test)]
mod tests;

use super::merge::{self, BlockAudit, BlockBuffer, LogPageTables, NONE};
use super::{BuiltFtl, Ftl, FtlEntry, FtlError, FtlInput, Hint, Maintenance, Properties, REFRESH};
use crate::array::ProgramOrder;
use crate::geometry::{BlockId, Geometry, Lpn, Ppn};
use crate::lists::Lists;
use crate::ops::{After, FlashOps};
use crate::wear::{FreeBlocks, FreeOrder};
use hybridsim_config::param::{Kind, Problem};
use hybridsim_config::registry::Description;
use serde::{Deserialize, Serialize};

pub const ENTRY: FtlEntry = FtlEntry {
    description: Description {
        name: "log-block",
        summary: "Maps whole blocks; writes go to log blocks, merged when full or needed.",
        origin: "konanki, figures 4.2 and 4.3. Unlike there, a log block is merged for lack of \
                 free blocks only when a block without one is written; the paper leaves open which",
        params: Parameters::PARAMS,
    },
    provides: &[REFRESH],
    build,
};

hybridsim_config::choices! {
    /// Order in which log blocks are merged.
    #[derive(Serialize, Deserialize)]
    enum VictimOrder { Oldest = "oldest", LeastRecent = "least-recent", Fullest = "fullest" }
}

hybridsim_config::choices! {
    /// Time of a merge for lack of free blocks.
    enum MergeWhen { Needed = "needed", Short = "short" }
}

hybridsim_config::params! {
    /// Parameters of the scheme; BAST has other defaults.
    pub(super) struct Parameters {
        log_blocks: Option<u32> = Kind::Count { min: 2, max: u32::MAX as u64 }, optional,
            "Blocks set aside as log blocks, free ones included; all spare blocks by default. \
             Other spare blocks replace worn-out ones.";
        victim: VictimOrder = Kind::Choice(VictimOrder::NAMES), default "\"oldest\"",
            "Which log block is merged when free blocks run short: the oldest, the least recently \
             written, or the one with the most pages.";
        first_write_to_data: bool = Kind::Flag, default "false",
            "Whether a page goes to its data block while it is erased and there is no log block.";
        erase_clean: bool = Kind::Flag, default "true",
            "Whether a merge erases a data block that was never programmed.";
        partial_merge: bool = Kind::Flag, default "false",
            "Whether a log block that holds the first pages of its block in order is completed \
             with the rest and becomes the data block.";
        merge_when: MergeWhen = Kind::Choice(MergeWhen::NAMES), default "\"needed\"",
            "When a log block is merged for lack of free blocks: when a block without one is \
             written, or before any page is written while fewer than two blocks are free, as \
             figure 4.2 has it.";
    }
}

/// One log block to write to, one free block for a full merge.
const LOG_BLOCKS_MIN: u32 = 2;

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Log {
    logical: u32,
    block: u32,
    /// Pages programmed.
    pages: u32,
    /// Whether each of them is at its own offset.
    in_order: bool,
}

#[derive(Serialize, Deserialize)]
struct LogBlock {
    geometry: Geometry,
    /// The data block of each logical block.
    data: Vec<u32>,
    /// The slot of the log block of each logical block, or [`NONE`].
    log_of: Vec<u32>,
    /// The log blocks, by slot.
    logs: Vec<Log>,
    tables: LogPageTables,
    /// Slots in use, in the order of merging; by number of pages if the fullest is merged first.
    order: Lists,
    /// An upper bound of the pages in a log block.
    pages_max: u32,
    free: FreeBlocks,
    /// Spare blocks that replace worn-out ones.
    reserve: FreeBlocks,
    victim: VictimOrder,
    first_write_to_data: bool,
    erase_clean: bool,
    partial_merge: bool,
    merge_when_short: bool,
    #[serde(skip)]
    buffer: BlockBuffer,
}

fn log_blocks(
    input: &FtlInput<'_>,
    wanted: Option<u32>,
    logical: u32,
) -> Result<u32, Vec<Problem>> {
    let geometry = input.geometry;
    let mut problems = Vec::from_iter(LogPageTables::problem(geometry));
    let spare = geometry.blocks() - logical;
    if spare < LOG_BLOCKS_MIN {
        let message = format!(
            "{logical} of {} blocks hold data, which leaves {spare} log blocks; \
             {LOG_BLOCKS_MIN} are needed; raise over_provisioning or blocks_per_plane",
            geometry.blocks()
        );
        problems.push(Problem::new("over_provisioning", message));
    }
    let wanted = wanted.unwrap_or(spare);
    if wanted > spare && spare >= LOG_BLOCKS_MIN {
        let message = format!("{wanted} requested, but only {spare} blocks are spare");
        problems.push(Problem::new("log_blocks", message));
    }
    if problems.is_empty() { Ok(wanted) } else { Err(problems) }
}

pub(super) fn build(input: &FtlInput<'_>) -> BuiltFtl {
    let (geometry, params) = (*input.geometry, Parameters::from_settings(input.settings));
    let logical = input.logical_blocks();
    let log_blocks = log_blocks(input, params.log_blocks, logical)?;
    let mut reserve = FreeBlocks::striped(&geometry);
    let mut take = || reserve.take(false).expect("there are enough blocks");
    let data = (0..logical).map(|_| take().0).collect();
    let mut free = FreeBlocks::none(FreeOrder::OldestFirst, 0, geometry.blocks());
    (0..log_blocks).for_each(|_| free.put(take(), 0));
    let slots = log_blocks.min(logical);
    let lists =
        if params.victim == VictimOrder::Fullest { geometry.pages_per_block() + 1 } else { 1 };
    let unused = Log { logical: NONE, block: NONE, pages: 0, in_order: true };
    Ok(Box::new(LogBlock {
        geometry,
        data,
        log_of: vec![NONE; logical as usize],
        logs: vec![unused; slots as usize],
        tables: LogPageTables::new(slots, &geometry),
        order: Lists::new(lists as usize, slots as usize),
        pages_max: 0,
        free,
        reserve,
        victim: params.victim,
        first_write_to_data: params.first_write_to_data,
        erase_clean: params.erase_clean,
        partial_merge: params.partial_merge,
        merge_when_short: params.merge_when == MergeWhen::Short,
        buffer: BlockBuffer::default(),
    }))
}

impl LogBlock {
    /// The page that holds the data of `offset`, if any.
    #[inline]
    fn find(&self, logical: u32, offset: u32, flash: &FlashOps) -> Option<Ppn> {
        let slot = self.log_of[logical as usize];
        if slot != NONE
            && let Some(page) = self.tables.get(slot, offset)
        {
            return Some(self.geometry.page(BlockId(self.logs[slot as usize].block), page));
        }
        let page = self.geometry.page(BlockId(self.data[logical as usize]), offset);
        merge::is_valid(page, flash).then_some(page)
    }

    /// Whether a first write can go to the data block.
    fn takes_first_write(&self, logical: u32, offset: u32, flash: &FlashOps) -> bool {
        let block = BlockId(self.data[logical as usize]);
        let in_order = flash.array().order() != ProgramOrder::Sequential
            || flash.array().next_page(block) == offset;
        self.first_write_to_data
            && self.log_of[logical as usize] == NONE
            && in_order
            && merge::is_open(block, offset, flash)
    }

    /// The list of `order` that `log` belongs to.
    fn list_of(&self, log: &Log) -> usize {
        if self.victim == VictimOrder::Fullest { log.pages as usize } else { 0 }
    }

    fn begin_log(&mut self, logical: u32, block: BlockId) {
        let slot = self.tables.allocate();
        self.logs[slot as usize] = Log { logical, block: block.0, pages: 0, in_order: true };
        self.log_of[logical as usize] = slot;
        self.order.push(0, slot);
    }

    /// Releases the slot of a log block that was merged.
    fn end_log(&mut self, slot: u32) {
        let log = self.logs[slot as usize];
        self.order.remove(slot);
        self.log_of[log.logical as usize] = NONE;
        self.tables.release(slot);
    }

    fn append(&mut self, lpn: Lpn, slot: u32, flash: &mut FlashOps) {
        let (logical, offset) = self.geometry.split(lpn);
        let old = self.find(logical, offset, flash);
        let log = self.logs[slot as usize];
        let page = self.geometry.page(BlockId(log.block), log.pages);
        flash.host_program(page, lpn, After::NOTHING);
        if let Some(old) = old {
            flash.invalidate(old);
        }
        self.tables.set(slot, offset, log.pages);
        let after =
            Log { pages: log.pages + 1, in_order: log.in_order && log.pages == offset, ..log };
        if self.victim != VictimOrder::Oldest {
            self.order.move_to(self.list_of(&after), slot);
        }
        self.pages_max = self.pages_max.max(after.pages);
        self.logs[slot as usize] = after;
    }

    /// The log block to merge when free blocks run short.
    fn choose(&mut self) -> Option<u32> {
        if self.victim != VictimOrder::Fullest {
            return self.order.first(0);
        }
        while self.pages_max > 0 && self.order.first(self.pages_max as usize).is_none() {
            self.pages_max -= 1;
        }
        self.order.first(self.pages_max as usize)
    }

    /// Erases `block`; a spare block replaces it if it is worn out.
    fn recycle(&mut self, block: BlockId, after: After, flash: &mut FlashOps) {
        if !merge::recycle(&mut self.free, block, after, flash)
            && let Some(spare) = self.reserve.take(false)
        {
            self.free.put(spare, flash.array().erases(spare));
        }
    }

    fn recycle_data(&mut self, block: BlockId, after: After, flash: &mut FlashOps) {
        if self.erase_clean || flash.array().next_page(block) != 0 {
            self.recycle(block, after, flash);
        } else {
            self.free.put(block, flash.array().erases(block));
        }
    }

    /// Whether `log` can become the data block.
    fn can_switch(&self, log: &Log) -> bool {
        log.in_order && (self.partial_merge || log.pages == self.geometry.pages_per_block())
    }

    /// Merges the log block in `slot`; changes nothing if that is impossible.
    fn merge(&mut self, slot: u32, flash: &mut FlashOps) -> Result<(), FtlError> {
        let log = self.logs[slot as usize];
        let block = BlockId(log.block);
        if flash.array().valid(block) == 0 {
            // All of its pages were trimmed.
            self.end_log(slot);
            self.recycle(block, After::NOTHING, flash);
        } else if self.can_switch(&log) {
            self.switch(slot, flash);
        } else if let Some(target) = self.free.take(false) {
            self.full_merge(log.logical, target, flash);
        } else {
            let target = self.survivor(slot, flash).ok_or_else(|| self.no_room(flash))?;
            self.rewrite(slot, target, flash);
        }
        Ok(())
    }

    /// The data or log block of `slot`, whichever survives an erase.
    fn survivor(&self, slot: u32, flash: &FlashOps) -> Option<BlockId> {
        let log = self.logs[slot as usize];
        let blocks = [self.data[log.logical as usize], log.block].map(BlockId);
        blocks.into_iter().find(|block| merge::survives_erase(*block, flash))
    }

    /// A full merge without a free block, once blocks are worn out: through the controller's memory
    /// into `target`, one of the two blocks.
    #[cold]
    fn rewrite(&mut self, slot: u32, target: BlockId, flash: &mut FlashOps) {
        let log = self.logs[slot as usize];
        let old = BlockId(std::mem::replace(&mut self.data[log.logical as usize], target.0));
        let log = BlockId(log.block);
        self.buffer.load(old, flash);
        self.buffer.load(log, flash);
        let last = self.buffer.store(target, None, flash);
        self.end_log(slot);
        self.recycle(if target == old { log } else { old }, last, flash);
    }

    /// Merges the next log block, or, where worn-out blocks make that impossible, any other.
    fn merge_one(&mut self, flash: &mut FlashOps) -> Result<(), FtlError> {
        let victim = self.choose().ok_or_else(|| self.no_room(flash))?;
        if self.merge(victim, flash).is_ok() {
            return Ok(());
        }
        let slots = self.log_of.iter().copied().filter(|slot| *slot != NONE);
        let other = slots.into_iter().find(|slot| self.survivor(*slot, flash).is_some());
        self.merge(other.ok_or_else(|| self.no_room(flash))?, flash)
    }

    /// A switch or partial merge: the log block becomes the data block, completed with the pages it
    /// does not hold.
    fn switch(&mut self, slot: u32, flash: &mut FlashOps) {
        let log = self.logs[slot as usize];
        let new = BlockId(log.block);
        let old = BlockId(std::mem::replace(&mut self.data[log.logical as usize], log.block));
        let (mut last, mut from) = (After::NOTHING, log.pages);
        while let Some(offset) = flash.array().next_valid(old, from) {
            last = merge::copy_to(self.geometry.page(old, offset), new, offset, flash);
            from = offset + 1;
        }
        self.end_log(slot);
        self.recycle_data(old, last, flash);
    }

    /// Copies the newest pages of data block and log block, if there is one, to `target`.
    fn full_merge(&mut self, logical: u32, target: BlockId, flash: &mut FlashOps) {
        let newest = |offset, flash: &FlashOps| self.find(logical, offset, flash);
        let last = merge::merge_into(target, logical, None, newest, flash);
        let old = std::mem::replace(&mut self.data[logical as usize], target.0);
        self.recycle_data(BlockId(old), last, flash);
        let slot = self.log_of[logical as usize];
        if slot != NONE {
            let log = BlockId(self.logs[slot as usize].block);
            self.end_log(slot);
            self.recycle(log, last, flash);
        }
    }

    /// The slot of the log block of `logical`, which gets one if it has none.
    fn log_slot(&mut self, logical: u32, flash: &mut FlashOps) -> Result<u32, FtlError> {
        if self.log_of[logical as usize] == NONE {
            while self.free.len() < LOG_BLOCKS_MIN as usize {
                self.merge_one(flash)?;
            }
            let block = self.free.take(false).expect("at least two are free");
            self.begin_log(logical, block);
        }
        Ok(self.log_of[logical as usize])
    }

    #[cold]
    fn no_room(&self, flash: &FlashOps) -> FtlError {
        merge::worn_out(self.data.len(), flash)
    }
}

impl Ftl for LogBlock {
    fn lookup(&self, lpn: Lpn, flash: &FlashOps) -> Ppn {
        let (logical, offset) = self.geometry.split(lpn);
        self.find(logical, offset, flash).unwrap_or(Ppn::NONE)
    }

    fn write(&mut self, lpn: Lpn, _hint: Hint, flash: &mut FlashOps) -> Result<(), FtlError> {
        let (logical, offset) = self.geometry.split(lpn);
        if self.takes_first_write(logical, offset, flash) {
            let block = BlockId(self.data[logical as usize]);
            merge::program_to(lpn, block, offset, flash);
            return Ok(());
        }
        if self.merge_when_short
            && self.free.len() < LOG_BLOCKS_MIN as usize
            && self.choose().is_some()
        {
            // Where worn-out blocks make it impossible, the page may still fit into its log block.
            let _ = self.merge_one(flash);
        }
        loop {
            let slot = self.log_slot(logical, flash)?;
            let log = self.logs[slot as usize];
            let fills = log.pages + 1 == self.geometry.pages_per_block();
            let switches = log.in_order && log.pages == offset;
            let merges = switches || !self.free.is_empty() || self.survivor(slot, flash).is_some();
            if !fills || merges {
                self.append(lpn, slot, flash);
                return if fills { self.merge(slot, flash) } else { Ok(()) };
            }
            // A log block that cannot be merged must not be filled: first merge another one.
            self.merge_one(flash)?;
        }
    }

    fn trim(&mut self, lpn: Lpn, flash: &mut FlashOps) -> Result<(), FtlError> {
        let (logical, offset) = self.geometry.split(lpn);
        if let Some(page) = self.find(logical, offset, flash) {
            flash.invalidate(page);
            let slot = self.log_of[logical as usize];
            if slot != NONE {
                self.tables.clear(slot, offset);
            }
        }
        Ok(())
    }

    fn properties(&self) -> Properties {
        let blocks = (self.data.len() + self.log_of.len()) * 4;
        let mapping_ram_bytes =
            (blocks + self.logs.len() * size_of::<Log>() + self.tables.bytes()) as u64;
        Properties { mapping_ram_bytes, ..Properties::default() }
    }

    fn maintenance(&mut self) -> Option<&mut dyn Maintenance> {
        Some(self)
    }

    fn audit(&self, flash: &FlashOps) -> Result<(), String> {
        let mut blocks = BlockAudit::new(flash);
        let mut logs = 0;
        for (logical, (&data, &slot)) in (0u32..).zip(self.data.iter().zip(&self.log_of)) {
            blocks.data(BlockId(data), logical, true)?;
            if slot == NONE {
                continue;
            }
            logs += 1;
            let log = self.logs[slot as usize];
            blocks.data(BlockId(log.block), logical, false)?;
            let mapped = self.tables.mapped(slot);
            if log.logical != logical || mapped != flash.array().valid(BlockId(log.block)) {
                return Err(format!("{mapped} pages mapped in {log:?} of logical block {logical}"));
            }
        }
        // The number of free and log blocks is constant as long as no block is worn out.
        let spare = self.geometry.blocks() - self.data.len() as u32;
        let counted = (self.free.len() + self.reserve.len()) as u32 + logs;
        if counted + flash.array().retired_blocks() != spare {
            return Err(format!("{counted} free and log blocks of {spare}"));
        }
        blocks.finish(self.free.iter().chain(self.reserve.iter()))
    }
}

impl Maintenance for LogBlock {
    /// Merges the logical block of `block` fully.
    fn refresh(&mut self, block: BlockId, flash: &mut FlashOps) -> bool {
        let Some(logical) = merge::logical_block(block, flash) else { return false };
        let target = self.free.take(false);
        target.map(|target| self.full_merge(logical, target, flash)).is_some()
    }
}
