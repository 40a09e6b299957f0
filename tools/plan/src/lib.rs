//! Plans: which devices and cache serve a trace, and at what cost per year.
//!
//! Miss-ratio curves choose the sizes and policies of caches and a price table the devices
//! ([`first_cut`]); the systems that can meet the bounds are simulated by the caller, and
//! [`Plan::new`] judges and ranks them.

mod candidates;
mod prices;
mod text;

pub use candidates::{Candidate, Dropped, FirstCut, first_cut, replacement_of};
pub use prices::{Device, Price, Prices, Role};

use hybridsim_observe::RunResults;
use hybridsim_report::figures::{binary_size, number};
use serde::Serialize;

const NS_PER_YEAR: f64 = 365.25 * 86_400.0 * 1e9;
const HOURS_PER_YEAR: f64 = 365.25 * 24.0;
/// A system whose simulated time exceeds this multiple of the trace's is overloaded.
const SLOWER_MAX: f64 = 1.2;

/// Capacity and writes that a system must provide.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Demand {
    /// Capacity for its data.
    pub data_bytes: u64,
    pub written_bytes: u64,
    /// From the first arrival to the last; 0 where the trace has no times.
    pub span_ns: u64,
    /// Share of the year in which the load is that of the trace.
    pub duty: f64,
}

impl Demand {
    /// Repetitions of the trace in a year; a trace without times took `run_ns`.
    fn times_per_year(&self, run_ns: u64) -> f64 {
        let span = if self.span_ns > 0 { self.span_ns } else { run_ns.max(1) };
        self.duty * NS_PER_YEAR / span as f64
    }
}

/// Requirements on a system; absent ones do not apply.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Bounds {
    /// Cost per year.
    pub budget: Option<f64>,
    pub p99_ns: Option<u64>,
    /// Life of the flash.
    pub life_years: Option<f64>,
}

impl Bounds {
    /// The bound on a column of the page, in its unit.
    fn of_column(&self, name: &str) -> Option<f64> {
        match name {
            "cost_per_year" => self.budget,
            "p99_us" => self.p99_ns.map(|ns| ns as f64 / 1e3),
            "life_years" => self.life_years,
            _ => None,
        }
    }

    /// The reason to drop a system without simulating it. `holds` has the capacity of each device
    /// that has one.
    fn rules_out(
        &self,
        it: &Candidate,
        prices: &Prices,
        demand: &Demand,
        holds: &[Option<u64>],
    ) -> Option<String> {
        let needs = [(it.disk, demand.data_bytes), (it.flash, it.flash_bytes)];
        for (at, need) in needs.into_iter().filter_map(|(at, need)| Some((at?, need))) {
            if let Some(holds) = holds[at].filter(|holds| *holds < need) {
                let is_cache = it.cache.is_some() && it.flash == Some(at);
                let what = if is_cache { "the cache needs" } else { "the data need" };
                let (name, holds, need) =
                    (&prices.device[at].name, binary_size(holds), binary_size(need));
                return Some(format!("{name} holds {holds}, {what} {need}"));
            }
        }
        let cost = it.devices_per_year(prices, demand, f64::INFINITY);
        if self.budget.is_some_and(|budget| cost > budget) {
            return Some(format!("devices alone cost {} {} a year", number(cost), prices.currency));
        }
        // Flash that holds all data receives every write; a cache may be spared some.
        let flash = it.flash.filter(|_| it.cache.is_none() && demand.span_ns > 0)?;
        let bytes = demand.written_bytes as f64 * demand.times_per_year(0);
        let years = rated_years(&prices.device[flash], it.flash_bytes, bytes)?;
        let short = self.life_years.is_some_and(|least| years < least);
        short.then(|| format!("its rated endurance lasts {} years", number(years)))
    }
}

/// Years until the rated endurance is used up at `bytes` a year.
fn rated_years(device: &Device, flash_bytes: u64, bytes: f64) -> Option<f64> {
    let capacity = device.bought(flash_bytes) as f64;
    let total = device.dwpd? * 365.25 * device.warranty_years() * capacity;
    Some(total / bytes).filter(|years| years.is_finite())
}

/// A simulated system.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct System {
    pub name: String,
    /// Preset of its cache, its replacement policy where it is not the preset's own, and the miss
    /// ratio of the curve.
    pub cache: Option<String>,
    pub policy: Option<String>,
    pub curve_miss_ratio: Option<f64>,
    /// Flash that is used, and the capacity of the drive that is bought for it, to which `dwpd` and
    /// the years refer.
    pub flash_bytes: Option<u64>,
    pub drive_bytes: Option<u64>,
    pub mean_ns: Option<f64>,
    pub p99_ns: Option<u64>,
    pub hit_ratio: Option<f64>,
    pub write_amplification: Option<f64>,
    /// Capacities of the flash written per day.
    pub dwpd: Option<f64>,
    /// Terabytes written to the flash per year.
    pub tb_per_year: Option<f64>,
    /// Years until the flash is worn out: by the erases of the simulation, by the rated endurance,
    /// and the shorter of both.
    pub life_years_simulated: Option<f64>,
    pub life_years_rated: Option<f64>,
    pub life_years: Option<f64>,
    pub watts: Option<f64>,
    /// Devices by years of service and energy; absent where the run failed.
    pub cost_per_year: Option<f64>,
    /// Other sizes, policies or drives for the cache that have the same figures and price.
    pub same_figures: Vec<String>,
    /// Bounds it does not meet, or why its run failed; empty for a system that meets all.
    pub unmet: Vec<String>,
    /// The scenario that was simulated, without its workload.
    pub scenario: String,
}

/// Ranked systems: first those that meet all bounds, by cost; then the others.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Plan {
    pub currency: String,
    /// Prices on which the costs rest, in words.
    pub prices: String,
    pub demand: Demand,
    pub bounds: Bounds,
    pub systems: Vec<System>,
    pub dropped: Vec<Dropped>,
}

impl Plan {
    /// Judges and ranks the candidates of `cut`, by the results of each or why it has none.
    pub fn new(
        cut: FirstCut,
        results: &[Result<&RunResults, String>],
        prices: &Prices,
        demand: Demand,
        bounds: Bounds,
    ) -> Self {
        let judge = |(candidate, result): (&Candidate, &Result<&RunResults, String>)| match result {
            Ok(run) => judge(candidate, run, prices, &demand, &bounds),
            Err(reason) => System { unmet: vec![reason.clone()], ..system(candidate) },
        };
        let mut systems: Vec<System> = cut.candidates.iter().zip(results).map(judge).collect();
        systems.sort_by(|one, other| {
            let cost = |system: &System| system.cost_per_year.unwrap_or(f64::INFINITY);
            let mean = |system: &System| system.mean_ns.unwrap_or(f64::INFINITY);
            let unmet = |system: &System| !system.unmet.is_empty();
            unmet(one)
                .cmp(&unmet(other))
                .then(cost(one).total_cmp(&cost(other)))
                .then(mean(one).total_cmp(&mean(other)))
        });
        let (currency, prices) = (prices.currency.clone(), prices.to_string());
        let systems = merged(systems);
        Self { currency, prices, demand, bounds, systems, dropped: cut.dropped }
    }

    /// The cheapest system that meets all bounds.
    pub fn best(&self) -> Option<&System> {
        self.systems.first().filter(|system| system.unmet.is_empty())
    }
}

impl System {
    /// The system's name with the size of its flash, as [`Candidate::label`].
    pub fn label(&self) -> String {
        let size = self.flash_bytes.map(|bytes| format!(", {}", binary_size(bytes)));
        self.name.clone() + &size.unwrap_or_default()
    }

    /// Whether both are caches of one preset with equal prices and figures.
    fn has_figures_of(&self, other: &Self) -> bool {
        let figures = |it: &Self| {
            let latency = (it.mean_ns, it.p99_ns, it.hit_ratio);
            let wear = (it.write_amplification, it.tb_per_year, it.life_years);
            (latency, wear, it.watts, it.cost_per_year, it.drive_bytes)
        };
        self.cache.is_some()
            && self.cache == other.cache
            && self.cost_per_year.is_some()
            && figures(self) == figures(other)
    }
}

/// Ranked systems, where each cache stands for those after it that have its figures.
fn merged(ranked: Vec<System>) -> Vec<System> {
    let mut kept: Vec<System> = Vec::with_capacity(ranked.len());
    for system in ranked {
        match kept.iter_mut().find(|other| system.has_figures_of(other)) {
            Some(other) => other.same_figures.push(system.label()),
            None => kept.push(system),
        }
    }
    kept
}

fn system(candidate: &Candidate) -> System {
    System {
        name: candidate.title(),
        cache: candidate.cache.clone(),
        policy: candidate.policy.clone(),
        curve_miss_ratio: candidate.miss_ratio,
        flash_bytes: candidate.flash.map(|_| candidate.flash_bytes),
        drive_bytes: None,
        mean_ns: None,
        p99_ns: None,
        hit_ratio: None,
        write_amplification: None,
        dwpd: None,
        tb_per_year: None,
        life_years_simulated: None,
        life_years_rated: None,
        life_years: None,
        watts: None,
        cost_per_year: None,
        same_figures: Vec::new(),
        unmet: Vec::new(),
        scenario: candidate.scenario.clone(),
    }
}

fn judge(
    candidate: &Candidate,
    run: &RunResults,
    prices: &Prices,
    demand: &Demand,
    bounds: &Bounds,
) -> System {
    let mut it = system(candidate);
    it.mean_ns = run.latency_ns.all.mean;
    it.p99_ns = run.latency_ns.all.p99;
    it.write_amplification = run.totals.write_amplification;
    let path = if candidate.cache.is_some() { "cache" } else { "" };
    let cache = run.components.get(path).and_then(|component| component.cache.as_ref());
    it.hit_ratio = cache.and_then(|cache| cache.hit_ratio);
    wear(&mut it, candidate, run, prices, demand);
    let seconds = window_ns(run) as f64 / 1e9;
    it.watts = run.totals.energy_j.map(|joules| joules / seconds).filter(|watts| watts.is_finite());
    let energy = it.watts.unwrap_or(0.0) / 1e3 * HOURS_PER_YEAR * prices.energy;
    let life = it.life_years.unwrap_or(f64::INFINITY);
    let cost = candidate.devices_per_year(prices, demand, life) + energy;
    it.cost_per_year = Some(cost);
    if demand.span_ns > 0 && run.simulated_ns as f64 > SLOWER_MAX * demand.span_ns as f64 {
        let times = number(run.simulated_ns as f64 / demand.span_ns as f64);
        it.unmet.push(format!("takes {times} times as long as the trace"));
    }
    if bounds.budget.is_some_and(|most| cost > most) {
        it.unmet.push("over budget".to_owned());
    }
    if bounds.p99_ns.is_some_and(|most| it.p99_ns.is_none_or(|p99| p99 > most)) {
        it.unmet.push("p99 too long".to_owned());
    }
    if candidate.flash.is_some() && bounds.life_years.is_some_and(|least| life < least) {
        it.unmet.push("flash wears out".to_owned());
    }
    let is_written = candidate.flash.is_some() && it.tb_per_year.is_none_or(|tb| tb > 0.0);
    if is_written && bounds.life_years.is_some() && it.life_years.is_none() {
        it.unmet.push("life of the flash is unknown".to_owned());
    }
    it
}

/// The time that the statistics cover: without the warm-up.
fn window_ns(run: &RunResults) -> u64 {
    run.simulated_ns.saturating_sub(run.warmup.ns)
}

fn wear(
    it: &mut System,
    candidate: &Candidate,
    run: &RunResults,
    prices: &Prices,
    demand: &Demand,
) {
    let mut flashes = run.components.values().filter(|component| component.flash.is_some());
    let Some((at, component)) = candidate.flash.zip(flashes.next()) else { return };
    let device = &prices.device[at];
    // Operations of the warm-up are not counted.
    let whole = run.simulated_ns as f64 / window_ns(run).max(1) as f64;
    let times = demand.times_per_year(run.simulated_ns) * whole;
    let constant = |name| component.constants.get(name).copied().filter(|value| *value > 0.0);
    let bytes = run.totals.host_bytes.unwrap_or(0) as f64 * times;
    let bought = device.bought(candidate.flash_bytes) as f64;
    it.drive_bytes = Some(device.bought(candidate.flash_bytes));
    it.tb_per_year = Some(bytes / 1e12);
    it.dwpd = Some(bytes / 365.25 / bought);
    it.life_years_rated = rated_years(device, candidate.flash_bytes, bytes);
    let lifetime = component.flash.as_ref().and_then(|flash| flash.lifetime.as_ref());
    let erases_left = match lifetime {
        Some(lifetime) => lifetime.erases_left,
        // The static SLC cache has an endurance of its own.
        None if constant("slc_endurance").is_some() => None,
        None => constant("endurance")
            .zip(constant("blocks"))
            .map(|(each, blocks)| (each - constant("initial_erases").unwrap_or(0.0)) * blocks),
    };
    // While the flash of a cache fills, pages are programmed before any block needs an erase.
    let programs = run.totals.programs.unwrap_or(0) as f64;
    let fill = constant("pages_per_block").map_or(0.0, |pages| programs / pages);
    let erases = fill.max(run.totals.erases.unwrap_or(0) as f64);
    // The part of the drive that is not simulated takes its share of the wear.
    let larger = (bought / candidate.simulated_bytes as f64).max(1.0);
    let years = erases_left.map(|erases_left| erases_left * larger / (erases * times));
    it.life_years_simulated = years.filter(|years| years.is_finite());
    let both = [it.life_years_simulated, it.life_years_rated];
    it.life_years = both.into_iter().flatten().min_by(f64::total_cmp);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(cache: &str, flash_bytes: u64, mean_ns: f64) -> System {
        let candidate = Candidate {
            name: format!("disk + SSD, {cache}"),
            disk: Some(0),
            flash: Some(1),
            flash_bytes,
            simulated_bytes: 4 * flash_bytes,
            cache: Some(cache.to_owned()),
            policy: None,
            miss_ratio: None,
            scenario: String::new(),
        };
        System { mean_ns: Some(mean_ns), cost_per_year: Some(8.0), ..system(&candidate) }
    }

    #[test]
    fn caches_with_the_same_figures_are_one_row() {
        let ranked = vec![
            named("a", 1 << 28, 5.0),
            named("a", 1 << 29, 5.0),
            named("b", 1 << 29, 5.0),
            named("a", 1 << 30, 6.0),
        ];
        let kept = merged(ranked);
        let labels: Vec<String> = kept.iter().map(System::label).collect();
        let expected = ["disk + SSD, a, 256 MiB", "disk + SSD, b, 512 MiB", "disk + SSD, a, 1 GiB"];
        assert_eq!(labels, expected);
        assert_eq!(kept[0].same_figures, ["disk + SSD, a, 512 MiB"]);
        // A run that failed has no figures.
        let failed = System { cost_per_year: None, ..named("a", 1 << 28, 5.0) };
        assert_eq!(merged(vec![failed.clone(), failed]).len(), 2);
    }
}
