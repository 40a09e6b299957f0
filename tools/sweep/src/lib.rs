//! Parameter sweeps: one scenario run at every combination of some parameter values.
//!
//! A point is identified by the hash of its resolved scenario, not by its number. An interrupted
//! sweep therefore resumes where it stopped, an extended one runs only the new points, and shards
//! on several machines agree on the points of each.

mod format;
mod page;
mod plan;
pub mod statistics;
mod store;
mod table;

pub use plan::{Plan, Point, Vary, key};
pub use store::{Outcome, Store};
pub use table::{Cell, Column, Row, Table};

use hybridsim_config::registry::Registry;
use hybridsim_observe::{Detail, RunResults};
use hybridsim_simulation::parallel::parallel_map;
use hybridsim_simulation::run::{self, Options};
use hybridsim_simulation::scenario::Scenario;
use hybridsim_simulation::state::PreconditionCache;
use std::sync::atomic::{AtomicBool, Ordering};

/// One of several disjoint subsets of the points, such as those for one machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    /// Its number, from 0.
    pub index: u64,
    /// Number of shards.
    pub count: u64,
}

impl Shard {
    /// Whether the point with this key belongs to it.
    pub fn has(self, key: &str) -> bool {
        let digits = key.get(..15).unwrap_or("0");
        u64::from_str_radix(digits, 16).unwrap_or(0) % self.count == self.index
    }
}

/// How to run the points.
pub struct Job<'a> {
    /// The entries that scenarios may use.
    pub registry: &'a Registry,
    /// Points run in parallel.
    pub threads: usize,
    /// Stores finished points.
    pub store: Option<&'a Store>,
    /// Whether to cache preconditioned devices between runs.
    pub cache: bool,
    /// Set to interrupt the sweep.
    pub interrupted: &'a AtomicBool,
}

/// Runs every point that is not in the store and returns the outcomes in the order of `points`,
/// `None` for those that an interruption cut short. A point that fails is an outcome too.
/// `finished` is called with each point that has an outcome.
pub fn run(
    points: &[Point],
    job: &Job<'_>,
    mut finished: impl FnMut(&Point),
) -> Vec<Option<Outcome>> {
    let done = |at: usize, outcome: &Option<Outcome>| {
        if outcome.is_some() {
            finished(&points[at]);
        }
    };
    parallel_map(points.iter().collect(), job.threads, |point| one(point, job), done)
}

fn one(point: &Point, job: &Job<'_>) -> Option<Outcome> {
    if let Some(known) = job.store.and_then(|store| store.load(&point.key)) {
        return Some(known);
    }
    if job.interrupted.load(Ordering::Relaxed) {
        return None;
    }
    let outcome = simulate(point, job)?;
    match job.store.map(|store| store.save(&point.key, &outcome)) {
        Some(Err(error)) => Some(Outcome::Failed(error)),
        _ => Some(outcome),
    }
}

/// `None` when interrupted.
fn simulate(point: &Point, job: &Job<'_>) -> Option<Outcome> {
    let scenario = match Scenario::check(point.input.clone(), job.registry) {
        Ok(scenario) => scenario,
        Err(problems) => return Some(Outcome::Failed(problems.to_string())),
    };
    let mut on_progress = |_: &run::RunProgress| !job.interrupted.load(Ordering::Relaxed);
    let options = Options {
        detail: Detail::Bare,
        on_progress: Some(&mut on_progress),
        cache: PreconditionCache::standard().filter(|_| job.cache),
        ..Options::default()
    };
    let done = match run::run(&scenario, job.registry, options) {
        Ok(done) => done,
        Err(error) => return Some(Outcome::Failed(error.to_string())),
    };
    if job.interrupted.load(Ordering::Relaxed) {
        return None;
    }
    Some(match (done.fault, done.results.violations.first()) {
        (Some(fault), _) => Outcome::Failed(fault.to_string()),
        (None, Some(broken)) => Outcome::Failed(format!("a check failed: {broken}")),
        (None, None) => Outcome::Done(Box::<RunResults>::from(done.results)),
    })
}
