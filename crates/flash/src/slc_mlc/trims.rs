//! When pages were trimmed: a record on flash, which recovery compares with the age of copies.
//!
//! A logical block that is trimmed as a whole is one note; a request adds notes of single pages
//! for the blocks at its two ends only, so that trimming a whole device costs no memory.

use hybridsim_engine::state::{Loader, Saver, StateError, same_length};
use rustc_hash::FxHashMap;
use std::ops::Range;

/// The record.
#[derive(Clone, Debug)]
pub struct Trims {
    /// By logical block: when all of it was trimmed last; 0 for never.
    blocks: Vec<u64>,
    /// Pages trimmed since, and not written since.
    pages: FxHashMap<u32, u64>,
    per_block: u32,
}

impl Trims {
    /// Nothing was trimmed yet of `blocks` logical blocks of `per_block` pages.
    pub fn new(blocks: u32, per_block: u32) -> Self {
        Self { blocks: vec![0; blocks as usize], pages: FxHashMap::default(), per_block }
    }

    /// `pages` were trimmed at `now`.
    pub fn note(&mut self, pages: Range<u32>, now: u64) {
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

    /// `page` was written; all that is found of it and older than that is stale anyway.
    #[inline]
    pub fn written(&mut self, page: u32) {
        if !self.pages.is_empty() {
            self.pages.remove(&page);
        }
    }

    /// When `page` was trimmed last, as far as that still matters; 0 for never.
    pub fn last(&self, page: u32) -> u64 {
        let single = self.pages.get(&page).copied().unwrap_or(0);
        single.max(self.blocks[(page / self.per_block) as usize])
    }

    /// Puts down the record.
    pub(super) fn save(&self, to: &mut Saver) {
        let mut pages: Vec<(u32, u64)> = self.pages.iter().map(|(at, when)| (*at, *when)).collect();
        pages.sort_unstable();
        to.put(&(&self.blocks, pages));
    }

    /// Takes back what [`Trims::save`] put down.
    ///
    /// # Errors
    /// When it is of another device.
    pub(super) fn restore(&mut self, from: &mut Loader<'_>) -> Result<(), StateError> {
        let (blocks, pages): (Vec<u64>, Vec<(u32, u64)>) = from.take()?;
        same_length("the record of trims", blocks.len(), self.blocks.len())?;
        self.blocks = blocks;
        self.pages = pages.into_iter().collect();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn it_agrees_with_a_note_of_every_page() {
        let mut stream = hybridsim_engine::Stream::new(1, "trims");
        for _ in 0..50 {
            let (mut trims, mut all) = (Trims::new(6, 5), BTreeMap::new());
            let mut written = BTreeMap::new();
            for now in 1..200u64 {
                let start = stream.below(30) as u32;
                if stream.chance(0.5) {
                    let end = start + 1 + stream.below(30 - u64::from(start)) as u32;
                    trims.note(start..end, now);
                    all.extend((start..end).map(|page| (page, now)));
                } else {
                    trims.written(start);
                    written.insert(start, now);
                }
                for page in 0..30 {
                    // What matters: whether data of any age are newer than the trim. All there
                    // are were written just before the last trim, or at the last write.
                    let (trim, write) = (all.get(&page), written.get(&page));
                    let (trim, write) = (*trim.unwrap_or(&0), *write.unwrap_or(&0));
                    assert_eq!(trims.last(page) >= write, trim >= write, "page {page}");
                    assert!(trims.last(page) <= trim);
                }
            }
        }
    }

    #[test]
    fn a_whole_device_is_few_notes() {
        let mut trims = Trims::new(40_960, 128);
        trims.note(5..40_960 * 128, 7);
        assert_eq!(trims.pages.len(), 123);
        assert_eq!((trims.last(4), trims.last(5), trims.last(128)), (0, 7, 7));
        trims.note(0..40_960 * 128, 9);
        assert_eq!((trims.pages.len(), trims.last(5)), (0, 9));
    }
}
