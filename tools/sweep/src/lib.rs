//! Parameter sweeps: one scenario run at many values of its parameters.
//!
//! A point is identified by the hash of all inputs of its result, not by its number. An interrupted
//! sweep therefore resumes where it stopped, an extended one runs only the new points, and shards
//! on several machines agree on the points of each.
//!
//! [`Plan`] lists the points, [`run`] simulates them in this process, [`Task`] is a point for
//! another one. [`Store`] keeps outcomes, [`Table`] shows them.

mod contents;
mod format;
pub mod memory;
mod page;
mod plan;
mod planned;
pub mod statistics;
mod store;
mod table;
mod task;
mod vary;

pub use contents::Contents;
pub use memory::Memory;
pub use page::Search;
pub use plan::{Plan, Point, Seeds};
pub use planned::Planned;
pub use store::{Outcome, Store};
pub use table::{Cell, Column, Row, Table};
pub use task::Task;
pub use vary::{Range, Sampling, Values, Vary};

use hybridsim_config::registry::Registry;
use hybridsim_observe::{Detail, RunResults};
use hybridsim_simulation::parallel::parallel_map;
use hybridsim_simulation::run::{self, Options, RunProgress};
use hybridsim_simulation::scenario::{Input, Scenario};
use hybridsim_simulation::state::PreconditionCache;
use std::any::Any;
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};

/// One of several disjoint subsets of the points, such as those for one machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    /// The shard's number, from 0.
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

/// The points to run, and what they are run with.
pub struct Job<'a> {
    /// The entries that scenarios may use.
    pub registry: &'a Registry,
    /// Points run in parallel.
    pub threads: usize,
    /// Points run only while this suffices.
    pub memory: &'a Memory,
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
    let (first, copies) = distinct(points);
    let done = |at: usize, outcome: &Option<Outcome>| {
        if outcome.is_some() {
            copies[at].iter().for_each(|copy| finished(&points[*copy]));
        }
    };
    let outcomes = parallel_map(first, job.threads, |point| one(point, job), done);
    let mut all = vec![None; points.len()];
    for (outcome, copies) in outcomes.into_iter().zip(&copies) {
        copies.iter().for_each(|copy| all[*copy].clone_from(&outcome));
    }
    all
}

/// The first point of each key, and the positions of all points of that key: values that mean the
/// same, such as 100us and 0.1ms, are one simulation. Invalid points are without a key.
pub fn distinct(points: &[Point]) -> (Vec<&Point>, Vec<Vec<usize>>) {
    let (mut first, mut copies): (Vec<&Point>, Vec<Vec<usize>>) = (Vec::new(), Vec::new());
    let mut known: HashMap<&str, usize> = HashMap::new();
    for (at, point) in points.iter().enumerate() {
        match known.get(point.key.as_str()).filter(|_| !point.key.is_empty()) {
            Some(&same) => copies[same].push(at),
            None => {
                known.insert(&point.key, first.len());
                first.push(point);
                copies.push(vec![at]);
            }
        }
    }
    (first, copies)
}

fn one(point: &Point, job: &Job<'_>) -> Option<Outcome> {
    if let Some(known) = point.known(job.store) {
        return Some(known);
    }
    let share = match job.memory.take(point.memory) {
        Ok(share) => share,
        // Not stored: another computer may have more.
        Err(refused) => return Some(Outcome::Refused(refused)),
    };
    if job.interrupted.load(Ordering::Relaxed) {
        return None;
    }
    let go_on = || !job.interrupted.load(Ordering::Relaxed);
    let outcome = simulate(&point.input, job.registry, job.cache, go_on)?;
    drop(share);
    if let Some(store) = job.store {
        store.save(&point.key, &outcome);
    }
    Some(outcome)
}

/// Simulates one scenario, with preconditioned devices from the cache if `cache` is set. `go_on` is
/// called about ten times a second; when it returns `false` the run is interrupted and has no
/// outcome. A defect of the simulator is the outcome of the point that met it.
pub fn simulate(
    input: &Input,
    registry: &Registry,
    cache: bool,
    go_on: impl FnMut() -> bool,
) -> Option<Outcome> {
    let run = AssertUnwindSafe(|| attempt(input, registry, cache, go_on));
    catch_unwind(run).unwrap_or_else(|panic| Some(Outcome::Failed(defect(&*panic))))
}

fn attempt(
    input: &Input,
    registry: &Registry,
    cache: bool,
    mut go_on: impl FnMut() -> bool,
) -> Option<Outcome> {
    let scenario = match Scenario::check(input.clone(), registry) {
        Ok(scenario) => scenario,
        Err(problems) => return Some(Outcome::Failed(problems.to_string())),
    };
    let mut interrupted = false;
    let mut on_progress = |_: &RunProgress| {
        interrupted = interrupted || !go_on();
        !interrupted
    };
    let options = Options {
        detail: Detail::Bare,
        on_progress: Some(&mut on_progress),
        cache: PreconditionCache::standard().filter(|_| cache),
        ..Options::default()
    };
    let done = match run::run(&scenario, registry, options) {
        Ok(done) => done,
        Err(error) => return Some(Outcome::Failed(error.to_string())),
    };
    if interrupted {
        return None;
    }
    Some(match (done.fault, done.results.violations.first()) {
        (Some(fault), _) => Outcome::Failed(fault.to_string()),
        (None, Some(broken)) => Outcome::Failed(format!("a check failed: {broken}")),
        (None, None) => Outcome::Done(Box::<RunResults>::from(done.results)),
    })
}

fn defect(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    format!("a defect of the simulator, please report it: {}", text.unwrap_or("no message"))
}
