//! The log-block scheme: blocks are mapped whole, and pages written again go to logs.
//!
//! konanki, figures 4.2 and 4.3. Every logical block has a data block; `x` blocks are set aside
//! as logs, of which each serves one data block and takes its pages in the order they come. A log
//! that is full is merged: it becomes the data block itself if its pages are all of the block in
//! order (switch merge), otherwise the newest pages of both are copied to a free block (full
//! merge). The free blocks and the logs are always `x` together.
//!
//! Where the figures are silent or wrong: a write advances by one page, not by two; when fewer
//! than two blocks are free and another log is needed, the oldest log is merged; one block is
//! always free, because a full merge needs it. Where worn-out blocks leave none, a full merge goes
//! through the controller's memory into one of its own two blocks.
//!
//! The paper sends every write to a log, even when the place in the data block is erased, erases
//! a data block that was never programmed, and knows no partial merge (a log that holds the first
//! pages in order is completed and switched); each can be chosen otherwise, as BAST does.

#[cfg(test)]
mod tests;

use super::merge::{self, FreeBlocks, Lists, Memory, NOBODY};
use super::{BuiltFtl, Ftl, FtlEntry, FtlError, FtlInput, Hint};
use crate::array::ProgramOrder;
use crate::geometry::{BlockId, Geometry, Lpn, Ppn};
use crate::ops::{After, FlashOps};
use hybridsim_config::param::{Kind, Param, Problem};
use hybridsim_config::registry::Description;
use hybridsim_engine::state::{self, Loader, Saver, StateError};
use serde::{Deserialize, Serialize};

/// The log-block translation layer.
pub const ENTRY: FtlEntry = FtlEntry {
    description: Description {
        name: "log-block",
        summary: "Maps whole blocks; writes go to log blocks, merged when full or needed.",
        origin: "konanki, figures 4.2 and 4.3. Unlike there, a log is merged for want of free \
                 blocks only when a block without one is written; which one, the paper leaves open",
        params: &PARAMS,
    },
    build,
};

const PARAMS: [Param; 5] = params("false", "true", "false");

/// The parameters, with defaults for the three that tell the paper's scheme from BAST.
pub(super) const fn params(
    first: &'static str,
    erase: &'static str,
    partial: &'static str,
) -> [Param; 5] {
    [
        Param::optional(
            "log_blocks",
            Kind::Count { min: 2, max: u32::MAX as u64 },
            "Blocks set aside as logs, free ones included; all spare blocks when left out. Spare \
             blocks beyond them replace worn-out ones.",
        ),
        Param::with(
            "victim",
            Kind::Choice(&["oldest", "least-recent", "fullest"]),
            "\"oldest\"",
            "Which log is merged when blocks run short: the one begun first, the one written \
             least recently, or the one with most pages.",
        ),
        Param::with(
            "first_write_to_data",
            Kind::Flag,
            first,
            "Whether a page goes to its data block while that has no log and the place is erased.",
        ),
        Param::with(
            "erase_clean",
            Kind::Flag,
            erase,
            "Whether a merge erases a data block even if it was never programmed.",
        ),
        Param::with(
            "partial_merge",
            Kind::Flag,
            partial,
            "Whether a log that holds the first pages of its block in order is completed with the \
             rest and becomes the data block.",
        ),
    ]
}

/// No page of a log.
const NOWHERE: u16 = u16::MAX;

/// Fewest log blocks: one to write to, one for a full merge to copy into.
const LOG_BLOCKS_MIN: u32 = 2;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Victim {
    Oldest,
    LeastRecent,
    Fullest,
}

/// A log in use.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Log {
    logical: u32,
    block: u32,
    /// Pages programmed.
    pages: u32,
    /// Each of them is at its own offset.
    in_order: bool,
}

struct LogBlock {
    geometry: Geometry,
    /// The data block of each logical block.
    data: Vec<u32>,
    /// The slot of the log of each logical block, or nobody.
    log_of: Vec<u32>,
    /// Slots for logs.
    logs: Vec<Log>,
    /// By slot and offset: the page of the log that holds the newest copy.
    places: Vec<u16>,
    free_slots: Vec<u32>,
    /// Slots in use, in the order of merging; by number of pages if the fullest goes first.
    order: Lists,
    /// No log has more pages.
    pages_max: u32,
    free: FreeBlocks,
    /// Spare blocks beyond the logs.
    reserve: FreeBlocks,
    victim: Victim,
    first_write_to_data: bool,
    erase_clean: bool,
    partial_merge: bool,
    memory: Memory,
}

/// Blocks left for logs, or what is wrong.
fn log_blocks(input: &FtlInput<'_>, logical: u32) -> Result<u32, Vec<Problem>> {
    let geometry = input.geometry;
    let mut problems = Vec::new();
    if geometry.pages_per_block() > u32::from(NOWHERE) {
        let message = format!("the layer's table takes at most {NOWHERE} pages to the block");
        problems.push(Problem::new("pages_per_block", message));
    }
    let spare = geometry.blocks() - logical;
    if spare < LOG_BLOCKS_MIN {
        let message = format!(
            "{logical} of {} blocks hold data, which leaves {spare} for logs; \
             {LOG_BLOCKS_MIN} are needed",
            geometry.blocks()
        );
        problems.push(Problem::new("over_provisioning", message));
    }
    let wanted = input.settings.count_opt("log_blocks").unwrap_or(u64::from(spare));
    if wanted > u64::from(spare) && spare >= LOG_BLOCKS_MIN {
        let message = format!("{wanted} asked for, but only {spare} blocks are spare");
        problems.push(Problem::new("log_blocks", message));
    }
    if problems.is_empty() { Ok(wanted as u32) } else { Err(problems) }
}

pub(super) fn build(input: &FtlInput<'_>) -> BuiltFtl {
    let (geometry, settings) = (*input.geometry, input.settings);
    let logical = input.exported_pages.div_ceil(geometry.pages_per_block());
    let log_blocks = log_blocks(input, logical)?;
    let victim = match settings.text("victim") {
        "least-recent" => Victim::LeastRecent,
        "fullest" => Victim::Fullest,
        _ => Victim::Oldest,
    };
    let mut all = FreeBlocks::striped(&geometry);
    let mut some = |count| -> Vec<BlockId> { (0..count).filter_map(|_| all.take()).collect() };
    let data = some(logical).into_iter().map(|block| block.0).collect();
    let mut free = FreeBlocks::default();
    some(log_blocks).into_iter().for_each(|block| free.give(block));
    let slots = log_blocks.min(logical);
    let lists = if victim == Victim::Fullest { geometry.pages_per_block() + 1 } else { 1 };
    let unused = Log { logical: NOBODY, block: NOBODY, pages: 0, in_order: true };
    Ok(Box::new(LogBlock {
        geometry,
        data,
        log_of: vec![NOBODY; logical as usize],
        logs: vec![unused; slots as usize],
        places: vec![0; slots as usize * geometry.pages_per_block() as usize],
        free_slots: (0..slots).rev().collect(),
        order: Lists::new(lists as usize, slots as usize),
        pages_max: 0,
        free,
        reserve: all,
        victim,
        first_write_to_data: settings.flag("first_write_to_data"),
        erase_clean: settings.flag("erase_clean"),
        partial_merge: settings.flag("partial_merge"),
        memory: Memory::new(&geometry),
    }))
}

impl LogBlock {
    fn place_index(&self, slot: u32, offset: u32) -> usize {
        slot as usize * self.geometry.pages_per_block() as usize + offset as usize
    }

    /// Where the data of `offset` are, if there are any.
    #[inline]
    fn find(&self, logical: u32, offset: u32, flash: &FlashOps) -> Option<Ppn> {
        let slot = self.log_of[logical as usize];
        if slot != NOBODY {
            let place = self.places[self.place_index(slot, offset)];
            if place != NOWHERE {
                let block = BlockId(self.logs[slot as usize].block);
                return Some(self.geometry.page(block, u32::from(place)));
            }
        }
        let page = self.geometry.page(BlockId(self.data[logical as usize]), offset);
        merge::is_valid(page, flash).then_some(page)
    }

    /// Whether a first write can go to the data block.
    fn takes_first_write(&self, logical: u32, offset: u32, flash: &FlashOps) -> bool {
        let block = BlockId(self.data[logical as usize]);
        let without_pads = flash.array().order() != ProgramOrder::Sequential
            || flash.array().next_page(block) == offset;
        self.first_write_to_data
            && self.log_of[logical as usize] == NOBODY
            && without_pads
            && merge::is_open(block, offset, flash)
    }

    /// The list of `order` a log is in.
    fn list_of(&self, log: &Log) -> usize {
        if self.victim == Victim::Fullest { log.pages as usize } else { 0 }
    }

    fn begin_log(&mut self, logical: u32, block: BlockId) {
        let slot = self.free_slots.pop().expect("a slot for every log");
        let first = self.place_index(slot, 0);
        self.places[first..][..self.geometry.pages_per_block() as usize].fill(NOWHERE);
        self.logs[slot as usize] = Log { logical, block: block.0, pages: 0, in_order: true };
        self.log_of[logical as usize] = slot;
        self.order.push(0, slot);
    }

    /// Gives up the slot of a log whose block went elsewhere.
    fn end_log(&mut self, slot: u32) {
        let log = self.logs[slot as usize];
        self.order.remove(self.list_of(&log), slot);
        self.log_of[log.logical as usize] = NOBODY;
        self.free_slots.push(slot);
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
        let index = self.place_index(slot, offset);
        self.places[index] = log.pages as u16;
        let after =
            Log { pages: log.pages + 1, in_order: log.in_order && log.pages == offset, ..log };
        if self.victim != Victim::Oldest {
            self.order.remove(self.list_of(&log), slot);
            self.order.push(self.list_of(&after), slot);
        }
        self.pages_max = self.pages_max.max(after.pages);
        self.logs[slot as usize] = after;
    }

    /// The log to merge when blocks run short.
    fn choose(&mut self) -> Option<u32> {
        if self.victim != Victim::Fullest {
            return self.order.first(0);
        }
        // Falls no further than appends raised it.
        while self.pages_max > 0 && self.order.first(self.pages_max as usize).is_none() {
            self.pages_max -= 1;
        }
        self.order.first(self.pages_max as usize)
    }

    /// Erases a block of the log area, or lets a spare one take its place if it is worn out.
    fn recycle(&mut self, block: BlockId, after: After, flash: &mut FlashOps) {
        if !self.free.recycle(block, after, flash)
            && let Some(spare) = self.reserve.take()
        {
            self.free.give(spare);
        }
    }

    fn recycle_data(&mut self, block: BlockId, after: After, flash: &mut FlashOps) {
        if self.erase_clean || flash.array().next_page(block) != 0 {
            self.recycle(block, after, flash);
        } else {
            self.free.give(block);
        }
    }

    /// Whether a log can become the data block, and without copies if `whole`.
    fn can_switch(&self, log: &Log) -> bool {
        log.in_order && (self.partial_merge || log.pages == self.geometry.pages_per_block())
    }

    /// Merges the log in `slot`, if that is possible; else nothing has changed.
    fn merge(&mut self, slot: u32, flash: &mut FlashOps) -> Result<(), FtlError> {
        let log = self.logs[slot as usize];
        let block = BlockId(log.block);
        if flash.array().valid(block) == 0 {
            // Everything in it was trimmed.
            self.end_log(slot);
            self.recycle(block, After::NOTHING, flash);
        } else if self.can_switch(&log) {
            self.switch(slot, flash);
        } else if let Some(target) = self.free.take() {
            self.full_merge(slot, target, flash);
        } else {
            let target = self.survivor(slot, flash).ok_or_else(|| self.no_room(flash))?;
            self.rewrite(slot, target, flash);
        }
        Ok(())
    }

    /// The data block or the log of what is in `slot`, if it can be erased and used again.
    fn survivor(&self, slot: u32, flash: &FlashOps) -> Option<BlockId> {
        let log = self.logs[slot as usize];
        let blocks = [self.data[log.logical as usize], log.block].map(BlockId);
        blocks.into_iter().find(|block| merge::survives_erase(*block, flash))
    }

    /// A full merge without a free block, which only worn-out blocks bring about: through the
    /// controller's memory into `target`, one of the two blocks.
    #[cold]
    fn rewrite(&mut self, slot: u32, target: BlockId, flash: &mut FlashOps) {
        let log = self.logs[slot as usize];
        let old = BlockId(std::mem::replace(&mut self.data[log.logical as usize], target.0));
        let log = BlockId(log.block);
        self.memory.load(old, flash);
        self.memory.load(log, flash);
        let last = self.memory.store(target, None, flash);
        self.end_log(slot);
        self.recycle(if target == old { log } else { old }, last, flash);
    }

    /// Merges the log whose turn it is, or, where worn-out blocks leave no way to do that, any.
    fn merge_one(&mut self, flash: &mut FlashOps) -> Result<(), FtlError> {
        let victim = self.choose().ok_or_else(|| self.no_room(flash))?;
        if self.merge(victim, flash).is_ok() {
            return Ok(());
        }
        let slots = self.log_of.iter().copied().filter(|slot| *slot != NOBODY);
        let other = slots.into_iter().find(|slot| self.survivor(*slot, flash).is_some());
        self.merge(other.ok_or_else(|| self.no_room(flash))?, flash)
    }

    /// The log becomes the data block, completed with what it does not hold.
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

    /// The newest pages of log and data block go to `target`.
    fn full_merge(&mut self, slot: u32, target: BlockId, flash: &mut FlashOps) {
        let log = self.logs[slot as usize];
        let mut last = After::NOTHING;
        for offset in 0..self.geometry.pages_per_block() {
            if let Some(from) = self.find(log.logical, offset, flash) {
                last = merge::copy_to(from, target, offset, flash);
            }
        }
        self.end_log(slot);
        let old = std::mem::replace(&mut self.data[log.logical as usize], target.0);
        self.recycle_data(BlockId(old), last, flash);
        self.recycle(BlockId(log.block), last, flash);
    }

    /// The log of `logical`, a new one if it has none.
    fn obtain_log(&mut self, logical: u32, flash: &mut FlashOps) -> Result<u32, FtlError> {
        if self.log_of[logical as usize] == NOBODY {
            while self.free.len() < LOG_BLOCKS_MIN {
                self.merge_one(flash)?;
            }
            let block = self.free.take().expect("two at least");
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
    fn read(&mut self, lpn: Lpn, flash: &mut FlashOps) {
        let (logical, offset) = self.geometry.split(lpn);
        if let Some(page) = self.find(logical, offset, flash) {
            flash.host_read(page, After::NOTHING);
        }
    }

    fn write(&mut self, lpn: Lpn, _hint: Hint, flash: &mut FlashOps) -> Result<(), FtlError> {
        let (logical, offset) = self.geometry.split(lpn);
        if self.takes_first_write(logical, offset, flash) {
            let block = BlockId(self.data[logical as usize]);
            merge::program_to(lpn, block, offset, flash);
            return Ok(());
        }
        loop {
            let slot = self.obtain_log(logical, flash)?;
            let log = self.logs[slot as usize];
            let fills = log.pages + 1 == self.geometry.pages_per_block();
            let switches = log.in_order && log.pages == offset;
            let merges = switches || !self.free.is_empty() || self.survivor(slot, flash).is_some();
            if !fills || merges {
                self.append(lpn, slot, flash);
                return if fills { self.merge(slot, flash) } else { Ok(()) };
            }
            // What cannot be merged must not be filled: another log has to give a block first.
            self.merge_one(flash)?;
        }
    }

    fn trim(&mut self, lpn: Lpn, flash: &mut FlashOps) -> Result<(), FtlError> {
        let (logical, offset) = self.geometry.split(lpn);
        if let Some(page) = self.find(logical, offset, flash) {
            flash.invalidate(page);
            let slot = self.log_of[logical as usize];
            if slot != NOBODY {
                let index = self.place_index(slot, offset);
                self.places[index] = NOWHERE;
            }
        }
        Ok(())
    }

    fn holds(&self, lpn: Lpn, flash: &FlashOps) -> bool {
        let (logical, offset) = self.geometry.split(lpn);
        self.find(logical, offset, flash).is_some()
    }

    fn mapping_ram_bytes(&self) -> u64 {
        let blocks = (self.data.len() + self.log_of.len()) * 4;
        (blocks + self.logs.len() * size_of::<Log>() + self.places.len() * 2) as u64
    }

    fn save(&self, to: &mut Saver) -> Result<(), StateError> {
        to.put(&(&self.data, &self.log_of, &self.logs, &self.places));
        to.put(&(&self.free_slots, &self.order, self.pages_max, &self.free, &self.reserve));
        Ok(())
    }

    fn restore(&mut self, from: &mut Loader<'_>) -> Result<(), StateError> {
        type Maps = (Vec<u32>, Vec<u32>, Vec<Log>, Vec<u16>);
        let (data, log_of, logs, places): Maps = from.take()?;
        state::same_length("the block map", data.len(), self.data.len())?;
        state::same_length("the table of logs by block", log_of.len(), self.log_of.len())?;
        state::same_length("the table of logs", logs.len(), self.logs.len())?;
        state::same_length("the table of places", places.len(), self.places.len())?;
        type Order = (Vec<u32>, Lists, u32, FreeBlocks, FreeBlocks);
        let (free_slots, order, pages_max, free, reserve): Order = from.take()?;
        self.order.same_shape(&order)?;
        if pages_max > self.geometry.pages_per_block() {
            return Err(StateError(format!("a log cannot have {pages_max} pages")));
        }
        (self.data, self.log_of, self.logs, self.places) = (data, log_of, logs, places);
        (self.free_slots, self.order, self.pages_max) = (free_slots, order, pages_max);
        (self.free, self.reserve) = (free, reserve);
        Ok(())
    }

    fn audit(&self, flash: &FlashOps) -> Result<(), String> {
        let mut books = merge::Books::new(flash);
        let mut logs = 0;
        for (logical, (&data, &slot)) in (0u32..).zip(self.data.iter().zip(&self.log_of)) {
            books.holds(BlockId(data), logical, true)?;
            if slot == NOBODY {
                continue;
            }
            logs += 1;
            let log = self.logs[slot as usize];
            books.holds(BlockId(log.block), logical, false)?;
            let first = self.place_index(slot, 0);
            let row = &self.places[first..][..self.geometry.pages_per_block() as usize];
            let placed = row.iter().filter(|place| **place != NOWHERE).count() as u32;
            if log.logical != logical || placed != flash.array().valid(BlockId(log.block)) {
                return Err(format!("{placed} pages known in {log:?} of logical block {logical}"));
            }
        }
        // Free blocks and logs are x together, as long as no block is worn out.
        let spare = self.geometry.blocks() - self.data.len() as u32;
        let counted = self.free.len() + self.reserve.len() + logs;
        if counted + flash.array().retired_blocks() != spare {
            return Err(format!("{counted} free blocks and logs of {spare}"));
        }
        let mut unused = self.free.clone();
        self.reserve.iter().for_each(|block| unused.give(block));
        books.close(&unused)
    }
}
