//! Hits of caches against queues and sets, and against Che's approximation.

use crate::{Bench, Figures, Pair};
use hybridsim_engine::{Lba, Op, Request, Stream};
use std::collections::{HashSet, VecDeque};

/// Pages of the cached device and of the cache.
const PAGES: u64 = 4096;
const CACHED: usize = 256;
const PAGE_SECTORS: u32 = 8;
/// Exponent of the power law of popularity.
const THETA: f64 = 0.9;
const READS: u64 = 30_000;

/// Counts the hits of reads of pages by a cache of [`CACHED`] pages.
pub(crate) type Reference = fn(&[u64]) -> u64;

#[derive(Default)]
struct Cache {
    /// From the oldest to the newest.
    pages: VecDeque<u64>,
    /// Pages that were hit since they were added or spared.
    referenced: HashSet<u64>,
    hand: usize,
}

fn replay(reads: &[u64], hit: fn(&mut Cache, u64), evict: fn(&mut Cache)) -> u64 {
    let (mut cache, mut hits) = (Cache::default(), 0);
    for page in reads {
        if cache.pages.contains(page) {
            hits += 1;
            hit(&mut cache, *page);
            continue;
        }
        if cache.pages.len() == CACHED {
            evict(&mut cache);
        }
        cache.pages.push_back(*page);
    }
    hits
}

fn refer(cache: &mut Cache, page: u64) {
    cache.referenced.insert(page);
}

fn evict_oldest(cache: &mut Cache) {
    cache.pages.pop_front();
}

fn lru(reads: &[u64]) -> u64 {
    let renew = |cache: &mut Cache, page| {
        cache.pages.retain(|cached| *cached != page);
        cache.pages.push_back(page);
    };
    replay(reads, renew, evict_oldest)
}

fn fifo(reads: &[u64]) -> u64 {
    replay(reads, refer, evict_oldest)
}

/// Pages that are spared become the newest.
fn clock(reads: &[u64]) -> u64 {
    replay(reads, refer, |cache| {
        while cache.referenced.remove(&cache.pages[0]) {
            cache.pages.rotate_left(1);
        }
        evict_oldest(cache);
    })
}

/// The hand moves from the oldest page to the newest and leaves those that it spares in place. A
/// page that is added while it is at the newest is behind it.
fn sieve(reads: &[u64]) -> u64 {
    replay(reads, refer, |cache| {
        while cache.referenced.remove(&cache.pages[cache.hand]) {
            cache.hand = (cache.hand + 1) % CACHED;
        }
        cache.pages.remove(cache.hand);
        cache.hand %= CACHED - 1;
    })
}

/// Shares of reads by popularity.
fn zipf() -> Vec<f64> {
    let weights: Vec<f64> = (1..=PAGES).map(|rank| (rank as f64).powf(-THETA)).collect();
    let sum: f64 = weights.iter().sum();
    weights.into_iter().map(|weight| weight / sum).collect()
}

fn zipf_reads() -> Vec<u64> {
    let mut sums = zipf();
    (1..sums.len()).for_each(|at| sums[at] += sums[at - 1]);
    let mut stream = Stream::new(1, "verify");
    let mut draw = |_| {
        let drawn = stream.unit();
        (sums.partition_point(|sum| *sum < drawn) as u64).min(PAGES - 1)
    };
    (0..READS).map(&mut draw).collect()
}

/// Passes over pages that fit the cache, each followed by a scan of pages that are read only once:
/// some scans leave the others cached, some do not.
fn loop_reads() -> Vec<u64> {
    const LOOP: u64 = CACHED as u64 / 2;
    let mut scans = [32, 64, 96, 128, 160].into_iter().cycle();
    let mut reads: Vec<u64> = Vec::new();
    let mut scanned = LOOP;
    while scanned < PAGES {
        let end = PAGES.min(scanned + scans.next().expect("a cycle"));
        reads.extend((0..LOOP).chain(scanned..end));
        scanned = end;
    }
    reads
}

/// A cache of 256 pages in memory, with policies of its own.
const IN_MEMORY: &str = r#"system = "cache"
[component.cache]
kind = "memory-cache"
device = "disk"
size = "1MiB"
replacement = "POLICY"
[component.disk]
kind = "constant-device"
capacity = "16MiB"
"#;

/// A cache of 256 pages in flash, with any replacement policy.
const IN_FLASH: &str = r#"system = "cache"
[component.cache]
kind = "flash-cache"
flash = "flash"
disk = "disk"
scheme = "fp"
caching_space = 1.0
over_provisioning = 0.0
mapping = false
sequential_bytes = "1GiB"
replacement = "POLICY"
[component.flash]
kind = "constant-device"
capacity = "1MiB"
[component.disk]
kind = "constant-device"
capacity = "16MiB"
"#;

/// A replacement policy: its name, the cache that it is in, and its reference.
pub(crate) type Policy = (&'static str, &'static str, Reference);

pub(crate) const LRU: Policy = ("lru", IN_MEMORY, lru);
pub(crate) const FIFO: Policy = ("fifo", IN_MEMORY, fifo);
pub(crate) const CLOCK: Policy = ("clock", IN_FLASH, clock);
pub(crate) const SIEVE: Policy = ("sieve", IN_FLASH, sieve);
pub(crate) const ZIPF: fn() -> Vec<u64> = zipf_reads;
pub(crate) const LOOP: fn() -> Vec<u64> = loop_reads;

/// Hits of the reads `reads`.
pub(crate) fn hits(
    bench: &Bench<'_>,
    (name, system, reference): Policy,
    reads: fn() -> Vec<u64>,
) -> Figures {
    let reads = reads();
    let request =
        |page: &u64| Request::new(Op::Read, Lba(page * u64::from(PAGE_SECTORS)), PAGE_SECTORS);
    let system = system.replace("POLICY", name);
    let simulated = bench.serve(&system, reads.iter().map(request), "components.cache.hits")?;
    Ok(Pair { simulated, oracle: reference(&reads) as f64 })
}

/// Hit ratio of LRU with independent reads by Che, Tung and Wang: a page is cached while it was
/// read within the time in which as many other pages are read as fit.
fn che(cached: f64) -> f64 {
    let shares = zipf();
    let kept = |share: f64, time: f64| 1.0 - (-share * time).exp();
    let (mut low, mut high) = (0.0, 1e9);
    for _ in 0..100 {
        let time: f64 = (low + high) / 2.0;
        let held: f64 = shares.iter().map(|share| kept(*share, time)).sum();
        if held < cached { low = time } else { high = time }
    }
    shares.iter().map(|share| share * kept(*share, low)).sum()
}

pub(crate) fn lru_che(bench: &Bench<'_>) -> Figures {
    let requests = 10 * READS;
    let workload = format!(
        "[workload]\ngenerator = {{ kind = \"zipf\", theta = {THETA}, read = 1.0, \
         requests = {requests} }}\n[run]\nwarmup_requests = {READS}\n\
         [host]\nmode = \"closed\"\nqueue_depth = 1\n"
    );
    let text = IN_MEMORY.replace("POLICY", "lru") + &workload;
    let simulated = bench.run(&text, "components.cache.hit_ratio")?;
    Ok(Pair { simulated, oracle: che(CACHED as f64) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::assert_fails;

    const ALL: [Policy; 4] = [LRU, FIFO, CLOCK, SIEVE];

    #[test]
    fn the_references_count_by_hand() {
        // Pages that fit miss once each.
        let twice: Vec<u64> = (0..256).chain(0..256).collect();
        // Page 0 is read again, then one more page is added and 0 read: only FIFO evicted it.
        let renewed: Vec<u64> = (0..256).chain([0, 1000, 0]).collect();
        for (name, _, reference) in ALL {
            assert_eq!(reference(&twice), 256, "{name}");
            assert_eq!(reference(&renewed), if name == "fifo" { 1 } else { 2 }, "{name}");
        }
        // Clock moves the page that it spares, SIEVE does not and evicts behind it.
        let spared: Vec<u64> = (0..256).chain([0]).chain(1000..1255).chain([0]).collect();
        assert_eq!([lru, clock, sieve].map(|reference| reference(&spared)), [2, 2, 2]);
    }

    #[test]
    fn another_policy_and_another_stream_have_other_counts() {
        for (stream, reads) in [("zipf", zipf_reads()), ("loop", loop_reads())] {
            let counts = ALL.map(|(.., reference)| reference(&reads) as f64);
            for (at, (name, _, reference)) in ALL.into_iter().enumerate() {
                let check = format!("cache-{name}-{stream}");
                assert_fails(&check, counts[(at + 1) % ALL.len()], counts[at]);
                assert_fails(&check, reference(&reads[1..]) as f64 - 1.0, counts[at]);
            }
        }
    }

    #[test]
    fn a_cache_of_another_size_is_outside_the_tolerance_of_che() {
        assert_fails("cache-lru-che", che(CACHED as f64 * 0.95), che(CACHED as f64));
        let first = CACHED as u64 * 4;
        let hits = lru(&zipf_reads()) as f64 / (READS - first) as f64;
        assert!((hits / che(CACHED as f64) - 1.0).abs() < 0.1, "{hits}");
    }
}
