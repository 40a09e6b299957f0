//! Curves of few sizes in bytes, in one pass over the trace and in memory for the caches alone:
//! every cache has a directory of the pages it holds, so pages need no numbers, and accesses are
//! processed as they are read. Exact for a trace of any length and footprint.

use super::directory::{Directory, hash_of};
use super::{Ask, Curve, Curves, MrcError, OnProgress, Point, Policy, Size};
use hybridsim_cache::replacement::{Access, CachedPage, Replacement};
use hybridsim_engine::Op;
use hybridsim_workload::profile::{blocks, sampled};
use hybridsim_workload::record::{RecordReader, TraceError};
use rustc_hash::FxHashSet;
use std::hint::black_box;

/// For more caches than this, numbering all pages once is faster.
const CACHES_MAX: usize = 4;
/// Policies with ghost lists look up every missed page there too, which takes longer by page than
/// by number: a sixth to a quarter of the time.
const GHOST_LISTS: &[&str] = &["2q", "arc", "lirs", "s3-fifo"];
/// Accesses that are processed together.
const BATCH: usize = 512;
/// Accesses by which a cache looks ahead, so that its look-ups overlap.
const AHEAD: usize = 16;
/// Page numbers below this one and volume numbers share 64 bits.
const PAGES_END: u64 = 1 << 48;
/// Distinct pages up to this number are counted, more are estimated from a sample (0.3 %).
const COUNTED_MAX: usize = if cfg!(test) { 1 << 10 } else { 1 << 17 };

/// An access to a page, which includes its volume.
#[derive(Clone, Copy)]
struct PageAccess {
    page: u64,
    hash: u64,
    kind: Access,
}

/// A cache without data.
struct Cache {
    policy: Box<dyn Replacement>,
    capacity: u32,
    directory: Directory,
    victims: Vec<CachedPage>,
    misses: u64,
}

impl Cache {
    fn new(policy: &Policy, capacity: u32) -> Result<Self, MrcError> {
        let built = (policy.entry.build)(&policy.settings, capacity).map_err(|problems| {
            MrcError::Policy(policy.entry.description.name.to_owned(), problems)
        })?;
        let (directory, victims) = (Directory::new(capacity), Vec::new());
        Ok(Self { policy: built, capacity, directory, victims, misses: 0 })
    }

    /// Adds pages that miss to `missed`.
    fn run(&mut self, batch: &[PageAccess], missed: &mut impl FnMut(u64)) {
        for (at, access) in batch.iter().enumerate() {
            if let Some(ahead) = batch.get(at + AHEAD) {
                black_box(self.directory.prefetch(ahead.hash));
            }
            let (page, hash) = (access.page, access.hash);
            match self.directory.slot(page, hash) {
                Some(slot) => self.policy.update(CachedPage { page, slot }, access.kind),
                None => {
                    self.misses += 1;
                    missed(hash);
                    self.miss(page, hash);
                }
            }
        }
    }

    fn miss(&mut self, page: u64, hash: u64) {
        let slot = if self.directory.len() < self.capacity as usize {
            self.directory.add(page, hash)
        } else {
            self.victims.clear();
            self.policy.expect(page);
            self.policy.victims(1, &|_| true, &mut self.victims);
            // Without a victim, the page bypasses the cache.
            let Some(&victim) = self.victims.first() else { return };
            self.policy.evict(victim);
            self.directory.replace(victim.slot, page, hash);
            victim.slot
        };
        self.policy.update(CachedPage { page, slot }, Access::Add);
    }
}

/// Counts distinct pages by their hashes: all, or a sample of at most [`COUNTED_MAX`].
#[derive(Default)]
struct DistinctPages {
    hashes: FxHashSet<u64>,
    level: u32,
}

impl DistinctPages {
    fn add(&mut self, hash: u64) {
        if !sampled(hash, self.level) || !self.hashes.insert(hash) {
            return;
        }
        while self.hashes.len() > COUNTED_MAX {
            self.level += 1;
            let level = self.level;
            self.hashes.retain(|hash| sampled(*hash, level));
        }
    }

    fn count(&self) -> u64 {
        (self.hashes.len() as u64) << self.level
    }
}

/// The sizes in pages, where they are few and fit.
fn sizes(ask: &Ask, page_bytes: u64) -> Option<Vec<u64>> {
    let in_bytes = ask.sizes.iter().all(|size| matches!(size, Size::Bytes(_)));
    if ask.sizes.is_empty() || !in_bytes {
        return None;
    }
    let sizes = super::sizes(ask, page_bytes, 0);
    let held = sizes.iter().fold(0u64, |sum, pages| sum.saturating_add(*pages));
    let caches = sizes.len() * ask.policies.len();
    let fits = held.saturating_mul(ask.policies.len() as u64) <= ask.pages_max as u64;
    (caches <= CACHES_MAX && fits).then_some(sizes)
}

/// Whether numbering all pages of the trace is faster, where they fit.
pub fn slower_than_numbers(ask: &Ask) -> bool {
    let listed = |policy: &Policy| GHOST_LISTS.contains(&policy.entry.description.name);
    ask.policies.iter().any(listed)
}

/// All caches, and what they count together.
struct Caches {
    /// By policy, one of each size.
    list: Vec<Cache>,
    distinct: DistinctPages,
    accesses: u64,
}

impl Caches {
    fn new(ask: &Ask, sizes: &[u64]) -> Result<Self, MrcError> {
        let mut list = Vec::with_capacity(ask.policies.len() * sizes.len());
        for policy in &ask.policies {
            for pages in sizes {
                list.push(Cache::new(policy, u32::try_from(*pages).unwrap_or(u32::MAX))?);
            }
        }
        Ok(Self { list, distinct: DistinctPages::default(), accesses: 0 })
    }

    /// Processes the accesses and drops them.
    fn work(&mut self, batch: &mut Vec<PageAccess>) {
        self.accesses += batch.len() as u64;
        if let Some((first, others)) = self.list.split_first_mut() {
            // The first access to a page misses in every cache.
            first.run(batch, &mut |hash| self.distinct.add(hash));
            others.iter_mut().for_each(|cache| cache.run(batch, &mut |_| {}));
        }
        batch.clear();
    }

    fn curves(&self, ask: &Ask, sizes: &[u64], page_bytes: u64) -> Vec<Curve> {
        let ratio = |cache: &Cache| cache.misses as f64 / self.accesses as f64;
        let mut ratios = self.list.iter().map(|cache| (self.accesses > 0).then(|| ratio(cache)));
        let mut point = |pages: &u64| {
            let miss_ratio = ratios.next().flatten();
            Point { cache_bytes: pages * page_bytes, miss_ratio, error: None }
        };
        let curve = |policy: &Policy| Curve {
            policy: policy.entry.description.name.to_owned(),
            method: "simulation",
            points: sizes.iter().map(&mut point).collect(),
        };
        ask.policies.iter().map(curve).collect()
    }
}

/// The curves; `None` for too many or too large caches, and for page numbers from [`PAGES_END`].
pub fn curves<R: RecordReader>(
    open: &mut impl FnMut() -> Result<R, TraceError>,
    ask: &Ask,
    page_sectors: u64,
    page_bytes: u64,
    progress: &mut OnProgress<'_>,
) -> Result<Option<Curves>, MrcError> {
    let Some(sizes) = sizes(ask, page_bytes) else { return Ok(None) };
    let mut caches = Caches::new(ask, &sizes)?;
    let mut batch = Vec::with_capacity(BATCH);
    let mut records = 0u64;
    let mut reader = open()?;
    while let Some(record) = reader.next()? {
        let kind = match record.request.op {
            Op::Read => Access::Read,
            Op::Write => Access::Write,
            Op::Flush | Op::Trim => continue,
        };
        for (volume, number) in blocks(&record.request, page_sectors) {
            if number >= PAGES_END {
                return Ok(None);
            }
            let page = number ^ (u64::from(volume) << 48);
            batch.push(PageAccess { page, hash: hash_of(page), kind });
            if batch.len() == BATCH {
                caches.work(&mut batch);
            }
        }
        records += 1;
        if records.is_multiple_of(super::REPORT_EVERY) {
            progress(reader.progress());
        }
    }
    caches.work(&mut batch);
    let pages = caches.distinct.count();
    Ok(Some(Curves {
        page_bytes,
        accesses: caches.accesses,
        pages,
        footprint_bytes: pages.saturating_mul(page_bytes),
        footprint_sampled_fraction: 1.0 / (1u64 << caches.distinct.level) as f64,
        sampled_fraction: 1.0,
        curves: caches.curves(ask, &sizes, page_bytes),
        warnings: reader.warnings().to_vec(),
    }))
}
