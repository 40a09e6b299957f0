//! The counters of a block, packed into one word.

/// The word before a block's bitmaps: number of valid pages, offset behind the highest programmed
/// page (0 when erased), erase count, and in the highest bits whether the block is in SLC mode and
/// whether it is retired.
#[derive(Clone, Copy)]
pub(super) struct Head(pub(super) u64);

/// Bits of a page count; a block has at most 65,536 pages.
const PAGES_BITS: u32 = 17;
const PAGES_MASK: u64 = (1 << PAGES_BITS) - 1;
/// One more programmed page.
pub(super) const NEXT_ONE: u64 = 1 << PAGES_BITS;
const ERASES_AT: u32 = 2 * PAGES_BITS;
const RETIRED: u64 = 1 << 63;
/// In SLC mode; an erase ends it.
pub(super) const SLC: u64 = 1 << 62;

/// The highest erase count.
pub const ENDURANCE_MAX: u32 = (SLC >> ERASES_AT) as u32 - 1;

impl Head {
    pub(super) const fn erased(erases: u32, retired: bool) -> Self {
        Self((erases as u64) << ERASES_AT | if retired { RETIRED } else { 0 })
    }
    #[inline]
    pub(super) const fn valid(self) -> u32 {
        (self.0 & PAGES_MASK) as u32
    }
    #[inline]
    pub(super) const fn next(self) -> u32 {
        (self.0 >> PAGES_BITS & PAGES_MASK) as u32
    }
    #[inline]
    pub(super) const fn erases(self) -> u32 {
        ((self.0 & !(RETIRED | SLC)) >> ERASES_AT) as u32
    }
    #[inline]
    pub(super) const fn is_slc(self) -> bool {
        self.0 & SLC != 0
    }
    /// Whether every erased page may be programmed: the block is neither retired nor in SLC mode.
    #[inline]
    pub(super) const fn takes_all_pages(self) -> bool {
        self.0 & (RETIRED | SLC) == 0
    }
    #[inline]
    pub(super) const fn is_retired(self) -> bool {
        self.0 & RETIRED != 0
    }
}
