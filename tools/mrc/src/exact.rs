//! Curves of all pages, in one pass over the trace: pages are numbered, and everything after that
//! works on numbers.

use super::distances::Distances;
use super::simulate::{self, Sample};
use super::{Ask, Curve, Curves, FIRST_PASS, MrcError, OnProgress, Point, Size, is_lru};
use hybridsim_engine::Op;
use hybridsim_workload::profile::blocks;
use hybridsim_workload::record::{Record, RecordReader, TraceError};

/// For more sizes than this, stack distances are faster than simulating `lru`.
const LRU_SIMULATED_MAX: usize = 3;

/// The caches, once their sizes are known.
struct Caches<'a> {
    sizes: Vec<u64>,
    /// By policy: of each size, none for `lru` by stack distances.
    points: Vec<simulate::Point<'a>>,
    distances: Option<Distances>,
}

impl<'a> Caches<'a> {
    fn new(ask: &'a Ask, sizes: Vec<u64>, pages: u64) -> Self {
        let by_distances = sizes.len() > LRU_SIMULATED_MAX;
        let simulated = ask.policies.iter().filter(|policy| !(by_distances && is_lru(policy)));
        let points = simulated
            .flat_map(|policy| {
                let point = |size: &u64| simulate::Point::new(policy, *size, pages, 0);
                sizes.iter().filter_map(point).collect::<Vec<_>>()
            })
            .collect();
        let asked = by_distances && ask.policies.iter().any(is_lru);
        Self { sizes, points, distances: asked.then(Distances::default) }
    }

    /// Runs all caches on the collected accesses.
    fn work(&mut self, sample: &mut Sample, last: bool, progress: &mut OnProgress<'_>) {
        if let Some(distances) = &mut self.distances {
            distances.add(sample.ids_of(None), sample.pages());
        }
        simulate::work(&mut self.points, sample, last, &mut |share| progress(Some(share)));
    }

    fn curves(mut self, ask: &Ask, accesses: u64, page_bytes: u64) -> Result<Vec<Curve>, MrcError> {
        let hits = self.distances.as_ref().map(|distances| distances.hits(&self.sizes));
        let mut points = self.points.iter_mut();
        let mut curves = Vec::with_capacity(ask.policies.len());
        for policy in &ask.policies {
            let hits = hits.as_ref().filter(|_| is_lru(policy));
            let mut list = Vec::with_capacity(self.sizes.len());
            for (at, size) in self.sizes.iter().enumerate() {
                let miss_ratio = match hits {
                    Some(hits) if accesses > 0 => Some(1.0 - hits[at] as f64 / accesses as f64),
                    Some(_) => None,
                    None => {
                        let cache = points.next().expect("one cache of each size");
                        cache.miss_ratio(accesses, 0)?.map(|found| found.miss_ratio)
                    }
                };
                list.push(Point { cache_bytes: size * page_bytes, miss_ratio, error: None });
            }
            let method = if hits.is_some() { "stack-distances" } else { "simulation" };
            let policy = policy.entry.description.name.to_owned();
            curves.push(Curve { policy, method, sampled_fraction: 1.0, points: list });
        }
        Ok(curves)
    }
}

/// Adds the page accesses of a record; returns whether it has any.
fn note(sample: &mut Sample, record: &Record, page_sectors: u64) -> bool {
    let write = match record.request.op {
        Op::Read => false,
        Op::Write => true,
        Op::Flush | Op::Trim | Op::Zone(_) => return false,
    };
    blocks(&record.request, page_sectors).for_each(|page| sample.note(page, write));
    true
}

/// The curves from one pass over the trace. `None` when it has more pages than `ask` allows, or
/// more accesses than fit in memory while the sizes depend on its end.
pub fn curves<R: RecordReader>(
    open: &mut impl FnMut() -> Result<R, TraceError>,
    ask: &Ask,
    page_sectors: u64,
    page_bytes: u64,
    progress: &mut OnProgress<'_>,
) -> Result<Option<Curves>, MrcError> {
    let sized = !ask.sizes.is_empty() && ask.sizes.iter().all(|s| matches!(s, Size::Bytes(_)));
    let mut sample = Sample::new(0);
    let mut caches = None;
    let mut reader = open()?;
    let (mut records, mut reports) = (Vec::new(), super::Reports::default());
    loop {
        reader.next_batch(&mut records)?;
        if records.is_empty() {
            break;
        }
        for record in &records {
            if !note(&mut sample, record, page_sectors) {
                continue;
            }
            if sample.pages() > ask.pages_max {
                return Ok(None);
            }
            if sample.is_full() {
                if !sized {
                    return Ok(None);
                }
                let all = ask.pages_max as u64;
                let caches = caches
                    .get_or_insert_with(|| Caches::new(ask, super::sizes(ask, page_bytes, 0), all));
                if simulate::bytes(&caches.points, all) > simulate::BYTES_MAX {
                    return Ok(None);
                }
                caches.work(&mut sample, false, &mut |_| {});
            }
        }
        let share = || reader.progress().map(|share| share * FIRST_PASS);
        reports.after(records.len(), || progress(share()));
    }
    sample.finish();
    let all = sample.pages() as u64;
    if all > ask.pages_max as u64 {
        return Ok(None);
    }
    let mut caches =
        caches.unwrap_or_else(|| Caches::new(ask, super::sizes(ask, page_bytes, all), all));
    caches.work(&mut sample, true, &mut |share| {
        progress(share.map(|share| FIRST_PASS + (1.0 - FIRST_PASS) * share));
    });
    let accesses = sample.accesses();
    Ok(Some(Curves {
        page_bytes,
        accesses,
        pages: all,
        footprint_bytes: all.saturating_mul(page_bytes),
        footprint_sampled_fraction: 1.0,
        curves: caches.curves(ask, accesses, page_bytes)?,
        warnings: reader.warnings().to_vec(),
    }))
}
