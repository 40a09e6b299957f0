//! Data blocks with pages at their own offsets, and newer pages in logs: what FAST and LAST share.
//!
//! At most one data block for each logical block, at most so many log blocks, and one block more:
//! a merge takes the spare block and gives the old data block back, so merging never gets stuck.
//! Blocks that wear out are lost to the logs first.

use super::merge::{self, Books, FreeBlocks, NOBODY};
use super::{FtlError, FtlInput};
use crate::array::ProgramOrder;
use crate::geometry::{BlockId, Geometry, Lpn, Ppn};
use crate::ops::{After, FlashOps};
use hybridsim_config::param::{Kind, Param, Problem};
use hybridsim_engine::state::{self, StateError};
use serde::{Deserialize, Serialize};

/// The size of the logs, for layers to declare.
pub const LOG_SHARE: Param = Param::with(
    "log_share",
    Kind::Number { min: 0.0, max: 1.0 },
    "0.03",
    "Log blocks as a fraction of the blocks offered (flashsim, section 4.3: 3 %).",
);

/// A block that must be free when a merge begins.
const SPARE_BLOCKS: u32 = 1;

/// A log block whose pages are at their own offsets: the next version of one logical block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sequential {
    /// The logical block.
    pub logical: u32,
    /// The log block.
    pub block: u32,
    /// Offsets below are written.
    pub next: u32,
}

/// Where the data of every logical page are.
#[derive(Debug, Serialize, Deserialize)]
pub struct LogMap {
    #[serde(skip)]
    geometry: Option<Geometry>,
    /// Per logical block its data block.
    data: Vec<u32>,
    /// Per logical page where its data are. A real controller knows a page in a data block by the
    /// block's number and needs entries only for pages in logs.
    newest: Vec<Ppn>,
    /// Blocks to take.
    free: FreeBlocks,
    /// Blocks that are not worn out.
    usable: u32,
    /// Log blocks that lost their last valid page to a merge, to be looked at by the layer.
    emptied: Vec<u32>,
}

/// How many log blocks `log_share` means, at least `fewest`.
///
/// # Errors
/// When the device has no room for them.
pub fn log_blocks(input: &FtlInput<'_>, fewest: u32) -> Result<u32, Vec<Problem>> {
    let logical = input.exported_pages.div_ceil(input.geometry.pages_per_block());
    let wanted = f64::from(logical) * input.settings.number("log_share");
    let log = (wanted.ceil() as u32).max(fewest);
    let needed = u64::from(logical) + u64::from(log) + u64::from(SPARE_BLOCKS);
    if needed <= u64::from(input.geometry.blocks()) {
        return Ok(log);
    }
    let message = format!(
        "{logical} logical blocks, {log} log blocks and {SPARE_BLOCKS} to merge into are more \
         than the {} there are; raise over_provisioning or blocks_per_plane, or lower log_share",
        input.geometry.blocks()
    );
    Err(vec![Problem::new("over_provisioning", message)])
}

impl LogMap {
    /// Nothing stored yet.
    pub fn new(input: &FtlInput<'_>) -> Self {
        let geometry = *input.geometry;
        let logical = input.exported_pages.div_ceil(geometry.pages_per_block());
        Self {
            geometry: Some(geometry),
            data: vec![NOBODY; logical as usize],
            newest: vec![Ppn::NONE; input.exported_pages as usize],
            free: FreeBlocks::striped(&geometry),
            usable: geometry.blocks(),
            emptied: Vec::new(),
        }
    }

    /// Takes the place of `self` with what was read back from a state.
    ///
    /// # Errors
    /// When it is of another device.
    pub fn restore(&mut self, mut other: Self) -> Result<(), StateError> {
        state::same_length("the block map", other.data.len(), self.data.len())?;
        state::same_length("the page map", other.newest.len(), self.newest.len())?;
        other.geometry = self.geometry;
        *self = other;
        Ok(())
    }

    /// The device's shape.
    #[inline]
    pub const fn geometry(&self) -> &Geometry {
        self.geometry.as_ref().expect("only a state that was not restored has none")
    }

    /// Logical blocks offered.
    pub const fn logical_blocks(&self) -> u32 {
        self.data.len() as u32
    }

    /// Log blocks there can be, with what is not worn out.
    pub const fn log_blocks(&self) -> u32 {
        self.usable.saturating_sub(self.logical_blocks() + SPARE_BLOCKS)
    }

    /// Logical block and offset of `lpn`.
    #[inline]
    pub const fn split(&self, lpn: Lpn) -> (u32, u32) {
        self.geometry().split(lpn)
    }

    /// Where the data of `lpn` are, or [`Ppn::NONE`].
    #[inline]
    pub fn find(&self, lpn: Lpn) -> Ppn {
        self.newest[lpn.0 as usize]
    }

    /// The error of a device without room.
    #[cold]
    pub fn worn_out(&self, flash: &FlashOps) -> FtlError {
        merge::worn_out(self.data.len(), flash)
    }

    /// Takes a free block.
    ///
    /// # Errors
    /// When blocks wore out and none is left.
    pub fn take(&mut self, flash: &FlashOps) -> Result<BlockId, FtlError> {
        self.free.take().ok_or_else(|| self.worn_out(flash))
    }

    /// Erases `block`, in which nothing is needed any more, behind `after`.
    pub fn erase(&mut self, block: BlockId, after: After, flash: &mut FlashOps) {
        self.usable -= u32::from(!self.free.recycle(block, after, flash));
    }

    /// Programs the host's page `lpn` at `offset` of `block`. Says which block the old version was
    /// in, if it was the last valid page there; who cannot deal with it then calls
    /// [`Self::note_emptied`].
    #[inline]
    pub fn program(
        &mut self,
        lpn: Lpn,
        block: BlockId,
        offset: u32,
        flash: &mut FlashOps,
    ) -> Option<BlockId> {
        merge::pad(block, offset, flash);
        let page = self.geometry().page(block, offset);
        flash.host_program(page, lpn, After::NOTHING);
        let old = std::mem::replace(&mut self.newest[lpn.0 as usize], page);
        if old == Ppn::NONE || flash.invalidate(old) != 0 {
            return None;
        }
        Some(self.geometry().block_of(old))
    }

    /// Programs `lpn` in its data block, if its place there is free; false when it is not. A
    /// logical block without a data block gets one where the chip lets the page be programmed.
    ///
    /// # Errors
    /// When blocks wore out and none is left.
    pub fn write_in_place(&mut self, lpn: Lpn, flash: &mut FlashOps) -> Result<bool, FtlError> {
        let (logical, offset) = self.split(lpn);
        let mut block = BlockId(self.data[logical as usize]);
        if block.0 == NOBODY {
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

    /// A full merge: the newest version of every page of `logical` goes to a fresh data block,
    /// with the host's page `pending` in place of its old version.
    ///
    /// # Errors
    /// When blocks wore out and none is left; nothing has changed then.
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

    /// Makes the log block `log` the data block of its logical block. Full, it is switched; if not,
    /// what is behind its last page is copied first (a partial merge), `pending` included.
    pub fn complete(
        &mut self,
        log: Sequential,
        pending: Option<Lpn>,
        flash: &mut FlashOps,
    ) -> After {
        let pages_per_block = self.geometry().pages_per_block();
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
                self.newest[lpn.0 as usize] = self.geometry().page(block, offset);
                let source = self.geometry().block_of(from);
                let emptied = flash.array().valid(source) == 0;
                self.note_emptied(emptied.then_some(source), log.logical);
            }
        }
        let old = std::mem::replace(&mut self.data[log.logical as usize], log.block);
        if old != NOBODY {
            self.erase(BlockId(old), last, flash);
        }
        last
    }

    /// Keeps in mind that a block lost its last valid page, unless it is the data block of
    /// `logical`, which whoever moves pages out of it erases.
    fn note_emptied(&mut self, emptied: Option<BlockId>, logical: u32) {
        let data = self.data[logical as usize];
        self.emptied.extend(emptied.map(|block| block.0).filter(|block| *block != data));
    }

    /// A block that a merge or a write in place since the last call left without valid pages. It
    /// may be gone, or be used again, by now.
    pub fn emptied(&mut self) -> Option<BlockId> {
        self.emptied.pop().map(BlockId)
    }

    /// Gives up `lpn`; a data block without valid pages is erased. Says which log block has no
    /// valid page left, if one has none.
    pub fn trim(&mut self, lpn: Lpn, flash: &mut FlashOps) -> Option<BlockId> {
        let old = std::mem::replace(&mut self.newest[lpn.0 as usize], Ppn::NONE);
        if old == Ppn::NONE || flash.invalidate(old) != 0 {
            return None;
        }
        let (block, logical) = (self.geometry().block_of(old), self.split(lpn).0 as usize);
        if self.data[logical] != block.0 {
            return Some(block);
        }
        self.data[logical] = NOBODY;
        self.erase(block, After::NOTHING, flash);
        None
    }

    /// Bytes of controller memory: a block number for each logical block, and a page number for
    /// each page of `log_blocks` log blocks.
    pub fn ram_bytes(&self, log_blocks: u32) -> u64 {
        let log_pages = u64::from(log_blocks) * u64::from(self.geometry().pages_per_block());
        (self.data.len() as u64 + log_pages) * 4
    }

    /// Counts afresh; `in_place` and `logs` are the log blocks with pages at their offsets, and
    /// the others.
    ///
    /// # Errors
    /// The first thing that does not agree.
    pub fn audit(
        &self,
        in_place: &[Sequential],
        logs: impl Iterator<Item = u32>,
        flash: &FlashOps,
    ) -> Result<(), String> {
        let array = flash.array();
        let mut books = Books::new(flash);
        for (logical, block) in (0..).zip(&self.data) {
            if *block != NOBODY {
                books.holds(BlockId(*block), logical, true)?;
            }
        }
        for log in in_place {
            books.holds(BlockId(log.block), log.logical, true)?;
        }
        for block in logs {
            books.logs(BlockId(block));
        }
        books.close(&self.free)?;
        let mapped = self.newest.iter().filter(|page| **page != Ppn::NONE).count() as u64;
        if mapped != array.valid_pages() {
            return Err(format!("{mapped} pages mapped, {} valid", array.valid_pages()));
        }
        for (lpn, page) in (0..).zip(&self.newest) {
            if *page != Ppn::NONE
                && !(merge::is_valid(*page, flash) && array.owner(*page) == Lpn(lpn))
            {
                return Err(format!("logical page {lpn} is mapped to a page of another"));
            }
        }
        let usable = self.geometry().blocks() - array.retired_blocks();
        if usable != self.usable {
            return Err(format!("{} blocks usable, {usable} found", self.usable));
        }
        Ok(())
    }
}
