//! Sectors trimmed out of the cache while the disk still held an older version.
//!
//! A disk may ignore a trim and would then return that older version. The controller returns zeros
//! instead until the sectors are written again. This costs no simulated time, so it is tracked in
//! verified runs only.

use super::directory::bits;
use hybridsim_engine::{Ctx, Request};
use rustc_hash::FxHashMap;

/// One bit per trimmed sector, by page.
#[derive(Debug, Default)]
pub struct Trimmed(FxHashMap<u64, u64>);

impl Trimmed {
    /// Sectors of a page have been trimmed out of the cache.
    pub fn add(&mut self, page: u64, sectors: u64) {
        *self.0.entry(page).or_default() |= sectors;
    }

    /// A write has completed: its sectors read as written again.
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

    /// A read has completed: clears the sectors that must read as zeros.
    pub fn hide(&mut self, ctx: &mut Ctx<'_>, page_sectors: u64, request: &Request) {
        if self.0.is_empty() {
            return;
        }
        self.each(page_sectors, request, |map, page, from, to| {
            let Some(sectors) = map.get(&page) else { return };
            for sector in (from..to).filter(|sector| sectors >> sector & 1 == 1) {
                let skip = (page * page_sectors + sector - request.lba.0) as u32;
                ctx.data().versions_mut(request.data.skip(skip), 1).fill(0);
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
