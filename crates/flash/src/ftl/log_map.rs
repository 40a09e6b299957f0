//! Data blocks with pages at their own offsets, and newer pages in log blocks: what FAST and LAST
//! share.
//!
//! There is at most one data block for each logical block, a limited number of log blocks, and one
//! more block: a merge takes this spare block and frees the old data block, so a merge is always
//! possible. Worn-out blocks reduce the number of log blocks first.

use super::merge::{self, BlockAudit, NONE};
use super::{FtlError, FtlInput};
use crate::array::ProgramOrder;
use crate::geometry::{BlockId, Geometry, Lpn, Ppn};
use crate::ops::{After, FlashOps};
use crate::wear::FreeBlocks;
use hybridsim_config::param::{Kind, Problem};
use serde::{Deserialize, Serialize};

hybridsim_config::params! {
    /// Share of the log blocks.
    pub struct LogShare {
        log_share: f64 = Kind::Number { min: 0.0, max: 1.0 }, default "0.03",
            "Log blocks as a fraction of the exported blocks (flashsim, section 4.3: 3 %).";
    }
}

/// Blocks that must be free when a merge begins.
const SPARE_BLOCKS: u32 = 1;

/// A sequential log block: pages of one logical block at their own offsets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sequential {
    pub logical: u32,
    pub block: u32,
    /// The next offset to write.
    pub next: u32,
}

/// The physical page of every logical page.
#[derive(Debug, Serialize, Deserialize)]
pub struct LogMap {
    geometry: Geometry,
    /// The data block of each logical block.
    data: Vec<u32>,
    /// The physical page of each logical page. A real controller finds a page in a data block by
    /// the block's number and needs entries only for pages in log blocks.
    newest: Vec<Ppn>,
    free: FreeBlocks,
    /// Blocks that are not worn out.
    usable: u32,
    /// Log blocks that lost their last valid page to a merge, for the FTL to erase.
    emptied: Vec<u32>,
}

/// The number of log blocks, at least `fewest`.
///
/// # Errors
/// When the device has too few blocks.
pub fn log_blocks(
    input: &FtlInput<'_>,
    params: &LogShare,
    fewest: u32,
) -> Result<u32, Vec<Problem>> {
    let logical = input.logical_blocks();
    let wanted = f64::from(logical) * params.log_share;
    let log = (wanted.ceil() as u32).max(fewest);
    let needed = u64::from(logical) + u64::from(log) + u64::from(SPARE_BLOCKS);
    if needed <= u64::from(input.geometry.blocks()) {
        return Ok(log);
    }
    let message = format!(
        "{logical} logical blocks, {log} log blocks and {SPARE_BLOCKS} spare block for merges are \
         more than the {} blocks of the device; raise over_provisioning or blocks_per_plane, or \
         lower log_share",
        input.geometry.blocks()
    );
    Err(vec![Problem::new("over_provisioning", message)])
}

impl LogMap {
    pub fn new(input: &FtlInput<'_>) -> Self {
        let geometry = *input.geometry;
        Self {
            geometry,
            data: vec![NONE; input.logical_blocks() as usize],
            newest: vec![Ppn::NONE; input.exported_pages as usize],
            free: FreeBlocks::striped(&geometry),
            usable: geometry.blocks(),
            emptied: Vec::new(),
        }
    }

    #[inline]
    pub const fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    pub const fn logical_blocks(&self) -> u32 {
        self.data.len() as u32
    }

    /// Most log blocks with the blocks that are not worn out.
    pub const fn log_blocks(&self) -> u32 {
        self.usable.saturating_sub(self.logical_blocks() + SPARE_BLOCKS)
    }

    #[inline]
    pub const fn split(&self, lpn: Lpn) -> (u32, u32) {
        self.geometry.split(lpn)
    }

    /// The physical page of `lpn`, or [`Ppn::NONE`].
    #[inline]
    pub fn find(&self, lpn: Lpn) -> Ppn {
        self.newest[lpn.0 as usize]
    }

    #[cold]
    pub fn worn_out(&self, flash: &FlashOps) -> FtlError {
        merge::worn_out(self.data.len(), flash)
    }

    /// Takes a free block.
    ///
    /// # Errors
    /// When worn-out blocks leave none.
    pub fn take(&mut self, flash: &FlashOps) -> Result<BlockId, FtlError> {
        self.free.take(false).ok_or_else(|| self.worn_out(flash))
    }

    /// Erases `block`, which has no valid pages, behind `after`.
    pub fn erase(&mut self, block: BlockId, after: After, flash: &mut FlashOps) {
        self.usable -= u32::from(!merge::recycle(&mut self.free, block, after, flash));
    }

    /// Programs the host's page `lpn` at `offset` of `block`. Returns the block of the old version
    /// if that was its last valid page.
    #[inline]
    pub fn program(
        &mut self,
        lpn: Lpn,
        block: BlockId,
        offset: u32,
        flash: &mut FlashOps,
    ) -> Option<BlockId> {
        merge::pad(block, offset, flash);
        let page = self.geometry.page(block, offset);
        flash.host_program(page, lpn, After::NOTHING);
        let old = std::mem::replace(&mut self.newest[lpn.0 as usize], page);
        if old == Ppn::NONE || flash.invalidate(old) != 0 {
            return None;
        }
        Some(self.geometry.block_of(old))
    }

    /// Programs `lpn` in its data block if its page there is erased; returns whether it is. A
    /// logical block without a data block gets one where the chip can program the page.
    ///
    /// # Errors
    /// When worn-out blocks leave none.
    pub fn write_in_place(&mut self, lpn: Lpn, flash: &mut FlashOps) -> Result<bool, FtlError> {
        let (logical, offset) = self.split(lpn);
        let mut block = BlockId(self.data[logical as usize]);
        if block.0 == NONE {
            if offset != 0 && flash.array().order() == ProgramOrder::Sequential {
                return Ok(false);
            }
            block = self.take(flash)?;
            self.data[logical as usize] = block.0;
        }
        let open = merge::is_open(block, offset, flash) && merge::pads(block, offset, flash) == 0;
        if open {
            let emptied = self.program(lpn, block, offset, flash);
            self.note_emptied(emptied, logical);
        }
        Ok(open)
    }

    /// A full merge: copies the newest version of every page of `logical` to a new data block, with
    /// the host's page `pending` in place of its old version.
    ///
    /// # Errors
    /// When worn-out blocks leave none; nothing has changed then.
    pub fn merge_fully(
        &mut self,
        logical: u32,
        pending: Option<Lpn>,
        flash: &mut FlashOps,
    ) -> Result<After, FtlError> {
        let block = self.take(flash)?;
        let log = Sequential { logical, block: block.0, next: 0 };
        Ok(self.complete(log, pending, flash))
    }

    /// Makes the log block `log` the data block of its logical block: a switch merge if it is full,
    /// otherwise a partial merge, which first copies the pages behind its last one, with the host's
    /// page `pending` in place of its old version.
    pub fn complete(
        &mut self,
        log: Sequential,
        pending: Option<Lpn>,
        flash: &mut FlashOps,
    ) -> After {
        let pages_per_block = self.geometry.pages_per_block();
        let first = log.logical * pages_per_block;
        let end = (self.newest.len() as u32 - first).min(pages_per_block);
        let (block, mut last) = (BlockId(log.block), After::NOTHING);
        for offset in log.next..end {
            let lpn = Lpn(first + offset);
            if pending == Some(lpn) {
                let emptied = self.program(lpn, block, offset, flash);
                self.note_emptied(emptied, log.logical);
                continue;
            }
            let from = self.newest[lpn.0 as usize];
            if from != Ppn::NONE {
                last = merge::copy_to(from, block, offset, flash);
                self.newest[lpn.0 as usize] = self.geometry.page(block, offset);
                let source = self.geometry.block_of(from);
                let emptied = flash.array().valid(source) == 0;
                self.note_emptied(emptied.then_some(source), log.logical);
            }
        }
        let old = std::mem::replace(&mut self.data[log.logical as usize], log.block);
        if old != NONE {
            self.erase(BlockId(old), last, flash);
        }
        last
    }

    /// Records that a block lost its last valid page, unless it is the data block of `logical`,
    /// which the merge erases.
    fn note_emptied(&mut self, emptied: Option<BlockId>, logical: u32) {
        let data = self.data[logical as usize];
        self.emptied.extend(emptied.map(|block| block.0).filter(|block| *block != data));
    }

    /// Takes a block that a merge or a write in place left without valid pages. It may have been
    /// erased, or be in use again, since then.
    pub fn emptied(&mut self) -> Option<BlockId> {
        self.emptied.pop().map(BlockId)
    }

    /// Trims `lpn`; a data block without valid pages is erased. Returns the log block that has no
    /// valid page left, if any.
    pub fn trim(&mut self, lpn: Lpn, flash: &mut FlashOps) -> Option<BlockId> {
        let old = std::mem::replace(&mut self.newest[lpn.0 as usize], Ppn::NONE);
        if old == Ppn::NONE || flash.invalidate(old) != 0 {
            return None;
        }
        let (block, logical) = (self.geometry.block_of(old), self.split(lpn).0 as usize);
        if self.data[logical] != block.0 {
            return Some(block);
        }
        self.data[logical] = NONE;
        self.erase(block, After::NOTHING, flash);
        None
    }

    /// Controller memory in bytes: a block number for each logical block, and a page number for
    /// each page of `log_blocks` log blocks.
    pub fn ram_bytes(&self, log_blocks: u32) -> u64 {
        let log_pages = u64::from(log_blocks) * u64::from(self.geometry.pages_per_block());
        (self.data.len() as u64 + log_pages) * 4
    }

    /// Checks the maps against the array, with the sequential log blocks and the others.
    pub fn audit(
        &self,
        sequential: &[Sequential],
        logs: impl Iterator<Item = u32>,
        flash: &FlashOps,
    ) -> Result<(), String> {
        let array = flash.array();
        let mut blocks = BlockAudit::new(flash);
        for (logical, block) in (0..).zip(&self.data) {
            if *block != NONE {
                blocks.data(BlockId(*block), logical, true)?;
            }
        }
        for log in sequential {
            blocks.data(BlockId(log.block), log.logical, true)?;
        }
        for block in logs {
            blocks.log(BlockId(block));
        }
        blocks.finish(self.free.iter())?;
        let mapped = self.newest.iter().filter(|page| **page != Ppn::NONE).count() as u64;
        if mapped != array.valid_pages() {
            return Err(format!("{mapped} pages mapped, {} valid", array.valid_pages()));
        }
        for (lpn, page) in (0..).zip(&self.newest) {
            if *page != Ppn::NONE
                && !(merge::is_valid(*page, flash) && array.owner(*page) == Lpn(lpn))
            {
                return Err(format!(
                    "logical page {lpn} is mapped to a page of another logical page"
                ));
            }
        }
        let usable = self.geometry.blocks() - array.retired_blocks();
        if usable != self.usable {
            return Err(format!("{} usable blocks counted, {usable} found", self.usable));
        }
        Ok(())
    }
}
