//! What the FTLs that map whole blocks share: merges that keep the offsets of pages, blocks
//! rewritten through the controller's memory, and page tables of log blocks.

use super::FtlError;
use crate::array::{PageState, ProgramOrder};
use crate::event::Cause;
use crate::geometry::{BlockId, Geometry, Lpn, Ppn};
use crate::ops::{After, FlashOps};
use crate::wear::FreeBlocks;
use hybridsim_config::param::Problem;

use serde::{Deserialize, Serialize};

/// No block, slot or chain.
pub const NONE: u32 = u32::MAX;

#[inline]
pub fn is_valid(page: Ppn, flash: &FlashOps) -> bool {
    flash.array().state(page) == PageState::Valid
}

/// Whether `offset` of `block` can be programmed now, behind padding ([`pad`]) if need be.
#[inline]
pub fn is_open(block: BlockId, offset: u32, flash: &FlashOps) -> bool {
    let array = flash.array();
    match array.order() {
        ProgramOrder::Any => array.state(array.geometry().page(block, offset)) == PageState::Free,
        ProgramOrder::Sequential | ProgramOrder::Ascending => offset >= array.next_page(block),
    }
}

/// The logical block of the first valid page of `block`, if it has one.
pub fn logical_block(block: BlockId, flash: &FlashOps) -> Option<u32> {
    let array = flash.array();
    let page = array.geometry().page(block, array.next_valid(block, 0)?);
    Some(array.geometry().split(array.owner(page)).0)
}

pub fn survives_erase(block: BlockId, flash: &FlashOps) -> bool {
    flash.array().erases(block) + 1 < flash.array().endurance_of(block)
}

/// Number of padding pages of `block` to program before `offset`.
pub fn pads(block: BlockId, offset: u32, flash: &FlashOps) -> u32 {
    match flash.array().order() {
        ProgramOrder::Sequential => offset.saturating_sub(flash.array().next_page(block)),
        ProgramOrder::Ascending | ProgramOrder::Any => 0,
    }
}

/// Programs the pages of `block` before `offset` with padding, where the chip programs every page
/// in order.
#[inline]
pub fn pad(block: BlockId, offset: u32, flash: &mut FlashOps) {
    if flash.array().order() != ProgramOrder::Sequential {
        return;
    }
    for gap in flash.array().next_page(block)..offset {
        let page = flash.array().geometry().page(block, gap);
        flash.program(page, Lpn::NONE, Cause::Merge, After::NOTHING);
        flash.invalidate(page);
    }
}

/// Copies the valid page `from` to `offset` of `block`.
#[inline]
pub fn copy_to(from: Ppn, block: BlockId, offset: u32, flash: &mut FlashOps) -> After {
    pad(block, offset, flash);
    let to = flash.array().geometry().page(block, offset);
    flash.copy(from, to, Cause::Merge, After::NOTHING)
}

/// Programs the host's page `lpn` at `offset` of `block`.
#[inline]
pub fn program_to(lpn: Lpn, block: BlockId, offset: u32, flash: &mut FlashOps) -> After {
    pad(block, offset, flash);
    let to = flash.array().geometry().page(block, offset);
    flash.host_program(to, lpn, After::NOTHING)
}

/// A full merge: copies the newest version of each page of `logical` to `target`, with the host's
/// page `pending`, if any, in place of its old version. Returns the last operation.
pub fn merge_into(
    target: BlockId,
    logical: u32,
    pending: Option<Lpn>,
    newest: impl Fn(u32, &FlashOps) -> Option<Ppn>,
    flash: &mut FlashOps,
) -> After {
    let geometry = *flash.array().geometry();
    let mut last = After::NOTHING;
    for offset in 0..geometry.pages_per_block() {
        let lpn = Lpn(logical * geometry.pages_per_block() + offset);
        let from = newest(offset, flash);
        if pending == Some(lpn) {
            last = program_to(lpn, target, offset, flash);
            if let Some(from) = from {
                flash.invalidate(from);
            }
        } else if let Some(from) = from.filter(|from| geometry.block_of(*from) != target) {
            last = copy_to(from, target, offset, flash);
        }
    }
    last
}

/// Why a block-mapped FTL that exports `logical` blocks cannot write.
#[cold]
pub fn worn_out(logical: usize, flash: &FlashOps) -> FtlError {
    let array = flash.array();
    FtlError::WornOut(format!(
        "{} of {} blocks are retired, or at the last of their {} erases, and the rest cannot take \
         another page of the {logical} logical blocks exported; choose a higher endurance or \
         over_provisioning, or a shorter workload",
        array.retired_blocks(),
        array.geometry().blocks(),
        array.endurance()
    ))
}

/// Checks for audits what each block is used for.
#[derive(Debug)]
pub struct BlockAudit<'a> {
    uses: Vec<u8>,
    valid: u64,
    flash: &'a FlashOps,
}

impl<'a> BlockAudit<'a> {
    pub fn new(flash: &'a FlashOps) -> Self {
        Self { uses: vec![0; flash.array().geometry().blocks() as usize], valid: 0, flash }
    }

    /// `block` holds pages of logical block `logical`, at their own offsets if `in_place`.
    ///
    /// # Errors
    /// When a valid page belongs to another logical block, or is not at its offset.
    pub fn data(&mut self, block: BlockId, logical: u32, in_place: bool) -> Result<(), String> {
        self.log(block);
        let array = self.flash.array();
        let geometry = array.geometry();
        for offset in 0..geometry.pages_per_block() {
            let page = geometry.page(block, offset);
            let owner = array.owner(page);
            let (home, home_offset) = geometry.split(owner);
            let in_order = home_offset == offset || !in_place;
            if is_valid(page, self.flash) && !(home == logical && in_order) {
                return Err(format!("{page:?} of logical block {logical} holds {owner:?}"));
            }
        }
        Ok(())
    }

    /// `block` holds pages of any logical block.
    pub fn log(&mut self, block: BlockId) {
        self.uses[block.0 as usize] = self.uses[block.0 as usize].saturating_add(1);
        self.valid += u64::from(self.flash.array().valid(block));
    }

    /// Checks that each usable block has one use, or is free and erased, and that no other block
    /// holds a valid page.
    pub fn finish(mut self, free: impl Iterator<Item = BlockId>) -> Result<(), String> {
        let array = self.flash.array();
        for block in free {
            self.log(block);
            if array.next_page(block) != 0 {
                return Err(format!("{block:?} is listed as free, but programmed"));
            }
        }
        let wrong = (0u32..)
            .zip(&self.uses)
            .find(|(block, uses)| **uses != u8::from(!array.is_retired(BlockId(*block))));
        match wrong {
            Some((block, uses)) => Err(format!("block {block} has {uses} uses")),
            None if self.valid != array.valid_pages() => {
                Err(format!("{} valid pages, {} of them known", array.valid_pages(), self.valid))
            }
            None => Ok(()),
        }
    }
}

/// The controller's memory for the pages of one block, while the block they came from is erased.
#[derive(Clone, Debug, Default)]
pub struct BlockBuffer {
    /// By offset. Owners are kept here because the erased page may have a new one by the time its
    /// data are programmed.
    pages: Vec<BufferedPage>,
}

#[derive(Clone, Copy, Debug)]
struct BufferedPage {
    page: Ppn,
    owner: Lpn,
    read: After,
}

const EMPTY: BufferedPage =
    BufferedPage { page: Ppn::NONE, owner: Lpn::NONE, read: After::NOTHING };

impl BlockBuffer {
    /// Drops what was loaded for offsets `from..to`.
    pub fn discard(&mut self, from: u32, to: u32) {
        self.pages[from as usize..to as usize].fill(EMPTY);
    }

    /// Reads every valid page of `block` to the offset of its logical page.
    pub fn load(&mut self, block: BlockId, flash: &mut FlashOps) {
        let geometry = *flash.array().geometry();
        self.pages.resize(geometry.pages_per_block() as usize, EMPTY);
        let mut from = 0;
        while let Some(offset) = flash.array().next_valid(block, from) {
            from = offset + 1;
            let page = geometry.page(block, offset);
            let owner = flash.array().owner(page);
            let read = flash.read(page, Cause::Merge, After::NOTHING);
            self.pages[geometry.split(owner).1 as usize] = BufferedPage { page, owner, read };
        }
        // After the reads, since an invalid page must not be read.
        let mut from = 0;
        while let Some(offset) = flash.array().next_valid(block, from) {
            from = offset + 1;
            flash.invalidate(geometry.page(block, offset));
        }
    }

    /// Erases `block`, which must survive it, and programs what was loaded, with the host's page
    /// `pending` in place of its old version. Returns the last operation.
    pub fn store(&mut self, block: BlockId, pending: Option<Lpn>, flash: &mut FlashOps) -> After {
        let geometry = *flash.array().geometry();
        let usable = flash.erase(block, Cause::Merge, After::NOTHING);
        debug_assert!(usable, "a worn-out block cannot be rewritten in place");
        let pending = pending.map(|lpn| (geometry.split(lpn).1, lpn));
        let mut last = After::NOTHING;
        for offset in 0..geometry.pages_per_block() {
            let buffered = std::mem::replace(&mut self.pages[offset as usize], EMPTY);
            if let Some((_, lpn)) = pending.filter(|(home, _)| *home == offset) {
                last = program_to(lpn, block, offset, flash);
            } else if buffered.page != Ppn::NONE {
                pad(block, offset, flash);
                let to = geometry.page(block, offset);
                let BufferedPage { page, owner, read } = buffered;
                last = flash.write_back((page, read), to, owner, Cause::Merge);
            }
        }
        last
    }
}

/// Page tables of log blocks: by slot and offset, the page of the log block that holds the newest
/// version of the page.
#[derive(Debug, Serialize, Deserialize)]
pub struct LogPageTables {
    entries: Vec<u16>,
    pages_per_block: u32,
    free_slots: Vec<u32>,
}

const NO_PAGE: u16 = u16::MAX;

impl LogPageTables {
    pub fn new(slots: u32, geometry: &Geometry) -> Self {
        let pages_per_block = geometry.pages_per_block();
        let entries = vec![NO_PAGE; slots as usize * pages_per_block as usize];
        Self { entries, pages_per_block, free_slots: (0..slots).rev().collect() }
    }

    /// The problem with blocks of more pages than an entry can number.
    pub fn problem(geometry: &Geometry) -> Option<Problem> {
        let message = || format!("the FTL's page tables take at most {NO_PAGE} pages per block");
        (geometry.pages_per_block() > u32::from(NO_PAGE))
            .then(|| Problem::new("pages_per_block", message()))
    }

    const fn index(&self, slot: u32, offset: u32) -> usize {
        slot as usize * self.pages_per_block as usize + offset as usize
    }

    fn row(&self, slot: u32) -> std::ops::Range<usize> {
        self.index(slot, 0)..self.index(slot + 1, 0)
    }

    /// Takes a free slot, whose table is empty.
    pub fn allocate(&mut self) -> u32 {
        let slot = self.free_slots.pop().expect("a slot for every log block");
        let row = self.row(slot);
        self.entries[row].fill(NO_PAGE);
        slot
    }

    pub fn release(&mut self, slot: u32) {
        self.free_slots.push(slot);
    }

    #[inline]
    pub fn get(&self, slot: u32, offset: u32) -> Option<u32> {
        let page = self.entries[self.index(slot, offset)];
        (page != NO_PAGE).then_some(u32::from(page))
    }

    #[inline]
    pub fn set(&mut self, slot: u32, offset: u32, page: u32) {
        let index = self.index(slot, offset);
        self.entries[index] = page as u16;
    }

    pub fn clear(&mut self, slot: u32, offset: u32) {
        self.set(slot, offset, u32::from(NO_PAGE));
    }

    /// Number of pages in the table of `slot`.
    pub fn mapped(&self, slot: u32) -> u32 {
        self.entries[self.row(slot)].iter().filter(|page| **page != NO_PAGE).count() as u32
    }

    pub const fn bytes(&self) -> usize {
        self.entries.len() * size_of::<u16>()
    }
}

/// Erases `block` for a merge and adds it to `free` unless it is worn out; returns whether it is
/// still usable.
pub fn recycle(free: &mut FreeBlocks, block: BlockId, after: After, flash: &mut FlashOps) -> bool {
    free.recycle(block, Cause::Merge, after, flash)
}
