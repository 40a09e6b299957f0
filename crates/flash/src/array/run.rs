//! Copies of several pages of a block at once, which update the block's metadata once.

use super::head::{Head, NEXT_ONE};
use super::{Array, ProgramOrder};
use crate::geometry::{BlockId, Lpn, Ppn};

/// Pages of a block that share a word of the valid bitmap.
pub(crate) const WORD_PAGES: u32 = u64::BITS;

/// Valid pages of a block that share a word of the valid bitmap, to be copied in order.
#[derive(Debug)]
pub(crate) struct PageRun {
    /// The word of the bitmap, and the pages as bits of it.
    word: usize,
    mask: u64,
    /// The block, its pages, and the logical pages in their spare areas.
    block: BlockId,
    count: u32,
    pages: [u32; WORD_PAGES as usize],
    owners: [u32; WORD_PAGES as usize],
}

impl PageRun {
    pub(crate) const fn new() -> Self {
        let none = [0; WORD_PAGES as usize];
        Self { word: 0, mask: 0, block: BlockId::NONE, count: 0, pages: none, owners: none }
    }

    pub(crate) const fn block(&self) -> BlockId {
        self.block
    }

    #[inline]
    pub(crate) fn pages(&self) -> &[u32] {
        &self.pages[..self.count as usize]
    }

    #[inline]
    pub(crate) fn owners(&self) -> &[u32] {
        &self.owners[..self.count as usize]
    }
}

impl Array {
    /// The word of the valid bitmap of `block` with offset `from`, without the bits before it, and
    /// the first page of the word.
    #[inline]
    pub(crate) fn valid_word(&self, block: BlockId, from: u32) -> (u64, Ppn) {
        let word = from / WORD_PAGES;
        let bits = self.blocks[self.map_of(block) + word as usize];
        (bits & u64::MAX << (from % WORD_PAGES), self.geometry.page(block, word * WORD_PAGES))
    }

    /// Fills `run` with the valid pages of `block` from offset `from` on that share a word of the
    /// bitmap with it, `most` at most. Returns the offset to continue at.
    #[inline]
    pub(crate) fn take_run(&self, block: BlockId, from: u32, most: u32, run: &mut PageRun) -> u32 {
        let (valid, first) = self.valid_word(block, from);
        let mut rest = valid;
        let slots = run.pages.iter_mut().zip(&mut run.owners).take(most as usize);
        let mut count = 0;
        for (page, owner) in slots {
            if rest == 0 {
                break;
            }
            *page = first.0 + rest.trailing_zeros();
            *owner = self.owner.get(*page as usize);
            rest &= rest - 1;
            count += 1;
        }
        (run.block, run.word, run.mask, run.count) =
            (block, self.map_of(block) + (from / WORD_PAGES) as usize, valid & !rest, count);
        let taken = WORD_PAGES - run.mask.leading_zeros();
        from - from % WORD_PAGES + if rest == 0 { WORD_PAGES } else { taken }
    }

    /// Moves the valid page `from`, a page of `block`, to the page at offset `first` of `to`, owner
    /// included, and returns the owner. Returns `None` without a change where
    /// [`Array::relocate_run`] would return false.
    #[inline(always)]
    pub(crate) fn relocate_page(
        &mut self,
        (block, from): (BlockId, Ppn),
        (to, first): (BlockId, u32),
    ) -> Option<Lpn> {
        let source = self.index_in(block, from);
        let target = self.head_of(to);
        let head = Head(self.blocks[target]);
        let allowed = self.order == ProgramOrder::Sequential
            && self.blocks[source.word] & source.bit != 0
            && block != to
            && head.takes_all_pages()
            && head.next() == first
            && first < self.geometry.pages_per_block();
        if !allowed {
            return None;
        }
        self.blocks[source.word] &= !source.bit;
        self.blocks[source.head] -= 1;
        self.blocks[target] += 1 + NEXT_ONE;
        self.blocks[target + 1 + (first / WORD_PAGES) as usize] |= 1 << (first % WORD_PAGES);
        self.free_blocks -= u32::from(first == 0);
        let owner = self.owner(from);
        self.owner.set(self.geometry.page(to, first).0 as usize, owner.0);
        self.programs += 1;
        Some(owner)
    }

    /// Moves the pages of `run` to the pages of `to` from offset `first` on, owners included.
    /// Returns false without a change when they have to be moved one by one ([`Array::relocate`]):
    /// a NAND rule is violated, or the chip does not program in order.
    #[inline]
    pub(crate) fn relocate_run(&mut self, run: &PageRun, (to, first): (BlockId, u32)) -> bool {
        let count = run.count;
        let allowed = self.order == ProgramOrder::Sequential
            && count != 0
            && self.blocks[run.word] & run.mask == run.mask
            && run.block != to
            && self.head(to).takes_all_pages()
            && self.next_page(to) == first
            && first + count <= self.geometry.pages_per_block();
        if !allowed {
            return false;
        }
        self.blocks[run.word] &= !run.mask;
        let head = self.head_of(run.block);
        self.blocks[head] -= u64::from(count);
        let head = self.head_of(to);
        self.blocks[head] += u64::from(count) * (1 + NEXT_ONE);
        let (at, shift) = (head + 1 + (first / WORD_PAGES) as usize, first % WORD_PAGES);
        let ones = u128::from(u64::MAX >> (WORD_PAGES - count)) << shift;
        self.blocks[at] |= ones as u64;
        if ones >> 64 != 0 {
            self.blocks[at + 1] |= (ones >> 64) as u64;
        }
        self.free_blocks -= u32::from(first == 0);
        self.owner.set_run(self.geometry.page(to, first).0 as usize, run.owners());
        self.programs += u64::from(count);
        true
    }
}
