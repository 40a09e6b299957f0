//! Simulated caches of any policy on the sampled pages.
//!
//! The sampled accesses are collected first, and then every cache processes all of them at once:
//! the state of one cache fits the processor's cache, the states of hundreds do not.

use super::numbers::PageNumbers;
use super::{MrcError, Policy};
use hybridsim_cache::replacement::counting::{CountingCache, PageAccess};
use hybridsim_cache::replacement::{Access, ENTRIES};
use hybridsim_config::param::Problem;
use hybridsim_simulation::parallel::{parallel_map, processors};
use hybridsim_workload::profile::{BlockKey, StackDistances, sample_hash, sampled};
use std::hint::black_box;

/// A smaller simulated cache does not represent a larger one.
pub const MINIATURE_PAGES_MIN: u64 = 32;
/// Disjoint parts of the sample that are also simulated, to estimate the error.
pub const PARTS: u32 = 4;
/// Limits the memory of caches that run in parallel.
pub const THREADS_MAX: usize = 8;
/// Accesses collected before the caches process them: 256 MiB.
pub const GATHERED_MAX: usize = if cfg!(test) { 1 << 14 } else { 1 << 26 };
/// Memory of the caches in one pass, when the accesses do not fit into one collection.
pub const BYTES_MAX: u64 = if cfg!(test) { 1 << 20 } else { 1 << 29 };
/// Upper bound, as measured, of a policy and a cache per cached page.
const BYTES_PER_PAGE: u64 = 96;

/// Bytes per page of the trace: its number in the cache.
const BYTES_PER_NUMBER: u64 = 4;
/// Pages that are numbered, and accesses that are processed, together, so that look-ups overlap.
const BATCH: usize = 64;

/// The sampled pages, numbered in the order of their first access, and the accesses to them.
pub struct Sample {
    level: u32,
    numbers: PageNumbers,
    /// The next accesses to number: hash, page, whether it is a write.
    batch: Vec<(u64, BlockKey, bool)>,
    /// Page by number in the sample.
    pages: Vec<u64>,
    accesses: Vec<Packed>,
    count: u64,
}

/// An access: the page's number in the sample, its part of the sample, read or write.
#[derive(Clone, Copy)]
struct Packed(u32);

impl Packed {
    const fn new(id: u32, part: u32, write: bool) -> Self {
        Self(id << 3 | part << 1 | write as u32)
    }

    const fn id(self) -> u32 {
        self.0 >> 3
    }

    const fn part(self) -> u32 {
        self.0 >> 1 & (PARTS - 1)
    }

    const fn kind(self) -> Access {
        if self.0 & 1 == 1 { Access::Write } else { Access::Read }
    }
}

impl Sample {
    /// Pages whose hash is in the sample of one in `2^level`.
    pub fn new(level: u32) -> Self {
        Self {
            level,
            numbers: PageNumbers::default(),
            batch: Vec::with_capacity(BATCH),
            pages: Vec::new(),
            accesses: Vec::new(),
            count: 0,
        }
    }

    /// Adds an access, if its page is in the sample.
    pub fn note(&mut self, page: BlockKey, write: bool) {
        let hash = sample_hash(page);
        if !sampled(hash, self.level) {
            return;
        }
        self.batch.push((hash, page, write));
        if self.batch.len() == BATCH {
            self.finish();
        }
    }

    /// Adds the accesses of an incomplete batch.
    pub fn finish(&mut self) {
        self.numbers.reserve(self.batch.len(), sample_hash);
        assert!(self.numbers.len() < 1 << 29, "page numbers have 29 bits");
        for (hash, ..) in &self.batch {
            black_box(self.numbers.prefetch(*hash));
        }
        self.count += self.batch.len() as u64;
        for (hash, page, write) in self.batch.drain(..) {
            let next = self.numbers.len();
            let id = self.numbers.number(page, hash);
            if id == next {
                self.pages.push(page.1 ^ (u64::from(page.0) << 48));
            }
            let part = (hash >> self.level) as u32 & (PARTS - 1);
            self.accesses.push(Packed::new(id, part, write));
        }
    }

    /// Distinct pages so far, but for an incomplete batch.
    pub const fn pages(&self) -> usize {
        self.pages.len()
    }

    /// Accesses so far, but for an incomplete batch.
    pub const fn accesses(&self) -> u64 {
        self.count
    }

    /// The pages of the collected accesses to one part of the sample, or to all.
    pub fn ids_of(&self, part: Option<u32>) -> impl Iterator<Item = u32> {
        let is_in = move |access: &&Packed| part.is_none_or(|part| part == access.part());
        self.accesses.iter().filter(is_in).map(|access| access.id())
    }

    /// Whether the collected accesses have to be processed.
    pub const fn is_full(&self) -> bool {
        self.accesses.len() >= GATHERED_MAX
    }
}

/// The caches of one size under one policy: one for the whole sample, and one for each part.
pub struct Point<'a> {
    caches: Vec<Cache<'a>>,
}

/// The miss ratio of a cache.
pub struct MissRatio {
    /// From the whole sample.
    pub miss_ratio: f64,
    /// The estimated error; `None` when the sample includes all pages.
    pub error: Option<f64>,
}

impl<'a> Point<'a> {
    /// A cache of `pages` pages for a trace of `all` pages, of which one in `2^level` is sampled;
    /// `None` where the sample is too small for it.
    pub fn new(policy: &'a Policy, pages: u64, all: u64, level: u32) -> Option<Self> {
        if level > 0 && pages >> level < MINIATURE_PAGES_MIN {
            return None;
        }
        // A cache larger than the footprint has the same hits.
        let capacity = |level: u32| (pages.min(all) >> level).clamp(1, u64::from(u32::MAX)) as u32;
        let mut caches = vec![Cache::new(policy, None, capacity(level))];
        if level > 0 {
            let part = |part| Cache::new(policy, Some(part), capacity(level + PARTS.ilog2()));
            caches.extend((0..PARTS).map(part));
        }
        Some(Self { caches })
    }

    fn bytes(&self, pages: u64) -> u64 {
        let cache = |cache: &Cache<'_>| {
            u64::from(cache.capacity) * BYTES_PER_PAGE + pages * BYTES_PER_NUMBER
        };
        self.caches.iter().map(cache).sum()
    }

    /// The result for a trace of `accesses` accesses.
    ///
    /// # Errors
    /// Fails when the policy rejects its parameters.
    pub fn miss_ratio(&mut self, accesses: u64, level: u32) -> Result<Option<MissRatio>, MrcError> {
        let mut ratios = Vec::with_capacity(self.caches.len());
        for cache in &mut self.caches {
            if let Some(problems) = cache.refused.take() {
                let name = cache.policy.entry.description.name.to_owned();
                return Err(MrcError::Policy(name, problems));
            }
            let level = level + if cache.part.is_some() { PARTS.ilog2() } else { 0 };
            // Misses are divided by the expected number of sampled accesses, not the actual one:
            // surplus accesses are to popular pages, which hit.
            let misses = cache.misses as f64 * (1u64 << level) as f64;
            ratios.push((misses / accesses as f64).clamp(0.0, 1.0));
        }
        let (&miss_ratio, parts) = ratios.split_first().expect("there is one cache at least");
        let error = (!parts.is_empty()).then(|| error(miss_ratio, parts));
        Ok((accesses > 0).then_some(MissRatio { miss_ratio, error }))
    }
}

/// The number of points, from the first on, that one pass simulates: all when each cache can be
/// dropped before the next is built.
pub fn fitting(points: &[Point<'_>], distances: &StackDistances) -> usize {
    // Popular pages may add more accesses than the sampling rate suggests.
    if distances.accesses() >> distances.level() <= GATHERED_MAX as u64 / 2 {
        return points.len();
    }
    let sampled = distances.blocks() >> distances.level();
    let mut bytes = 0;
    let fits = |point: &&Point<'_>| {
        bytes += point.bytes(sampled);
        bytes <= BYTES_MAX
    };
    points.iter().take_while(fits).count().max(1)
}

/// Memory of caches for a sample of `pages` pages.
pub fn bytes(points: &[Point<'_>], pages: u64) -> u64 {
    points.iter().map(|point| point.bytes(pages)).sum()
}

/// The error of a sample, estimated from the variation between its parts.
///
/// The mean of four equal parts has half the standard deviation of one; 3.18 deviations are the
/// two-sided 95 % of Student's distribution with three degrees of freedom. The difference between
/// the whole sample and the mean of its parts is the bias of a smaller sample.
pub fn error(whole: f64, parts: &[f64]) -> f64 {
    let count = parts.len() as f64;
    let mean = parts.iter().sum::<f64>() / count;
    let squares: f64 = parts.iter().map(|part| (part - mean).powi(2)).sum();
    let of_mean = (squares / (count - 1.0) / count).sqrt();
    3.18 * of_mean + (mean - whole).abs()
}

/// Runs every cache on the collected accesses, in parallel, and drops these. After the `last` time
/// the caches keep only their counts.
pub fn work(
    points: &mut [Point<'_>],
    sample: &mut Sample,
    last: bool,
    progress: &mut dyn FnMut(f64),
) {
    let caches = points.iter_mut().flat_map(|point| &mut point.caches);
    let (built_in, outside): (Vec<_>, Vec<_>) = caches.partition(|cache| cache.is_built_in());
    let count = built_in.len() + outside.len();
    let mut done = 0;
    let mut finished = || {
        done += 1;
        progress(f64::from(done) / count as f64);
    };
    // Errors of policies from outside are reported in the thread that calls them.
    for cache in outside {
        cache.run(sample, last);
        finished();
    }
    let run = |cache: &mut Cache<'_>| cache.run(sample, last);
    parallel_map(built_in, processors().min(THREADS_MAX), run, |_, ()| finished());
    sample.accesses.clear();
}

struct Cache<'a> {
    policy: &'a Policy,
    /// The part of the sample it simulates.
    part: Option<u32>,
    capacity: u32,
    misses: u64,
    refused: Option<Vec<Problem>>,
    /// Built with the first access and dropped after the last.
    inside: Option<CountingCache>,
}

impl<'a> Cache<'a> {
    const fn new(policy: &'a Policy, part: Option<u32>, capacity: u32) -> Self {
        Self { policy, part, capacity, misses: 0, refused: None, inside: None }
    }

    fn is_built_in(&self) -> bool {
        let name = self.policy.entry.description.name;
        ENTRIES.iter().any(|entry| entry.description.name == name)
    }

    fn run(&mut self, sample: &Sample, last: bool) {
        if self.refused.is_some() {
            return;
        }
        let mut inside = match self.inside.take().map_or_else(|| self.build(), Ok) {
            Ok(inside) => inside,
            Err(problems) => return self.refused = Some(problems),
        };
        inside.reserve(sample.pages.len());
        let needs_pages = inside.needs_pages();
        let mut batch = Vec::with_capacity(BATCH);
        for part in sample.accesses.chunks(BATCH) {
            let own = part.iter().filter(|access| self.part.is_none_or(|it| it == access.part()));
            batch.extend(own.map(|access| {
                let id = access.id();
                let page = if needs_pages { sample.pages[id as usize] } else { u64::from(id) };
                PageAccess::of_number(id, page, access.kind())
            }));
            inside.process(&batch);
            batch.clear();
        }
        self.misses = inside.misses();
        self.inside = Some(inside).filter(|_| !last);
    }

    fn build(&self) -> Result<CountingCache, Vec<Problem>> {
        let policy = (self.policy.entry.build)(&self.policy.settings, self.capacity)?;
        Ok(CountingCache::dense(policy, self.capacity))
    }
}
