use super::*;
use hybridsim_cache::replacement::ENTRIES;
use hybridsim_engine::sample::Zipf;
use hybridsim_engine::{Lba, Request, SimTime, Stream};
use std::collections::{HashMap, VecDeque};

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
        method: Method::Automatic,
        belady: false,
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
    assert_eq!((found.accesses, found.curves[0].sampled_fraction), (3_000, 1.0));
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
    assert!(sample.curves[0].sampled_fraction < 0.3 && exact.curves[0].sampled_fraction == 1.0);
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
    let tiny = of(&pages, &ask(&["fifo", "lru"], &[10, 11, 12], 4_000));
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

/// Under test 16,384 accesses are gathered at a time.
#[test]
fn a_trace_is_read_once_unless_its_sizes_depend_on_its_end() {
    let pages = skewed(60_000, 2_000);
    let names: Vec<&str> = ENTRIES.iter().map(|entry| entry.description.name).collect();
    let passes = |ask: &Ask| {
        let mut passes = 0;
        let open = || {
            passes += 1;
            Ok(Records(trace(&pages).into_iter()))
        };
        let found = curves(open, ask, &mut |_| {}).unwrap_or_else(|error| panic!("{error:?}"));
        (passes, found)
    };
    let (count, streamed) = passes(&ask(&names, &[100], 4_000));
    assert_eq!(count, 1, "in pieces");
    let mut shares = ask(&names, &[], 4_000);
    shares.sizes = vec![Size::Footprint(100.0 / streamed.pages as f64)];
    let (count, again) = passes(&shares);
    assert!(count > 1, "{count} passes");
    for (one, other) in streamed.curves.iter().zip(&again.curves) {
        let [one, other] = [one, other].map(|curve| curve.points[0].miss_ratio.expect("exact"));
        assert!((one - other).abs() < 1e-12);
    }
    let (count, _) = passes(&ask(&["lru"], &[1, 2, 4, 8, 16, 32], 4_000));
    assert_eq!(count, 1, "by stack distances");
}

#[test]
fn lru_is_the_same_simulated_and_by_stack_distances() {
    let pages = skewed(50_000, 3_000);
    let sizes = [1, 2, 30, 500, 1_111, 2_999, 5_000];
    let whole = of(&pages, &ask(&["lru"], &sizes, 10_000)).curves.remove(0);
    assert_eq!(whole.method, "stack-distances");
    for (size, point) in sizes.into_iter().zip(whole.points) {
        let one = of(&pages, &ask(&["lru"], &[size], 10_000)).curves.remove(0);
        assert_eq!(one.method, "simulation");
        let (a, b) = (point.miss_ratio.expect("exact"), one.points[0].miss_ratio.expect("exact"));
        assert!((a - b).abs() < 1e-12, "{size}: {a} {b}");
    }
}

/// Nine policies at once are simulated on numbered pages, one policy on those in its cache.
#[test]
fn few_caches_decide_as_many_do() {
    let pages = skewed(40_000, 3_000);
    let names: Vec<&str> = ENTRIES.iter().map(|entry| entry.description.name).collect();
    for size in [1, 3, 50, 400, 2_900] {
        let together = of(&pages, &ask(&names, &[size], 5_000));
        for (name, expected) in names.iter().zip(&together.curves) {
            let one = of(&pages, &ask(&[name], &[size], 2_900));
            let ratio = |curve: &Curve| curve.points[0].miss_ratio.expect("exact");
            let (a, b) = (ratio(&one.curves[0]), ratio(expected));
            // Less than one access.
            assert!((a - b).abs() < 1e-9, "{name} {size}: {a} {b}");
            assert_eq!((one.accesses, one.curves[0].sampled_fraction), (40_000, 1.0));
            // Under test more than 1,024 pages are sampled.
            assert!(one.footprint_sampled_fraction < 1.0, "not numbered");
            assert_eq!(together.footprint_sampled_fraction, 1.0);
            let share = one.pages as f64 / together.pages as f64;
            assert!((share - 1.0).abs() < 0.1, "{} of {} pages", one.pages, together.pages);
        }
    }
    let few: Vec<u64> = pages.iter().map(|page| page % 900).collect();
    assert_eq!(of(&few, &ask(&["lru"], &[10], 5_000)).footprint_sampled_fraction, 1.0);
}

/// The sample of 1,024 pages is too small for the trace, but not for the cache.
#[test]
fn few_caches_are_exact_beyond_the_sample() {
    let pages = skewed(60_000, 9_000);
    let mut passes = 0;
    let open = || {
        passes += 1;
        Ok(Records(trace(&pages).into_iter()))
    };
    let found = curves(open, &ask(&["fifo", "lru"], &[500], 1_024), &mut |_| {});
    let found = found.unwrap_or_else(|error| panic!("{error:?}"));
    for (curve, again) in found.curves.iter().zip([false, true]) {
        let (point, exact) = (curve.points[0], by_hand(&pages, 500, again));
        let ours = point.miss_ratio.expect("exact");
        assert!(point.error.is_none() && (ours - exact).abs() < 1e-12, "{ours} {exact}");
    }
    assert_eq!(passes, 1);
    let larger = of(&pages, &ask(&["fifo"], &[2_000], 1_024));
    assert!(larger.curves[0].sampled_fraction < 1.0, "a cache above the sample is sampled");
}

#[test]
fn pages_of_volumes_and_far_ones_are_distinct() {
    let record = |(volume, page): (u16, u64)| {
        let request = Request::new(Op::Read, Lba(page * 8), 8);
        let request = Request { volume, ..request };
        Record { at: SimTime::ZERO, request, response: None }
    };
    let check = |pages: &[(u16, u64)], misses: f64| {
        let open =
            || Ok(Records(pages.iter().copied().map(record).collect::<Vec<_>>().into_iter()));
        let found = curves(open, &ask(&["lru"], &[8], 1_024), &mut |_| {});
        let found = found.unwrap_or_else(|error| panic!("{error:?}"));
        assert_eq!(found.curves[0].points[0].miss_ratio, Some(misses), "{pages:?}");
    };
    check(&[(0, 5), (1, 5), (0, 5), (1, 5)], 0.5);
    // As 64 bits, the page 2^48 of volume 0 is the page 0 of volume 1.
    check(&[(0, 1 << 48), (1, 0), (0, 1 << 48), (1, 0)], 0.5);
}

fn aet(names: &[&str], sizes: &[u64], pages_max: usize) -> Ask {
    Ask { method: Method::Aet, ..ask(names, sizes, pages_max) }
}

/// Greatest and mean difference of the curve by the average eviction time from the exact one.
fn aet_errors(pages: &[u64], sizes: &[u64], pages_max: usize) -> (f64, f64) {
    let exact = of(pages, &ask(&["lru"], sizes, 1 << 20)).curves.remove(0);
    let found = of(pages, &aet(&["lru"], sizes, pages_max)).curves.remove(0);
    assert_eq!((exact.method, found.method), ("stack-distances", "aet"));
    let ratio = |point: &Point| point.miss_ratio.expect("large enough");
    let pairs = exact.points.iter().zip(&found.points);
    let errors: Vec<f64> = pairs.map(|(a, b)| (ratio(a) - ratio(b)).abs()).collect();
    (errors.iter().copied().fold(0.0, f64::max), errors.iter().sum::<f64>() / errors.len() as f64)
}

#[test]
fn reuse_times_come_close_to_stack_distances() {
    let sizes = [300, 600, 1_200, 2_500, 5_000, 10_000];
    let pages = skewed(150_000, 30_000);
    let (most, mean) = aet_errors(&pages, &sizes, 1 << 20);
    assert!(most < 0.01 && mean < 0.005, "all pages: {most} {mean}");
    let (most, mean) = aet_errors(&pages, &sizes, 4_000);
    assert!(most < 0.05 && mean < 0.03, "a sample: {most} {mean}");
    let mut stream = Stream::new(3, "uniform");
    let uniform: Vec<u64> = (0..150_000).map(|_| stream.below(12_000)).collect();
    let (most, mean) = aet_errors(&uniform, &sizes, 1 << 20);
    assert!(most < 0.01 && mean < 0.005, "uniform: {most} {mean}");
    // A loop has one reuse time: all accesses miss below its length, none above it.
    let cycle: Vec<u64> = (0..120_000).map(|at| at % 2_000).collect();
    let found = of(&cycle, &aet(&["lru"], &[500, 1_500, 1_900, 2_100, 4_000], 1 << 20));
    let ratios: Vec<f64> = found.curves[0]
        .points
        .iter()
        .map(|point| point.miss_ratio.expect("it is sampled"))
        .collect();
    let cold = 2_000.0 / 120_000.0;
    assert!(ratios[..3].iter().all(|ratio| (ratio - 1.0).abs() < 1e-9), "{ratios:?}");
    assert!(ratios[3..].iter().all(|ratio| (ratio - cold).abs() < 1e-9), "{ratios:?}");
}

#[test]
fn reuse_times_take_one_pass_and_bounded_memory() {
    let pages = skewed(100_000, 30_000);
    let mut passes = 0;
    let open = || {
        passes += 1;
        Ok(Records(trace(&pages).into_iter()))
    };
    let found = curves(open, &aet(&["lru"], &[], 2_000), &mut |_| {});
    let found = found.unwrap_or_else(|error| panic!("{error:?}"));
    assert_eq!((passes, found.accesses, found.curves.len()), (1, 100_000, 1));
    let pages = found.pages as f64 * found.curves[0].sampled_fraction;
    assert!(
        found.curves[0].sampled_fraction < 1.0 && pages <= 2_000.0,
        "{pages} pages in the sample"
    );
    let points = &found.curves[0].points;
    assert!(points.iter().any(|point| point.error.is_some_and(|error| error > 0.0)));
    let known: Vec<f64> = points.iter().filter_map(|point| point.miss_ratio).collect();
    assert!(known.len() > 5 && known.windows(2).all(|pair| pair[0] >= pair[1]), "{known:?}");
    let none = of(&[], &aet(&["lru"], &[], 2_000));
    assert!(none.curves[0].points.iter().all(|point| point.miss_ratio.is_none()));
}

/// The fewest misses of any decisions about `pages`: each choice of a victim, and bypass, is tried.
fn fewest_misses(pages: &[u64], cached: &[u64], size: usize) -> u32 {
    let Some((page, rest)) = pages.split_first() else { return 0 };
    if cached.contains(page) {
        return fewest_misses(rest, cached, size);
    }
    let mut fewest = fewest_misses(rest, cached, size);
    let with = |kept: Vec<u64>| {
        let added: Vec<u64> = kept.into_iter().chain([*page]).collect();
        fewest_misses(rest, &added, size)
    };
    if cached.len() < size {
        fewest = fewest.min(with(cached.to_vec()));
    }
    for victim in cached {
        let kept = cached.iter().copied().filter(|page| page != victim).collect();
        fewest = fewest.min(with(kept));
    }
    fewest + 1
}

#[test]
fn no_decisions_miss_less_than_the_optimum() {
    let mut stream = Stream::new(11, "mrc");
    for _ in 0..60 {
        let pages: Vec<u64> = (0..10).map(|_| stream.below(5)).collect();
        let found = of(&pages, &Ask { belady: true, ..ask(&["lru"], &[1, 2, 3], 1000) });
        assert_eq!(found.curves[1].policy, "belady");
        for (size, point) in [1, 2, 3].into_iter().zip(&found.curves[1].points) {
            let fewest = f64::from(fewest_misses(&pages, &[], size)) / pages.len() as f64;
            assert_eq!(point.miss_ratio, Some(fewest), "{pages:?}, {size}");
        }
    }
}

#[test]
fn every_policy_misses_at_least_as_often_as_the_optimum() {
    let pages = skewed(12_000, 2_000);
    let names: Vec<&str> = ENTRIES.iter().map(|entry| entry.description.name).collect();
    let sizes = [16, 100, 400, 1_000, 1_500];
    let exact = of(&pages, &Ask { belady: true, ..ask(&names, &sizes, 5_000) });
    assert_eq!(exact.curves[0].sampled_fraction, 1.0);
    let (optimum, policies) = exact.curves.split_last().expect("the optimum is last");
    for (at, least) in optimum.points.iter().enumerate() {
        let least = least.miss_ratio.expect("exact");
        for curve in policies {
            let ratio = curve.points[at].miss_ratio.expect("exact");
            assert!(least <= ratio, "{} at {at}: {ratio}, {least}", curve.policy);
        }
    }
}

#[test]
fn a_sample_of_pages_or_accesses_comes_close_to_the_optimum() {
    let sizes = [16, 100, 400, 1_000, 1_500];
    // The longer trace has more accesses than are collected at once.
    for (count, pages_max) in [(12_000, 1_024), (48_000, 5_000)] {
        let pages = skewed(count, 2_000);
        let mut next = vec![u32::MAX; count];
        let mut latest = HashMap::new();
        for (at, page) in pages.iter().enumerate() {
            if let Some(before) = latest.insert(page, at) {
                next[before] = at as u32;
            }
        }
        let found = of(&pages, &Ask { belady: true, ..ask(&["lru"], &sizes, pages_max) });
        let optimum = &found.curves[1];
        assert!(optimum.sampled_fraction < 1.0);
        assert_eq!(optimum.points[0].miss_ratio, None, "too small for the sample");
        let (mut known, mut worst) = (0, 0.0_f64);
        for (point, size) in optimum.points.iter().zip(sizes) {
            let (Some(ratio), Some(error)) = (point.miss_ratio, point.error) else { continue };
            let exact = belady::misses(&next, size as usize) as f64 / count as f64;
            assert!((ratio - exact).abs() <= error, "{size}: {ratio} of {exact} +- {error}");
            (known, worst) = (known + 1, worst.max(error));
        }
        assert!(known >= 3 && worst < 0.2, "{known} sizes, errors up to {worst}");
    }
}
