//! Memory for tables, in huge pages if they are large.
//!
//! Random accesses to a large table miss the processor's TLB as well as its caches. With huge pages
//! of 2 MiB, which Linux provides on request, the TLB covers the whole table. But then a few random
//! writes to a very large table take all of its memory, so it has them only once it is going to be
//! filled.

use memmap2::{MmapMut, MmapOptions};
use std::fmt;
use std::ops::{Deref, DerefMut};

/// Smaller tables stay on the heap, where a mapping would cost more than it gains.
const HUGE_MIN: usize = 4 << 20;
/// Tables of this length and more have huge pages only once they are going to be filled.
const SPARSE_MIN: usize = 512 << 20;

/// A byte array of fixed length.
pub struct Bytes {
    kind: Kind,
    /// Whether memory that is still missing comes in huge pages.
    huge: bool,
}

enum Kind {
    Heap(Vec<u8>),
    Mapped(MmapMut),
}

impl Bytes {
    /// Zeros, which take no memory before they are written if they are many.
    pub fn zeroed(length: usize) -> Self {
        let kind = mapped(length).map_or_else(|| Kind::Heap(vec![0; length]), Kind::Mapped);
        let mut bytes = Self { kind, huge: false };
        bytes.use_huge_pages(length < SPARSE_MIN);
        bytes
    }

    /// Uses huge pages for the memory that is still missing, as most bytes will be written soon.
    pub fn expect_filling(&mut self) {
        self.use_huge_pages(true);
    }

    /// Whether memory that is still missing comes in huge pages.
    pub const fn uses_huge_pages(&self) -> bool {
        self.huge
    }

    /// Asks the system for huge pages, or for none. A refusal costs only speed or memory.
    fn use_huge_pages(&mut self, wanted: bool) {
        self.huge = wanted;
        #[cfg(target_os = "linux")]
        if let Kind::Mapped(map) = &self.kind {
            use memmap2::Advice::{HugePage, NoHugePage};
            drop(map.advise(if wanted { HugePage } else { NoHugePage }));
        }
    }
}

/// An anonymous mapping, if the table is large enough and the system provides it.
fn mapped(length: usize) -> Option<MmapMut> {
    if length < HUGE_MIN {
        return None;
    }
    // Most of a large device may never be written, so nothing is reserved for it.
    MmapOptions::new().len(length).no_reserve_swap().map_anon().ok()
}

impl Deref for Bytes {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        match &self.kind {
            Kind::Heap(bytes) => bytes,
            Kind::Mapped(map) => map,
        }
    }
}

impl DerefMut for Bytes {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u8] {
        match &mut self.kind {
            Kind::Heap(bytes) => bytes,
            Kind::Mapped(map) => map,
        }
    }
}

impl fmt::Debug for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes", self.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heap_and_mapped_arrays_behave_alike() {
        for length in [0, 1, HUGE_MIN - 1, HUGE_MIN, HUGE_MIN + 4097] {
            let mut bytes = Bytes::zeroed(length);
            assert!(bytes.len() == length && bytes.iter().all(|byte| *byte == 0));
            bytes.iter_mut().step_by(4093).for_each(|byte| *byte = 7);
            let sevens = bytes.iter().filter(|byte| **byte == 7).count();
            assert_eq!(sevens, length.div_ceil(4093));
            assert_eq!(matches!(bytes.kind, Kind::Mapped(_)), length >= HUGE_MIN, "{length}");
        }
    }

    #[test]
    fn only_very_large_arrays_wait_for_huge_pages() {
        let mut sparse = Bytes::zeroed(SPARSE_MIN);
        assert!(!sparse.uses_huge_pages() && Bytes::zeroed(SPARSE_MIN - 1).uses_huge_pages());
        sparse.expect_filling();
        assert!(sparse.uses_huge_pages());
    }
}
