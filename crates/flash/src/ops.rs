//! The one way a translation layer touches flash: operations without time.
//!
//! Every call changes the [`Array`] at once, in the order the translation layer makes them, and
//! notes the operation. When the operations take place is decided later by the device's clock,
//! which sees their die, their cause and what each has to come after.

use crate::array::{Array, Run, Violation};
use crate::event::Cause;
use crate::geometry::{BlockId, DieId, Lpn, Ppn};
use hybridsim_engine::{Loader, Saver, StateError};

/// What a flash operation does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpKind {
    /// Reads `page`.
    Read,
    /// Programs `page`.
    Program,
    /// Reads page `from` and programs `page` with it.
    Copy,
    /// Erases the block whose number is in `page`.
    Erase,
}

/// One operation on the array.
///
/// Operations on one die happen in the order they were noted. Across dies there is no order but
/// by [`FlashOp::after`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlashOp {
    /// What it does.
    pub kind: OpKind,
    /// Why.
    pub cause: Cause,
    /// The die of `page`.
    pub die: DieId,
    /// The operation of the same list that has to end before this one begins.
    pub after: After,
    /// The page, or the block of an erase.
    pub page: u32,
    /// The source of a copy; for a program, the page whose read earlier in the list brought the
    /// data into memory, or [`FRESH`].
    pub from: u32,
}

/// [`FlashOp::from`] of a program whose data come from the host or are of no use.
pub const FRESH: u32 = u32::MAX;

/// A link to an earlier operation of the same list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct After(u32);

impl After {
    /// It may begin as soon as its die is free.
    pub const NOTHING: Self = Self(u32::MAX);

    /// A link to the operation at position `index`.
    #[inline]
    pub const fn index_of(index: usize) -> Self {
        Self(index as u32)
    }

    /// The position in the list.
    #[inline]
    pub const fn index(self) -> Option<usize> {
        if self.0 == u32::MAX { None } else { Some(self.0 as usize) }
    }
}

/// The array, and the operations noted since the list was last cleared.
#[derive(Debug)]
pub struct FlashOps {
    array: Array,
    list: Vec<FlashOp>,
    recording: bool,
    host_cause: Cause,
    host_after: After,
    searched_blocks: u32,
}

impl FlashOps {
    /// Operations on `array`.
    pub fn new(array: Array) -> Self {
        Self {
            array,
            list: Vec::with_capacity(1024),
            recording: true,
            host_cause: Cause::Host,
            host_after: After::NOTHING,
            searched_blocks: 0,
        }
    }

    /// The state of the cells.
    #[inline]
    pub const fn array(&self) -> &Array {
        &self.array
    }

    /// The operations noted since the list was last cleared.
    #[inline]
    pub fn list(&self) -> &[FlashOp] {
        &self.list
    }

    /// Starts a new list. Links cannot reach back to the old one.
    #[inline]
    pub fn clear(&mut self) {
        self.list.clear();
        self.searched_blocks = 0;
        self.host_after = After::NOTHING;
    }

    /// The controller looked at `blocks` blocks in search of a victim, before what is noted next.
    #[inline]
    pub fn note_search(&mut self, blocks: u32) {
        if self.recording {
            self.searched_blocks = self.searched_blocks.saturating_add(blocks);
        }
    }

    /// Blocks looked at since the list was last cleared.
    #[inline]
    pub const fn searched_blocks(&self) -> u32 {
        self.searched_blocks
    }

    /// Whether operations are noted; the array changes either way.
    pub fn set_recording(&mut self, recording: bool) {
        self.recording = recording;
    }

    /// Why the host's page is wanted, until told otherwise.
    pub fn set_host_cause(&mut self, cause: Cause) {
        self.host_cause = cause;
    }

    /// What the host's next operation has to wait for besides its own die.
    pub fn host_waits_for(&mut self, after: After) {
        self.host_after = after;
    }

    /// Puts down the state of the cells.
    pub fn save(&self, to: &mut Saver) {
        self.array.save(to);
    }

    /// Takes back what [`FlashOps::save`] put down; the list is empty afterwards.
    ///
    /// # Errors
    /// When it is of another array.
    pub fn restore(&mut self, from: &mut Loader<'_>) -> Result<(), StateError> {
        self.clear();
        self.array.restore(from)
    }

    /// The first broken rule, if any.
    #[inline]
    pub const fn violation(&self) -> Option<Violation> {
        self.array.violation()
    }

    /// Reads `page` for the host; `after` is a mapping operation it depends on.
    #[inline]
    pub fn host_read(&mut self, page: Ppn, after: After) -> After {
        let after = if after.index().is_some() { after } else { self.host_after };
        self.read(page, self.host_cause, after)
    }

    /// Programs `page` with the host's data of `owner`; `after` as in [`FlashOps::host_read`].
    #[inline]
    pub fn host_program(&mut self, page: Ppn, owner: Lpn, after: After) -> After {
        let after = if after.index().is_some() { after } else { self.host_after };
        self.program(page, owner, self.host_cause, after)
    }

    /// Reads `page`.
    #[inline]
    pub fn read(&mut self, page: Ppn, cause: Cause, after: After) -> After {
        if !self.array.check_read(page) {
            return After::NOTHING;
        }
        self.note(OpKind::Read, cause, self.array.geometry().block_of(page), page.0, 0, after)
    }

    /// Programs `page` with data of `owner`.
    #[inline]
    pub fn program(&mut self, page: Ppn, owner: Lpn, cause: Cause, after: After) -> After {
        if !self.array.program(page, owner) {
            return After::NOTHING;
        }
        let block = self.array.geometry().block_of(page);
        self.note(OpKind::Program, cause, block, page.0, FRESH, after)
    }

    /// Programs `page` with what a read of `from` earlier in the list brought into the
    /// controller's memory; the block of `from` may have been erased since. `owner` is whose data
    /// they are.
    #[inline]
    pub fn write_back(
        &mut self,
        from: Ppn,
        page: Ppn,
        owner: Lpn,
        cause: Cause,
        after: After,
    ) -> After {
        if !self.array.program(page, owner) {
            return After::NOTHING;
        }
        let block = self.array.geometry().block_of(page);
        self.note(OpKind::Program, cause, block, page.0, from.0, after)
    }

    /// Moves the valid page `from` to `to`; its owner moves along.
    #[inline]
    pub fn copy(&mut self, from: Ppn, to: Ppn, cause: Cause, after: After) -> After {
        if !self.array.relocate(from, to) {
            return After::NOTHING;
        }
        let block = self.array.geometry().block_of(to);
        self.note(OpKind::Copy, cause, block, to.0, from.0, after)
    }

    /// Moves the pages of `run` to the pages of `to` from offset `first` on, as so many calls of
    /// [`FlashOps::copy`] would.
    #[inline]
    pub(crate) fn copy_run(&mut self, run: &Run, (to, first): (BlockId, u32), cause: Cause) {
        let geometry = self.array.geometry();
        let (target, die) = (geometry.page(to, first).0, geometry.die_of(to));
        let after = After::NOTHING;
        let pages = run.pages().iter().zip(target..);
        if !self.array.relocate_run(run, (to, first)) {
            pages.for_each(|(from, page)| _ = self.copy(Ppn(*from), Ppn(page), cause, after));
        } else if self.recording {
            let copy = |(from, page): (&u32, u32)| FlashOp {
                kind: OpKind::Copy,
                cause,
                die,
                after,
                page,
                from: *from,
            };
            self.list.extend(pages.map(copy));
        }
    }

    /// Erases `block`; false when it is worn out now and must not be used again.
    #[inline]
    pub fn erase(&mut self, block: BlockId, cause: Cause, after: After) -> bool {
        let usable = self.array.erase(block);
        if self.violation().is_none() {
            self.note(OpKind::Erase, cause, block, block.0, 0, after);
        }
        usable
    }

    /// Marks `page` as no longer needed; takes no time. Says how many valid pages its block keeps.
    #[inline]
    pub fn invalidate(&mut self, page: Ppn) -> u32 {
        self.array.invalidate(page)
    }

    #[inline]
    fn note(
        &mut self,
        kind: OpKind,
        cause: Cause,
        block: BlockId,
        page: u32,
        from: u32,
        after: After,
    ) -> After {
        if !self.recording {
            return After::NOTHING;
        }
        debug_assert!(after.index().is_none_or(|index| index < self.list.len()), "a stale link");
        let die = self.array.geometry().die_of(block);
        self.list.push(FlashOp { kind, cause, die, after, page, from });
        After(self.list.len() as u32 - 1)
    }
}
