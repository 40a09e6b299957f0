//! Caches of any policy, run on the sampled pages.
//!
//! The sampled accesses are gathered first and every cache then goes through all of them at once:
//! a cache by itself stays in the processor's own memory, hundreds in turns do not.

use super::{MrcError, Policy};
use hybridsim_cache::replacement::{Access, CachedPage, ENTRIES, Replacement};
use hybridsim_config::param::Problem;
use hybridsim_workload::profile::{Key, StackDistances, sample_hash, sampled};
use rustc_hash::FxHashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// A simulated cache of fewer pages than this says little of a larger one.
const MINIATURE_PAGES_MIN: u64 = 32;
/// Parts of the sample that are simulated for themselves, to see how far they are apart.
pub const PARTS: u32 = 4;
/// More caches at a time would take more memory than they save time.
const THREADS_MAX: usize = 8;
/// Accesses gathered before the caches go through them: 128 MiB.
const GATHERED_MAX: usize = if cfg!(test) { 1 << 14 } else { 1 << 25 };
/// Where not all can be gathered at once, caches that together need more have a pass each.
const BYTES_MAX: u64 = if cfg!(test) { 1 << 20 } else { 1 << 29 };
/// Most that a policy and a cache need for a page in the cache (as measured).
const BYTES_PER_PAGE: u64 = 96;

/// The sampled pages, numbered in the order they come, and accesses to them.
pub struct Sample {
    level: u32,
    ids: FxHashMap<Key, u32>,
    /// By number in the sample, a number among all pages.
    pages: Vec<u64>,
    accesses: Vec<Packed>,
}

/// An access: the page's number in the sample, the part of the sample it is in, read or write.
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
        Self { level, ids: FxHashMap::default(), pages: Vec::new(), accesses: Vec::new() }
    }

    /// Notes an access, if its page is in the sample.
    pub fn note(&mut self, page: Key, write: bool) {
        let hash = sample_hash(page);
        if !sampled(hash, self.level) {
            return;
        }
        let next = self.pages.len() as u32;
        let id = *self.ids.entry(page).or_insert(next);
        if id == next {
            assert!(next < 1 << 29, "a sample has at most 2^24 pages");
            self.pages.push(page.1 ^ (u64::from(page.0) << 48));
        }
        let part = (hash >> self.level) as u32 & (PARTS - 1);
        self.accesses.push(Packed::new(id, part, write));
    }

    /// Whether it is time to go through what was gathered.
    pub fn is_full(&self) -> bool {
        self.accesses.len() >= GATHERED_MAX
    }
}

/// The caches of one size under one policy: one for the whole sample, and one for each part.
pub struct Point<'a> {
    caches: Vec<Cache<'a>>,
}

/// Share of misses of a cache.
pub struct Found {
    /// From the whole sample.
    pub miss_ratio: f64,
    /// How far from it the truth may be; `None` when all pages were followed.
    pub error: Option<f64>,
}

impl<'a> Point<'a> {
    /// A cache of `pages` pages for a trace of `all` pages, of which one in `2^level` is followed;
    /// `None` where the sample is too small for it.
    pub fn new(policy: &'a Policy, pages: u64, all: u64, level: u32) -> Option<Self> {
        if level > 0 && pages >> level < MINIATURE_PAGES_MIN {
            return None;
        }
        // A cache that holds every page is as good as a larger one.
        let room = |level: u32| (pages.min(all) >> level).clamp(1, u64::from(u32::MAX)) as u32;
        let mut caches = vec![Cache::new(policy, None, room(level))];
        if level > 0 {
            let part = |part| Cache::new(policy, Some(part), room(level + PARTS.ilog2()));
            caches.extend((0..PARTS).map(part));
        }
        Some(Self { caches })
    }

    /// What came out, for a trace of so many accesses.
    ///
    /// # Errors
    /// What the policy has against its parameters.
    pub fn found(&mut self, accesses: u64, level: u32) -> Result<Option<Found>, MrcError> {
        let mut ratios = Vec::with_capacity(self.caches.len());
        for cache in &mut self.caches {
            if let Some(problems) = cache.refused.take() {
                let name = cache.policy.entry.description.name.to_owned();
                return Err(MrcError::Policy(name, problems));
            }
            let level = level + if cache.part.is_some() { PARTS.ilog2() } else { 0 };
            // Misses are set against the accesses there should be in the sample, not those that
            // are: what it has too many of are uses of popular pages, which hit.
            let misses = cache.misses as f64 * (1u64 << level) as f64;
            ratios.push((misses / accesses as f64).clamp(0.0, 1.0));
        }
        let (&miss_ratio, parts) = ratios.split_first().expect("there is one cache at least");
        let error = (!parts.is_empty()).then(|| error(miss_ratio, parts));
        Ok((accesses > 0).then_some(Found { miss_ratio, error }))
    }
}

/// How many of the first of `points` one pass is for. While a cache can be dropped before the next
/// is made, that is all of them.
pub fn fitting(points: &[Point<'_>], distances: &StackDistances) -> usize {
    // Popular pages may bring more accesses into the sample than its share.
    if distances.accesses() >> distances.level() <= GATHERED_MAX as u64 / 2 {
        return points.len();
    }
    let sampled = distances.blocks() >> distances.level();
    let cache = |cache: &Cache<'_>| u64::from(cache.room) * BYTES_PER_PAGE + sampled * 4;
    let mut bytes = 0;
    let fits = |point: &&Point<'_>| {
        bytes += point.caches.iter().map(cache).sum::<u64>();
        bytes <= BYTES_MAX
    };
    points.iter().take_while(fits).count().max(1)
}

/// How far a sample may be from the truth, by how far its parts are from each other.
///
/// The mean of four equal parts has half the deviation of one; 3.18 deviations are the two-sided
/// 95 % of Student's distribution with three degrees of freedom. What the whole sample differs
/// from the mean of its parts by is what a smaller sample does to the policy itself.
fn error(whole: f64, parts: &[f64]) -> f64 {
    let count = parts.len() as f64;
    let mean = parts.iter().sum::<f64>() / count;
    let squares: f64 = parts.iter().map(|part| (part - mean).powi(2)).sum();
    let of_mean = (squares / (count - 1.0) / count).sqrt();
    3.18 * of_mean + (mean - whole).abs()
}

/// Lets every cache go through what was gathered, side by side, and forgets it. After the `last`
/// time nothing is kept but counts.
pub fn work(points: &mut [Point<'_>], sample: &mut Sample, last: bool, watch: &mut dyn FnMut(f64)) {
    let caches = points.iter_mut().flat_map(|point| &mut point.caches);
    let (shared, own): (Vec<&mut Cache<'_>>, Vec<_>) = caches.partition(|cache| cache.may_move());
    let count = shared.len() + own.len();
    let threads =
        thread::available_parallelism().map_or(1, |threads| threads.get().min(THREADS_MAX));
    let (queue, done) = (Mutex::new(shared.into_iter()), AtomicUsize::new(0));
    let (next, done, gathered) = (|| queue.lock().ok()?.next(), &done, &*sample);
    let go = |cache: &mut Cache<'_>| {
        cache.go_through(gathered, last);
        done.fetch_add(1, Ordering::Relaxed)
    };
    thread::scope(|scope| {
        for _ in 1..threads {
            scope.spawn(|| {
                while let Some(cache) = next() {
                    go(cache);
                }
            });
        }
        for cache in own.into_iter().chain(std::iter::from_fn(next)) {
            watch((go(cache) + 1) as f64 / count as f64);
        }
    });
    sample.accesses.clear();
}

const NOWHERE: u32 = u32::MAX;

/// A cache that knows only which pages are in it.
struct Cache<'a> {
    policy: &'a Policy,
    /// Only pages of this part come.
    part: Option<u32>,
    room: u32,
    misses: u64,
    refused: Option<Vec<Problem>>,
    /// Made when it is needed, and gone when it is not any more.
    inside: Option<Inside>,
}

struct Inside {
    policy: Box<dyn Replacement>,
    /// Slot by number of the page in the sample.
    slots: Vec<u32>,
    /// Page number in the sample by slot.
    held: Vec<u32>,
    victims: Vec<CachedPage>,
}

impl<'a> Cache<'a> {
    const fn new(policy: &'a Policy, part: Option<u32>, room: u32) -> Self {
        Self { policy, part, room, misses: 0, refused: None, inside: None }
    }

    /// Whether any thread may run it. What others have registered may want its own.
    fn may_move(&self) -> bool {
        let name = self.policy.entry.description.name;
        ENTRIES.iter().any(|entry| entry.description.name == name)
    }

    fn go_through(&mut self, sample: &Sample, last: bool) {
        if self.refused.is_some() {
            return;
        }
        let mut inside = match self.inside.take().map_or_else(|| self.build(), Ok) {
            Ok(inside) => inside,
            Err(problems) => return self.refused = Some(problems),
        };
        inside.slots.resize(sample.pages.len(), NOWHERE);
        for access in &sample.accesses {
            if self.part.is_none_or(|part| part == access.part()) {
                self.misses += u64::from(inside.access(*access, sample, self.room));
            }
        }
        self.inside = Some(inside).filter(|_| !last);
    }

    fn build(&self) -> Result<Inside, Vec<Problem>> {
        let policy = (self.policy.entry.build)(&self.policy.settings, self.room)?;
        let (slots, held, victims) = (Vec::new(), Vec::new(), Vec::new());
        Ok(Inside { policy, slots, held, victims })
    }
}

impl Inside {
    /// Whether it missed.
    fn access(&mut self, access: Packed, sample: &Sample, room: u32) -> bool {
        let id = access.id();
        let (slot, page) = (self.slots[id as usize], sample.pages[id as usize]);
        if slot != NOWHERE {
            self.policy.update(CachedPage { page, slot }, access.kind());
            return false;
        }
        let slot = if self.held.len() < room as usize {
            self.held.push(id);
            self.held.len() as u32 - 1
        } else {
            // A policy that gives up nothing lets the page pass by.
            let Some(slot) = self.make_room(page) else { return true };
            self.held[slot as usize] = id;
            slot
        };
        self.slots[id as usize] = slot;
        self.policy.update(CachedPage { page, slot }, Access::Add);
        true
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
}
