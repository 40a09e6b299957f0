//! The state of the cells: which pages hold what, how often blocks were erased.
//!
//! The array keeps the rules of NAND whoever drives it: a page is programmed only after its block
//! was erased and in the order the chip allows, is read only when programmed, and is erased only
//! when nothing in it is needed. A broken rule is remembered as a [`Violation`], never undone
//! silently. The rules are always on; each costs a bit test on a cache line that is needed anyway.

mod head;
mod run;

pub use head::ENDURANCE_MAX;
pub(crate) use run::{Run, WORD_PAGES};

use crate::geometry::{BlockId, Geometry, Lpn, Ppn};
use crate::packed::Packed;
use head::{Head, NEXT_ONE};
use hybridsim_engine::Stream;
use hybridsim_engine::sample::standard_exponential;
use hybridsim_engine::state::{self, Loader, Saver, StateError};

/// In which order the pages of a block may be programmed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProgramOrder {
    /// Strictly one after the other (large-block SLC, MLC, TLC).
    Sequential,
    /// Ascending, pages may be left out.
    Ascending,
    /// Any order (small-block SLC; the chain translation layers rely on it).
    Any,
}

/// What a page holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageState {
    /// Erased.
    Free,
    /// Data somebody needs.
    Valid,
    /// Data nobody needs any more.
    Invalid,
}

/// A rule of NAND, or of the bookkeeping, that a translation layer broke.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Violation {
    /// Programmed a page that is not erased, or out of order.
    Program(Ppn),
    /// Read a page that was never programmed since its block was erased.
    ReadErased(Ppn),
    /// Invalidated or moved a page that holds nothing valid.
    NotValid(Ppn),
    /// Erased a block that still holds valid pages.
    EraseValid(BlockId),
    /// Used a block that is worn out, or does not exist.
    Unusable(BlockId),
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
        }
    }
}

/// Where a page is in the books.
#[derive(Clone, Copy)]
struct Place {
    block: BlockId,
    offset: u32,
    /// The head of its block.
    head: usize,
    /// The word with its valid bit.
    word: usize,
    bit: u64,
}
/// All pages and blocks of a device.
#[derive(Debug)]
pub struct Array {
    geometry: Geometry,
    order: ProgramOrder,
    endurance: u32,
    /// Erases each block survives; empty where all survive `endurance`.
    limits: Vec<u32>,
    /// Per block a [`Head`], `words` words of valid bits, then, unless pages are programmed one
    /// after the other, `words` words of programmed bits. All that a write needs to know of
    /// a block is together, so that it misses the processor's caches once.
    blocks: Vec<u64>,
    words: usize,
    /// Words of `blocks` to the block.
    stride: usize,
    /// What the spare area of each page says: the logical page it was programmed for.
    owner: Packed,
    valid_pages: u64,
    programs: u64,
    free_blocks: u32,
    retired_blocks: u32,
    violation: Option<Violation>,
}

impl Array {
    /// An erased array whose blocks can be erased `endurance` times, at least once and at most
    /// [`ENDURANCE_MAX`] times.
    pub fn new(geometry: Geometry, order: ProgramOrder, endurance: u32) -> Self {
        let words = geometry.pages_per_block().div_ceil(64) as usize;
        let maps = if order == ProgramOrder::Sequential { 1 } else { 2 };
        let stride = 1 + words * maps;
        Self {
            geometry,
            order,
            endurance: endurance.clamp(1, ENDURANCE_MAX),
            limits: Vec::new(),
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

    /// Takes the memory at once that logical pages below `pages` need in the spare areas; others
    /// can be named all the same.
    #[must_use]
    pub fn with_logical_pages(mut self, pages: u32) -> Self {
        self.owner.make_room(pages.saturating_sub(1));
        self
    }

    /// Lets blocks go bad before their time: each erase fails with probability `chance`, and the
    /// block is retired then. (The erases a block survives are geometrically distributed; they
    /// are drawn here, so that an erase stays as cheap as before.)
    #[must_use]
    pub fn with_grown_bad_blocks(mut self, chance: f64, stream: &mut Stream) -> Self {
        if chance > 0.0 {
            let rate = -libm::log1p(-chance.min(1.0 - f64::EPSILON));
            let mut limit = || {
                let erases = standard_exponential(stream) / rate + 1.0;
                (erases.min(f64::from(self.endurance)) as u32).max(1)
            };
            self.limits = (0..self.geometry.blocks()).map(|_| limit()).collect();
        }
        self
    }

    /// The order pages of a block must be programmed in.
    #[inline]
    pub const fn order(&self) -> ProgramOrder {
        self.order
    }

    /// The shape of the array.
    #[inline]
    pub const fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    /// How often a block can be erased.
    pub const fn endurance(&self) -> u32 {
        self.endurance
    }

    /// How often `block` can be erased. No real controller knows, but it keeps a block in reserve
    /// for the moment it finds out.
    #[inline]
    pub fn endurance_of(&self, block: BlockId) -> u32 {
        self.limits.get(block.0 as usize).copied().unwrap_or(self.endurance)
    }

    /// Valid pages in `block`.
    #[inline]
    pub fn valid(&self, block: BlockId) -> u32 {
        self.head(block).valid()
    }

    /// The first page of `block` that sequential programming may use; `pages_per_block` when full.
    #[inline]
    pub fn next_page(&self, block: BlockId) -> u32 {
        self.head(block).next()
    }

    /// How often `block` has been erased.
    #[inline]
    pub fn erases(&self, block: BlockId) -> u32 {
        self.head(block).erases()
    }

    /// Whether `block` is worn out.
    pub fn is_retired(&self, block: BlockId) -> bool {
        self.head(block).is_retired()
    }

    /// Blocks worn out.
    pub const fn retired_blocks(&self) -> u32 {
        self.retired_blocks
    }

    /// Erased blocks that can be used.
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

    /// The logical page the spare area of `page` names.
    #[inline]
    pub fn owner(&self, page: Ppn) -> Lpn {
        Lpn(self.owner.get(page.0 as usize))
    }

    /// The valid page of `owner` among `count` pages from `first` on, or [`Ppn::NONE`].
    #[inline]
    pub fn find(&self, first: Ppn, count: u32, owner: Lpn) -> Ppn {
        let end = first.0.saturating_add(count).min(self.geometry.pages());
        let is_it = |page: &Ppn| self.is_valid(&self.place(*page)) && self.owner(*page) == owner;
        (first.0..end).map(Ppn).find(is_it).unwrap_or(Ppn::NONE)
    }

    /// Looks at what invalidating each of `pages` will need, so that misses of the caches overlap;
    /// pages that do not exist are left out.
    #[inline]
    pub fn touch(&self, pages: &[Ppn]) {
        let mut seen = 0;
        for page in pages.iter().filter(|page| page.0 < self.geometry.pages()) {
            let place = self.place(*page);
            seen ^= self.blocks[place.head] ^ self.blocks[place.word];
        }
        std::hint::black_box(seen);
    }

    /// Looks at the spare areas of the pages from `first` on, for the same reason; no more than
    /// `count`, and those that there are.
    #[inline]
    pub fn touch_owners(&self, first: Ppn, count: u32) {
        std::hint::black_box(self.owner.touch_run(first.0 as usize, count as usize));
    }

    /// What `page` holds.
    pub fn state(&self, page: Ppn) -> PageState {
        let place = self.place(page);
        if self.is_valid(&place) {
            PageState::Valid
        } else if self.is_programmed(&place) {
            PageState::Invalid
        } else {
            PageState::Free
        }
    }

    #[inline]
    fn is_valid(&self, place: &Place) -> bool {
        self.blocks[place.word] & place.bit != 0
    }

    /// Whether the page at `place` is not erased.
    #[inline]
    fn is_programmed(&self, place: &Place) -> bool {
        match self.order {
            ProgramOrder::Sequential => place.offset < self.next_page(place.block),
            ProgramOrder::Ascending | ProgramOrder::Any => {
                self.blocks[place.word + self.words] & place.bit != 0
            }
        }
    }

    /// The first valid page of `block` at offset `from` or behind it.
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

    /// The first erased page of `block` at offset `from` or behind it, whatever the order.
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

    /// The first broken rule, if any.
    #[inline]
    pub const fn violation(&self) -> Option<Violation> {
        self.violation
    }

    /// Bytes of memory held per physical page.
    pub fn bytes_per_page(&self) -> f64 {
        let bytes = self.blocks.len() * size_of::<u64>() + self.owner.bytes();
        bytes as f64 / f64::from(self.geometry.pages())
    }

    /// Counts everything afresh and compares.
    ///
    /// # Errors
    /// The first number that does not agree.
    pub fn audit(&self) -> Result<(), String> {
        let (mut valid_pages, mut free, mut retired) = (0u64, 0, 0);
        for (number, books) in self.blocks.chunks(self.stride).enumerate() {
            let block = BlockId(number as u32);
            let head = self.head(block);
            let (valid, programmed) = books[1..].split_at(self.words);
            let count: u32 = valid.iter().map(|word| word.count_ones()).sum();
            let beyond = self.next_valid(block, head.next()).is_some();
            let erased = valid.iter().zip(programmed).any(|(v, p)| v & !p != 0);
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
            return Err(format!("{counted:?} counted, {:?} found", (valid_pages, free, retired)));
        }
        Ok(())
    }

    /// Puts down what every page and block holds.
    pub(crate) fn save(&self, to: &mut Saver) {
        to.put(&self.blocks);
        self.owner.save(to);
        to.put(&self.limits);
        to.put(&(self.valid_pages, self.programs, self.free_blocks, self.retired_blocks));
    }

    /// Takes back what [`Array::save`] put down.
    ///
    /// # Errors
    /// When it is of another array, or its books do not add up.
    pub(crate) fn restore(&mut self, from: &mut Loader<'_>) -> Result<(), StateError> {
        let limits = self.limits.len();
        self.blocks = from.take()?;
        self.owner.restore(from)?;
        self.limits = from.take()?;
        let blocks = self.geometry.blocks() as usize;
        state::same_length("the list of limits", self.limits.len(), limits)?;
        state::same_length("the list of blocks", self.blocks.len(), blocks * self.stride)?;
        (self.valid_pages, self.programs, self.free_blocks, self.retired_blocks) = from.take()?;
        self.violation = None;
        self.audit().map_err(StateError)
    }

    #[inline]
    fn place(&self, page: Ppn) -> Place {
        let block = self.geometry.block_of(page);
        let offset = page.0 - block.0 * self.geometry.pages_per_block();
        let head = self.head_of(block);
        let word = head + 1 + offset as usize / 64;
        Place { block, offset, head, word, bit: 1 << (offset % 64) }
    }

    #[inline]
    fn head(&self, block: BlockId) -> Head {
        Head(self.blocks[self.head_of(block)])
    }

    /// Where the books of `block` begin,
    #[inline]
    const fn head_of(&self, block: BlockId) -> usize {
        block.0 as usize * self.stride
    }

    /// and its valid bits.
    #[inline]
    const fn map_of(&self, block: BlockId) -> usize {
        self.head_of(block) + 1
    }

    #[cold]
    fn violate(&mut self, violation: Violation) {
        self.violation.get_or_insert(violation);
    }

    /// Programs `page` with data of `owner`; false when the rules forbid it.
    #[inline]
    pub(crate) fn program(&mut self, page: Ppn, owner: Lpn) -> bool {
        let programmed = self.program_moved(page, owner);
        self.valid_pages += u64::from(programmed);
        programmed
    }

    /// As [`Array::program`], but the number of valid pages stays the same.
    #[inline]
    fn program_moved(&mut self, page: Ppn, owner: Lpn) -> bool {
        if page.0 >= self.geometry.pages() {
            self.violate(Violation::Program(page));
            return false;
        }
        let Place { block, offset, head, word, bit } = self.place(page);
        let sequential = self.order == ProgramOrder::Sequential;
        let (map, words) = (word - head, self.words);
        let books = &mut self.blocks[head..head + self.stride];
        let before = Head(books[0]);
        let next = before.next();
        let in_order = match self.order {
            ProgramOrder::Sequential => offset == next,
            ProgramOrder::Ascending => offset >= next,
            ProgramOrder::Any => true,
        };
        if before.is_retired() {
            self.violate(Violation::Unusable(block));
            return false;
        }
        if !in_order || (!sequential && books[map + words] & bit != 0) {
            self.violate(Violation::Program(page));
            return false;
        }
        books[0] += 1 + u64::from((offset + 1).saturating_sub(next)) * NEXT_ONE;
        books[map] |= bit;
        if !sequential {
            books[map + words] |= bit;
        }
        self.free_blocks -= u32::from(next == 0);
        self.owner.set(page.0 as usize, owner.0);
        self.programs += 1;
        true
    }

    /// Marks `page` as no longer needed and says how many valid pages its block has left.
    #[inline]
    pub(crate) fn invalidate(&mut self, page: Ppn) -> u32 {
        if page.0 >= self.geometry.pages() {
            self.violate(Violation::NotValid(page));
            return 0;
        }
        let Place { block, head, word, bit, .. } = self.place(page);
        let books = &mut self.blocks[head..=word];
        let map = &mut books[word - head];
        if *map & bit == 0 {
            self.violate(Violation::NotValid(page));
            return self.valid(block);
        }
        *map &= !bit;
        books[0] -= 1;
        self.valid_pages -= 1;
        Head(books[0]).valid()
    }

    /// Whether `page` can be read.
    #[inline]
    pub(crate) fn check_read(&mut self, page: Ppn) -> bool {
        let sound = page.0 < self.geometry.pages() && self.is_programmed(&self.place(page));
        if !sound {
            self.violate(Violation::ReadErased(page));
        }
        sound
    }

    /// Moves the data of `from` to `to`, owner included.
    #[inline]
    pub(crate) fn relocate(&mut self, from: Ppn, to: Ppn) -> bool {
        if !self.check_read(from) {
            return false;
        }
        let Place { head, word, bit, .. } = self.place(from);
        if self.blocks[word] & bit == 0 {
            self.violate(Violation::NotValid(from));
            return false;
        }
        self.blocks[word] &= !bit;
        self.blocks[head] -= 1;
        let moved = self.program_moved(to, self.owner(from));
        self.valid_pages -= u64::from(!moved);
        moved
    }

    /// Erases `block`; false when it is worn out now, or the rules forbid it.
    pub(crate) fn erase(&mut self, id: BlockId) -> bool {
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
        let books = &mut self.blocks[head..head + self.stride];
        books.fill(0);
        books[0] = Head::erased(erases, retired).0;
        match (was_free, retired) {
            (false, false) => self.free_blocks += 1,
            (true, true) => self.free_blocks -= 1,
            _ => {}
        }
        self.retired_blocks += u32::from(retired);
        !retired
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::geometry::Shape;

    fn array(order: ProgramOrder, endurance: u32) -> Array {
        let shape = Shape {
            channels: 1,
            dies_per_channel: 1,
            planes_per_die: 1,
            blocks_per_plane: 4,
            pages_per_block: 70,
            page_bytes: 512,
            spare_bytes: 0,
        };
        Array::new(Geometry::new(&shape).expect("a sound shape"), order, endurance)
    }

    #[test]
    fn pages_go_from_free_to_valid_to_invalid_to_free() {
        let mut array = array(ProgramOrder::Sequential, 10);
        assert_eq!(array.state(Ppn(0)), PageState::Free);
        assert!(array.program(Ppn(0), Lpn(9)));
        assert_eq!((array.state(Ppn(0)), array.owner(Ppn(0))), (PageState::Valid, Lpn(9)));
        assert_eq!((array.free_blocks(), array.valid_pages()), (3, 1));
        assert!(array.relocate(Ppn(0), Ppn(70)));
        assert_eq!((array.state(Ppn(0)), array.owner(Ppn(70))), (PageState::Invalid, Lpn(9)));
        assert!(array.erase(BlockId(0)));
        assert_eq!((array.state(Ppn(0)), array.erases(BlockId(0))), (PageState::Free, 1));
        assert_eq!(
            (array.next_valid(BlockId(1), 0), array.next_valid(BlockId(1), 1)),
            (Some(0), None)
        );
        array.audit().expect("sound books");
        assert_eq!(array.violation(), None);
    }

    #[test]
    fn next_valid_crosses_words() {
        let mut array = array(ProgramOrder::Any, 10);
        for page in [3, 63, 64, 69] {
            assert!(array.program(Ppn(page), Lpn(0)));
        }
        let found: Vec<_> =
            [0, 4, 64, 65, 70, 500].map(|from| array.next_valid(BlockId(0), from)).into();
        assert_eq!(found, [Some(3), Some(63), Some(64), Some(69), None, None]);
        let erased: Vec<_> =
            [0, 3, 63, 69, 70, 500].map(|from| array.next_erased(BlockId(0), from)).into();
        assert_eq!(erased, [Some(0), Some(4), Some(65), None, None, None]);
    }

    #[test]
    fn every_rule_is_kept() {
        type Act = fn(&mut Array);
        let check = |order, act: Act, expected: Violation| {
            let mut array = array(order, 2);
            assert!(array.program(Ppn(0), Lpn(0)));
            act(&mut array);
            assert_eq!(array.violation(), Some(expected));
            array.audit().expect("sound books even then");
        };
        use ProgramOrder::{Any, Ascending, Sequential};
        check(Any, |a| _ = a.program(Ppn(0), Lpn(1)), Violation::Program(Ppn(0)));
        check(Sequential, |a| _ = a.program(Ppn(2), Lpn(1)), Violation::Program(Ppn(2)));
        check(
            Ascending,
            |a| {
                assert!(a.program(Ppn(5), Lpn(1)));
                assert!(!a.program(Ppn(4), Lpn(1)));
            },
            Violation::Program(Ppn(4)),
        );
        check(Any, |a| _ = a.program(Ppn(9_999), Lpn(1)), Violation::Program(Ppn(9_999)));
        check(Any, |a| _ = a.check_read(Ppn(1)), Violation::ReadErased(Ppn(1)));
        check(Any, |a| _ = a.invalidate(Ppn(1)), Violation::NotValid(Ppn(1)));
        check(Any, |a| _ = a.relocate(Ppn(1), Ppn(2)), Violation::ReadErased(Ppn(1)));
        check(Any, |a| _ = a.erase(BlockId(0)), Violation::EraseValid(BlockId(0)));
        check(Any, |a| _ = a.erase(BlockId(77)), Violation::Unusable(BlockId(77)));
    }

    #[test]
    fn blocks_go_bad_before_their_time_as_often_as_asked() {
        let shape = Shape {
            channels: 1,
            dies_per_channel: 1,
            planes_per_die: 1,
            blocks_per_plane: 20_000,
            pages_per_block: 1,
            page_bytes: 512,
            spare_bytes: 0,
        };
        let geometry = Geometry::new(&shape).expect("a sound shape");
        let mut stream = Stream::new(1, "bad");
        let mut array =
            Array::new(geometry, ProgramOrder::Any, 50).with_grown_bad_blocks(0.02, &mut stream);
        // Of 20,000 blocks 0.98^k survive k erases: standard deviation below 71.
        let mut left = 20_000.0;
        for erase in 1..=49 {
            for block in 0..20_000 {
                if !array.is_retired(BlockId(block)) {
                    array.erase(BlockId(block));
                }
            }
            left *= 0.98;
            let usable = f64::from(20_000 - array.retired_blocks());
            assert!((usable - left).abs() < 5.0 * 71.0, "{usable} of {left} after {erase}");
        }
        array.audit().expect("sound books");
        assert!((0..20_000).all(|block| array.endurance_of(BlockId(block)) <= 50));
    }

    #[test]
    fn a_worn_block_is_retired() {
        let mut array = array(ProgramOrder::Any, 2);
        assert!(array.erase(BlockId(1)));
        assert!(!array.erase(BlockId(1)), "its second and last erase");
        assert!(array.is_retired(BlockId(1)));
        assert_eq!((array.free_blocks(), array.retired_blocks()), (3, 1));
        assert!(!array.program(Ppn(70), Lpn(0)));
        assert_eq!(array.violation(), Some(Violation::Unusable(BlockId(1))));
    }
}
