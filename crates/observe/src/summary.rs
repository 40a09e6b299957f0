//! The summary of a run, computed from the folds.

use crate::breakdown::{Breakdown, Spent};
use crate::counters::Counters;
use crate::fingerprint::Fingerprint;
use crate::latency::{Latencies, LatencyFold};
use crate::pictures::{Pictures, Series, wear_rows};
use crate::results::*;
use hybridsim_engine::{
    ComponentInfo, LatencyPhase, Op, SECTOR_BYTES, SimDuration, SimTime, ZoneAction,
};
use std::collections::BTreeMap;

/// The share of requests called the slowest.
const SLOWEST_SHARE: f64 = 0.01;
/// A percentile needs this many requests beyond it to mean something.
const BEYOND_MIN: f64 = 10.0;
/// A system that works on for this share of the time requests took to arrive, once the last has
/// arrived, did not keep up with them.
const BEHIND_SHARE: f64 = 0.05;
/// Fewer requests than this are a burst, which a system need not keep up with.
const BEHIND_REQUESTS_MIN: u64 = 100;
/// Requests that wait at the host for so long are reported.
const BACKLOG_NS_MIN: u64 = 1_000_000_000;

/// The end of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ending {
    /// Simulated time at the end.
    pub time: SimTime,
    /// Events the machine handled.
    pub events: u64,
    /// The cause.
    pub by: EndedBy,
}

/// The cause of the end of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EndedBy {
    /// Every request has completed.
    #[default]
    Completion,
    /// The last request has arrived, as `host.end` asks; others may be in flight.
    LastArrival,
    /// An error, or the user.
    Interruption,
}

impl EndedBy {
    /// The name in results.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Completion => "completion",
            Self::LastArrival => "last-arrival",
            Self::Interruption => "interruption",
        }
    }
}

/// The input of the summary.
pub struct Run<'a> {
    /// Paths and constants.
    pub nodes: &'a [(String, ComponentInfo)],
    /// Sums.
    pub counters: &'a Counters,
    /// Latencies.
    pub latency: &'a LatencyFold,
    /// Latencies by phase.
    pub breakdown: &'a Breakdown,
    /// Utilisation of flash by component, where observed.
    pub utilisation: Vec<Option<Utilisation>>,
    /// The warm-up.
    pub warmup: WarmupResult,
    /// Whether a warm-up was requested.
    pub asked_for_warmup: bool,
    /// The end of the run.
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
        complete: run.ending.by != EndedBy::Interruption,
        ended_by: Some(run.ending.by.name().to_owned()),
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
        steady: None,
        breakdown_ns: breakdown(run.breakdown),
        totals: totals(&components, latency_ns.all.count),
        application: None,
        tenants: None,
        latency_ns,
        components,
        warnings,
        violations,
    }
}

/// The data that pictures are drawn from.
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
    for (fold, (path, info)) in run.counters.components().iter().zip(run.nodes) {
        if !fold.flash.wear.is_empty() {
            pictures.wear.insert(path.clone(), wear_rows(&fold.flash.wear));
        }
        if let Some(energy) = fold.energy(info) {
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
    if run.ending.by == EndedBy::Interruption {
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
    let whole = run.ending.by == EndedBy::Completion && count >= BEHIND_REQUESTS_MIN;
    let behind = whole && arrived > 0 && rest > arrived as f64 * BEHIND_SHARE;
    // Requests that complete later after the last arrival than any latency lasts were issued after
    // it: latencies begin at the issue and leave the wait out.
    let not_measured = run.latency.all().max().is_some_and(|longest| rest > 1.05 * longest as f64);
    let effect = match behind {
        true if not_measured => "latencies do not include the wait before (host.latency_from)",
        true if waited_long && queued > rest * BEHIND_SHARE => {
            "latencies grow with the length of the run"
        }
        _ => return None,
    };
    Some(format!(
        "the system fell behind: it served queued requests for {} after the last arrival, \
         so {effect}; slow the workload down (time_scale) \
         or replay it in a closed loop (host.mode)",
        SimDuration::from_ns(rest as u64)
    ))
}

/// Reports the longest time in which requests waited at the host, unless it is short. It means
/// nothing in a closed loop.
pub fn backlog(run: &Run<'_>) -> Option<String> {
    let longest = run.counters.backlogs.longest(run.ending.time.as_ns())?;
    (longest.lasted_ns() >= BACKLOG_NS_MIN).then(|| {
        format!(
            "the system did not keep up for {} from {} on: up to {} requests waited at the host, \
             which may dominate the mean and high percentiles; the cause is a burst, or \
             background work of a device, such as destaging or garbage collection; see the \
             requests in flight in the report (--out), and replay think times (workload.times = \
             \"after-completions\") where programs wait for their requests",
            SimDuration::from_ns(longest.lasted_ns()),
            SimDuration::from_ns(longest.from_ns),
            longest.peak
        )
    })
}

/// Names the devices whose energy is missing in a sum that looks like that of the whole system.
fn partial_energy(components: &BTreeMap<String, Component>) -> Option<String> {
    let with_energy = |known: bool| {
        components.iter().filter(move |(_, component)| {
            component.power.as_ref().is_some_and(|power| power.energy_j.is_some() == known)
        })
    };
    let missing: Vec<&str> = with_energy(false).map(|(path, _)| path.as_str()).collect();
    (with_energy(true).count() > 0 && !missing.is_empty()).then(|| {
        format!(
            "energy leaves out {}: no power is given there; set its powers, or do not compare \
             the sum",
            missing.join(", ")
        )
    })
}

pub fn latencies(fold: &LatencyFold) -> ByKind<LatencyResult> {
    let zone = |action| latency(fold.of(Op::Zone(action)));
    ByKind {
        all: latency(&fold.all()),
        read: latency(fold.of(Op::Read)),
        write: latency(fold.of(Op::Write)),
        trim: latency(fold.of(Op::Trim)),
        flush: latency(fold.of(Op::Flush)),
        zone_reset: zone(ZoneAction::Reset),
        zone_finish: zone(ZoneAction::Finish),
        zone_open: zone(ZoneAction::Open),
        zone_close: zone(ZoneAction::Close),
        zone_commit: zone(ZoneAction::Commit),
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
    let (read, write) = (Op::Read.index(), Op::Write.index());
    let (read_bytes, write_bytes) =
        (sectors[read].saturating_mul(SECTOR_BYTES), sectors[write].saturating_mul(SECTOR_BYTES));
    Throughput {
        iops: per_s(done.iter().sum()),
        bytes_per_s: per_s(read_bytes.saturating_add(write_bytes)),
        read_iops: per_s(done[read]),
        write_iops: per_s(done[write]),
        read_bytes,
        write_bytes,
        trim_bytes: sectors[Op::Trim.index()].saturating_mul(SECTOR_BYTES),
    }
}

fn breakdown(fold: &Breakdown) -> BreakdownResult {
    let slowest = fold.slowest(SLOWEST_SHARE);
    BreakdownResult {
        all: phases(&fold.all()),
        read: phases(&fold.of(Op::Read)),
        write: phases(&fold.of(Op::Write)),
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
    let end_ns = run.ending.time.as_ns();
    let window_ns = end_ns.saturating_sub(run.warmup.ns);
    let mut components = BTreeMap::new();
    for (at, fold) in run.counters.components().iter().enumerate() {
        let undescribed = (format!("node {at}"), ComponentInfo::default());
        let (path, info) = run.nodes.get(at).unwrap_or(&undescribed);
        let mut component = fold.results(info, window_ns, end_ns);
        if let Some(flash) = &mut component.flash {
            flash.utilisation = run.utilisation.get(at).cloned().flatten();
        }
        components.insert(path.clone(), component);
    }
    set_total_write_amplification(&mut components);
    components
}

/// Sets the total write amplification of logs, from the flash devices below them.
fn set_total_write_amplification(components: &mut BTreeMap<String, Component>) {
    let logs = components.iter().filter_map(|(path, it)| Some((path.clone(), it.log?)));
    for (path, log) in logs.collect::<Vec<_>>() {
        let below = format!("{path}/");
        let flash = components.iter().filter(|(path, _)| path.starts_with(&below));
        let programmed: Vec<u64> =
            flash.filter_map(|(_, it)| Some(it.flash.as_ref()?.programmed_bytes)).collect();
        let total = (!programmed.is_empty())
            .then(|| ratio(programmed.iter().sum::<u64>() as f64, log.log_host_bytes as f64));
        let log = Log { total_write_amplification: total.flatten(), ..log };
        components.entry(path).and_modify(|it| it.log = Some(log));
    }
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
    let (host_bytes, programmed_bytes) =
        (sum(|flash| flash.host_bytes), sum(|flash| flash.programmed_bytes));
    let quotient = |all: Option<u64>, host: Option<u64>| ratio(all? as f64, host? as f64);
    Totals {
        energy_j,
        energy_j_per_request: energy_j.and_then(|joules| ratio(joules, requests as f64)),
        host_bytes,
        programmed_bytes,
        host_programs,
        programs,
        erases: sum(|flash| flash.erases),
        write_amplification: quotient(programmed_bytes, host_bytes),
        page_write_amplification: quotient(programs, host_programs),
        hit_ratio: hit_ratio(components, |cache| (cache.hits, cache.misses)),
        read_hit_ratio: hit_ratio(components, |cache| (cache.read_hits, cache.read_misses)),
        write_hit_ratio: hit_ratio(components, |cache| (cache.write_hits, cache.write_misses)),
    }
}

/// The share of pages found in all caches together. Where one cache lies above another, the lower
/// is asked for what the upper did not have, and caches of different kinds count in pages of
/// their own: sums over them mean nothing.
fn hit_ratio(
    components: &BTreeMap<String, Component>,
    of: fn(&Cache) -> (u64, u64),
) -> Option<f64> {
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
    let sums = caches.iter().map(|(_, _, cache)| of(cache));
    let (hits, misses) = sums.fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
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
            let components = caches.iter().map(one).collect();
            let found = hit_ratio(&components, |cache| (cache.hits, cache.misses));
            assert_eq!(found, expect, "{caches:?}");
        };
        check(&[], None);
        check(&[("a", "hybrid-disk", 3, 1)], Some(0.75));
        check(&[("a/b", "hybrid-disk", 3, 1), ("a/c", "hybrid-disk", 0, 4)], Some(0.375));
        check(&[("a", "hybrid-disk", 3, 1), ("a/b", "hybrid-disk", 0, 4)], None);
        check(&[("a", "memory-cache", 3, 1), ("ab", "hybrid-disk", 0, 4)], None);
        check(&[("a", "memory-cache", 0, 0), ("a/b", "hybrid-disk", 1, 1)], Some(0.5));
    }
}
