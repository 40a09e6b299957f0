//! What translation layers that map whole blocks share: free blocks in turn, copies that keep the
//! offset of a page, blocks rewritten through memory, and lists over numbered things.

use super::FtlError;
use crate::array::{PageState, ProgramOrder};
use crate::event::Cause;
use crate::geometry::{BlockId, Geometry, Lpn, Ppn};
use crate::ops::{After, FlashOps};
use hybridsim_engine::state::{self, StateError};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// No item, in tables of 32-bit numbers.
pub const NOBODY: u32 = u32::MAX;

/// Erased blocks; first in, first out, which spreads erases.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct FreeBlocks {
    queue: VecDeque<u32>,
}

impl FreeBlocks {
    /// All blocks of a new device. Neighbours lie in different planes, so that large requests use
    /// several dies.
    pub fn striped(geometry: &Geometry) -> Self {
        let (planes, per_plane) = (geometry.planes(), geometry.blocks_per_plane());
        let row = |at: u32| (0..planes).map(move |plane| plane * per_plane + at);
        Self { queue: (0..per_plane).flat_map(row).collect() }
    }

    /// How many there are.
    pub fn len(&self) -> u32 {
        self.queue.len() as u32
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// The block that has been free for longest.
    pub fn take(&mut self) -> Option<BlockId> {
        self.queue.pop_front().map(BlockId)
    }

    /// Adds an erased block.
    pub fn give(&mut self, block: BlockId) {
        self.queue.push_back(block.0);
    }

    /// Erases `block` for a merge, after the operation `after`, and adds it unless it is worn out
    /// now, in which case the answer is false.
    pub fn recycle(&mut self, block: BlockId, after: After, flash: &mut FlashOps) -> bool {
        let usable = flash.erase(block, Cause::Merge, after);
        if usable {
            self.give(block);
        }
        usable
    }

    /// The blocks, in the order they will be taken.
    pub fn iter(&self) -> impl Iterator<Item = BlockId> + '_ {
        self.queue.iter().map(|block| BlockId(*block))
    }
}

/// Whether `page` holds data somebody needs.
#[inline]
pub fn is_valid(page: Ppn, flash: &FlashOps) -> bool {
    flash.array().state(page) == PageState::Valid
}

/// Whether offset `offset` of `block` can be programmed now, with [`pad`] before it if need be.
#[inline]
pub fn is_open(block: BlockId, offset: u32, flash: &FlashOps) -> bool {
    let array = flash.array();
    match array.order() {
        ProgramOrder::Any => array.state(array.geometry().page(block, offset)) == PageState::Free,
        ProgramOrder::Sequential | ProgramOrder::Ascending => offset >= array.next_page(block),
    }
}

/// Whether `block` can be erased and used again afterwards.
pub fn survives_erase(block: BlockId, flash: &FlashOps) -> bool {
    flash.array().erases(block) + 1 < flash.array().endurance_of(block)
}

/// How many pages of `block` have to be programmed before `offset` can be.
pub fn pads(block: BlockId, offset: u32, flash: &FlashOps) -> u32 {
    match flash.array().order() {
        ProgramOrder::Sequential => offset.saturating_sub(flash.array().next_page(block)),
        ProgramOrder::Ascending | ProgramOrder::Any => 0,
    }
}

/// Programs the pages of `block` before `offset` with nothing, where the chip wants every page.
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

/// Copies the valid page `from` to `offset` of `block` for a merge.
#[inline]
pub fn copy_to(from: Ppn, block: BlockId, offset: u32, flash: &mut FlashOps) -> After {
    pad(block, offset, flash);
    let to = flash.array().geometry().page(block, offset);
    flash.copy(from, to, Cause::Merge, After::NOTHING)
}

/// Programs the host's page `lpn` to `offset` of `block`.
#[inline]
pub fn program_to(lpn: Lpn, block: BlockId, offset: u32, flash: &mut FlashOps) -> After {
    pad(block, offset, flash);
    let to = flash.array().geometry().page(block, offset);
    flash.host_program(to, lpn, After::NOTHING)
}

/// Why a layer of whole blocks that offers `logical` of them has no room.
#[cold]
pub fn worn_out(logical: usize, flash: &FlashOps) -> FtlError {
    let array = flash.array();
    FtlError::WornOut(format!(
        "{} of {} blocks are retired, or at the last of their {} erases, and the rest cannot take \
         another page of the {logical} logical blocks offered; choose a higher endurance or \
         over_provisioning, or a shorter workload",
        array.retired_blocks(),
        array.geometry().blocks(),
        array.endurance()
    ))
}

/// Counts what each block is used for, for audits.
#[derive(Debug)]
pub struct Books<'a> {
    uses: Vec<u8>,
    valid: u64,
    flash: &'a FlashOps,
}

impl<'a> Books<'a> {
    /// Nothing counted yet.
    pub fn new(flash: &'a FlashOps) -> Self {
        Self { uses: vec![0; flash.array().geometry().blocks() as usize], valid: 0, flash }
    }

    /// `block` holds data of logical block `logical`, at their own offsets if `in_place`.
    ///
    /// # Errors
    /// When a valid page of it is another's, or not at its offset.
    pub fn holds(&mut self, block: BlockId, logical: u32, in_place: bool) -> Result<(), String> {
        let array = self.flash.array();
        let geometry = array.geometry();
        self.uses[block.0 as usize] = self.uses[block.0 as usize].saturating_add(1);
        self.valid += u64::from(array.valid(block));
        for offset in 0..geometry.pages_per_block() {
            let page = geometry.page(block, offset);
            let home = Ppn(array.owner(page).0);
            let at_home = geometry.offset_of(home) == offset || !in_place;
            if is_valid(page, self.flash) && !(geometry.block_of(home).0 == logical && at_home) {
                return Err(format!("{page:?} of logical block {logical} holds page {}", home.0));
            }
        }
        Ok(())
    }

    /// `block` holds pages of any logical block.
    pub fn logs(&mut self, block: BlockId) {
        self.uses[block.0 as usize] = self.uses[block.0 as usize].saturating_add(1);
        self.valid += u64::from(self.flash.array().valid(block));
    }

    /// Every sound block is used once, or free and erased; no valid page lies elsewhere.
    ///
    /// # Errors
    /// The first block, or the number of pages, that does not agree.
    pub fn close(mut self, free: &FreeBlocks) -> Result<(), String> {
        let array = self.flash.array();
        for block in free.iter() {
            self.uses[block.0 as usize] = self.uses[block.0 as usize].saturating_add(1);
            if array.next_page(block) != 0 {
                return Err(format!("{block:?} is listed as free, but written"));
            }
        }
        let wrong = (0u32..)
            .zip(&self.uses)
            .find(|(block, uses)| **uses != u8::from(!array.is_retired(BlockId(*block))));
        match wrong {
            Some((block, uses)) => Err(format!("block {block} is used or free {uses} times")),
            None if self.valid != array.valid_pages() => {
                Err(format!("{} valid pages, {} known", array.valid_pages(), self.valid))
            }
            None => Ok(()),
        }
    }
}

/// One block's pages in the controller's memory, while the block they came from is erased.
#[derive(Clone, Debug)]
pub struct Memory {
    /// By offset. Owners are kept here: an erased page may have a new one when its data are due.
    pages: Vec<Held>,
}

#[derive(Clone, Copy, Debug)]
struct Held {
    page: Ppn,
    owner: Lpn,
    read: After,
}

const NOTHING_HELD: Held = Held { page: Ppn::NONE, owner: Lpn::NONE, read: After::NOTHING };

impl Memory {
    /// Room for one block.
    pub fn new(geometry: &Geometry) -> Self {
        Self { pages: vec![NOTHING_HELD; geometry.pages_per_block() as usize] }
    }

    /// Lets go of what was loaded for offsets `from..to`.
    pub fn forget(&mut self, from: u32, to: u32) {
        self.pages[from as usize..to as usize].fill(NOTHING_HELD);
    }

    /// Reads every valid page of `block`; each will go to the offset of its logical number.
    pub fn load(&mut self, block: BlockId, flash: &mut FlashOps) {
        let geometry = *flash.array().geometry();
        let mut from = 0;
        while let Some(offset) = flash.array().next_valid(block, from) {
            from = offset + 1;
            let page = geometry.page(block, offset);
            // A logical number has the offset a physical page of the same number has.
            let owner = flash.array().owner(page);
            let home = geometry.offset_of(Ppn(owner.0));
            let read = flash.read(page, Cause::Merge, After::NOTHING);
            self.pages[home as usize] = Held { page, owner, read };
        }
        // Only now: what is read must not count as gone yet.
        let mut from = 0;
        while let Some(offset) = flash.array().next_valid(block, from) {
            from = offset + 1;
            flash.invalidate(geometry.page(block, offset));
        }
    }

    /// Erases `block`, which must survive it, and programs what was loaded, with the host's page
    /// `pending` in place of its old version. Says which operation is the last.
    pub fn store(&mut self, block: BlockId, pending: Option<Lpn>, flash: &mut FlashOps) -> After {
        let geometry = *flash.array().geometry();
        let usable = flash.erase(block, Cause::Merge, After::NOTHING);
        debug_assert!(usable, "a worn-out block cannot be rewritten in place");
        let pending = pending.map(|lpn| (geometry.offset_of(Ppn(lpn.0)), lpn));
        let mut last = After::NOTHING;
        for offset in 0..geometry.pages_per_block() {
            let held = std::mem::replace(&mut self.pages[offset as usize], NOTHING_HELD);
            if let Some((_, lpn)) = pending.filter(|(home, _)| *home == offset) {
                last = program_to(lpn, block, offset, flash);
            } else if held.page != Ppn::NONE {
                pad(block, offset, flash);
                let to = geometry.page(block, offset);
                last = flash.write_back(held.page, to, held.owner, Cause::Merge, held.read);
            }
        }
        last
    }
}

/// Doubly linked lists over numbered items, of which each is in one list at most. Everything
/// takes constant time.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Lists {
    next: Vec<u32>,
    previous: Vec<u32>,
    first: Vec<u32>,
    last: Vec<u32>,
}

impl Lists {
    /// `lists` empty lists over items `0..items`.
    pub fn new(lists: usize, items: usize) -> Self {
        Self {
            next: vec![NOBODY; items],
            previous: vec![NOBODY; items],
            first: vec![NOBODY; lists],
            last: vec![NOBODY; lists],
        }
    }

    /// Checks that `other`, read back from a state, can take the place of these.
    ///
    /// # Errors
    /// When it has other lists or other items.
    pub fn same_shape(&self, other: &Self) -> Result<(), StateError> {
        state::same_length("a list's links", other.next.len(), self.next.len())?;
        state::same_length("a list's links", other.previous.len(), self.previous.len())?;
        state::same_length("the table of lists", other.first.len(), self.first.len())?;
        state::same_length("the table of lists", other.last.len(), self.last.len())
    }

    /// The item that has been in `list` for longest.
    pub fn first(&self, list: usize) -> Option<u32> {
        Some(self.first[list]).filter(|item| *item != NOBODY)
    }

    /// The items in `list`, the one that has been there for longest first.
    pub fn iter(&self, list: usize) -> impl Iterator<Item = u32> + '_ {
        std::iter::successors(self.first(list), |item| {
            Some(self.next[*item as usize]).filter(|next| *next != NOBODY)
        })
    }

    /// Adds `item`, which is in no list, behind the others.
    pub fn push(&mut self, list: usize, item: u32) {
        let last = std::mem::replace(&mut self.last[list], item);
        self.previous[item as usize] = last;
        self.next[item as usize] = NOBODY;
        match last {
            NOBODY => self.first[list] = item,
            last => self.next[last as usize] = item,
        }
    }

    /// Puts `new`, which is in no list, at the place of `old` in `list`.
    pub fn replace(&mut self, list: usize, old: u32, new: u32) {
        let (previous, next) = (self.previous[old as usize], self.next[old as usize]);
        (self.previous[new as usize], self.next[new as usize]) = (previous, next);
        match previous {
            NOBODY => self.first[list] = new,
            previous => self.next[previous as usize] = new,
        }
        match next {
            NOBODY => self.last[list] = new,
            next => self.previous[next as usize] = new,
        }
    }

    /// Takes `item` out of `list`, in which it is.
    pub fn remove(&mut self, list: usize, item: u32) {
        let (previous, next) = (self.previous[item as usize], self.next[item as usize]);
        match previous {
            NOBODY => self.first[list] = next,
            previous => self.next[previous as usize] = next,
        }
        match next {
            NOBODY => self.last[list] = previous,
            next => self.previous[next as usize] = previous,
        }
    }
}

/// A set of numbers that finds its smallest in constant time: words of bits over words of bits.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct NumberSet {
    /// The first level has a bit per number, each further one a bit per word below.
    levels: Vec<Vec<u64>>,
}

impl NumberSet {
    /// An empty set of numbers below `bound`.
    pub fn new(bound: usize) -> Self {
        let mut levels = Vec::new();
        let mut words = bound.max(1);
        while words > 1 || levels.is_empty() {
            words = words.div_ceil(64);
            levels.push(vec![0; words]);
        }
        Self { levels }
    }

    /// Checks that `other`, read back from a state, can take the place of this one.
    ///
    /// # Errors
    /// When it has another bound.
    pub fn same_shape(&self, other: &Self) -> Result<(), StateError> {
        let words = |set: &Self| set.levels.iter().map(Vec::len).sum();
        state::same_length("a set of numbers", words(other), words(self))
    }

    /// Adds `number`.
    pub fn insert(&mut self, number: u32) {
        let mut at = number as usize;
        for level in &mut self.levels {
            level[at / 64] |= 1 << (at % 64);
            at /= 64;
        }
    }

    /// Takes `number` out.
    pub fn remove(&mut self, number: u32) {
        let mut at = number as usize;
        for level in &mut self.levels {
            level[at / 64] &= !(1 << (at % 64));
            if level[at / 64] != 0 {
                return;
            }
            at /= 64;
        }
    }

    /// The smallest number.
    pub fn first(&self) -> Option<u32> {
        let mut at = 0;
        for level in self.levels.iter().rev() {
            let word = level[at];
            if word == 0 {
                return None;
            }
            at = at * 64 + word.trailing_zeros() as usize;
        }
        Some(at as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hybridsim_engine::Stream;
    use std::collections::BTreeSet;

    #[test]
    fn a_number_set_finds_its_smallest() {
        for bound in [1, 2, 63, 64, 65, 4096, 4097, 70_000] {
            let (mut set, mut reference) = (NumberSet::new(bound), BTreeSet::new());
            let mut stream = Stream::new(1, "numbers");
            for _ in 0..400 {
                let number = stream.below(bound as u64) as u32;
                if stream.chance(0.5) {
                    set.insert(number);
                    reference.insert(number);
                } else {
                    set.remove(number);
                    reference.remove(&number);
                }
                assert_eq!(set.first(), reference.first().copied(), "below {bound}");
            }
        }
    }

    #[test]
    fn lists_keep_their_order() {
        let mut lists = Lists::new(2, 5);
        (0..4).for_each(|item| lists.push(0, item));
        lists.remove(0, 1);
        lists.push(1, 1);
        lists.remove(0, 3);
        lists.push(0, 4);
        let mut drain = |list| {
            let mut items = Vec::new();
            while let Some(item) = lists.first(list) {
                lists.remove(list, item);
                items.push(item);
            }
            items
        };
        assert_eq!((drain(0), drain(1)), (vec![0, 2, 4], vec![1]));
    }
}
