//! From sums to results: every ratio, mean and energy of a run is computed in this file.

use crate::breakdown::{Breakdown, Spent};
use crate::counters::{Counters, Node};
use crate::fingerprint::Fingerprint;
use crate::latency::{Latencies, LatencyFold};
use crate::pictures::{Pictures, Series, wear_rows};
use crate::recorder::Ending;
use crate::results::*;
use crate::wear;
use hybridsim_disk::DiskCacheOutcome;
use hybridsim_engine::{ComponentInfo, LatencyPhase, Op, PowerState, SECTOR_BYTES, SimDuration};
use hybridsim_flash::Cause;
use std::collections::BTreeMap;

/// The share of requests called the slowest.
const SLOWEST_SHARE: f64 = 0.01;
/// A percentile needs this many requests beyond it to mean something.
const BEYOND_MIN: f64 = 10.0;
/// A system that works on for this share of the time requests took to arrive, once the last has
/// arrived, did not keep up with them.
const BEHIND_SHARE: f64 = 0.05;
/// Fewer requests than this are a burst, of which nobody expects that it is kept up with.
const BEHIND_REQUESTS_MIN: u64 = 100;

/// What results are worked out from.
pub struct Run<'a> {
    /// Paths and constants.
    pub nodes: &'a [(String, ComponentInfo)],
    /// Sums.
    pub counters: &'a Counters,
    /// Latencies.
    pub latency: &'a LatencyFold,
    /// Where the time went.
    pub breakdown: &'a Breakdown,
    /// How busy flash was, by node, where somebody looked.
    pub utilisation: Vec<Option<Utilisation>>,
    /// What was left out.
    pub warmup: WarmupResult,
    /// Whether the caller wanted a warm-up.
    pub asked_for_warmup: bool,
    /// The end.
    pub ending: Ending,
}

/// The summary of a run.
pub fn results(
    run: &Run<'_>,
    fingerprint: &Fingerprint,
    label: Label,
    cost: Cost,
    mut warnings: Vec<String>,
    violations: Vec<String>,
) -> RunResults {
    let latency_ns = latencies(run.latency);
    let requests = run.warmup.requests + latency_ns.all.count;
    remarks(run, &latency_ns.all, &mut warnings);
    let components = components(run);
    warnings.extend(partial_energy(&components));
    RunResults {
        schema_version: SCHEMA_VERSION,
        label,
        complete: run.ending.complete,
        requests,
        simulated_ns: run.ending.time.as_ns(),
        events: run.ending.events,
        event_records: fingerprint.events(),
        wall_s: if cost.wall_s.is_finite() { cost.wall_s } else { 0.0 },
        requests_per_wall_s: ratio(requests as f64, cost.wall_s),
        peak_rss_bytes: cost.peak_rss_bytes,
        fingerprint: fingerprint.to_string(),
        power_cuts: run.counters.power_cuts,
        requests_lost: run.counters.requests_lost,
        warmup: run.warmup,
        throughput: throughput(run),
        breakdown_ns: breakdown(run.breakdown),
        totals: totals(&components, latency_ns.all.count),
        latency_ns,
        components,
        warnings,
        violations,
    }
}

/// What pictures are drawn from.
pub fn pictures(run: &Run<'_>, series: Series) -> Pictures {
    let mut pictures = Pictures {
        end_ns: run.ending.time.as_ns(),
        warmup_end_ns: run.warmup.ns,
        series,
        ..Pictures::default()
    };
    let (read, write) = (run.latency.of(Op::Read), run.latency.of(Op::Write));
    for (kind, set) in [("all", &run.latency.all()), ("read", read), ("write", write)] {
        pictures.latency_points.insert(kind.to_owned(), set.points());
    }
    for (node, (path, info)) in run.counters.nodes().iter().zip(run.nodes) {
        if !node.wear.is_empty() {
            pictures.wear.insert(path.clone(), wear_rows(&node.wear));
        }
        if let Some(energy) = energy_by_state(node, info) {
            pictures.energy_j.insert(path.clone(), energy);
        }
    }
    pictures
}

fn remarks(run: &Run<'_>, all: &LatencyResult, warnings: &mut Vec<String>) {
    let count = all.count;
    if run.warmup.requests + count == 0 {
        warnings.push("no request completed: every figure is empty".to_owned());
    } else if count == 0 && run.asked_for_warmup {
        let requests = run.warmup.requests;
        warnings.push(format!(
            "the warm-up took the whole run ({requests} requests): nothing was measured; \
             shorten the warm-up or lengthen the workload"
        ));
    }
    if count > 0 && (count as f64) * 0.001 < BEYOND_MIN {
        warnings.push(format!(
            "only {count} requests were measured: fewer than 10 lie beyond the 99.9th percentile"
        ));
    }
    if !run.ending.complete {
        warnings.push("the run was broken off: figures cover what was done until then".to_owned());
    }
}

/// Says that requests came faster than they were served. It means nothing in a closed loop, where
/// each waits for another to complete.
pub fn fell_behind(run: &Run<'_>) -> Option<String> {
    let count = run.warmup.requests + run.latency.all().count();
    let (arrived, done) = (run.counters.last_arrival_ns, run.counters.last_completion_ns);
    let rest = done.saturating_sub(arrived) as f64;
    let queued = run.breakdown.all().mean_ns()[LatencyPhase::Queue as usize];
    let waited_long = queued > 0.5 * run.latency.all().mean().unwrap_or(0.0);
    let behind = arrived > 0 && rest > arrived as f64 * BEHIND_SHARE && waited_long;
    let whole = run.ending.complete && count >= BEHIND_REQUESTS_MIN;
    (behind && whole && queued > rest * BEHIND_SHARE).then(|| {
        format!(
            "the system fell behind: {} after the last request had arrived it was still \
             serving what waited, so latencies grow with the length of the run; slow the \
             workload down (time_scale), or replay it in a closed loop (host.mode)",
            SimDuration::from_ns(rest as u64)
        )
    })
}

/// Names the devices whose energy is missing in a sum that looks like that of the whole system.
fn partial_energy(components: &BTreeMap<String, Component>) -> Option<String> {
    let told = |known: bool| {
        components.iter().filter(move |(_, component)| {
            component.power.as_ref().is_some_and(|power| power.energy_j.is_some() == known)
        })
    };
    let missing: Vec<&str> = told(false).map(|(path, _)| path.as_str()).collect();
    (told(true).count() > 0 && !missing.is_empty()).then(|| {
        format!(
            "energy leaves out {}: no power is given there; set its powers, or do not compare \
             the sum",
            missing.join(", ")
        )
    })
}

fn latencies(fold: &LatencyFold) -> ByKind<LatencyResult> {
    ByKind {
        all: latency(&fold.all()),
        read: latency(fold.of(Op::Read)),
        write: latency(fold.of(Op::Write)),
        trim: latency(fold.of(Op::Trim)),
        flush: latency(fold.of(Op::Flush)),
    }
}

fn latency(set: &Latencies) -> LatencyResult {
    LatencyResult {
        count: set.count(),
        mean: set.mean(),
        stddev: set.stddev(),
        min: set.min(),
        p50: set.quantile(0.5),
        p90: set.quantile(0.9),
        p95: set.quantile(0.95),
        p99: set.quantile(0.99),
        p999: set.quantile(0.999),
        p9999: set.quantile(0.9999),
        max: set.max(),
    }
}

fn throughput(run: &Run<'_>) -> Throughput {
    let (done, sectors) = (&run.counters.completed, &run.counters.sectors);
    let window_ns = run.ending.time.as_ns().saturating_sub(run.warmup.ns);
    let per_s = |amount: u64| ratio(amount as f64 * 1e9, window_ns as f64);
    let (read, write) = (Op::Read as usize, Op::Write as usize);
    let (read_bytes, write_bytes) =
        (sectors[read].saturating_mul(SECTOR_BYTES), sectors[write].saturating_mul(SECTOR_BYTES));
    Throughput {
        iops: per_s(done.iter().sum()),
        bytes_per_s: per_s(read_bytes.saturating_add(write_bytes)),
        read_iops: per_s(done[read]),
        write_iops: per_s(done[write]),
        read_bytes,
        write_bytes,
        trim_bytes: sectors[Op::Trim as usize].saturating_mul(SECTOR_BYTES),
    }
}

fn breakdown(fold: &Breakdown) -> BreakdownResult {
    let slowest = fold.slowest(SLOWEST_SHARE);
    BreakdownResult {
        all: phases(&fold.all()),
        read: phases(fold.of(Op::Read)),
        write: phases(fold.of(Op::Write)),
        slowest: SlowestResult {
            requests: slowest.map_or(0, |slowest| slowest.spent.requests),
            threshold_ns: slowest.map(|slowest| slowest.threshold_ns),
            parts: phases(&slowest.map_or(Spent::default(), |slowest| slowest.spent)),
        },
    }
}

fn phases(spent: &Spent) -> PartTimes {
    let names = LatencyPhase::ALL.iter().map(|phase| phase.name().to_owned());
    names.zip(spent.mean_ns()).collect()
}

fn components(run: &Run<'_>) -> BTreeMap<String, Component> {
    let window_ns = run.ending.time.as_ns().saturating_sub(run.warmup.ns);
    let mut components = BTreeMap::new();
    for (at, node) in run.counters.nodes().iter().enumerate() {
        let undescribed = (format!("node {at}"), ComponentInfo::default());
        let (path, info) = run.nodes.get(at).unwrap_or(&undescribed);
        let component = Component {
            kind: info.kind.to_owned(),
            constants: constants(info),
            power: power(node, info, window_ns),
            disk: disk(node),
            flash: flash(node, info, window_ns).map(|flash| Flash {
                utilisation: run.utilisation.get(at).cloned().flatten(),
                ..flash
            }),
            cache: cache(node),
            queue: node.queue_depth.map(|depth| Queue {
                queue_depth_mean: depth.mean(run.ending.time.as_ns()),
                queue_depth_max: depth.max,
            }),
            recovery: recovery(node),
            custom: custom(node, info),
        };
        components.insert(path.clone(), component);
    }
    components
}

fn constants(info: &ComponentInfo) -> BTreeMap<String, f64> {
    let finite = info.constants.iter().filter(|constant| constant.1.is_finite());
    finite.map(|&(name, value)| (name.to_owned(), value)).collect()
}

fn search_joules(node: &Node, info: &ComponentInfo) -> f64 {
    let joules = info.search_joules * node.searched_blocks as f64;
    if joules.is_finite() { joules } else { 0.0 }
}

/// Joules by state, by kind of operation, and by what draws power always; `None` for a node that
/// draws no power.
fn energy_by_state(node: &Node, info: &ComponentInfo) -> Option<BTreeMap<String, f64>> {
    let mut energy = BTreeMap::new();
    if let Some(watts) = info.watts {
        for (state, watts) in PowerState::ALL.into_iter().zip(watts) {
            let joules = watts * node.state_ns[state as usize] as f64 / 1e9;
            if joules != 0.0 {
                energy.insert(state.name().to_owned(), joules);
            }
        }
    }
    let [read, program, erase] = info.flash_joules.unwrap_or_default();
    let count = |by_cause: &[u64]| by_cause.iter().sum::<u64>() as f64;
    let operations = [
        ("spin_ups", info.spin_up_joules * node.spin_ups as f64),
        ("flash_reads", read * count(&node.flash_reads)),
        ("flash_programs", program * count(&node.flash_programs)),
        ("flash_erases", erase * count(&node.flash_erases)),
        ("victim_search", search_joules(node, info)),
    ];
    let told_s = node.state_ns.iter().sum::<u64>() as f64 / 1e9;
    let always = info.always_watts.iter().map(|&(name, watts)| (name, watts * told_s));
    for (name, joules) in operations.into_iter().chain(always).filter(|(_, joules)| *joules != 0.0)
    {
        *energy.entry(name.to_owned()).or_insert(0.0) += joules;
    }
    // A part whose power nobody gave has all zeros: its energy is not known, which is not 0 J.
    let draws = info.watts.is_some_and(|watts| watts.iter().any(|&watts| watts != 0.0))
        || info.flash_joules.is_some_and(|joules| joules.iter().any(|&joules| joules != 0.0))
        || info.always_watts.iter().any(|&(_, watts)| watts != 0.0)
        || info.spin_up_joules != 0.0
        || info.search_joules != 0.0;
    energy.retain(|_, joules| joules.is_finite());
    draws.then_some(energy)
}

fn power(node: &Node, info: &ComponentInfo, window_ns: u64) -> Option<Power> {
    let state_ns: BTreeMap<String, u64> = PowerState::ALL
        .into_iter()
        .map(|state| (state.name().to_owned(), node.state_ns[state as usize]))
        .filter(|state| state.1 > 0)
        .collect();
    let energy = energy_by_state(node, info);
    if state_ns.is_empty() && energy.is_none() {
        return None;
    }
    let resting =
        [PowerState::Idle, PowerState::Standby].map(|state| node.state_ns[state as usize]);
    let told: u64 = state_ns.values().sum();
    let busy = told.saturating_sub(resting[0] + resting[1]);
    Some(Power {
        busy_fraction: ratio(busy as f64, window_ns as f64).filter(|_| told > 0),
        energy_j: energy.as_ref().map(|by| by.values().fold(0.0, |total, joules| total + joules)),
        energy_by_j: energy.unwrap_or_default(),
        state_ns,
    })
}

fn disk(node: &Node) -> Option<Disk> {
    let buffer = |op: Op| BufferResult {
        medium: node.buffered(op, DiskCacheOutcome::Miss),
        full: node.buffered(op, DiskCacheOutcome::Hit),
        ahead: node.buffered(op, DiskCacheOutcome::Partial),
        taken: node.buffered(op, DiskCacheOutcome::Buffered),
    };
    let asked: u64 = node.disk_cache.iter().flatten().sum();
    if node.seeks + node.rotations + node.transfers + node.spin_ups + asked == 0 {
        return None;
    }
    let mean = |total: u64, count: u64| ratio(total as f64, count as f64);
    Some(Disk {
        seeks: node.seeks,
        seek_ns: node.seek_ns,
        seek_ns_mean: mean(node.seek_ns, node.seeks),
        seek_cylinders_mean: mean(node.seek_cylinders, node.seeks),
        rotations: node.rotations,
        rotation_ns: node.rotation_ns,
        rotation_ns_mean: mean(node.rotation_ns, node.rotations),
        transfers: node.transfers,
        transfer_ns: node.transfer_ns,
        media_bytes: node.transfer_sectors.saturating_mul(SECTOR_BYTES),
        buffer_reads: buffer(Op::Read),
        buffer_writes: buffer(Op::Write),
        spin_ups: node.spin_ups,
    })
}

fn flash(node: &Node, info: &ComponentInfo, window_ns: u64) -> Option<Flash> {
    let by_cause = |counts: &[u64]| -> BTreeMap<String, u64> {
        Cause::ALL.iter().map(|cause| cause.name().to_owned()).zip(counts.iter().copied()).collect()
    };
    let sum = |counts: &[u64]| counts.iter().sum::<u64>();
    let (reads, programs) = (sum(&node.flash_reads), sum(&node.flash_programs));
    let erases = sum(&node.flash_erases);
    let silent = reads + programs + erases + node.unwritten_reads == 0 && node.wear.is_empty();
    if silent && node.free_blocks.is_none() && info.flash_joules.is_none() {
        return None;
    }
    let host_programs = node.flash_programs[Cause::Host as usize];
    Some(Flash {
        host_programs,
        gc_programs: node.flash_programs[Cause::Gc as usize],
        programs,
        reads,
        erases,
        write_amplification: ratio(programs as f64, host_programs as f64),
        reads_by_cause: by_cause(&node.flash_reads),
        programs_by_cause: by_cause(&node.flash_programs),
        erases_by_cause: by_cause(&node.flash_erases),
        erase_count: erase_count(&node.wear),
        erases_by_level: wear::erases_by_level(node, info),
        lifetime: wear::lifetime(node, info, window_ns),
        utilisation: None,
        unwritten_reads: node.unwritten_reads,
        victim_searches: node.searches,
        searched_blocks: node.searched_blocks,
        search_energy_j: search_joules(node, info),
        free_blocks_min: node.free_blocks.map(|free| free.min),
        free_blocks_end: node.free_blocks.map(|free| free.now),
    })
}

fn erase_count(wear: &BTreeMap<u32, u64>) -> Option<EraseCount> {
    let blocks: u64 = wear.values().sum();
    let total: u128 = wear.iter().map(|(&erases, &n)| u128::from(erases) * u128::from(n)).sum();
    let mean = ratio(total as f64, blocks as f64)?;
    let deviation = |(&erases, &n): (&u32, &u64)| {
        let distance = f64::from(erases) - mean;
        distance * distance * n as f64
    };
    let variance = wear.iter().map(deviation).sum::<f64>() / blocks as f64;
    Some(EraseCount {
        blocks,
        min: u64::from(*wear.keys().next()?),
        mean,
        max: u64::from(*wear.keys().next_back()?),
        stddev: variance.sqrt(),
    })
}

fn cache(node: &Node) -> Option<Cache> {
    let (hits, misses) = (node.hits.iter().sum::<u64>(), node.misses.iter().sum::<u64>());
    let silent = node.lookups + node.bypasses + node.destages + node.cleanups == 0;
    if silent && node.dirty_pages.is_none() {
        return None;
    }
    Some(Cache {
        lookups: node.lookups,
        hits,
        misses,
        hit_ratio: ratio(hits as f64, (hits + misses) as f64),
        read_hits: node.hits[Op::Read as usize],
        read_misses: node.misses[Op::Read as usize],
        write_hits: node.hits[Op::Write as usize],
        write_misses: node.misses[Op::Write as usize],
        bypasses: node.bypasses,
        bypassed_bytes: node.bypassed_sectors.saturating_mul(SECTOR_BYTES),
        destages: node.destages,
        destaged_bytes: node.destaged_sectors.saturating_mul(SECTOR_BYTES),
        cleanups: node.cleanups,
        cleaned_pages: node.cleaned_pages,
        dirty_pages_max: node.dirty_pages.map(|pages| pages.max),
        dirty_pages_end: node.dirty_pages.map(|pages| pages.now),
    })
}

fn recovery(node: &Node) -> Option<Recovery> {
    (node.recoveries > 0).then(|| Recovery {
        recoveries: node.recoveries,
        recovery_ns_mean: ratio(node.recovery_ns as f64, node.recoveries as f64),
        recovery_ns_max: node.recovery_ns_max,
    })
}

fn custom(node: &Node, info: &ComponentInfo) -> BTreeMap<String, CustomResult> {
    let told = node.custom.iter().enumerate();
    let told = told.filter_map(|(at, custom)| custom.as_ref().map(|custom| (at, custom)));
    told.map(|(at, custom)| {
        let unnamed = || format!("number {at}");
        let name = info.custom.get(at).map_or_else(unnamed, |&name| name.to_owned());
        let mean = ratio(custom.sum as f64, custom.count as f64);
        let (min, max, last) = (custom.min, custom.max, custom.last);
        (name, CustomResult { count: custom.count, mean, min, max, last })
    })
    .collect()
}

fn totals(components: &BTreeMap<String, Component>, requests: u64) -> Totals {
    let energies: Vec<f64> =
        components.values().filter_map(|component| component.power.as_ref()?.energy_j).collect();
    let energy_j = (!energies.is_empty()).then(|| energies.iter().sum::<f64>());
    let flash: Vec<&Flash> =
        components.values().filter_map(|component| component.flash.as_ref()).collect();
    let sum = |of: fn(&Flash) -> u64| {
        (!flash.is_empty()).then(|| flash.iter().map(|flash| of(flash)).sum::<u64>())
    };
    let (host_programs, programs) = (sum(|flash| flash.host_programs), sum(|flash| flash.programs));
    Totals {
        energy_j,
        energy_j_per_request: energy_j.and_then(|joules| ratio(joules, requests as f64)),
        host_programs,
        programs,
        erases: sum(|flash| flash.erases),
        write_amplification: ratio(programs.unwrap_or(0) as f64, host_programs.unwrap_or(0) as f64),
        hit_ratio: hit_ratio(components),
    }
}

/// The share of pages found in all caches together. Where one cache lies above another, the lower
/// is asked for what the upper did not have, and caches of different kinds count in pages of
/// their own: sums over them mean nothing.
fn hit_ratio(components: &BTreeMap<String, Component>) -> Option<f64> {
    let asked = |cache: &&Cache| cache.hits + cache.misses > 0;
    let caches: Vec<(&str, &str, &Cache)> = components
        .iter()
        .filter_map(|(path, one)| Some((&path[..], &one.kind[..], one.cache.as_ref()?)))
        .filter(|(_, _, cache)| asked(cache))
        .collect();
    let paths: Vec<&str> = caches.iter().map(|cache| cache.0).collect();
    if is_nested(&paths) || caches.iter().any(|cache| cache.1 != caches[0].1) {
        return None;
    }
    let (hits, misses) = caches
        .iter()
        .fold((0, 0), |(hits, misses), (_, _, cache)| (hits + cache.hits, misses + cache.misses));
    ratio(hits as f64, (hits + misses) as f64)
}

/// Whether one of the paths lies below another.
fn is_nested(paths: &[&str]) -> bool {
    let below = |path: &str, above: &str| {
        path.strip_prefix(above).is_some_and(|rest| rest.starts_with('/'))
    };
    paths.iter().any(|path| paths.iter().any(|above| below(path, above)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hit_ratios_add_up_only_side_by_side() {
        let check = |caches: &[(&str, &str, u64, u64)], expect: Option<f64>| {
            let one = |&(path, kind, hits, misses): &(&str, &str, u64, u64)| {
                let cache = Some(Cache { hits, misses, ..Cache::default() });
                let component = Component { kind: kind.into(), cache, ..Component::default() };
                (path.to_owned(), component)
            };
            assert_eq!(hit_ratio(&caches.iter().map(one).collect()), expect, "{caches:?}");
        };
        check(&[], None);
        check(&[("a", "hybrid-disk", 3, 1)], Some(0.75));
        check(&[("a/b", "hybrid-disk", 3, 1), ("a/c", "hybrid-disk", 0, 4)], Some(0.375));
        check(&[("a", "hybrid-disk", 3, 1), ("a/b", "hybrid-disk", 0, 4)], None);
        check(&[("a", "memory-cache", 3, 1), ("ab", "hybrid-disk", 0, 4)], None);
        check(&[("a", "memory-cache", 0, 0), ("a/b", "hybrid-disk", 1, 1)], Some(0.5));
    }
}
