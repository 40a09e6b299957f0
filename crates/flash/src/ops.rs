//! The interface between FTL and flash: untimed flash operations.
//!
//! Every call changes the [`Array`] at once, in the order of the calls, and records the operation.
//! The device's timing model schedules the recorded operations later by die, cause and dependency.

use crate::array::{Array, PageRun, Violation};
use crate::event::Cause;
use crate::geometry::{BlockId, DieId, Lpn, PlaneId, Ppn};
use hybridsim_engine::{Loader, Saver, StateError};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpKind {
    /// Reads `page`.
    Read,
    /// Programs `page`.
    Program,
    /// Reads page `from` and programs its data to `page`.
    Copy,
    /// Erases the block whose number is in `page`.
    Erase,
}

impl OpKind {
    const COUNT: usize = Self::Erase as usize + 1;
}

/// One flash operation.
///
/// Operations on the same die execute in the order they were recorded; operations on different
/// dies are ordered by [`FlashOp::after`] alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlashOp {
    pub kind: OpKind,
    pub cause: Cause,
    /// The die of `page`.
    pub die: DieId,
    /// The die that a copy reads; of other operations that of `page`.
    pub from_die: DieId,
    /// Retries of its read; the translation layer leaves it at 0.
    pub retries: u8,
    /// Pages of the chip that a read transfers, where the page lies in several planes; 0 for all.
    pub transfers: u8,
    /// The operation of the same list that has to complete before this one starts.
    pub after: After,
    /// The page, or the block of an erase.
    pub page: u32,
    /// The blocks in SLC mode that it reads and programs.
    pub slc: SlcMode,
    /// The source of a copy; for a program, the page whose read earlier in the list brought the
    /// data into the controller's memory, or [`FRESH`].
    pub from: u32,
}

impl FlashOp {
    /// An operation on page 0, of blocks in native mode.
    #[inline]
    const fn new((kind, cause): (OpKind, Cause), die: DieId, after: After) -> Self {
        let (page, from, slc) = (0, FRESH, SlcMode::new(false, false));
        let from_die = die;
        Self { kind, cause, die, from_die, retries: 0, transfers: 0, after, page, slc, from }
    }
}

/// Which blocks of an operation are in SLC mode.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SlcMode(u8);

impl SlcMode {
    const SOURCE: u8 = 1;
    const TARGET: u8 = 2;

    /// With the modes of the block that is read, and of that which is programmed or erased.
    pub const fn new(source: bool, target: bool) -> Self {
        Self((source as u8 * Self::SOURCE) | (target as u8 * Self::TARGET))
    }

    #[inline]
    pub const fn any(self) -> bool {
        self.0 != 0
    }

    /// The block that is read is in SLC mode.
    #[inline]
    pub const fn source(self) -> bool {
        self.0 & Self::SOURCE != 0
    }

    /// The block that is programmed or erased is in SLC mode.
    #[inline]
    pub const fn target(self) -> bool {
        self.0 & Self::TARGET != 0
    }
}

/// [`FlashOp::from`] of a program with data of the host or padding.
pub const FRESH: u32 = u32::MAX;

/// A dependency on an earlier operation of the same list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct After(u32);

impl After {
    /// No dependency: starts as soon as the die is free.
    pub const NOTHING: Self = Self(u32::MAX);

    /// A dependency on the operation at position `index`.
    #[inline]
    pub const fn index_of(index: usize) -> Self {
        Self(index as u32)
    }

    #[inline]
    pub const fn index(self) -> Option<usize> {
        if self.0 == u32::MAX { None } else { Some(self.0 as usize) }
    }
}

/// Flash operations by kind and cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OpCounts {
    by_kind: [[u64; Cause::COUNT]; OpKind::COUNT],
    /// Blocks examined in searches for victims.
    pub searched_blocks: u64,
}

impl OpCounts {
    /// Pages read for `cause`, copies included.
    pub const fn reads(&self, cause: Cause) -> u64 {
        self.of(OpKind::Read, cause) + self.of(OpKind::Copy, cause)
    }

    /// Pages programmed for `cause`, copies included.
    pub const fn programs(&self, cause: Cause) -> u64 {
        self.of(OpKind::Program, cause) + self.of(OpKind::Copy, cause)
    }

    /// Blocks erased for `cause`.
    pub const fn erases(&self, cause: Cause) -> u64 {
        self.of(OpKind::Erase, cause)
    }

    /// The operations since `earlier`.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let mut since = *self;
        for (counts, earlier) in since.by_kind.iter_mut().zip(&earlier.by_kind) {
            counts.iter_mut().zip(earlier).for_each(|(count, earlier)| *count -= earlier);
        }
        since.searched_blocks -= earlier.searched_blocks;
        since
    }

    #[inline]
    const fn of(&self, kind: OpKind, cause: Cause) -> u64 {
        self.by_kind[kind as usize][cause as usize]
    }

    #[inline]
    const fn add(&mut self, kind: OpKind, cause: Cause, count: u64) {
        self.by_kind[kind as usize][cause as usize] += count;
    }
}

/// The array, and its operations: recorded in a list, to be timed, or only counted.
#[derive(Debug)]
pub struct FlashOps {
    array: Array,
    list: Vec<FlashOp>,
    counts: OpCounts,
    recording: bool,
    host_cause: Cause,
    host_after: After,
    searched_blocks: u32,
    host_accesses: u32,
}

impl FlashOps {
    pub fn new(array: Array) -> Self {
        Self {
            array,
            list: Vec::with_capacity(1024),
            counts: OpCounts::default(),
            recording: true,
            host_cause: Cause::Host,
            host_after: After::NOTHING,
            searched_blocks: 0,
            host_accesses: 0,
        }
    }

    #[inline]
    pub const fn array(&self) -> &Array {
        &self.array
    }

    /// The operations recorded since the list was last cleared.
    #[inline]
    pub fn list(&self) -> &[FlashOp] {
        &self.list
    }

    /// Starts a new list. Operations cannot depend on those of the old one.
    #[inline]
    pub fn clear(&mut self) {
        self.list.clear();
        (self.searched_blocks, self.host_accesses) = (0, 0);
        self.host_after = After::NOTHING;
    }

    /// Records that the controller searched `blocks` blocks for a victim.
    #[inline]
    pub fn note_search(&mut self, blocks: u32) {
        if self.recording {
            self.searched_blocks = self.searched_blocks.saturating_add(blocks);
        } else {
            self.counts.searched_blocks += u64::from(blocks);
        }
    }

    /// Records that the controller read the memory of the host.
    #[inline]
    pub fn note_host_access(&mut self) {
        self.host_accesses += u32::from(self.recording);
    }

    /// Reads of the memory of the host since the list was last cleared.
    #[inline]
    pub const fn host_accesses(&self) -> u32 {
        self.host_accesses
    }

    /// Blocks searched for victims since the list was last cleared.
    #[inline]
    pub const fn searched_blocks(&self) -> u32 {
        self.searched_blocks
    }

    /// Whether operations are recorded in the list or counted; the array changes either way.
    pub fn set_recording(&mut self, recording: bool) {
        self.recording = recording;
    }

    /// Prepares for most pages to be programmed soon ([`Array::expect_filling`]).
    pub fn expect_filling(&mut self) {
        self.array.expect_filling();
    }

    /// The recorded operations, for their retries to be set.
    pub fn list_mut(&mut self) -> &mut [FlashOp] {
        &mut self.list
    }

    /// The operations that were counted instead of recorded, those before the run included.
    #[inline]
    pub const fn counts(&self) -> &OpCounts {
        &self.counts
    }

    /// Sets the cause of host reads and programs.
    pub fn set_host_cause(&mut self, cause: Cause) {
        self.host_cause = cause;
    }

    /// Sets what the next host operation depends on.
    pub fn host_waits_for(&mut self, after: After) {
        self.host_after = after;
    }

    /// Brings every block to `fraction` of its endurance.
    pub fn wear_out(&mut self, fraction: f64) {
        self.array.wear_out(fraction);
    }

    /// Saves the array.
    pub fn save(&self, to: &mut Saver) {
        self.array.save(to);
    }

    /// Restores the array and clears the list.
    ///
    /// # Errors
    /// When the state is that of another array.
    pub fn restore(&mut self, from: &mut Loader<'_>) -> Result<(), StateError> {
        self.clear();
        self.array.restore(from)
    }

    /// The first violation of a NAND rule, if any.
    #[inline]
    pub const fn violation(&self) -> Option<Violation> {
        self.array.violation()
    }

    /// Reads `page` for the host, behind the mapping operation `after`.
    #[inline]
    pub fn host_read(&mut self, page: Ppn, after: After) -> After {
        let after = if after.index().is_some() { after } else { self.host_after };
        self.read(page, self.host_cause, after)
    }

    /// Programs `page` with data of the host for `owner`, behind the mapping operation `after`.
    #[inline]
    pub fn host_program(&mut self, page: Ppn, owner: Lpn, after: After) -> After {
        let after = if after.index().is_some() { after } else { self.host_after };
        self.program(page, owner, self.host_cause, after)
    }

    /// As [`FlashOps::host_program`] without a mapping operation, of a page of `block`, a block of
    /// `die`: the caller has found both.
    #[inline(always)]
    pub(crate) fn host_program_in(
        &mut self,
        (die, block): (DieId, BlockId),
        page: Ppn,
        owner: Lpn,
    ) {
        if self.array.program_in(block, page, owner) {
            let place = (die, block, page.0, FRESH);
            self.record_in((OpKind::Program, self.host_cause), place, self.host_after);
        }
    }

    #[inline]
    pub fn read(&mut self, page: Ppn, cause: Cause, after: After) -> After {
        if !self.array.check_read(page) {
            return After::NOTHING;
        }
        let block = self.array.geometry().block_of(page);
        self.record(OpKind::Read, cause, block, (page.0, 0), after)
    }

    /// Programs `page` with data of logical page `owner`.
    #[inline]
    pub fn program(&mut self, page: Ppn, owner: Lpn, cause: Cause, after: After) -> After {
        if !self.array.program(page, owner) {
            return After::NOTHING;
        }
        let block = self.array.geometry().block_of(page);
        self.record(OpKind::Program, cause, block, (page.0, FRESH), after)
    }

    /// Programs `page` with the data of `owner` that `read`, a read of `from` earlier in the list,
    /// brought into the controller's memory; the block of `from` may have been erased since.
    #[inline]
    pub fn write_back(
        &mut self,
        (from, read): (Ppn, After),
        page: Ppn,
        owner: Lpn,
        cause: Cause,
    ) -> After {
        if !self.array.program(page, owner) {
            return After::NOTHING;
        }
        let block = self.array.geometry().block_of(page);
        self.record(OpKind::Program, cause, block, (page.0, from.0), read)
    }

    /// Copies the valid page `from` to `to` and invalidates it.
    #[inline]
    pub fn copy(&mut self, from: Ppn, to: Ppn, cause: Cause, after: After) -> After {
        if !self.array.relocate(from, to) {
            return After::NOTHING;
        }
        let block = self.array.geometry().block_of(to);
        self.record(OpKind::Copy, cause, block, (to.0, from.0), after)
    }

    /// Copies the pages of `run` to the pages of `to`, a block of the same plane, from offset
    /// `first` on, as that many calls of [`FlashOps::copy`] would.
    #[inline]
    pub(crate) fn copy_run(
        &mut self,
        plane: PlaneId,
        run: &PageRun,
        (to, first): (BlockId, u32),
        cause: Cause,
    ) {
        let geometry = self.array.geometry();
        debug_assert_eq!(geometry.plane_of(to), plane, "block {to:?}");
        debug_assert_eq!(geometry.plane_of(run.block()), plane, "block {:?}", run.block());
        let (target, die) = (geometry.page(to, first).0, geometry.die_of_plane(plane));
        let after = After::NOTHING;
        let pages = run.pages().iter().zip(target..);
        if !self.array.relocate_run(run, (to, first)) {
            pages.for_each(|(from, page)| _ = self.copy(Ppn(*from), Ppn(page), cause, after));
        } else if self.recording {
            let slc = match self.array.has_slc_mode() {
                true => SlcMode::new(self.array.is_slc(run.block()), self.array.is_slc(to)),
                false => SlcMode::default(),
            };
            let op = FlashOp { slc, ..FlashOp::new((OpKind::Copy, cause), die, after) };
            self.list.extend(pages.map(|(from, page)| FlashOp { page, from: *from, ..op }));
        } else {
            self.counts.add(OpKind::Copy, cause, run.pages().len() as u64);
        }
    }

    /// Copies the valid page `from`, a page of `block`, to the page at offset `first` of `to`, a
    /// block of the same plane. Returns the logical page.
    #[inline(always)]
    pub(crate) fn copy_page(
        &mut self,
        plane: PlaneId,
        (block, from): (BlockId, Ppn),
        (to, first): (BlockId, u32),
        cause: Cause,
    ) -> Lpn {
        let page = self.array.geometry().page(to, first);
        let Some(owner) = self.array.relocate_page((block, from), (to, first)) else {
            self.copy(from, page, cause, After::NOTHING);
            return self.array.owner(from);
        };
        if !self.recording {
            self.counts.add(OpKind::Copy, cause, 1);
            return owner;
        }
        let die = self.array.geometry().die_of_plane(plane);
        let slc = match self.array.has_slc_mode() {
            true => self.slc_mode(OpKind::Copy, to, from.0),
            false => SlcMode::default(),
        };
        let op = FlashOp::new((OpKind::Copy, cause), die, After::NOTHING);
        self.list.push(FlashOp { page: page.0, from: from.0, slc, ..op });
        owner
    }

    /// Puts the erased `block` into SLC mode until its erase.
    pub fn begin_slc(&mut self, block: BlockId) {
        self.array.begin_slc(block);
    }

    /// Erases `block`; returns false when it is worn out and must not be used again.
    #[inline]
    pub fn erase(&mut self, block: BlockId, cause: Cause, after: After) -> bool {
        let slc = self.array.has_slc_mode() && self.array.is_slc(block);
        let usable = self.array.erase(block);
        if self.violation().is_none() {
            self.record(OpKind::Erase, cause, block, (block.0, 0), after);
            if slc
                && self.recording
                && let Some(erase) = self.list.last_mut()
            {
                erase.slc = SlcMode::new(false, true);
            }
        }
        usable
    }

    /// Invalidates `page`, which takes no time, and returns how many valid pages its block has
    /// left.
    #[inline]
    pub fn invalidate(&mut self, page: Ppn) -> u32 {
        self.array.invalidate(page)
    }

    /// As [`FlashOps::invalidate`], of a page of `block`, which the caller has found.
    #[inline(always)]
    pub(crate) fn invalidate_in(&mut self, block: BlockId, page: Ppn) -> u32 {
        self.array.invalidate_in(block, page)
    }

    /// Invalidates all pages of `block`, which takes no time.
    pub fn invalidate_block(&mut self, block: BlockId) {
        self.array.invalidate_block(block);
    }

    /// The modes of the blocks of an operation on `block`, an erase excepted: it ends the mode.
    #[inline(never)]
    fn slc_mode(&self, kind: OpKind, block: BlockId, from: u32) -> SlcMode {
        let slc = self.array.is_slc(block);
        match kind {
            OpKind::Read => SlcMode::new(slc, false),
            OpKind::Program => SlcMode::new(false, slc),
            OpKind::Copy => {
                let source = self.array.geometry().block_of(Ppn(from));
                SlcMode::new(self.array.is_slc(source), slc)
            }
            OpKind::Erase => SlcMode::default(),
        }
    }

    #[inline]
    fn record(
        &mut self,
        kind: OpKind,
        cause: Cause,
        block: BlockId,
        (page, from): (u32, u32),
        after: After,
    ) -> After {
        let die = self.array.geometry().die_of(block);
        self.record_in((kind, cause), (die, block, page, from), after)
    }

    /// As [`FlashOps::record`], of an operation on `block`, a block of `die`.
    #[inline(always)]
    fn record_in(
        &mut self,
        (kind, cause): (OpKind, Cause),
        (die, block, page, from): (DieId, BlockId, u32, u32),
        after: After,
    ) -> After {
        if !self.recording {
            self.counts.add(kind, cause, 1);
            return After::NOTHING;
        }
        debug_assert!(
            after.index().is_none_or(|index| index < self.list.len()),
            "a dependency on another list"
        );
        let slc = match self.array.has_slc_mode() {
            true => self.slc_mode(kind, block, from),
            false => SlcMode::default(),
        };
        let from_die = match kind {
            OpKind::Copy => self.array.geometry().die_of_page(Ppn(from)),
            OpKind::Read | OpKind::Program | OpKind::Erase => die,
        };
        let op = FlashOp::new((kind, cause), die, after);
        self.list.push(FlashOp { from_die, page, slc, from, ..op });
        After(self.list.len() as u32 - 1)
    }
}
