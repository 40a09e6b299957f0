//! The list of checks.

use crate::cache::{CLOCK, FIFO, LOOP, LRU, SIEVE, ZIPF};
use crate::{Bench, Check, Figures, array, cache, disk, flash, repeat};

const fn check(
    name: &'static str,
    quantity: &'static str,
    oracle: &'static str,
    tolerance: f64,
    run: fn(&Bench<'_>) -> Figures,
) -> Check {
    Check { name, quantity, oracle, tolerance, run }
}

const UNIFORM: &str = "write amplification, uniform writes";
const PAGE_MAP: &str = "a greedy page map in vectors";
const UNIT: &str = "unit / write";
const UNIT_GC: &str = "unit / write, times the mean field of gc-greedy";
const POSITIONING: &str = "overhead + mean seek + half a revolution + transfer";
const MG1: &str = "M/G/1 (Pollaczek 1930, Khinchine 1932)";
const COBHAM: &str = "M/G/1 with priorities (Cobham 1954)";
const SLOWEST: &str = "expected maximum of uniform service times";
const SLOWEST_TWICE: &str = "expected maximum of 2 reads, and of 2 writes";
const ONE: &str = "one: a run is a function of its scenario";
const HITS_ZIPF: &str = "hits, reads by a power law";
const HITS_LOOP: &str = "hits, a loop with scans";
const RENEWED: &str = "a queue that hits renew";
const QUEUE: &str = "a queue";
const REFERENCED: &str = "a queue with reference bits (Corbato 1969)";
const HAND: &str = "a queue with a hand (Zhang et al. 2024)";

/// All checks, by group.
pub const CHECKS: &[Check] = &[
    check("page-map-copies", "pages copied by collection", PAGE_MAP, 0.0, flash::copies),
    check("page-map-erases", "blocks erased by collection", PAGE_MAP, 0.0, flash::erases),
    check("gc-greedy", UNIFORM, "mean field (Bux and Iliadis 2010)", 0.01, flash::greedy),
    check("gc-fifo", UNIFORM, "Lambert's W (Desnoyers 2012)", 0.01, flash::fifo),
    check("gc-random", UNIFORM, "1 / (1 - exported / physical)", 0.02, flash::random),
    check("gc-d-choices", UNIFORM, "mean field, d = 3 (Van Houdt 2013)", 0.02, flash::choices),
    check("map-unit", "write amplification, 4 KiB on 64 KiB", UNIT, 0.0, flash::map_unit),
    check("map-unit-gc", "the same with collection", UNIT_GC, 0.02, flash::map_unit_collected),
    check("disk-random-read", "mean latency, ms", POSITIONING, 0.005, disk::random_read),
    check("disk-queue-30", "mean response, load 0.3, ms", MG1, 0.01, |it| disk::loaded(it, 0.3)),
    check("disk-queue-70", "mean response, load 0.7, ms", MG1, 0.02, |it| disk::loaded(it, 0.7)),
    check("disk-urgent", "mean response, urgent class, ms", COBHAM, 0.01, disk::urgent),
    check("disk-others", "mean response, other class, ms", COBHAM, 0.02, disk::others),
    check("raid-stripe", "mean read of 4 members, us", SLOWEST, 0.002, array::stripe),
    check("raid-mirror", "mean write to 3 mirrors, us", SLOWEST, 0.002, array::mirror),
    check("raid-5", "mean small write, us", SLOWEST_TWICE, 0.002, array::small_write),
    check("cache-lru-zipf", HITS_ZIPF, RENEWED, 0.0, |it| cache::hits(it, LRU, ZIPF)),
    check("cache-lru-loop", HITS_LOOP, RENEWED, 0.0, |it| cache::hits(it, LRU, LOOP)),
    check("cache-fifo-zipf", HITS_ZIPF, QUEUE, 0.0, |it| cache::hits(it, FIFO, ZIPF)),
    check("cache-fifo-loop", HITS_LOOP, QUEUE, 0.0, |it| cache::hits(it, FIFO, LOOP)),
    check("cache-clock-zipf", HITS_ZIPF, REFERENCED, 0.0, |it| cache::hits(it, CLOCK, ZIPF)),
    check("cache-clock-loop", HITS_LOOP, REFERENCED, 0.0, |it| cache::hits(it, CLOCK, LOOP)),
    check("cache-sieve-zipf", HITS_ZIPF, HAND, 0.0, |it| cache::hits(it, SIEVE, ZIPF)),
    check("cache-sieve-loop", HITS_LOOP, HAND, 0.0, |it| cache::hits(it, SIEVE, LOOP)),
    check("cache-lru-che", "hit ratio, power law", "Che, Tung and Wang 2002", 0.01, cache::lru_che),
    check("repeat", "different fingerprints of 2 runs", ONE, 0.0, repeat::plain),
    check("repeat-observed", "the same, one verified in full", ONE, 0.0, repeat::observed),
];
