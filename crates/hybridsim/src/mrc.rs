//! Miss-ratio curves: what a cache of each size would miss of a trace.
//!
//! For `lru` all sizes come from one pass over stack distances, followed for a sample of pages
//! (SHARDS: Waldspurger et al., FAST 2015). Any other policy is run as it is registered, once for
//! each size, on the same sample in a cache smaller by as much (Waldspurger et al., "Cache
//! Modeling and Optimization using Miniature Simulations", USENIX ATC 2017). While all pages of a
//! trace fit the sample, both are exact.

use hybridsim_engine::param::{Problem, Settings};
use hybridsim_engine::{Op, SECTOR_BYTES};
use hybridsim_hybrid::replacement::{Access, CachedPage, Replacement, ReplacementEntry};
use hybridsim_workload::profile::{Key, StackDistances, blocks, sample_hash, sampled};
use hybridsim_workload::record::{Record, RecordReader, TraceError, Warning};
use rustc_hash::FxHashMap;
use serde::Serialize;

/// A simulated cache of fewer pages than this says little of a larger one.
const MINIATURE_PAGES_MIN: u64 = 32;
/// Sizes in a curve, unless they are asked for: from the footprint down in steps of 2^(1/2).
const SIZES: u32 = 21;
/// Records between two calls of the watcher.
const WATCH_EVERY: u64 = 1 << 16;

/// A policy with its parameters.
pub struct Policy {
    /// Which.
    pub entry: ReplacementEntry,
    /// Its parameters.
    pub settings: Settings,
}

/// The size of a cache.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Size {
    /// In bytes.
    Bytes(u64),
    /// As a share of the trace's footprint.
    Footprint(f64),
}

/// What is wanted.
pub struct Ask {
    /// Bytes of a page, a multiple of 512.
    pub page_bytes: u64,
    /// The policies; `lru` needs no simulation.
    pub policies: Vec<Policy>,
    /// The sizes; evenly spread up to the footprint when empty.
    pub sizes: Vec<Size>,
    /// At most so many pages are followed.
    pub pages_max: usize,
}

/// The curves of a trace.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Curves {
    /// Bytes of a page.
    pub page_bytes: u64,
    /// Pages read or written, each time counted.
    pub accesses: u64,
    /// Different pages; an estimate when sampled.
    pub pages: u64,
    /// Bytes of these.
    pub footprint_bytes: u64,
    /// Share of pages followed; 1 is exact.
    pub sampled_fraction: f64,
    /// One curve a policy.
    pub curves: Vec<Curve>,
    /// What was odd about the trace.
    #[serde(skip)]
    pub warnings: Vec<Warning>,
}

/// The curve of a policy.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Curve {
    /// Its name.
    pub policy: String,
    /// How it was found: `stack-distances` or `simulation`.
    pub method: &'static str,
    /// By rising size.
    pub points: Vec<Point>,
}

/// A point of a curve.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Point {
    /// Size of the cache, a whole number of pages.
    pub cache_bytes: u64,
    /// Share of accesses that miss, the first to each page included; `null` where the sample is
    /// too small for a cache of this size.
    pub miss_ratio: Option<f64>,
}

/// Why there are no curves.
#[derive(Debug)]
pub enum MrcError {
    /// The trace cannot be read.
    Trace(TraceError),
    /// A policy refuses its parameters.
    Policy(String, Vec<Problem>),
}

impl From<TraceError> for MrcError {
    fn from(error: TraceError) -> Self {
        Self::Trace(error)
    }
}

/// Tells how much of the work is done, from 0 to 1, where that is known.
pub type Watch<'a> = dyn FnMut(Option<f64>) + 'a;

/// The curves of the trace `open` opens; it is read twice when a policy has to be simulated.
///
/// # Errors
/// When the trace cannot be read, or a policy refuses its parameters.
pub fn curves<R: RecordReader>(
    mut open: impl FnMut() -> Result<R, TraceError>,
    ask: &Ask,
    watch: &mut Watch<'_>,
) -> Result<Curves, MrcError> {
    let page_sectors = (ask.page_bytes / SECTOR_BYTES).max(1);
    let page_bytes = page_sectors * SECTOR_BYTES;
    let simulated = ask.policies.iter().any(|policy| !is_lru(policy));
    let passes = if simulated { 2.0 } else { 1.0 };
    let mut distances = StackDistances::new(ask.pages_max);
    let mut reader = open()?;
    each(&mut reader, &mut |share| watch(share.map(|share| share / passes)), |record| {
        for page in blocks(&record.request, page_sectors) {
            distances.access(page, sample_hash(page));
        }
    })?;
    let sizes = sizes(ask, page_bytes, distances.blocks());
    let mut caches = Vec::new();
    for policy in ask.policies.iter().filter(|policy| !is_lru(policy)) {
        caches.push(miniatures(policy, &sizes, &distances)?);
    }
    if simulated {
        let mut sample = Sample { level: distances.level(), ids: FxHashMap::default() };
        each(&mut open()?, &mut |share| watch(share.map(|share| (1.0 + share) / 2.0)), |record| {
            let write = record.request.op == Op::Write;
            for page in blocks(&record.request, page_sectors) {
                let Some((id, number)) = sample.find(page) else { continue };
                for cache in caches.iter_mut().flatten().flatten() {
                    cache.access(id, number, write);
                }
            }
        })?;
    }
    let mut simulations = caches.iter();
    let curve = |policy: &Policy| {
        let points = match is_lru(policy) {
            true => sizes.iter().map(|&pages| exact(&distances, pages, page_bytes)).collect(),
            false => {
                let caches = simulations.next().expect("one set a simulated policy");
                let point = |(&pages, cache): (&u64, &Option<Miniature>)| Point {
                    cache_bytes: pages * page_bytes,
                    miss_ratio: cache.as_ref().and_then(|cache| cache.miss_ratio(&distances)),
                };
                sizes.iter().zip(caches).map(point).collect()
            }
        };
        let method = if is_lru(policy) { "stack-distances" } else { "simulation" };
        Curve { policy: policy.entry.description.name.to_owned(), method, points }
    };
    Ok(Curves {
        page_bytes,
        accesses: distances.accesses(),
        pages: distances.blocks(),
        footprint_bytes: distances.blocks().saturating_mul(page_bytes),
        sampled_fraction: 1.0 / (1u64 << distances.level()) as f64,
        curves: ask.policies.iter().map(curve).collect(),
        warnings: reader.warnings().to_vec(),
    })
}

fn is_lru(policy: &Policy) -> bool {
    policy.entry.description.name == "lru"
}

fn exact(distances: &StackDistances, pages: u64, page_bytes: u64) -> Point {
    let miss_ratio = distances.hit_ratio(pages).map(|hits| 1.0 - hits);
    // Fewer pages than one of the sample stands for cannot be told apart.
    let miss_ratio = miss_ratio.filter(|_| pages >= 1 << distances.level());
    Point { cache_bytes: pages * page_bytes, miss_ratio }
}

/// Calls `take` for every record that moves data.
fn each<R: RecordReader>(
    reader: &mut R,
    watch: &mut Watch<'_>,
    mut take: impl FnMut(&Record),
) -> Result<(), MrcError> {
    let mut records = 0u64;
    while let Some(record) = reader.next()? {
        records += 1;
        if matches!(record.request.op, Op::Read | Op::Write) {
            take(&record);
        }
        if records.is_multiple_of(WATCH_EVERY) {
            watch(reader.progress());
        }
    }
    Ok(())
}

/// The sizes in pages, rising, none twice.
fn sizes(ask: &Ask, page_bytes: u64, footprint: u64) -> Vec<u64> {
    let part = |share: f64| (footprint as f64 * share).round() as u64;
    let mut sizes: Vec<u64> = match ask.sizes.is_empty() {
        true => (0..SIZES).map(|step| part(0.5_f64.powf(f64::from(step) / 2.0))).collect(),
        false => {
            let pages = |size: &Size| match *size {
                Size::Bytes(bytes) => bytes / page_bytes,
                Size::Footprint(share) => part(share),
            };
            ask.sizes.iter().map(pages).collect()
        }
    };
    sizes.iter_mut().for_each(|pages| *pages = (*pages).max(1));
    sizes.sort_unstable();
    sizes.dedup();
    sizes
}

/// The sampled pages, numbered in the order they come.
struct Sample {
    level: u32,
    ids: FxHashMap<Key, u32>,
}

impl Sample {
    /// The page's number in the sample, and a number of its own among all pages.
    fn find(&mut self, page: Key) -> Option<(u32, u64)> {
        if !sampled(sample_hash(page), self.level) {
            return None;
        }
        let next = u32::try_from(self.ids.len()).expect("a sample has fewer pages than 2^32");
        let id = *self.ids.entry(page).or_insert(next);
        Some((id, page.1 ^ (u64::from(page.0) << 48)))
    }
}

/// The caches of a policy, by size; none where the sample is too small for it.
fn miniatures(
    policy: &Policy,
    sizes: &[u64],
    distances: &StackDistances,
) -> Result<Vec<Option<Miniature>>, MrcError> {
    let (level, all) = (distances.level(), distances.blocks() >> distances.level());
    let small = |pages: u64| level > 0 && pages >> level < MINIATURE_PAGES_MIN;
    let build = |pages: u64| {
        // A cache that holds every page is as good as a larger one.
        let room = u32::try_from((pages >> level).min(all)).expect("a sample is far smaller");
        let built = (policy.entry.build)(&policy.settings, room);
        let name = policy.entry.description.name.to_owned();
        let built = built.map_err(|problems| MrcError::Policy(name, problems))?;
        Ok(Miniature::new(built, room))
    };
    sizes.iter().map(|&pages| (!small(pages)).then(|| build(pages)).transpose()).collect()
}

const NOWHERE: u32 = u32::MAX;

/// A cache that knows only which pages are in it.
struct Miniature {
    policy: Box<dyn Replacement>,
    pages: u32,
    /// Slot by number of the page in the sample.
    slots: Vec<u32>,
    /// Page number in the sample by slot.
    held: Vec<u32>,
    misses: u64,
    victims: Vec<CachedPage>,
}

impl Miniature {
    fn new(policy: Box<dyn Replacement>, pages: u32) -> Self {
        let (slots, held, victims) = (Vec::new(), Vec::new(), Vec::new());
        Self { policy, pages, slots, held, misses: 0, victims }
    }

    fn access(&mut self, id: u32, page: u64, write: bool) {
        if id as usize >= self.slots.len() {
            self.slots.resize(id as usize + 1, NOWHERE);
        }
        let slot = self.slots[id as usize];
        if slot != NOWHERE {
            let access = if write { Access::Write } else { Access::Read };
            return self.policy.update(CachedPage { page, slot }, access);
        }
        self.misses += 1;
        let slot = if self.held.len() < self.pages as usize {
            self.held.push(id);
            self.held.len() as u32 - 1
        } else {
            // A policy that gives up nothing lets the page pass by.
            let Some(slot) = self.make_room(page) else { return };
            self.held[slot as usize] = id;
            slot
        };
        self.slots[id as usize] = slot;
        self.policy.update(CachedPage { page, slot }, Access::Add);
    }

    fn make_room(&mut self, page: u64) -> Option<u32> {
        self.victims.clear();
        self.policy.expect(page);
        self.policy.victims(1, &|_| true, &mut self.victims);
        let victim = *self.victims.first()?;
        self.policy.evict(victim);
        self.slots[self.held[victim.slot as usize] as usize] = NOWHERE;
        Some(victim.slot)
    }

    /// The share of misses. They are set against the accesses there should be in the sample, not
    /// those that are: what it has too many of are uses of popular pages, which hit.
    fn miss_ratio(&self, distances: &StackDistances) -> Option<f64> {
        let misses = self.misses as f64 * (1u64 << distances.level()) as f64;
        let accesses = distances.accesses();
        (accesses > 0).then(|| (misses / accesses as f64).clamp(0.0, 1.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hybridsim_engine::sample::Zipf;
    use hybridsim_engine::{Lba, Request, SimTime, Stream};
    use hybridsim_hybrid::replacement::ENTRIES;
    use std::collections::VecDeque;

    struct Records(std::vec::IntoIter<Record>);

    impl RecordReader for Records {
        fn next(&mut self) -> Result<Option<Record>, TraceError> {
            Ok(self.0.next())
        }
        fn warnings(&self) -> &[Warning] {
            &[]
        }
        fn progress(&self) -> Option<f64> {
            None
        }
    }

    fn trace(pages: &[u64]) -> Vec<Record> {
        let record = |(at, &page): (usize, &u64)| {
            let op = if at % 3 == 0 { Op::Write } else { Op::Read };
            let request = Request::new(op, Lba(page * 8), 8);
            Record { at: SimTime::ZERO, request, response: None }
        };
        pages.iter().enumerate().map(record).collect()
    }

    fn skewed(count: usize, pages: u64) -> Vec<u64> {
        let (zipf, mut stream) = (Zipf::new(pages, 0.9), Stream::new(5, "mrc"));
        (0..count).map(|_| zipf.draw(&mut stream)).collect()
    }

    fn ask(names: &[&str], sizes: &[u64], pages_max: usize) -> Ask {
        let policy = |name: &&str| {
            let entry = ENTRIES.iter().find(|entry| entry.description.name == *name);
            Policy { entry: *entry.expect("it is registered"), settings: Settings::default() }
        };
        Ask {
            page_bytes: 4096,
            policies: names.iter().map(policy).collect(),
            sizes: sizes.iter().map(|pages| Size::Bytes(pages * 4096)).collect(),
            pages_max,
        }
    }

    fn of(pages: &[u64], ask: &Ask) -> Curves {
        let open = || Ok(Records(trace(pages).into_iter()));
        curves(open, ask, &mut |_| {}).unwrap_or_else(|error| panic!("{error:?}"))
    }

    /// Misses of a cache that is a plain list: `again` says whether a hit moves a page to the end.
    fn by_hand(pages: &[u64], size: usize, again: bool) -> f64 {
        let (mut cache, mut misses) = (VecDeque::new(), 0);
        for &page in pages {
            match cache.iter().position(|&held| held == page) {
                Some(at) if again => {
                    cache.remove(at);
                    cache.push_back(page);
                }
                Some(_) => {}
                None => {
                    misses += 1;
                    if cache.len() == size {
                        cache.pop_front();
                    }
                    cache.push_back(page);
                }
            }
        }
        f64::from(misses) / pages.len() as f64
    }

    #[test]
    fn curves_are_those_of_caches_kept_by_hand() {
        let pages = skewed(3_000, 400);
        let sizes = [1, 2, 7, 40, 150, 399, 5_000];
        let found = of(&pages, &ask(&["lru", "fifo"], &sizes, 10_000));
        assert_eq!((found.accesses, found.sampled_fraction), (3_000, 1.0));
        for (curve, again) in found.curves.iter().zip([true, false]) {
            for (point, size) in curve.points.iter().zip(sizes) {
                let exact = by_hand(&pages, size as usize, again);
                let ours = point.miss_ratio.expect("nothing is sampled");
                assert!((ours - exact).abs() < 1e-12, "{} {size}: {ours} {exact}", curve.policy);
            }
        }
    }

    #[test]
    fn a_sample_comes_close_for_every_policy() {
        let pages = skewed(120_000, 30_000);
        let names: Vec<&str> = ENTRIES.iter().map(|entry| entry.description.name).collect();
        let sizes = [600, 2_000, 6_000];
        let exact = of(&pages, &ask(&names, &sizes, 1 << 20));
        let sample = of(&pages, &ask(&names, &sizes, 4_000));
        assert!(sample.sampled_fraction < 0.3 && exact.sampled_fraction == 1.0);
        for (whole, part) in exact.curves.iter().zip(&sample.curves) {
            for (whole_point, point) in whole.points.iter().zip(&part.points) {
                let (a, b) = (whole_point.miss_ratio.expect("exact"), point.miss_ratio);
                let b = b.expect("large enough");
                assert!((a - b).abs() < 0.04, "{} {:?}: {a} {b}", whole.policy, point);
            }
        }
        let tiny = of(&pages, &ask(&["fifo"], &[10], 4_000));
        assert_eq!(tiny.curves[0].points[0].miss_ratio, None, "too small to tell");
    }

    #[test]
    fn sizes_are_whole_pages_and_rise() {
        let pages = skewed(2_000, 300);
        let found = of(&pages, &ask(&["lru"], &[], 10_000));
        let sizes: Vec<u64> = found.curves[0].points.iter().map(|p| p.cache_bytes).collect();
        assert!(sizes.windows(2).all(|pair| pair[0] < pair[1]));
        assert!(sizes.iter().all(|size| size % 4096 == 0));
        assert_eq!(sizes.last(), Some(&found.footprint_bytes));
        let last = found.curves[0].points.last().and_then(|point| point.miss_ratio);
        let cold = found.pages as f64 / found.accesses as f64;
        assert!((last.expect("exact") - cold).abs() < 1e-12, "only first uses miss");
        let mut shares = ask(&["lru"], &[], 10_000);
        shares.sizes = vec![Size::Footprint(0.5), Size::Footprint(0.0), Size::Bytes(1)];
        assert_eq!(of(&pages, &shares).curves[0].points.len(), 2);
    }
}
