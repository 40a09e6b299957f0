//! Sweeps: one scenario run at every combination of some of its values.
//!
//! A point is known by what it is, not by its number: the hash of its scenario with every value
//! spelt out. So a sweep that was broken off goes on where it stopped, one that was widened runs
//! only what is new, and shards on several machines agree on who runs what.

mod plan;
mod store;
mod table;

pub use plan::{Plan, Point, Vary};
pub use store::{Outcome, Store};
pub use table::{columns, csv, json, terminal};

use hybridsim_observe::{Detail, RunResults};
use hybridsim_simulation::registry;
use hybridsim_simulation::run::{self, Options};
use hybridsim_simulation::scenario::Scenario;
use hybridsim_simulation::state::Cache;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc;

/// A part of a sweep, for one machine of several.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    /// Which, from 0 on.
    pub index: u64,
    /// Of how many.
    pub count: u64,
}

impl Shard {
    /// Whether the point with this key belongs to it.
    pub fn has(self, key: &str) -> bool {
        let digits = key.get(..15).unwrap_or("0");
        u64::from_str_radix(digits, 16).unwrap_or(0) % self.count == self.index
    }
}

/// What to do with the points.
pub struct Job<'a> {
    /// Points at a time.
    pub threads: usize,
    /// Where finished points are kept; nowhere without.
    pub store: Option<&'a Store>,
    /// Whether preconditioned devices are remembered.
    pub cache: bool,
    /// Set to stop.
    pub interrupted: &'a AtomicBool,
    /// Told the name of every point that is done.
    pub tell: &'a (dyn Fn(&str) + Sync),
}

/// Runs every point that is not in the store; answers all in the order of `points`. A point that
/// fails is an outcome like any other. Points cut off by an interruption are left out.
pub fn run(points: &[Point], job: &Job<'_>) -> Vec<Option<Outcome>> {
    let next = AtomicUsize::new(0);
    let (send, receive) = mpsc::channel();
    std::thread::scope(|scope| {
        for _ in 0..job.threads.clamp(1, points.len().max(1)) {
            let (send, next) = (send.clone(), &next);
            scope.spawn(move || {
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    let Some(point) = points.get(at) else { break };
                    let outcome = one(point, job);
                    if outcome.is_some() {
                        (job.tell)(&point.name());
                    }
                    // The receiver outlives all senders.
                    drop(send.send((at, outcome)));
                }
            });
        }
    });
    drop(send);
    let mut outcomes: Vec<Option<Outcome>> = vec![None; points.len()];
    for (at, outcome) in receive {
        outcomes[at] = outcome;
    }
    outcomes
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
    // A registry cannot be shared between threads; making one is cheap.
    let registry = registry::standard();
    let scenario = match Scenario::check(point.input.clone(), &registry) {
        Ok(scenario) => scenario,
        Err(problems) => return Some(Outcome::Failed(problems.to_string())),
    };
    let mut watch = |_: &run::RunProgress| !job.interrupted.load(Ordering::Relaxed);
    let options = Options {
        detail: Detail::Bare,
        watch: Some(&mut watch),
        cache: if job.cache { Cache::standard() } else { None },
        ..Options::default()
    };
    let done = match run::run(&scenario, &registry, options) {
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
