//! The flash array: the state of every page and the erase count of every block.
//!
//! The array enforces the rules of NAND: a page is programmed only after its block was erased and
//! in the order the chip allows, read only when programmed, and a block is erased only without
//! valid pages. It records the first [`Violation`] and never repairs one. The rules are checked in
//! release builds too; each costs a bit test on a cache line that is needed anyway.

mod head;
mod run;
#[cfg(test)]
mod tests;

pub use head::ENDURANCE_MAX;
pub(crate) use run::{PageRun, WORD_PAGES};

use crate::geometry::{BlockId, Geometry, Lpn, Ppn};
use crate::packed::Packed;
use head::{Head, NEXT_ONE, SLC};
use hybridsim_engine::Stream;
use hybridsim_engine::sample::standard_exponential;
use hybridsim_engine::state::{self, Loader, Saver, StateError};
use std::collections::BTreeMap;

hybridsim_config::choices! {
    /// The order in which the pages of a block may be programmed.
    pub enum ProgramOrder {
        /// Consecutive (large-block SLC, MLC, TLC).
        Sequential = "sequential",
        /// Ascending; pages may be skipped.
        Ascending = "ascending",
        /// Any order (small-block SLC; the chained FTLs rely on it).
        Any = "any",
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageState {
    Free,
    /// Holds the current version of a logical page.
    Valid,
    /// Holds an obsolete version.
    Invalid,
}

/// A NAND rule that the FTL violated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Violation {
    /// A page was programmed that is not erased, or out of order.
    Program(Ppn),
    /// An erased page was read.
    ReadErased(Ppn),
    /// A page that is not valid was invalidated or moved.
    NotValid(Ppn),
    /// A block with valid pages was erased.
    EraseValid(BlockId),
    /// A block was used that is retired or does not exist.
    Unusable(BlockId),
    /// A page was programmed that its block does not have in SLC mode.
    BeyondSlc(Ppn),
    /// A block that holds data was put into SLC mode.
    ModeChange(BlockId),
}

impl std::fmt::Display for Violation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Program(page) => {
                write!(f, "page {} was programmed although not erased, or out of order", page.0)
            }
            Self::ReadErased(page) => write!(f, "page {} was read although erased", page.0),
            Self::NotValid(page) => {
                write!(f, "page {} was moved or invalidated although it holds no data", page.0)
            }
            Self::EraseValid(block) => {
                write!(f, "block {} was erased although it still holds data", block.0)
            }
            Self::Unusable(block) => {
                write!(f, "block {} was used although it is retired or does not exist", block.0)
            }
            Self::BeyondSlc(page) => {
                write!(f, "page {} was programmed, but its block in SLC mode is full", page.0)
            }
            Self::ModeChange(block) => {
                write!(f, "block {} was put into SLC mode although not erased", block.0)
            }
        }
    }
}

/// The place of a page's metadata in [`Array::blocks`].
#[derive(Clone, Copy)]
struct PageIndex {
    block: BlockId,
    offset: u32,
    head: usize,
    /// The word with its valid bit, and the bit.
    word: usize,
    bit: u64,
}

/// All pages and blocks of a device.
#[derive(Debug)]
pub struct Array {
    geometry: Geometry,
    order: ProgramOrder,
    endurance: u32,
    /// Endurance of each block; empty if it is `endurance` for all.
    limits: Vec<u32>,
    /// The first blocks of each plane that have an endurance of their own, and that endurance.
    static_cache: Option<(u32, u32)>,
    /// Pages of a block in SLC mode; 0 if no block can be.
    slc_pages: u32,
    /// For each block a [`Head`], `words` words of the valid bitmap, and, unless pages are
    /// programmed consecutively, `words` words of the programmed bitmap. They are adjacent so that
    /// a write misses the processor's caches once.
    blocks: Vec<u64>,
    words: usize,
    /// Words of `blocks` for each block.
    stride: usize,
    /// The logical page in the spare area of each page.
    owner: Packed,
    valid_pages: u64,
    programs: u64,
    free_blocks: u32,
    retired_blocks: u32,
    violation: Option<Violation>,
}

impl Array {
    /// An erased array whose blocks can be erased `endurance` times (at least 1, at most
    /// [`ENDURANCE_MAX`]).
    pub fn new(geometry: Geometry, order: ProgramOrder, endurance: u32) -> Self {
        let words = geometry.pages_per_block().div_ceil(64) as usize;
        let maps = if order == ProgramOrder::Sequential { 1 } else { 2 };
        let stride = 1 + words * maps;
        Self {
            geometry,
            order,
            endurance: endurance.clamp(1, ENDURANCE_MAX),
            limits: Vec::new(),
            static_cache: None,
            slc_pages: 0,
            blocks: vec![0; geometry.blocks() as usize * stride],
            words,
            stride,
            owner: Packed::new(geometry.pages() as usize, 0),
            valid_pages: 0,
            programs: 0,
            free_blocks: geometry.blocks(),
            retired_blocks: 0,
            violation: None,
        }
    }

    /// Allocates the memory for logical pages below `pages` in the spare areas at once.
    #[must_use]
    pub fn with_logical_pages(mut self, pages: u32) -> Self {
        self.owner = Packed::new(self.geometry.pages() as usize, pages.saturating_sub(1));
        self
    }

    /// Prepares for most pages to be programmed soon ([`Packed::expect_filling`]).
    pub fn expect_filling(&mut self) {
        self.owner.expect_filling();
    }

    /// Allows SLC mode, in which a block has its first `pages` pages.
    #[must_use]
    pub const fn with_slc_mode(mut self, pages: u32) -> Self {
        self.slc_pages = pages;
        self
    }

    /// Lets the first `blocks` of each plane, those of a static SLC cache, be erased `endurance`
    /// times. Comes before grown bad blocks.
    #[must_use]
    pub fn with_static_cache(mut self, blocks: u32, endurance: u32) -> Self {
        self.static_cache = Some((blocks, endurance.clamp(1, ENDURANCE_MAX)));
        let blocks = (0..self.geometry.blocks()).map(BlockId);
        self.limits = blocks.map(|block| self.nominal_endurance(block)).collect();
        self
    }

    /// Adds grown bad blocks: each erase fails with probability `chance`, which retires the block.
    /// (The number of erases before that is geometrically distributed and drawn here, so that an
    /// erase does not get slower.)
    #[must_use]
    pub fn with_grown_bad_blocks(mut self, chance: f64, stream: &mut Stream) -> Self {
        if chance > 0.0 {
            let rate = -libm::log1p(-chance.min(1.0 - f64::EPSILON));
            let mut limit = |block| {
                let erases = standard_exponential(stream) / rate + 1.0;
                (erases.min(f64::from(self.endurance_of(block))) as u32).max(1)
            };
            self.limits = (0..self.geometry.blocks()).map(BlockId).map(&mut limit).collect();
        }
        self
    }

    /// Adds the blocks to `wear`: numbers of blocks by erase count.
    pub fn count_wear(&self, wear: &mut BTreeMap<u32, u64>) {
        for block in 0..self.geometry.blocks() {
            *wear.entry(self.erases(BlockId(block))).or_insert(0) += 1;
        }
    }

    /// Brings every usable block to `fraction` of its nominal endurance, or leaves it if it is
    /// beyond, or would fail earlier. Lowers the erase limit instead of raising the erase count,
    /// because FTLs and policies keep copies of the count.
    pub(crate) fn wear_out(&mut self, fraction: f64) {
        let limit = |block| {
            let nominal = f64::from(self.nominal_endurance(block));
            let left = libm::round((1.0 - fraction) * nominal) as u32;
            let erases = self.erases(block).saturating_add(left.max(1));
            self.endurance_of(block).min(erases)
        };
        self.limits = (0..self.geometry.blocks()).map(BlockId).map(limit).collect();
    }

    #[inline]
    pub const fn order(&self) -> ProgramOrder {
        self.order
    }

    #[inline]
    pub const fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    pub const fn endurance(&self) -> u32 {
        self.endurance
    }

    /// Endurance of the blocks of a static SLC cache, if they have one of their own.
    pub(crate) fn static_endurance(&self) -> Option<u32> {
        self.static_cache.map(|(_, endurance)| endurance)
    }

    /// Erases that a block of the kind of `block` survives if it does not fail earlier.
    fn nominal_endurance(&self, block: BlockId) -> u32 {
        match self.static_cache {
            Some((blocks, endurance)) if block.0 % self.geometry.blocks_per_plane() < blocks => {
                endurance
            }
            _ => self.endurance,
        }
    }

    /// Erases that `block` survives. A real controller does not know this number, and keeps a block
    /// in reserve instead.
    #[inline]
    pub fn endurance_of(&self, block: BlockId) -> u32 {
        self.limits.get(block.0 as usize).copied().unwrap_or(self.endurance)
    }

    /// Whether blocks can be in SLC mode.
    #[inline]
    pub const fn has_slc_mode(&self) -> bool {
        self.slc_pages != 0
    }

    /// Whether `block` is in SLC mode: from [`Array::begin_slc`] to its erase.
    #[inline]
    pub fn is_slc(&self, block: BlockId) -> bool {
        self.head(block).is_slc()
    }

    /// Puts the erased `block` into SLC mode.
    pub(crate) fn begin_slc(&mut self, block: BlockId) {
        if self.next_page(block) != 0 || !self.has_slc_mode() {
            return self.violate(Violation::ModeChange(block));
        }
        let head = self.head_of(block);
        self.blocks[head] |= SLC;
    }

    /// Valid pages in `block`.
    #[inline]
    pub fn valid(&self, block: BlockId) -> u32 {
        self.head(block).valid()
    }

    /// The next page of `block` for sequential programming; `pages_per_block` when full.
    #[inline]
    pub fn next_page(&self, block: BlockId) -> u32 {
        self.head(block).next()
    }

    /// Erase count of `block`.
    #[inline]
    pub fn erases(&self, block: BlockId) -> u32 {
        self.head(block).erases()
    }

    pub fn is_retired(&self, block: BlockId) -> bool {
        self.head(block).is_retired()
    }

    pub const fn retired_blocks(&self) -> u32 {
        self.retired_blocks
    }

    /// Usable erased blocks.
    #[inline]
    pub const fn free_blocks(&self) -> u32 {
        self.free_blocks
    }

    /// Valid pages of the whole array.
    pub const fn valid_pages(&self) -> u64 {
        self.valid_pages
    }

    /// Pages programmed since the array was new, copies included.
    #[inline]
    pub const fn programs(&self) -> u64 {
        self.programs
    }

    /// The logical page in the spare area of `page`.
    #[inline]
    pub fn owner(&self, page: Ppn) -> Lpn {
        Lpn(self.owner.get(page.0 as usize))
    }

    /// The valid page of `owner` among `count` pages from `first` on, or [`Ppn::NONE`].
    #[inline]
    pub fn find(&self, first: Ppn, count: u32, owner: Lpn) -> Ppn {
        let end = first.0.saturating_add(count).min(self.geometry.pages());
        let matches = |page: &Ppn| self.is_valid(&self.index(*page)) && self.owner(*page) == owner;
        (first.0..end).map(Ppn).find(matches).unwrap_or(Ppn::NONE)
    }

    /// Prefetches what invalidating `pages` will need; ignores pages that do not exist.
    #[inline]
    pub fn prefetch(&self, pages: impl Iterator<Item = Ppn>) {
        let mut seen = 0;
        for page in pages.filter(|page| page.0 < self.geometry.pages()) {
            let index = self.index(page);
            seen ^= self.blocks[index.head] ^ self.blocks[index.word];
        }
        std::hint::black_box(seen);
    }

    /// Prefetches the spare areas of up to `count` pages from `first` on.
    #[inline]
    pub fn prefetch_owners(&self, first: Ppn, count: u32) {
        std::hint::black_box(self.owner.prefetch_run(first.0 as usize, count as usize));
    }

    pub fn state(&self, page: Ppn) -> PageState {
        let index = self.index(page);
        if self.is_valid(&index) {
            PageState::Valid
        } else if self.is_programmed(&index) {
            PageState::Invalid
        } else {
            PageState::Free
        }
    }

    #[inline]
    fn is_valid(&self, index: &PageIndex) -> bool {
        self.blocks[index.word] & index.bit != 0
    }

    #[inline]
    fn is_programmed(&self, index: &PageIndex) -> bool {
        match self.order {
            ProgramOrder::Sequential => index.offset < self.next_page(index.block),
            ProgramOrder::Ascending | ProgramOrder::Any => {
                self.blocks[index.word + self.words] & index.bit != 0
            }
        }
    }

    /// The offset of the first valid page of `block` at or behind `from`.
    #[inline]
    pub fn next_valid(&self, block: BlockId, from: u32) -> Option<u32> {
        let base = self.map_of(block);
        let mut word = from as usize / 64;
        if word >= self.words {
            return None;
        }
        let mut bits = self.blocks[base + word] & (u64::MAX << (from % 64));
        while bits == 0 {
            word += 1;
            if word == self.words {
                return None;
            }
            bits = self.blocks[base + word];
        }
        Some(word as u32 * 64 + bits.trailing_zeros())
    }

    /// The offset of the first erased page of `block` at or behind `from`.
    #[inline]
    pub fn next_erased(&self, block: BlockId, from: u32) -> Option<u32> {
        let pages = self.geometry.pages_per_block();
        if from >= pages {
            return None;
        }
        if self.order == ProgramOrder::Sequential {
            return Some(from.max(self.next_page(block))).filter(|offset| *offset < pages);
        }
        let base = self.map_of(block) + self.words;
        let mut word = from as usize / 64;
        let mut bits = !self.blocks[base + word] & (u64::MAX << (from % 64));
        while bits == 0 {
            word += 1;
            if word == self.words {
                return None;
            }
            bits = !self.blocks[base + word];
        }
        Some(word as u32 * 64 + bits.trailing_zeros()).filter(|offset| *offset < pages)
    }

    /// The first violation, if any.
    #[inline]
    pub const fn violation(&self) -> Option<Violation> {
        self.violation
    }

    /// Bytes of memory for each physical page.
    pub fn bytes_per_page(&self) -> f64 {
        let bytes = self.blocks.len() * size_of::<u64>() + self.owner.bytes();
        bytes as f64 / f64::from(self.geometry.pages())
    }

    /// Checks the counters against the bitmaps.
    ///
    /// # Errors
    /// The first contradiction.
    pub fn audit(&self) -> Result<(), String> {
        let (mut valid_pages, mut free, mut retired) = (0u64, 0, 0);
        for (number, metadata) in self.blocks.chunks(self.stride).enumerate() {
            let block = BlockId(number as u32);
            let head = self.head(block);
            let (valid, programmed) = metadata[1..].split_at(self.words);
            let count: u32 = valid.iter().map(|word| word.count_ones()).sum();
            let beyond = self.next_valid(block, head.next()).is_some();
            let erased = valid.iter().zip(programmed).any(|(v, p)| v & !p != 0);
            let beyond = beyond || head.is_slc() && head.next() > self.slc_pages;
            if count != head.valid() || beyond || erased {
                let (counted, next) = (head.valid(), head.next());
                return Err(format!(
                    "block {number}: {count} valid pages, counted {counted} below {next}"
                ));
            }
            valid_pages += u64::from(count);
            retired += u32::from(head.is_retired());
            free += u32::from(head.next() == 0 && !head.is_retired());
        }
        let counted = (self.valid_pages, self.free_blocks, self.retired_blocks);
        if counted != (valid_pages, free, retired) {
            return Err(format!(
                "{counted:?} counted, but found {:?}",
                (valid_pages, free, retired)
            ));
        }
        Ok(())
    }

    /// Saves the state of every page and block.
    pub fn save(&self, to: &mut Saver) {
        to.put(&self.blocks);
        self.owner.save(to);
        to.put(&self.limits);
        to.put(&(self.valid_pages, self.programs, self.free_blocks, self.retired_blocks));
    }

    /// Restores what [`Array::save`] saved.
    ///
    /// # Errors
    /// When it is the state of another array, or inconsistent.
    pub fn restore(&mut self, from: &mut Loader<'_>) -> Result<(), StateError> {
        self.blocks = from.take()?;
        self.owner.restore(from)?;
        self.limits = from.take()?;
        let blocks = self.geometry.blocks() as usize;
        // Injected wear adds the list.
        if !self.limits.is_empty() {
            state::same_length("the list of limits", self.limits.len(), blocks)?;
        }
        state::same_length("the list of blocks", self.blocks.len(), blocks * self.stride)?;
        (self.valid_pages, self.programs, self.free_blocks, self.retired_blocks) = from.take()?;
        self.violation = None;
        self.audit().map_err(StateError)
    }

    #[inline]
    fn index(&self, page: Ppn) -> PageIndex {
        self.index_in(self.geometry.block_of(page), page)
    }

    /// As [`Array::index`], of a page of `block`.
    #[inline(always)]
    const fn index_in(&self, block: BlockId, page: Ppn) -> PageIndex {
        let offset = page.0 - block.0 * self.geometry.pages_per_block();
        let head = self.head_of(block);
        let word = head + 1 + offset as usize / 64;
        PageIndex { block, offset, head, word, bit: 1 << (offset % 64) }
    }

    #[inline]
    fn head(&self, block: BlockId) -> Head {
        Head(self.blocks[self.head_of(block)])
    }

    #[inline]
    const fn head_of(&self, block: BlockId) -> usize {
        block.0 as usize * self.stride
    }

    /// The index of the first word of the valid bitmap of `block`.
    #[inline]
    const fn map_of(&self, block: BlockId) -> usize {
        self.head_of(block) + 1
    }

    /// Whether the block of `page`, which is retired or in SLC mode, has it.
    #[cold]
    fn takes_page(&mut self, block: Head, page: Ppn, offset: u32) -> bool {
        if block.is_retired() {
            self.violate(Violation::Unusable(self.geometry.block_of(page)));
        } else if offset >= self.slc_pages {
            self.violate(Violation::BeyondSlc(page));
        } else {
            return true;
        }
        false
    }

    #[cold]
    fn violate(&mut self, violation: Violation) {
        self.violation.get_or_insert(violation);
    }

    /// Programs `page` with data of `owner`; returns false on a violation.
    #[inline]
    pub fn program(&mut self, page: Ppn, owner: Lpn) -> bool {
        self.program_in(self.geometry.block_of(page), page, owner)
    }

    /// As [`Array::program`], of a page of `block`, which the caller has found.
    #[inline(always)]
    pub(crate) fn program_in(&mut self, block: BlockId, page: Ppn, owner: Lpn) -> bool {
        let programmed = self.program_moved(block, page, owner);
        self.valid_pages += u64::from(programmed);
        programmed
    }

    /// As [`Array::program`], without counting a valid page.
    #[inline(always)]
    fn program_moved(&mut self, block: BlockId, page: Ppn, owner: Lpn) -> bool {
        if page.0 >= self.geometry.pages() {
            self.violate(Violation::Program(page));
            return false;
        }
        let PageIndex { offset, head, word, bit, .. } = self.index_in(block, page);
        let sequential = self.order == ProgramOrder::Sequential;
        let (map, words) = (word - head, self.words);
        let before = Head(self.blocks[head]);
        let next = before.next();
        if sequential && offset == next && before.takes_all_pages() {
            // All that most chips allow.
            self.blocks[head] = before.0 + 1 + NEXT_ONE;
            self.blocks[word] |= bit;
            self.programmed(next, page, owner);
            return true;
        }
        let in_order = match self.order {
            ProgramOrder::Sequential => offset == next,
            ProgramOrder::Ascending => offset >= next,
            ProgramOrder::Any => true,
        };
        if !before.takes_all_pages() && !self.takes_page(before, page, offset) {
            return false;
        }
        let metadata = &mut self.blocks[head..head + self.stride];
        if !in_order || (!sequential && metadata[map + words] & bit != 0) {
            self.violate(Violation::Program(page));
            return false;
        }
        metadata[0] += 1 + u64::from((offset + 1).saturating_sub(next)) * NEXT_ONE;
        metadata[map] |= bit;
        if !sequential {
            metadata[map + words] |= bit;
        }
        self.programmed(next, page, owner);
        true
    }

    /// Notes the owner of `page`, programmed in a block whose next page was `next`.
    #[inline(always)]
    fn programmed(&mut self, next: u32, page: Ppn, owner: Lpn) {
        self.free_blocks -= u32::from(next == 0);
        self.owner.set(page.0 as usize, owner.0);
        self.programs += 1;
    }

    /// Invalidates `page` and returns how many valid pages its block has left.
    #[inline]
    pub fn invalidate(&mut self, page: Ppn) -> u32 {
        self.invalidate_in(self.geometry.block_of(page), page)
    }

    /// As [`Array::invalidate`], of a page of `block`, which the caller has found.
    #[inline(always)]
    pub(crate) fn invalidate_in(&mut self, block: BlockId, page: Ppn) -> u32 {
        if page.0 >= self.geometry.pages() {
            self.violate(Violation::NotValid(page));
            return 0;
        }
        let PageIndex { head, word, bit, .. } = self.index_in(block, page);
        let metadata = &mut self.blocks[head..=word];
        let map = &mut metadata[word - head];
        if *map & bit == 0 {
            self.violate(Violation::NotValid(page));
            return self.valid(block);
        }
        *map &= !bit;
        metadata[0] -= 1;
        self.valid_pages -= 1;
        Head(metadata[0]).valid()
    }

    /// Invalidates all valid pages of `block`.
    pub(crate) fn invalidate_block(&mut self, block: BlockId) {
        let valid = u64::from(self.valid(block));
        let (head, map) = (self.head_of(block), self.map_of(block));
        self.blocks[map..map + self.words].fill(0);
        self.blocks[head] -= valid;
        self.valid_pages -= valid;
    }

    /// Returns whether `page` is programmed; reading it is a violation otherwise.
    #[inline]
    pub(crate) fn check_read(&mut self, page: Ppn) -> bool {
        let readable = page.0 < self.geometry.pages() && self.is_programmed(&self.index(page));
        if !readable {
            self.violate(Violation::ReadErased(page));
        }
        readable
    }

    /// Moves the valid page `from` to `to`, owner included; returns false on a violation.
    #[inline]
    pub fn relocate(&mut self, from: Ppn, to: Ppn) -> bool {
        if !self.check_read(from) {
            return false;
        }
        let PageIndex { head, word, bit, .. } = self.index(from);
        if self.blocks[word] & bit == 0 {
            self.violate(Violation::NotValid(from));
            return false;
        }
        self.blocks[word] &= !bit;
        self.blocks[head] -= 1;
        let moved = self.program_moved(self.geometry.block_of(to), to, self.owner(from));
        self.valid_pages -= u64::from(!moved);
        moved
    }

    /// Erases `block`; returns false when that wears it out, or on a violation.
    pub fn erase(&mut self, id: BlockId) -> bool {
        let limit = self.endurance_of(id);
        if id.0 >= self.geometry.blocks() || self.is_retired(id) {
            self.violate(Violation::Unusable(id));
            return false;
        }
        if self.valid(id) != 0 {
            self.violate(Violation::EraseValid(id));
            return false;
        }
        let was_free = self.next_page(id) == 0;
        let erases = self.erases(id) + 1;
        let retired = erases >= limit;
        let head = self.head_of(id);
        let metadata = &mut self.blocks[head..head + self.stride];
        metadata.fill(0);
        metadata[0] = Head::erased(erases, retired).0;
        match (was_free, retired) {
            (false, false) => self.free_blocks += 1,
            (true, true) => self.free_blocks -= 1,
            _ => {}
        }
        self.retired_blocks += u32::from(retired);
        !retired
    }
}
