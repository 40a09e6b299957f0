//! The cost model: check values, and its surface over the division of flash.

use crate::{Claim, Experiment, ExperimentError, Findings, Job, JobOutput, Runner};
use hybridsim_hybrid::flash_cache::cost::{Demand, access, published, victim_utilisation};
use hybridsim_hybrid::flash_cache::optimise::{DivisionGrid, cheapest};
use hybridsim_report::study::Curve;
use std::cell::Cell;

/// The cost model's values.
pub const MODEL: Experiment = Experiment { id: "op-fcl/model", run: model };

/// Cost over (u, r).
pub const SURFACE: Experiment = Experiment { id: "op-fcl/surface", run: surface };

/// u, C_GC and C_PW in microseconds.
const VALUES: [(f64, f64, f64); 6] = [
    (0.30, 2088.7, 234.0),
    (0.50, 4425.9, 286.8),
    (0.70, 8224.7, 441.1),
    (0.80, 10552.0, 644.0),
    (0.92, 13659.0, 1571.5),
    (0.97, 15045.0, 4157.9),
];

/// Flash of configuration 1, GB.
const FLASH_GB: f64 = 4.0;

/// Configuration 1 at its full size with 92 % of flash for caching: a short run, for what the cache
/// says of itself.
fn example(runner: &Runner) -> Result<JobOutput, ExperimentError> {
    let job = Job::paper("op-fcl/config1.toml")
        .named("4 GB of flash, u = 0.92")
        .set("component.flash.blocks_per_plane", 16_384)
        .set("component.cache.scheme", "\"fp\"")
        .set("component.cache.caching_space", 0.92)
        .set("workload.generator.requests", 1000)
        .set("run.warmup_requests", 0)
        .with_numbers();
    Ok(runner.run(&[job])?.remove(0))
}

fn model(runner: &Runner) -> Result<Findings, ExperimentError> {
    let mut findings = Findings::default();
    let costs = published(0.0);
    let away = |ours: f64, by_hand: f64| (ours * 1e6 / by_hand - 1.0).abs();
    let collecting =
        VALUES.map(|(u, by_hand, _)| away(costs.collection(victim_utilisation(u)), by_hand));
    let writing = VALUES.map(|(u, _, by_hand)| away(costs.page_write(u), by_hand));
    for (what, farthest) in [("collecting a block", collecting), ("writing a page", writing)] {
        let claim = Claim::of("op-fcl/farthest-from-the-formula").with("what", what);
        findings.row(claim.ours(farthest.into_iter().fold(0.0, f64::max)));
    }
    let error = (1..1000)
        .map(|step| f64::from(step) / 1000.0)
        .map(|victim| (victim_utilisation((victim - 1.0) / libm::log(victim)) - victim).abs())
        .fold(0.0, f64::max);
    findings.row(Claim::of("op-fcl/largest-error-u-thousand-utilisations").ours(error));
    let ran = example(runner)?;
    let constant = |name: &str| {
        let component = ran.results.components.get("cache");
        component.and_then(|component| component.constants.get(name).copied()).unwrap_or(f64::NAN)
    };
    // The device keeps a twentieth to itself; of the rest, what the cache cannot use is the map.
    let offered = constant("flash_pages") * 0.95;
    findings.row(
        Claim::of("op-fcl/share-flash-keeps-map-cache-4")
            .ours(1.0 - constant("cache_pages_max") / offered),
    );
    findings.row(evaluations(constant("cache_pages_max") / constant("flash_pages")));
    let last = |number: u8| {
        let reported = ran.numbers.iter().rev().find(|(_, name, _)| *name == number);
        reported.map_or(f64::NAN, |(.., pages)| *pages as f64)
    };
    let (cached, spare) = (last(0) + last(1), last(2));
    findings.row(
        Claim::of("op-fcl/cached-data-4-gb-u-0-92").ours(FLASH_GB * cached / (cached + spare)),
    );
    Ok(findings)
}

/// The number of costs that the optimiser calculates when `u_max` is the largest share for caching.
fn evaluations(u_max: f64) -> Claim {
    let count = |u_max: f64| {
        let demand = Counted::default();
        let grid = DivisionGrid { u_steps: STEPS, r_steps: STEPS, u_max };
        cheapest(&grid, &published(0.0), &demand, PAGES, 0.0, None);
        demand.calculations.get() as f64
    };
    Claim::of("op-fcl/evaluations-of-a-period")
        .with_figures(&[("u_max", u_max)])
        .ours(count(u_max))
        .sensitive("up to 0.95 of the flash, as the device offers", count(0.95))
}

/// A workload that counts how often its hits are asked for: once for each cost.
#[derive(Default)]
struct Counted {
    calculations: Cell<u32>,
}

impl Demand for Counted {
    fn read_hits(&self, pages: f64) -> f64 {
        self.calculations.set(self.calculations.get() + 1);
        Rising.read_hits(pages)
    }
    fn write_hits(&self, pages: f64) -> f64 {
        Rising.write_hits(pages)
    }
    fn read_share(&self) -> f64 {
        Rising.read_share()
    }
    fn reads_of_write_hits(&self) -> f64 {
        Rising.reads_of_write_hits()
    }
}

/// Hit rates that rise with the square root of the size.
struct Rising;

const PAGES: f64 = 65_536.0;

impl Demand for Rising {
    fn read_hits(&self, pages: f64) -> f64 {
        0.6 * (pages / PAGES).sqrt()
    }
    fn write_hits(&self, pages: f64) -> f64 {
        0.9 * (pages / PAGES).sqrt()
    }
    fn read_share(&self) -> f64 {
        0.5
    }
    fn reads_of_write_hits(&self) -> f64 {
        0.3
    }
}

/// Algorithm 1 has one step for both: a segment of the cache, a sixteenth.
const STEPS: u32 = 16;

fn surface(_runner: &Runner) -> Result<Findings, ExperimentError> {
    let costs = published(102.4e-6);
    let grid = |r_steps: u32| DivisionGrid { u_steps: STEPS, r_steps, u_max: 0.95 };
    let choose = |r_steps| cheapest(&grid(r_steps), &costs, &Rising, PAGES, 0.0, None);
    let chosen = choose(STEPS);
    let cost = |u, r| access(&costs, &Rising, PAGES, u, r, 0.0) * 1e3;
    let least = (1..=15)
        .flat_map(|u| (0..=STEPS).map(move |r| (f64::from(u) / 16.0, f64::from(r) / 16.0)))
        .map(|(u, r)| cost(u, r))
        .fold(f64::INFINITY, f64::min);
    let finer = choose(2 * STEPS);
    let mut findings = Findings::default();
    findings.row(
        Claim::of("op-fcl/cost-chosen-point-least-grid")
            .ours(cost(chosen.u, chosen.r) / least)
            .sensitive(
                "half the step for r, as the authors' code has it",
                cost(finer.u, finer.r) / least,
            ),
    );
    let line = |r: f64| {
        let points = (1..=39).map(|step| f64::from(step) / 40.0).map(|u| (u, cost(u, r)));
        Curve::ours(&format!("r = {r}"), points.collect())
    };
    let mut curves: Vec<Curve> = [0.0, 0.25, 0.5, 0.75, 1.0].map(line).to_vec();
    let at = (chosen.u, cost(chosen.u, chosen.r));
    let mark = format!("chosen: u = {:.3}, r = {:.3}", chosen.u, chosen.r);
    curves.push(Curve::ours(&mark, vec![(at.0 - 0.01, at.1), at, (at.0 + 0.01, at.1)]));
    findings.plot("op-fcl/cost-of-an-access", &[], curves);
    Ok(findings)
}
