//! The optimum: the miss ratio below which no policy goes, even with all later accesses known.
//!
//! A cache that evicts the page, the new one included, whose next access is farthest away (L. A.
//! Belady, "A study of replacement algorithms for a virtual-storage computer", IBM Systems Journal,
//! 1966; with bypass). It needs all accesses to the sample in memory.

use super::simulate::{GATHERED_MAX, MINIATURE_PAGES_MIN, PARTS, Sample, THREADS_MAX, error};
use super::{Ask, Curve, Curves, MrcError, OnProgress, Point, each};
use hybridsim_engine::{Op, SECTOR_BYTES};
use hybridsim_simulation::parallel::{parallel_map, processors};
use hybridsim_workload::profile::blocks;
use hybridsim_workload::record::{RecordReader, TraceError};
use std::collections::BTreeSet;

const NEVER: u32 = u32::MAX;

/// The curve for the sizes of `found`, on a sample of the pages of the trace that `open` opens.
pub fn curve<R: RecordReader>(
    open: impl FnMut() -> Result<R, TraceError>,
    ask: &Ask,
    found: &Curves,
    progress: &mut OnProgress<'_>,
) -> Result<Curve, MrcError> {
    let (sample, level) = sample(open, ask, found, progress)?;
    let sizes = found.curves.first().map_or(&[][..], |curve| &curve.points);
    let parts = (0..PARTS).map(Some).filter(|_| level > 0);
    let mut ratios = vec![Vec::new(); sizes.len()];
    for part in [None].into_iter().chain(parts) {
        let level = level + if part.is_some() { PARTS.ilog2() } else { 0 };
        let next = next_accesses(&sample, part);
        let ratio = |point: &Point| {
            let pages = ((point.cache_bytes / found.page_bytes) >> level).max(1);
            let misses = misses(&next, pages as usize) << level;
            (misses as f64 / found.accesses as f64).clamp(0.0, 1.0)
        };
        let threads = processors().min(THREADS_MAX);
        let simulated = parallel_map(sizes.iter().collect(), threads, ratio, |_, _| ());
        ratios.iter_mut().zip(simulated).for_each(|(list, ratio)| list.push(ratio));
    }
    let point = |(point, ratios): (&Point, Vec<f64>)| {
        let pages = (point.cache_bytes / found.page_bytes) >> level;
        let known = found.accesses > 0 && (level == 0 || pages >= MINIATURE_PAGES_MIN);
        Point {
            cache_bytes: point.cache_bytes,
            miss_ratio: ratios.first().copied().filter(|_| known),
            error: (known && level > 0).then(|| error(ratios[0], &ratios[1..])),
        }
    };
    let points = sizes.iter().zip(ratios).map(point).collect();
    let sampled_fraction = 1.0 / (1_u64 << level) as f64;
    Ok(Curve { policy: "belady".to_owned(), method: "simulation", sampled_fraction, points })
}

/// The largest sample of one page in a power of two that fits into memory, and the exponent.
fn sample<R: RecordReader>(
    mut open: impl FnMut() -> Result<R, TraceError>,
    ask: &Ask,
    found: &Curves,
    progress: &mut OnProgress<'_>,
) -> Result<(Sample, u32), MrcError> {
    let page_sectors = found.page_bytes / SECTOR_BYTES;
    let mut level = 0;
    while found.pages >> level > ask.pages_max as u64
        || found.accesses >> level >= GATHERED_MAX as u64
    {
        level += 1;
    }
    loop {
        let mut sample = Sample::new(level);
        each(&mut open()?, progress, |record| {
            let is_write = record.request.op == Op::Write;
            if !sample.is_full() {
                blocks(&record.request, page_sectors).for_each(|page| sample.note(page, is_write));
            }
        })?;
        sample.finish();
        if !sample.is_full() {
            return Ok((sample, level));
        }
        // Popular pages add more accesses than the share of pages suggests.
        level += 1;
    }
}

/// The number of the next access to the same page, for each access to `part` of the sample.
fn next_accesses(sample: &Sample, part: Option<u32>) -> Vec<u32> {
    let mut latest = vec![NEVER; sample.pages()];
    let mut next = Vec::new();
    for id in sample.ids_of(part) {
        let before = std::mem::replace(&mut latest[id as usize], next.len() as u32);
        if before != NEVER {
            next[before as usize] = next.len() as u32;
        }
        next.push(NEVER);
    }
    next
}

/// Misses of a cache of `pages` pages.
pub(super) fn misses(next: &[u32], pages: usize) -> u64 {
    // Next accesses of the cached pages.
    let mut cached = BTreeSet::new();
    let mut misses = 0;
    for (at, next) in next.iter().enumerate() {
        misses += u64::from(!cached.remove(&(at as u32)));
        if *next != NEVER && cached.insert(*next) && cached.len() > pages {
            cached.pop_last();
        }
    }
    misses
}
