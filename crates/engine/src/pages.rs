//! Sparse tables with an entry per page of sectors: most requests cover whole pages, so the
//! versions of verified runs are kept by page, and by sector only where a page was written in part.

use rustc_hash::FxHashMap;
use std::ops::Range;

/// Sectors of a page: the block size of most file systems.
pub(crate) const PAGE_SECTORS: usize = 8;

/// Pages that have entries together.
const CHUNK_PAGES: u64 = 64;
/// Chunks that are allocated together: with one allocation for each, the end of a run would spend
/// its time on freeing them.
const BLOCK_CHUNKS: usize = 256;

type Chunk<T> = [T; CHUNK_PAGES as usize];

/// A table by page number; pages never written have no entry.
#[derive(Clone, Debug, Default)]
pub(crate) struct PageTable<T> {
    /// Place of each chunk in `blocks`.
    chunks: FxHashMap<u64, usize>,
    blocks: Vec<Vec<Chunk<T>>>,
}

impl<T: Copy + Default> PageTable<T> {
    /// The entry of `page`, if one near it was ever written.
    #[inline]
    pub fn get(&self, page: u64) -> Option<T> {
        let at = *self.chunks.get(&(page / CHUNK_PAGES))?;
        let chunk = &self.blocks[at / BLOCK_CHUNKS][at % BLOCK_CHUNKS];
        Some(chunk[(page % CHUNK_PAGES) as usize])
    }

    /// The entry of `page`, to be changed.
    #[inline]
    pub fn entry(&mut self, page: u64) -> &mut T {
        let next = self.chunks.len();
        let at = *self.chunks.entry(page / CHUNK_PAGES).or_insert(next);
        if at == next {
            self.add_chunk();
        }
        let chunk = &mut self.blocks[at / BLOCK_CHUNKS][at % BLOCK_CHUNKS];
        &mut chunk[(page % CHUNK_PAGES) as usize]
    }

    /// Adds a chunk at the end of the last block, or a block with it.
    #[cold]
    fn add_chunk(&mut self) {
        let chunk = [T::default(); CHUNK_PAGES as usize];
        match self.blocks.last_mut().filter(|block| block.len() < BLOCK_CHUNKS) {
            Some(block) => block.push(chunk),
            None => {
                let mut block = Vec::with_capacity(BLOCK_CHUNKS);
                block.push(chunk);
                self.blocks.push(block);
            }
        }
    }

    /// The parts of `sectors` sectors from `at` on that lie in pages with an entry, ascending.
    pub fn present(&self, at: u64, sectors: u64) -> Vec<PagePart> {
        let chunk_sectors = CHUNK_PAGES * PAGE_SECTORS as u64;
        let (first, end) = (at / chunk_sectors, at.saturating_add(sectors).div_ceil(chunk_sectors));
        let mut chunks: Vec<u64> = if end - first > self.chunks.len() as u64 {
            self.chunks.keys().copied().filter(|chunk| (first..end).contains(chunk)).collect()
        } else {
            (first..end).filter(|chunk| self.chunks.contains_key(chunk)).collect()
        };
        chunks.sort_unstable();
        let within = |chunk: u64| {
            let (from, to) = (chunk * chunk_sectors, (chunk + 1) * chunk_sectors);
            let from = from.max(at);
            parts(from, to.min(at.saturating_add(sectors)) - from)
        };
        chunks.into_iter().flat_map(within).collect()
    }
}

/// The part of a range of sectors that lies in one page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PagePart {
    /// The page.
    pub page: u64,
    /// The sectors, from the start of the page.
    pub sectors: Range<usize>,
    /// These sectors, from the start of the range.
    pub within: Range<usize>,
}

impl PagePart {
    /// Whether the part is a whole page.
    #[inline]
    pub fn is_whole(&self) -> bool {
        self.sectors.len() == PAGE_SECTORS
    }
}

/// Splits `sectors` sectors from `at` on at the boundaries of pages.
#[inline]
pub(crate) fn parts(at: u64, sectors: u64) -> impl Iterator<Item = PagePart> {
    let mut done = 0;
    std::iter::from_fn(move || {
        if done == sectors {
            return None;
        }
        let from = ((at + done) % PAGE_SECTORS as u64) as usize;
        let count = (PAGE_SECTORS as u64 - from as u64).min(sectors - done);
        let page = (at + done) / PAGE_SECTORS as u64;
        let within = done as usize..(done + count) as usize;
        done += count;
        Some(PagePart { page, sectors: from..from + count as usize, within })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_with_an_entry_are_each_found_once() {
        let pages = [1, CHUNK_PAGES - 1, CHUNK_PAGES, 3 * CHUNK_PAGES + 2, 9 * CHUNK_PAGES];
        let mut table = PageTable::<u64>::default();
        pages.iter().for_each(|page| *table.entry(*page) = 1);
        let found = table.present(3, 5 * CHUNK_PAGES * PAGE_SECTORS as u64);
        // All pages of every chunk with an entry.
        let chunks = [0..2 * CHUNK_PAGES, 3 * CHUNK_PAGES..4 * CHUNK_PAGES];
        assert!(found.iter().map(|part| part.page).eq(chunks.into_iter().flatten()));
        let first = PagePart { page: 0, sectors: 3..PAGE_SECTORS, within: 0..PAGE_SECTORS - 3 };
        assert_eq!(found[0], first);
        assert!(found[1..].iter().all(PagePart::is_whole));
    }

    #[test]
    fn entries_stay_and_few_allocations_hold_them() {
        let mut table = PageTable::<u64>::default();
        let pages = (0..40_000u64).map(|at| at * 7_919 * CHUNK_PAGES + at % CHUNK_PAGES);
        pages.clone().for_each(|page| *table.entry(page) = page + 1);
        assert!(pages.clone().all(|page| table.get(page) == Some(page + 1)));
        assert_eq!((table.get(1), table.get(CHUNK_PAGES)), (Some(0), None));
        assert_eq!(table.blocks.len(), 40_000usize.div_ceil(BLOCK_CHUNKS));
        let mut copy = table.clone();
        *copy.entry(0) = 9;
        assert_eq!((copy.get(0), table.get(0)), (Some(9), Some(1)));
        *copy.entry(CHUNK_PAGES) = 5;
        assert_eq!(
            (copy.get(CHUNK_PAGES), copy.get(7_919 * CHUNK_PAGES + 1)),
            (Some(5), Some(7_919 * CHUNK_PAGES + 2))
        );
    }
}
