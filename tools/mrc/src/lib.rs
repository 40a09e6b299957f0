//! Miss-ratio curves: what a cache of each size would miss of a trace.
//!
//! For `lru` all sizes come from one pass over stack distances, followed for a sample of pages
//! (SHARDS: Waldspurger et al., FAST 2015). Any other policy is run as it is registered, once for
//! each size, on the same sample in a cache smaller by as much (Waldspurger et al., "Cache
//! Modeling and Optimization using Miniature Simulations", USENIX ATC 2017). While all pages of a
//! trace fit the sample, both are exact. How far parts of the sample are from each other tells how
//! far a figure may be from the truth.

mod simulate;

use hybridsim_cache::replacement::ReplacementEntry;
use hybridsim_config::param::{Problem, Settings};
use hybridsim_engine::{Op, SECTOR_BYTES};
use hybridsim_workload::profile::{StackDistances, blocks, sample_hash};
use hybridsim_workload::record::{Record, RecordReader, TraceError, Warning};
use serde::Serialize;

/// Sizes in a curve, unless they are asked for: from the footprint down in steps of 2^(1/2).
const SIZES: u32 = 21;
/// Share of the work that is reading the trace once.
const FIRST_PASS: f64 = 0.2;
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
    /// How far from it the truth may be, either way; `null` where the miss ratio is exact.
    pub error: Option<f64>,
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
    let mut distances = StackDistances::new(ask.pages_max);
    let mut reader = open()?;
    each(&mut reader, &mut |share| watch(share.map(|share| share * FIRST_PASS)), |record| {
        for page in blocks(&record.request, page_sectors) {
            distances.access(page, sample_hash(page));
        }
    })?;
    let (level, all) = (distances.level(), distances.blocks());
    let sizes = sizes(ask, page_bytes, all);
    let mut caches = Vec::new();
    // Where each policy and size is among the caches.
    let mut places: Vec<Vec<Option<usize>>> = Vec::with_capacity(ask.policies.len());
    for policy in &ask.policies {
        // Stack distances know everything of `lru` but how good a sample is.
        let wanted = level > 0 || !is_lru(policy);
        let place = |&pages: &u64| {
            let point = simulate::Point::new(policy, pages, all, level).filter(|_| wanted)?;
            caches.push(point);
            Some(caches.len() - 1)
        };
        places.push(sizes.iter().map(place).collect());
    }
    run_all(&mut open, page_sectors, &distances, &mut caches, watch)?;
    let mut curves = Vec::with_capacity(ask.policies.len());
    for (policy, places) in ask.policies.iter().zip(&places) {
        let points = sizes.iter().zip(places).map(|(&pages, place)| {
            let cache = place.map(|place| &mut caches[place]);
            point(is_lru(policy), pages, page_bytes, &distances, cache)
        });
        let points = points.collect::<Result<Vec<Point>, MrcError>>()?;
        let method = if is_lru(policy) { "stack-distances" } else { "simulation" };
        let policy = policy.entry.description.name.to_owned();
        curves.push(Curve { policy, method, points });
    }
    Ok(Curves {
        page_bytes,
        accesses: distances.accesses(),
        pages: all,
        footprint_bytes: all.saturating_mul(page_bytes),
        sampled_fraction: 1.0 / (1u64 << level) as f64,
        curves,
        warnings: reader.warnings().to_vec(),
    })
}

/// What came out for a cache of so many pages.
fn point(
    is_lru: bool,
    pages: u64,
    page_bytes: u64,
    distances: &StackDistances,
    cache: Option<&mut simulate::Point<'_>>,
) -> Result<Point, MrcError> {
    let level = distances.level();
    let found = cache.map(|cache| cache.found(distances.accesses(), level)).transpose()?.flatten();
    let mut point = Point {
        cache_bytes: pages * page_bytes,
        miss_ratio: found.as_ref().map(|found| found.miss_ratio),
        error: found.and_then(|found| found.error),
    };
    // A sample too small to tell how good it is tells nothing.
    if is_lru && (level == 0 || point.error.is_some()) {
        point.miss_ratio = distances.hit_ratio(pages).map(|hits| 1.0 - hits);
    }
    Ok(point)
}

/// Runs all caches on the sample, as many in one pass over the trace as memory is meant to hold.
fn run_all<R: RecordReader>(
    open: &mut impl FnMut() -> Result<R, TraceError>,
    page_sectors: u64,
    distances: &StackDistances,
    caches: &mut [simulate::Point<'_>],
    watch: &mut Watch<'_>,
) -> Result<(), MrcError> {
    let (count, mut done, mut rest) = (caches.len(), 0, caches);
    while !rest.is_empty() {
        let fit = simulate::fitting(rest, distances);
        let (group, tail) = std::mem::take(&mut rest).split_at_mut(fit);
        let whole = |own: f64| {
            let shares = (done as f64 + own * fit as f64) / count as f64;
            FIRST_PASS + (1.0 - FIRST_PASS) * shares
        };
        let mut watch = |own: Option<f64>| watch(own.map(whole));
        run_some(&mut open()?, page_sectors, distances.level(), group, &mut watch)?;
        (done, rest) = (done + fit, tail);
    }
    Ok(())
}

/// Runs some caches on the sample in one pass over the trace.
fn run_some<R: RecordReader>(
    reader: &mut R,
    page_sectors: u64,
    level: u32,
    caches: &mut [simulate::Point<'_>],
    watch: &mut Watch<'_>,
) -> Result<(), MrcError> {
    let mut sample = simulate::Sample::new(level);
    let mut reading = |share: Option<f64>| watch(share.map(|share| FIRST_PASS * share));
    each(reader, &mut reading, |record| {
        let write = record.request.op == Op::Write;
        for page in blocks(&record.request, page_sectors) {
            sample.note(page, write);
        }
        if sample.is_full() {
            simulate::work(caches, &mut sample, false, &mut |_| {});
        }
    })?;
    simulate::work(caches, &mut sample, true, &mut |share| {
        watch(Some(FIRST_PASS + (1.0 - FIRST_PASS) * share));
    });
    Ok(())
}

fn is_lru(policy: &Policy) -> bool {
    policy.entry.description.name == "lru"
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

#[cfg(test)]
mod tests;
