//! Schedulers and a root component: enough to run a drive from its TOML text.
#![allow(dead_code)]

pub mod disksim;
pub mod replay;

use hybridsim_config::build::SchedulerEntry;
use hybridsim_config::build::{BuildInput, ComponentEntry};
use hybridsim_config::check;
use hybridsim_config::param::{Built, Settings};
use hybridsim_config::registry::{Description, Registry};
use hybridsim_disk::seek;
use hybridsim_engine::schedule::{Head, Queued, Scheduler};
use hybridsim_engine::{
    Completion, Component, ComponentInfo, ComponentTree, Ctx, EventRecord, Machine, Request,
    RequestId, SimDuration,
};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

/// First come, first served.
#[derive(Default)]
struct Fcfs(VecDeque<Queued>);

impl Scheduler for Fcfs {
    fn push(&mut self, item: Queued) {
        self.0.push_back(item);
    }
    fn pop(&mut self, _head: &Head<'_>) -> Option<Queued> {
        self.0.pop_front()
    }
    fn len(&self) -> usize {
        self.0.len()
    }
}

/// Shortest positioning time first.
#[derive(Default)]
struct Sptf(Vec<Queued>);

impl Scheduler for Sptf {
    fn push(&mut self, item: Queued) {
        self.0.push(item);
    }
    fn pop(&mut self, head: &Head<'_>) -> Option<Queued> {
        let positioner = head.positioner?;
        let cost = |item: &Queued| positioner.positioning(head.now, head.last, &item.request);
        let best = (0..self.0.len()).min_by_key(|&at| (cost(&self.0[at]), self.0[at].since))?;
        Some(self.0.swap_remove(best))
    }
    fn len(&self) -> usize {
        self.0.len()
    }
}

const fn named(name: &'static str) -> Description {
    Description { name, summary: "", origin: "", params: &[] }
}

pub fn registry() -> Registry {
    let mut registry = Registry::default();
    registry.add_all(hybridsim_disk::ENTRIES);
    registry.add_all(seek::ENTRIES);
    registry.add_all(hybridsim_disk::smr::ENTRIES);
    registry.add(SchedulerEntry {
        description: named("fcfs"),
        build: |_| Ok(Box::new(Fcfs::default())),
    });
    registry.add(SchedulerEntry {
        description: named("sptf"),
        build: |_| Ok(Box::new(Sptf::default())),
    });
    registry
}

/// Checks a table against the parameters of its kind.
fn settings_of(registry: &Registry, mut table: toml::Table) -> Result<Settings, String> {
    let kind = table.remove("kind").ok_or("no kind")?;
    let entry = registry.find::<ComponentEntry>(kind.as_str().unwrap_or_default());
    let params = entry.ok_or(format!("kind is {kind}"))?.description.params;
    check::read(&table.to_string(), &[params], registry).map_err(|it| it.to_string())
}

/// Builds the drive described by `text`, at path `path` in a run with seed 1.
pub fn build_at(text: &str, path: &str) -> Built<dyn Component> {
    build_table(text.parse().unwrap_or_else(|error| panic!("{error}")), path)
}

/// As [`build_at`], of a table that is read already.
pub fn build_table(table: toml::Table, path: &str) -> Built<dyn Component> {
    let registry = registry();
    let kind = table.get("kind").and_then(toml::Value::as_str).unwrap_or_default().to_owned();
    let settings = settings_of(&registry, table).unwrap_or_else(|error| panic!("{error}"));
    let input =
        BuildInput { settings: &settings, registry: &registry, seed: 1, path, children: &[] };
    (registry.find::<ComponentEntry>(&kind).expect("registered").build)(&input)
}

pub fn build(text: &str) -> Box<dyn Component> {
    build_at(text, "disk").unwrap_or_else(|problems| panic!("{problems:?}"))
}

/// Actions of a test on the drive: called at the start, at wake-ups and at completions.
pub type Script = dyn FnMut(&mut Ctx<'_>, Option<&Completion>);

pub struct Root(pub Box<Script>);

impl Component for Root {
    fn capacity(&self) -> u64 {
        0
    }
    fn info(&self) -> ComponentInfo {
        ComponentInfo::default()
    }
    fn start(&mut self, ctx: &mut Ctx<'_>) {
        (self.0)(ctx, None);
    }
    fn request(&mut self, _: &mut Ctx<'_>, _: RequestId, _: &Request) {}
    fn completion(&mut self, ctx: &mut Ctx<'_>, done: &Completion) {
        (self.0)(ctx, Some(done));
    }
    fn wake(&mut self, ctx: &mut Ctx<'_>, _: u64) {
        (self.0)(ctx, None);
    }
}

/// The machine of `script` over the drive described by `text`.
pub fn machine(
    text: &str,
    verify: bool,
    script: impl FnMut(&mut Ctx<'_>, Option<&Completion>) + 'static,
) -> Machine {
    machine_of(build(text), verify, script)
}

/// The machine of `script` over `component`.
pub fn machine_of(
    component: Box<dyn Component>,
    verify: bool,
    script: impl FnMut(&mut Ctx<'_>, Option<&Completion>) + 'static,
) -> Machine {
    let disk = ComponentTree { path: "disk".into(), component, children: Vec::new() };
    Machine::new(ComponentTree::inner("root", Root(Box::new(script)), vec![disk]), verify)
}

/// Serves (time to wait after the completion before, request) one by one; halts at the end.
pub fn one_by_one(
    text: &str,
    work: Vec<(SimDuration, Request)>,
) -> (Vec<Completion>, Vec<EventRecord>) {
    one_by_one_on(build(text), work)
}

/// As [`one_by_one`], on a component that is built already.
pub fn one_by_one_on(
    component: Box<dyn Component>,
    work: Vec<(SimDuration, Request)>,
) -> (Vec<Completion>, Vec<EventRecord>) {
    let done = Rc::new(RefCell::new(Vec::new()));
    let seen = Rc::clone(&done);
    let (mut next, mut armed) = (0, false);
    let mut machine = machine_of(component, false, move |ctx, completion| {
        seen.borrow_mut().extend(completion);
        match work.get(next) {
            None => ctx.halt(),
            Some((wait, _)) if !armed && !wait.is_zero() => {
                armed = true;
                ctx.wake_after(*wait, 0);
            }
            Some((_, request)) => {
                (armed, next) = (false, next + 1);
                ctx.issue(0, *request, 0);
            }
        }
    });
    let mut events = Vec::new();
    machine.run(&mut events, &mut |_| true).expect("a good run");
    let done = done.borrow().clone();
    (done, events)
}
