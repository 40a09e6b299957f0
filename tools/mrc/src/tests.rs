use super::*;
use hybridsim_cache::replacement::ENTRIES;
use hybridsim_engine::sample::Zipf;
use hybridsim_engine::{Lba, Request, SimTime, Stream};
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
            let error = point.error.expect("a sample has an error");
            assert_eq!(whole_point.error, None);
            assert!(error < 0.1 && (a - b).abs() <= error, "{} {point:?}: {a}", whole.policy);
        }
    }
    let tiny = of(&pages, &ask(&["fifo", "lru"], &[10], 4_000));
    for curve in tiny.curves {
        let point = curve.points[0];
        assert_eq!((point.miss_ratio, point.error), (None, None), "the sample is too small");
    }
}

/// Under test few accesses are gathered at a time, and few caches fit one pass.
#[test]
fn a_long_trace_goes_through_the_caches_in_pieces_and_passes() {
    let mut passes = 0;
    let pages = skewed(100_000, 2_000);
    let sizes = [1, 40, 300, 1_500, 1_999];
    let open = || {
        passes += 1;
        Ok(Records(trace(&pages).into_iter()))
    };
    let ask = ask(&["fifo", "clock", "sieve"], &sizes, 10_000);
    let found = curves(open, &ask, &mut |_| {}).unwrap_or_else(|error| panic!("{error:?}"));
    assert!(passes > 2, "{passes} passes");
    for (point, size) in found.curves[0].points.iter().zip(sizes) {
        let exact = by_hand(&pages, size as usize, false);
        assert!((point.miss_ratio.expect("exact") - exact).abs() < 1e-12, "{size}");
    }
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
