//! The SLC cache of a TLC or QLC drive, against what is known of such drives: writes are fast until
//! the cache is full, then as fast as it can be folded (the "write cliff"), and fast again after
//! idle time, as far as that was enough to empty it. The times come from the parameters.

mod common;

use common::{Done, Host, run, text, us};
use hybridsim_config::build::BuildInput;
use hybridsim_config::param::{Settings, Value};
use hybridsim_engine::{Lba, Op, Request, SimTime};
use hybridsim_flash::defaults;
use hybridsim_ssd::slc_mlc::{PARAMS, build_slc_mlc};

/// Pages of 4 sectors, blocks of 8 pages, 16 blocks of SLC flash and 64 exported.
const PAGES: u64 = 8;
const BLOCKS: u64 = 64;
/// Blocks written before the first has to be cleaned: all but two, the next one and one for the
/// valid pages of a tail block.
const CACHE_BLOCKS: u64 = 16 - 2;
/// Programming an SLC page.
const FAST_US: f64 = 200.0;
/// Emptying an SLC block of sequential data: each page read and programmed as MLC, one erase.
const FOLD_BLOCK_US: f64 = PAGES as f64 * (25.0 + 800.0) + 1500.0;

fn cache() -> Settings {
    let page_bytes = 2048;
    let block_bytes = PAGES * page_bytes;
    let plain = defaults::settings(PARAMS, &hybridsim_ssd::registry())
        .and("capacity", Value::Bytes(BLOCKS * block_bytes))
        .and("mlc_size", Value::Bytes((BLOCKS + 8) * block_bytes))
        .and("mlc_page_size", Value::Bytes(page_bytes))
        .and("mlc_pages_per_block", Value::Count(PAGES))
        .and("slc_size", Value::Bytes(16 * block_bytes))
        .and("slc_page_size", Value::Bytes(page_bytes))
        .and("slc_pages_per_block", Value::Count(PAGES));
    plain
        .and("filter", text("all"))
        .and("write_back", Value::Flag(false))
        .and("throttle", Value::Flag(false))
        .and("premapped", Value::Flag(false))
        .and("hash_unit", text("sector"))
        .and("hash_entries", Value::Count(1 << 12))
        .and("probes", Value::Count(16))
        .and("idle_after", us(1_000))
}

/// Consecutive writes of pages `first` to `end`, all issued at `from_us`.
fn writes(from_us: u64, first: u64, end: u64) -> impl Iterator<Item = (SimTime, Request)> {
    let at = SimTime::from_ns(from_us * 1_000);
    (first..end).map(move |page| (at, Request::new(Op::Write, Lba(page * 4), 4)))
}

/// The service time of each write, in order.
fn took_us(settings: &Settings, listed: Vec<(SimTime, Request)>) -> Vec<f64> {
    let registry = hybridsim_ssd::registry();
    let input = BuildInput { settings, registry: &registry, seed: 1, path: "ssd", children: &[] };
    let device = build_slc_mlc(&input).expect("a working device");
    let (mut done, _, end) = run(device, Host::new(listed));
    end.expect("a run without a fault");
    done.sort_by_key(|done| done.completed);
    let mut free = SimTime::ZERO;
    let mut took = |done: &Done| {
        let start = free.max(done.issued);
        free = done.completed;
        done.completed.since(start).as_ns() as f64 / 1e3
    };
    done.iter().map(&mut took).collect()
}

fn mean(of: &[f64]) -> f64 {
    of.iter().sum::<f64>() / of.len() as f64
}

/// Writes at full speed before the first slower one.
fn burst(took: &[f64]) -> u64 {
    took.iter().take_while(|took| **took <= FAST_US).count() as u64
}

#[test]
fn writes_fall_off_a_cliff_to_the_speed_of_folding() {
    let took = took_us(&cache(), writes(0, 0, BLOCKS * PAGES).collect());
    let cliff = CACHE_BLOCKS * PAGES;
    assert_eq!(burst(&took), cliff);
    let sustained = mean(&took[cliff as usize..]);
    let expected = FAST_US + FOLD_BLOCK_US / PAGES as f64;
    assert!((sustained / expected - 1.0).abs() < 0.01, "{sustained} µs for {expected}");
}

#[test]
fn it_recovers_as_far_as_the_idle_time_reaches() {
    let check = |idle_blocks: u64, recovered: u64| {
        let written = (CACHE_BLOCKS + 6) * PAGES;
        let busy = took_us(&cache(), writes(0, 0, written).collect()).iter().sum::<f64>() as u64;
        // The last block is being cleaned by then; the first write waits until it is erased.
        let idle = 1_000 + ((idle_blocks as f64 - 0.5) * FOLD_BLOCK_US) as u64;
        let later = writes(busy + idle, written, BLOCKS * PAGES);
        let took = took_us(&cache(), writes(0, 0, written).chain(later).collect());
        let found = 1 + burst(&took[written as usize + 1..]);
        assert_eq!(found / PAGES, recovered, "{found} pages after {idle_blocks} blocks of time");
    };
    check(3, 3);
    check(7, 7);
    // The whole cache except the head block: a longer idle time gains no more.
    check(CACHE_BLOCKS - 1, CACHE_BLOCKS - 1);
    check(60, CACHE_BLOCKS - 1);
}

#[test]
fn without_idle_work_it_never_recovers() {
    let mut never = cache();
    never.set("idle_after", us(u64::from(u32::MAX)));
    let written = CACHE_BLOCKS * PAGES;
    let later = writes(100_000_000, written, BLOCKS * PAGES);
    let took = took_us(&never, writes(0, 0, written).chain(later).collect());
    assert_eq!(burst(&took[written as usize..]), 0);
}

#[test]
fn a_borrowed_cache_is_smaller_the_fuller_the_drive() {
    let dynamic = cache().and("cache_mode", text("dynamic"));
    let burst_when = |filled: u64| {
        let earlier = writes(0, 0, filled);
        let later = writes(10_000_000, filled, BLOCKS * PAGES);
        let took = took_us(&dynamic, earlier.chain(later).collect());
        burst(&took[filled as usize..]) / PAGES
    };
    let quarters = [0, 1, 2, 3].map(|quarter| burst_when(quarter * BLOCKS * PAGES / 4));
    // The cache shrinks with the share of free blocks of the drive, but for the head block.
    assert_eq!(quarters[0], CACHE_BLOCKS);
    let expected = [1.0, 0.75, 0.5, 0.25].map(|free| (free * 13.0_f64).floor() as u64 + 1);
    for (found, expected) in quarters.into_iter().zip(expected) {
        assert!(found.abs_diff(expected) <= 1, "{quarters:?} for about {expected}");
    }
}
