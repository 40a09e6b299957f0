//! What caches did.

use super::level::{Level, ratio, set_level};
use hybridsim_cache::CacheEvent;
use hybridsim_engine::{Op, SECTOR_BYTES};
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, Default)]
pub(crate) struct CacheFold {
    lookups: u64,
    pub(crate) hits: [u64; Op::COUNT],
    pub(crate) misses: [u64; Op::COUNT],
    bypasses: u64,
    bypassed_sectors: u64,
    destages: u64,
    destaged_sectors: u64,
    cleanups: u64,
    cleaned_pages: u64,
    dirty_pages: Option<Level>,
}

impl CacheFold {
    pub(crate) fn measured_from(&self, from_ns: u64) -> Self {
        let dirty_pages = self.dirty_pages.map(|level| level.measured_from(from_ns));
        Self { dirty_pages, ..Self::default() }
    }

    #[inline(always)]
    pub(crate) fn add(&mut self, event: CacheEvent, now: u64) {
        match event {
            CacheEvent::CacheLookup { op, hits, misses } => {
                self.lookups += 1;
                self.hits[op.index()] += u64::from(hits);
                self.misses[op.index()] += u64::from(misses);
            }
            CacheEvent::DirtyPages { pages } => {
                set_level(&mut self.dirty_pages, now, u64::from(pages));
            }
            _ => self.add_rare(event),
        }
    }

    #[inline(never)]
    fn add_rare(&mut self, event: CacheEvent) {
        match event {
            CacheEvent::Bypassed { sectors, .. } => {
                self.bypasses += 1;
                self.bypassed_sectors += u64::from(sectors);
            }
            CacheEvent::Destaged { sectors } => {
                self.destages += 1;
                self.destaged_sectors += u64::from(sectors);
            }
            CacheEvent::CleanupStarted => self.cleanups += 1,
            CacheEvent::CleanupEnded { pages } => self.cleaned_pages += u64::from(pages),
            CacheEvent::CacheLookup { .. } | CacheEvent::DirtyPages { .. } => {}
        }
    }

    fn hit_ratio(&self, op: Op) -> Option<f64> {
        let (hits, misses) = (self.hits[op.index()] as f64, self.misses[op.index()] as f64);
        ratio(hits, hits + misses)
    }

    /// `None` for a component that did nothing a cache does.
    pub(crate) fn results(&self) -> Option<Cache> {
        let (hits, misses) = (self.hits.iter().sum::<u64>(), self.misses.iter().sum::<u64>());
        let operations = self.lookups + self.bypasses + self.destages + self.cleanups;
        if operations == 0 && self.dirty_pages.is_none() {
            return None;
        }
        Some(Cache {
            lookups: self.lookups,
            hits,
            misses,
            hit_ratio: ratio(hits as f64, (hits + misses) as f64),
            read_hit_ratio: self.hit_ratio(Op::Read),
            write_hit_ratio: self.hit_ratio(Op::Write),
            read_hits: self.hits[Op::Read.index()],
            read_misses: self.misses[Op::Read.index()],
            write_hits: self.hits[Op::Write.index()],
            write_misses: self.misses[Op::Write.index()],
            bypasses: self.bypasses,
            bypassed_bytes: self.bypassed_sectors.saturating_mul(SECTOR_BYTES),
            destages: self.destages,
            destaged_bytes: self.destaged_sectors.saturating_mul(SECTOR_BYTES),
            cleanups: self.cleanups,
            cleaned_pages: self.cleaned_pages,
            dirty_pages_max: self.dirty_pages.map(|pages| pages.max),
            dirty_pages_end: self.dirty_pages.map(|pages| pages.now),
        })
    }
}

/// Cache accesses and destaging.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Cache {
    /// Requests that looked up the cache.
    pub lookups: u64,
    /// Page hits: pages of host reads with all requested sectors in the cache, and pages of host
    /// writes that were in the cache before. Caches that manage sectors count these.
    pub hits: u64,
    /// Page misses: all other pages of host reads and writes, those that bypass the cache included.
    pub misses: u64,
    /// `hits` divided by `hits` plus `misses`.
    pub hit_ratio: Option<f64>,
    /// `read_hits` divided by `read_hits` plus `read_misses`.
    pub read_hit_ratio: Option<f64>,
    /// `write_hits` divided by `write_hits` plus `write_misses`.
    pub write_hit_ratio: Option<f64>,
    /// Page hits of reads.
    pub read_hits: u64,
    /// Page misses of reads.
    pub read_misses: u64,
    /// Page hits of writes.
    pub write_hits: u64,
    /// Page misses of writes.
    pub write_misses: u64,
    /// Requests that bypassed the cache.
    pub bypasses: u64,
    /// Bytes of requests that bypassed the cache.
    pub bypassed_bytes: u64,
    /// Writes of dirty pages to the slower medium.
    pub destages: u64,
    /// Bytes destaged.
    pub destaged_bytes: u64,
    /// Cleanups started.
    pub cleanups: u64,
    /// Pages freed by cleanups.
    pub cleaned_pages: u64,
    /// Maximum number of dirty pages.
    pub dirty_pages_max: Option<u64>,
    /// Dirty pages at the end.
    pub dirty_pages_end: Option<u64>,
}
