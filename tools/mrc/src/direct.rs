//! Curves of few sizes in bytes, in one pass over the trace and in memory for the caches alone:
//! every cache has a directory of the pages it holds or has in ghost lists, so the pages of the
//! trace need no numbers, and accesses are processed as they are read. Exact for a trace of any
//! length and footprint.

use super::{Ask, Curve, Curves, MrcError, OnProgress, Point, Policy, Size};
use hybridsim_cache::replacement::Access;
use hybridsim_cache::replacement::counting::{CountingCache, PageAccess};
use hybridsim_engine::Op;
use hybridsim_workload::profile::{block_numbers, sample_hash, sampled};
use hybridsim_workload::record::{Record, RecordReader, TraceError};
use rustc_hash::FxHashSet;

/// For more caches than this, numbering all pages once is faster.
const CACHES_MAX: usize = 4;
/// Accesses that are processed together, at least.
const BATCH: usize = 512;
/// Page numbers below this one and volume numbers share 64 bits.
const PAGES_END: u64 = 1 << 48;
/// Distinct pages up to this number are counted, more are estimated from a sample (0.3 %).
const COUNTED_MAX: usize = if cfg!(test) { 1 << 10 } else { 1 << 17 };

fn cache(policy: &Policy, capacity: u32) -> Result<CountingCache, MrcError> {
    let built = (policy.entry.build)(&policy.settings, capacity)
        .map_err(|problems| MrcError::Policy(policy.entry.description.name.to_owned(), problems))?;
    Ok(CountingCache::new(built, capacity))
}

/// Counts distinct pages by their hashes: all, or a sample of at most [`COUNTED_MAX`].
#[derive(Default)]
struct DistinctPages {
    hashes: FxHashSet<u64>,
    level: u32,
    /// Hashes that may be new; reused.
    batch: Vec<u64>,
}

impl DistinctPages {
    fn add(&mut self, pages: &[u64]) {
        // Without branches that cannot be predicted, and with look-ups that overlap.
        let (mut batch, mut count) = (std::mem::take(&mut self.batch), 0);
        batch.resize(pages.len().max(batch.len()), 0);
        for page in pages {
            let hash = sample_hash((0, *page));
            batch[count] = hash;
            count += usize::from(sampled(hash, self.level));
        }
        batch.truncate(count);
        batch.retain(|hash| !self.hashes.contains(hash));
        batch.drain(..).for_each(|hash| self.add_hash(hash));
        self.batch = batch;
    }

    fn add_hash(&mut self, hash: u64) {
        if !sampled(hash, self.level) {
            return;
        }
        self.hashes.insert(hash);
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

/// All caches, and what they count together.
struct Caches {
    /// By policy, one of each size.
    list: Vec<CountingCache>,
    distinct: DistinctPages,
    accesses: u64,
}

impl Caches {
    fn new(ask: &Ask, sizes: &[u64]) -> Result<Self, MrcError> {
        let mut list = Vec::with_capacity(ask.policies.len() * sizes.len());
        for policy in &ask.policies {
            for pages in sizes {
                list.push(cache(policy, u32::try_from(*pages).unwrap_or(u32::MAX))?);
            }
        }
        Ok(Self { list, distinct: DistinctPages::default(), accesses: 0 })
    }

    /// Processes the accesses and drops them.
    fn work(&mut self, batch: &mut Vec<PageAccess>) {
        self.accesses += batch.len() as u64;
        if let Some((first, others)) = self.list.split_first_mut() {
            // The first access to a page misses in every cache.
            self.distinct.add(first.process(batch));
            for cache in others {
                cache.process(batch);
            }
        }
        batch.clear();
    }

    fn curves(&self, ask: &Ask, sizes: &[u64], page_bytes: u64) -> Vec<Curve> {
        let ratio = |cache: &CountingCache| cache.misses() as f64 / self.accesses as f64;
        let mut ratios = self.list.iter().map(|cache| (self.accesses > 0).then(|| ratio(cache)));
        let mut point = |pages: &u64| {
            let miss_ratio = ratios.next().flatten();
            Point { cache_bytes: pages * page_bytes, miss_ratio, error: None }
        };
        let curve = |policy: &Policy| Curve {
            policy: policy.entry.description.name.to_owned(),
            method: "simulation",
            sampled_fraction: 1.0,
            points: sizes.iter().map(&mut point).collect(),
        };
        ask.policies.iter().map(curve).collect()
    }
}

/// Appends the page accesses of a record. Returns whether all have numbers below [`PAGES_END`].
#[inline(always)]
fn add(batch: &mut Vec<PageAccess>, record: &Record, page_sectors: u64) -> bool {
    let kind = match record.request.op {
        Op::Read => Access::Read,
        Op::Write => Access::Write,
        Op::Flush | Op::Trim | Op::Zone(_) => return true,
    };
    let numbers = block_numbers(&record.request, page_sectors);
    if numbers.end > PAGES_END {
        return false;
    }
    let volume = u64::from(record.request.volume) << 48;
    for number in numbers {
        batch.push(PageAccess::new(number ^ volume, kind));
    }
    true
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
    let (mut records, mut batch) = (Vec::new(), Vec::with_capacity(2 * BATCH));
    let mut reports = super::Reports::default();
    let mut reader = open()?;
    loop {
        reader.next_batch(&mut records)?;
        for record in &records {
            if !add(&mut batch, record, page_sectors) {
                return Ok(None);
            }
            if batch.len() >= BATCH {
                caches.work(&mut batch);
            }
        }
        if records.is_empty() {
            break;
        }
        reports.after(records.len(), || progress(reader.progress()));
    }
    caches.work(&mut batch);
    let pages = caches.distinct.count();
    Ok(Some(Curves {
        page_bytes,
        accesses: caches.accesses,
        pages,
        footprint_bytes: pages.saturating_mul(page_bytes),
        footprint_sampled_fraction: 1.0 / (1u64 << caches.distinct.level) as f64,
        curves: caches.curves(ask, &sizes, page_bytes),
        warnings: reader.warnings().to_vec(),
    }))
}
