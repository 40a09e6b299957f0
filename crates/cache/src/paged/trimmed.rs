//! Sectors that were trimmed out of the cache while the disk held older data.
//!
//! A disk may ignore a trim. What it then holds is older than what was trimmed, and must not come
//! back: the controller answers zeros until the sectors are written again. That takes no time, so
//! it is kept track of in verified runs only, where it makes a difference.

use super::cache::bits;
use hybridsim_engine::{Ctx, Request};
use rustc_hash::FxHashMap;

/// A bit per sector, by page.
#[derive(Debug, Default)]
pub struct Trimmed(FxHashMap<u64, u64>);

impl Trimmed {
    /// These sectors of a page were dropped from the cache.
    pub fn add(&mut self, page: u64, sectors: u64) {
        *self.0.entry(page).or_default() |= sectors;
    }

    /// A request writes its range.
    pub fn written(&mut self, page_sectors: u64, request: &Request) {
        if self.0.is_empty() {
            return;
        }
        self.each(page_sectors, request, |map, page, from, to| {
            if let Some(sectors) = map.get_mut(&page) {
                *sectors &= !bits(from, to);
                if *sectors == 0 {
                    map.remove(&page);
                }
            }
        });
    }

    /// A read has its data: puts zeros where they belong.
    pub fn hide(&mut self, ctx: &mut Ctx<'_>, page_sectors: u64, request: &Request) {
        if self.0.is_empty() {
            return;
        }
        self.each(page_sectors, request, |map, page, from, to| {
            let Some(sectors) = map.get(&page) else { return };
            for sector in (from..to).filter(|sector| sectors >> sector & 1 == 1) {
                let skip = (page * page_sectors + sector - request.lba.0) as u32;
                ctx.data().stamps_mut(request.data.skip(skip), 1).fill(0);
            }
        });
    }

    /// Calls `visit` with every page of the request and its sectors there.
    fn each(
        &mut self,
        page_sectors: u64,
        request: &Request,
        mut visit: impl FnMut(&mut FxHashMap<u64, u64>, u64, u64, u64),
    ) {
        let (lba, end) = (request.lba.0, request.end().0);
        for page in lba / page_sectors..=(end - 1) / page_sectors {
            let start = page * page_sectors;
            visit(&mut self.0, page, lba.max(start) - start, page_sectors.min(end - start));
        }
    }
}
