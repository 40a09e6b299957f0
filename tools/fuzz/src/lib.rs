//! Random systems under random workloads with every check on.
//!
//! Systems are drawn from the registry, so every registered FTL, policy, scheduler or component is
//! included. Components are small (see [`Registry::add_samples`]), so that caches overflow and
//! devices fill up within a few thousand requests. In up to a third of the systems the power fails
//! repeatedly, but not where a component may lose acknowledged writes by design or does not model
//! power failures; in some of the others components fail, become slow, wear out or fill up. Some
//! systems have several tenants. Every other system is run again in a way that must not matter
//! ([`relations`]). Of the others, a system that is one SSD must perform the same flash operations
//! in an untimed run as counted without a clock, the data are read back at the end, and doubled
//! times must double latencies.

#[cfg(unix)]
pub mod client;
mod counted;
pub mod coverage;
pub mod input;
mod keys;
mod load;
mod read_back;
pub mod relations;
mod scaled;
pub mod seeds;
#[cfg(unix)]
mod served;
mod shrink;
pub mod targets;

use coverage::Coverage;
use hybridsim_config::build::ComponentEntry;
use hybridsim_config::diagnostic::SourceText;
use hybridsim_config::param::{Kind, Param};
use hybridsim_config::registry::Registry;
use hybridsim_engine::{Fault, Stream};
use hybridsim_simulation::run::{self, RunError};
use hybridsim_simulation::scenario::{Input, Scenario};
use keys::Open;
use relations::{RELATIONS, Ran, Relation};
use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use toml::Table;

/// The outcome of one random system.
#[derive(Debug)]
pub enum Verdict {
    /// It ran, and every check held.
    Passed,
    /// The combination was rejected, as impossible ones must be, with this message.
    Refused(String),
    Failed {
        /// The scenario, without what the failure does not need.
        scenario: String,
        reason: String,
    },
}

/// Draws system number `seed` and runs it; `coverage` counts its keys and its verdict.
pub fn one(registry: &Registry, seed: u64, coverage: &mut Coverage) -> Verdict {
    let (scenario, keys) = drawn(registry, seed);
    let mut verdict = judge(registry, seed, scenario);
    if let Verdict::Failed { scenario, reason } = &mut verdict {
        *scenario = shrink::shrink(scenario, reason, |smaller| judge(registry, seed, smaller));
    }
    coverage.add(keys, &verdict);
    verdict
}

/// Runs `scenario`; a panic is a failure as well.
fn judge(registry: &Registry, seed: u64, scenario: String) -> Verdict {
    let verdict = catch_unwind(AssertUnwindSafe(|| run(registry, seed, scenario.clone())));
    verdict.unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("");
        Verdict::Failed { scenario, reason: format!("panicked: {text}") }
    })
}

/// The scenario of system number `seed`, and the keys that it gives.
fn drawn(registry: &Registry, seed: u64) -> (String, BTreeSet<String>) {
    let mut draw = Draw::new(registry, seed);
    let system = draw.component(ANY, 0);
    (draw.scenario(seed, &system), draw.drawn)
}

fn run(registry: &Registry, seed: u64, scenario: String) -> Verdict {
    let source = SourceText { name: format!("fuzz seed {seed}"), text: scenario.clone() };
    let input = Input { source, base: PathBuf::new(), sets: Vec::new(), trace: None };
    let checked = match Scenario::check(input, registry) {
        Ok(checked) => checked,
        Err(problems) => {
            return Verdict::Failed { scenario, reason: format!("does not check: {problems}") };
        }
    };
    let cannot_lose_power = || match run::check(&checked, registry) {
        Ok(facts) => facts.loses_writes,
        Err(problems) => problems.to_string().contains("run.power_cut_every"),
    };
    if checked.run.power_cut_every.is_some() && cannot_lose_power() {
        let lines = scenario.lines().filter(|line| !line.starts_with("power_cut_every"));
        return run(registry, seed, lines.map(|line| format!("{line}\n")).collect());
    }
    let done = match run::run(&checked, registry, run::Options::default()) {
        Err(RunError::Scenario(problems)) => return Verdict::Refused(problems.to_string()),
        Err(RunError::Trace(reason)) => return Verdict::Failed { scenario, reason },
        Ok(done) => done,
    };
    if let Some(
        fault @ (Fault::PowerFailureUnsupported { .. }
        | Fault::UnverifiableAppend { .. }
        | Fault::TimeExhausted),
    ) = &done.fault
    {
        return Verdict::Refused(fault.to_string());
    }
    // A device may correctly report that it is full or worn out.
    let broken = done.fault.as_ref().filter(|fault| !run::is_device_answer(fault));
    let violations = &done.results.violations;
    let reason = match broken.map(|fault| fault.to_string()) {
        Some(reason) => Some(reason),
        None if !violations.is_empty() => Some(violations.join("; ")),
        None => {
            let ran = Ran { registry, scenario: &checked, text: &scenario, output: &done };
            match seed.is_multiple_of(2) {
                true => relations::broken(&ran, RELATIONS, seed / 2),
                false => OTHER_CHECKS.iter().find_map(|it| it.apply(&ran).ok().flatten()),
            }
        }
    };
    reason.map_or(Verdict::Passed, |reason| Verdict::Failed { scenario, reason })
}

/// Draws from the registry.
struct Draw<'a> {
    registry: &'a Registry,
    stream: Stream,
    components: Table,
    count: u32,
    /// Tables that are being drawn, the innermost last.
    open: Vec<Open>,
    /// Whether the system is a simple one; see [`SIMPLE`].
    is_simple: bool,
    /// The share of optional keys to draw.
    share: f64,
    /// Every key that was drawn, as [`coverage::label`] writes it.
    drawn: BTreeSet<String>,
}

/// The share of simple systems: few levels of components, hardly any optional keys, and neither
/// tenants nor faults of components. Most relations apply to most of them, and a given pair of
/// kinds is not as rare as among the others.
const SIMPLE: f64 = 0.5;
/// The level below the top component from which on a child of any kind has no children.
const DEPTH_MAX: u32 = 3;
/// The level of a simple system from which on a child of any kind has no children.
const DEPTH_MAX_SIMPLE: u32 = 1;
/// After so many components, a child of any kind has no children either.
const COMPONENTS_MANY: u32 = 12;
/// The checks of every other system, where they apply; the rest have one of [`RELATIONS`].
const OTHER_CHECKS: &[Relation] = &[counted::COUNTED, read_back::READ_BACK, scaled::SCALED];
/// Shares of optional keys: the more of them, the more systems are refused.
const SHARES: [f64; 3] = [0.01, 0.05, 0.15];
/// The sample that stands for a child of any kind, or for any entry.
const ANY: &str = "any";

impl<'a> Draw<'a> {
    fn new(registry: &'a Registry, seed: u64) -> Self {
        let mut stream = Stream::new(seed, "fuzz");
        let is_simple = stream.chance(SIMPLE);
        let share = match is_simple {
            true => 0.0,
            false => SHARES[stream.below(SHARES.len() as u64) as usize],
        };
        let (components, drawn) = (Table::new(), BTreeSet::new());
        Self { registry, stream, components, count: 0, open: Vec::new(), is_simple, share, drawn }
    }

    fn pick<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.stream.below(choices.len() as u64) as usize]
    }

    /// Whether `kind` is one of devices with zones.
    fn has_zones(&self, kind: &str) -> bool {
        self.registry.find::<ComponentEntry>(kind).is_some_and(|entry| entry.has_zones)
    }
}

fn is_child(param: &Param) -> bool {
    matches!(param.kind, Kind::Component | Kind::Components)
}

#[cfg(test)]
mod tests;
