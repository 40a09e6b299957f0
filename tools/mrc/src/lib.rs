//! Miss-ratio curves: the miss ratio of a trace as a function of the cache size.
//!
//! For `lru` and many sizes, one pass over the stack distances of a sample of the pages gives all
//! of them (SHARDS: Waldspurger et al., FAST 2015). Any other registered policy, and `lru` for a
//! few sizes, is simulated once for each size, on the same sample with a cache scaled down by the
//! sampling rate (Waldspurger et al., "Cache Modeling and Optimization using Miniature
//! Simulations", USENIX ATC 2017). Both are exact when the sample includes all pages. The error
//! of a point is estimated from the variation between disjoint parts of the sample.
//!
//! A few sizes in bytes need neither: their caches process the trace as it is read, whatever its
//! length. On request, `lru` is modelled by its average eviction time instead.

mod aet;
mod belady;
mod direct;
mod distances;
mod exact;
mod numbers;
mod simulate;

use hybridsim_cache::replacement::ReplacementEntry;
use hybridsim_config::param::{Problem, Settings};
use hybridsim_engine::{Op, SECTOR_BYTES};
use hybridsim_workload::profile::{StackDistances, blocks, sample_hash};
use hybridsim_workload::record::{Record, RecordReader, TraceError, Warning};
use serde::Serialize;

/// Default sizes of a curve: from the footprint down in steps of 2^(1/2).
const SIZES: u32 = 21;
/// Share of the progress for the first pass over the trace.
const FIRST_PASS: f64 = 0.2;
const REPORT_EVERY: usize = 1 << 16;

/// A policy with its parameters.
pub struct Policy {
    /// Which.
    pub entry: ReplacementEntry,
    /// The policy's parameters.
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

/// The method of computing curves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Method {
    /// Stack distances for many sizes of `lru`, simulation for anything else.
    #[default]
    Automatic,
    /// The average eviction time, a model of `lru`.
    Aet,
}

/// The requested curves.
pub struct Ask {
    /// Bytes of a page, a multiple of 512.
    pub page_bytes: u64,
    /// The policies.
    pub policies: Vec<Policy>,
    /// The sizes; evenly spread up to the footprint when empty.
    pub sizes: Vec<Size>,
    /// Maximum number of sampled pages.
    pub pages_max: usize,
    /// The method. [`Method::Aet`] is for `lru` alone.
    pub method: Method,
    /// Adds the curve `belady`, the optimum that no policy goes below.
    pub belady: bool,
}

/// The curves of a trace.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Curves {
    /// Bytes of a page.
    pub page_bytes: u64,
    /// Page accesses.
    pub accesses: u64,
    /// Distinct pages.
    pub pages: u64,
    /// Size of the distinct pages.
    pub footprint_bytes: u64,
    /// Share of the distinct pages that was counted to estimate their number; 1 is exact.
    pub footprint_sampled_fraction: f64,
    /// One curve per policy.
    pub curves: Vec<Curve>,
    /// Warnings about the trace.
    #[serde(skip)]
    pub warnings: Vec<Warning>,
}

/// The curve of a policy.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Curve {
    /// The policy's name.
    pub policy: String,
    /// The method: `stack-distances`, `simulation` or `aet`.
    pub method: &'static str,
    /// Share of pages in the sample; 1 is exact, except by `aet`.
    pub sampled_fraction: f64,
    /// In ascending order of size.
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
    /// Estimated error of the sample, in either direction; `null` where all pages are in it. The
    /// error of a model, such as the average eviction time, comes on top.
    pub error: Option<f64>,
}

/// Why there are no curves.
#[derive(Debug)]
pub enum MrcError {
    Trace(TraceError),
    /// A policy refuses its parameters.
    Policy(String, Vec<Problem>),
}

impl From<TraceError> for MrcError {
    fn from(error: TraceError) -> Self {
        Self::Trace(error)
    }
}

/// Receives the share of the work that is done, where it is known.
pub type OnProgress<'a> = dyn FnMut(Option<f64>) + 'a;

/// Decides when progress is reported.
#[derive(Default)]
struct Reports {
    records: usize,
}

impl Reports {
    /// After `records` more; reports when they are many.
    fn after(&mut self, records: usize, report: impl FnOnce()) {
        self.records += records;
        if self.records >= REPORT_EVERY {
            self.records = 0;
            report();
        }
    }
}

/// The curves of the trace `open` opens, which is read once if it fits into memory, otherwise
/// several times, and at least once more for the optimum.
///
/// # Errors
/// Fails when the trace cannot be read, or a policy refuses its parameters.
pub fn curves<R: RecordReader>(
    mut open: impl FnMut() -> Result<R, TraceError>,
    ask: &Ask,
    progress: &mut OnProgress<'_>,
) -> Result<Curves, MrcError> {
    let mut found = curves_of_policies(&mut open, ask, progress)?;
    if ask.belady {
        let optimum = belady::curve(&mut open, ask, &found, progress)?;
        found.curves.push(optimum);
    }
    Ok(found)
}

fn curves_of_policies<R: RecordReader>(
    mut open: impl FnMut() -> Result<R, TraceError>,
    ask: &Ask,
    progress: &mut OnProgress<'_>,
) -> Result<Curves, MrcError> {
    let page_sectors = (ask.page_bytes / SECTOR_BYTES).max(1);
    let page_bytes = page_sectors * SECTOR_BYTES;
    if ask.method == Method::Aet {
        return aet_curves(&mut open()?, ask, page_sectors, page_bytes, progress);
    }
    if let Some(curves) = direct::curves(&mut open, ask, page_sectors, page_bytes, progress)? {
        return Ok(curves);
    }
    if let Some(curves) = exact::curves(&mut open, ask, page_sectors, page_bytes, progress)? {
        return Ok(curves);
    }
    let mut distances = StackDistances::new(ask.pages_max);
    let mut reader = open()?;
    each(&mut reader, &mut |share| progress(share.map(|share| share * FIRST_PASS)), |record| {
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
        // For `lru`, only the error is simulated; stack distances give the miss ratio.
        let wanted = level > 0 || !is_lru(policy);
        let place = |&pages: &u64| {
            let point = simulate::Point::new(policy, pages, all, level).filter(|_| wanted)?;
            caches.push(point);
            Some(caches.len() - 1)
        };
        places.push(sizes.iter().map(place).collect());
    }
    run_all(&mut open, page_sectors, &distances, &mut caches, progress)?;
    let sampled_fraction = 1.0 / (1u64 << level) as f64;
    let mut curves = Vec::with_capacity(ask.policies.len());
    for (policy, places) in ask.policies.iter().zip(&places) {
        let points = sizes.iter().zip(places).map(|(&pages, place)| {
            let cache = place.map(|place| &mut caches[place]);
            point(is_lru(policy), pages, page_bytes, &distances, cache)
        });
        let points = points.collect::<Result<Vec<Point>, MrcError>>()?;
        let method = if is_lru(policy) { "stack-distances" } else { "simulation" };
        let policy = policy.entry.description.name.to_owned();
        curves.push(Curve { policy, method, sampled_fraction, points });
    }
    Ok(Curves {
        page_bytes,
        accesses: distances.accesses(),
        pages: all,
        footprint_bytes: all.saturating_mul(page_bytes),
        footprint_sampled_fraction: sampled_fraction,
        curves,
        warnings: reader.warnings().to_vec(),
    })
}

/// The curve of `lru` by its average eviction time.
fn aet_curves<R: RecordReader>(
    reader: &mut R,
    ask: &Ask,
    page_sectors: u64,
    page_bytes: u64,
    progress: &mut OnProgress<'_>,
) -> Result<Curves, MrcError> {
    let mut times = aet::ReuseTimes::new(ask.pages_max);
    each(reader, progress, |record| {
        blocks(&record.request, page_sectors).for_each(|page| times.access(page));
    })?;
    let (level, all) = (times.level(), times.pages());
    let sizes = sizes(ask, page_bytes, all);
    let ratios = times.miss_ratios(&sizes);
    let point = |(at, pages): (usize, &u64)| {
        let found = ratios.as_ref().map(|ratios| ratios[at]);
        let found = found.filter(|_| pages >> level >= simulate::MINIATURE_PAGES_MIN || level == 0);
        Point {
            cache_bytes: pages * page_bytes,
            miss_ratio: found.map(|(ratio, _)| ratio),
            error: found.and_then(|(_, error)| error),
        }
    };
    let points: Vec<Point> = sizes.iter().enumerate().map(point).collect();
    let sampled_fraction = 1.0 / (1u64 << level) as f64;
    let curve = |policy: &Policy| Curve {
        policy: policy.entry.description.name.to_owned(),
        method: "aet",
        sampled_fraction,
        points: points.clone(),
    };
    Ok(Curves {
        page_bytes,
        accesses: times.accesses(),
        pages: all,
        footprint_bytes: all.saturating_mul(page_bytes),
        footprint_sampled_fraction: sampled_fraction,
        curves: ask.policies.iter().map(curve).collect(),
        warnings: reader.warnings().to_vec(),
    })
}

fn point(
    is_lru: bool,
    pages: u64,
    page_bytes: u64,
    distances: &StackDistances,
    cache: Option<&mut simulate::Point<'_>>,
) -> Result<Point, MrcError> {
    let level = distances.level();
    let found =
        cache.map(|cache| cache.miss_ratio(distances.accesses(), level)).transpose()?.flatten();
    let mut point = Point {
        cache_bytes: pages * page_bytes,
        miss_ratio: found.as_ref().map(|found| found.miss_ratio),
        error: found.and_then(|found| found.error),
    };
    // Without an estimate of the error there is no result.
    if is_lru && (level == 0 || point.error.is_some()) {
        point.miss_ratio = distances.hit_ratio(pages).map(|hits| 1.0 - hits);
    }
    Ok(point)
}

/// Runs all caches on the sample, as many in one pass over the trace as the memory limit allows.
fn run_all<R: RecordReader>(
    open: &mut impl FnMut() -> Result<R, TraceError>,
    page_sectors: u64,
    distances: &StackDistances,
    caches: &mut [simulate::Point<'_>],
    progress: &mut OnProgress<'_>,
) -> Result<(), MrcError> {
    let (count, mut done, mut rest) = (caches.len(), 0, caches);
    while !rest.is_empty() {
        let fit = simulate::fitting(rest, distances);
        let (group, tail) = std::mem::take(&mut rest).split_at_mut(fit);
        let whole = |own: f64| {
            let shares = (done as f64 + own * fit as f64) / count as f64;
            FIRST_PASS + (1.0 - FIRST_PASS) * shares
        };
        let mut progress = |own: Option<f64>| progress(own.map(whole));
        run_some(&mut open()?, page_sectors, distances.level(), group, &mut progress)?;
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
    progress: &mut OnProgress<'_>,
) -> Result<(), MrcError> {
    let mut sample = simulate::Sample::new(level);
    let mut reading = |share: Option<f64>| progress(share.map(|share| FIRST_PASS * share));
    each(reader, &mut reading, |record| {
        let write = record.request.op == Op::Write;
        for page in blocks(&record.request, page_sectors) {
            sample.note(page, write);
        }
        if sample.is_full() {
            simulate::work(caches, &mut sample, false, &mut |_| {});
        }
    })?;
    sample.finish();
    simulate::work(caches, &mut sample, true, &mut |share| {
        progress(Some(FIRST_PASS + (1.0 - FIRST_PASS) * share));
    });
    Ok(())
}

fn is_lru(policy: &Policy) -> bool {
    policy.entry.description.name == "lru"
}

/// Calls `take` for every read and write.
fn each<R: RecordReader>(
    reader: &mut R,
    progress: &mut OnProgress<'_>,
    mut take: impl FnMut(&Record),
) -> Result<(), MrcError> {
    let (mut records, mut reports) = (Vec::new(), Reports::default());
    loop {
        reader.next_batch(&mut records)?;
        if records.is_empty() {
            return Ok(());
        }
        let is_access = |record: &&Record| matches!(record.request.op, Op::Read | Op::Write);
        records.iter().filter(is_access).for_each(&mut take);
        reports.after(records.len(), || progress(reader.progress()));
    }
}

/// The sizes in pages, ascending and distinct.
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
