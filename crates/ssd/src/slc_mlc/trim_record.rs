//! When logical pages were trimmed: a record on flash that recovery compares with the age of data.
//!
//! A logical block that is trimmed as a whole is one entry; a request adds entries for single pages
//! only in the blocks at its two ends, so trimming a whole device takes no memory.

use hybridsim_engine::state::{Loader, Saver, StateError};
use hybridsim_flash::restore;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::ops::Range;

#[derive(Clone, Debug)]
pub struct TrimRecord {
    /// By logical block: when all of it was trimmed last; 0 for never.
    blocks: Vec<u64>,
    /// Pages trimmed since then, and not written since.
    pages: FxHashMap<u32, u64>,
    per_block: u32,
}

impl TrimRecord {
    /// An empty record for `blocks` logical blocks of `per_block` pages.
    pub fn new(blocks: u32, per_block: u32) -> Self {
        Self { blocks: vec![0; blocks as usize], pages: FxHashMap::default(), per_block }
    }

    pub fn record(&mut self, pages: Range<u32>, now: u64) {
        let blocks = pages.start.div_ceil(self.per_block)..pages.end / self.per_block;
        if blocks.is_empty() {
            self.pages.extend(pages.map(|page| (page, now)));
            return;
        }
        self.blocks[blocks.start as usize..blocks.end as usize].fill(now);
        let whole = blocks.start * self.per_block..blocks.end * self.per_block;
        self.pages.retain(|page, _| !whole.contains(page));
        let ends = (pages.start..whole.start).chain(whole.end..pages.end);
        self.pages.extend(ends.map(|page| (page, now)));
    }

    /// `page` was written: older copies of it are stale anyway.
    #[inline]
    pub fn written(&mut self, page: u32) {
        if !self.pages.is_empty() {
            self.pages.remove(&page);
        }
    }

    /// Time of the last trim of `page`, if it was not written since; 0 for never.
    pub fn trimmed_at(&self, page: u32) -> u64 {
        let single = self.pages.get(&page).copied().unwrap_or(0);
        single.max(self.blocks[(page / self.per_block) as usize])
    }

    pub fn save(&self, to: &mut Saver) {
        let pages: BTreeMap<_, _> = self.pages.iter().collect();
        to.put(&(&self.blocks, pages));
    }

    pub fn restore(&mut self, from: &mut Loader<'_>) -> Result<(), StateError> {
        restore::table(from, "the record of trims", &mut self.blocks)?;
        self.pages = from.take()?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_agrees_with_a_record_of_every_page() {
        let mut stream = hybridsim_engine::Stream::new(1, "trims");
        for _ in 0..50 {
            let (mut trims, mut all) = (TrimRecord::new(6, 5), BTreeMap::new());
            let mut written = BTreeMap::new();
            for now in 1..200u64 {
                let start = stream.below(30) as u32;
                if stream.chance(0.5) {
                    let end = start + 1 + stream.below(30 - u64::from(start)) as u32;
                    trims.record(start..end, now);
                    all.extend((start..end).map(|page| (page, now)));
                } else {
                    trims.written(start);
                    written.insert(start, now);
                }
                for page in 0..30 {
                    // Recovery asks only whether data are newer than the trim. Existing data were
                    // written just before the last trim, or at the last write.
                    let (trim, write) = (all.get(&page), written.get(&page));
                    let (trim, write) = (*trim.unwrap_or(&0), *write.unwrap_or(&0));
                    assert_eq!(trims.trimmed_at(page) >= write, trim >= write, "page {page}");
                    assert!(trims.trimmed_at(page) <= trim);
                }
            }
        }
    }

    #[test]
    fn trimming_a_whole_device_takes_few_entries() {
        let mut trims = TrimRecord::new(40_960, 128);
        trims.record(5..40_960 * 128, 7);
        assert_eq!(trims.pages.len(), 123);
        assert_eq!((trims.trimmed_at(4), trims.trimmed_at(5), trims.trimmed_at(128)), (0, 7, 7));
        trims.record(0..40_960 * 128, 9);
        assert_eq!((trims.pages.len(), trims.trimmed_at(5)), (0, 9));
    }
}
