//! A small reader of part tables, a first-come scheduler and a root component: enough to run a
//! drive from its TOML text. The program's own reader is stricter.
#![allow(dead_code)]

pub mod disksim;
pub mod replay;

use hybridsim_config::build::SchedulerEntry;
use hybridsim_config::build::{BuildInput, ComponentEntry};
use hybridsim_config::param::{EntryChoice, Kind, Param, Problem, Settings, Value};
use hybridsim_config::registry::{Description, Entry, Registry};
use hybridsim_disk::seek::{self, SeekEntry};
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

/// Checks `text` against the parameters of its kind; every unknown or missing key is an error.
pub fn settings(registry: &Registry, text: &str) -> Result<Settings, String> {
    settings_of(registry, text.parse().map_err(|error| format!("{error}"))?)
}

/// As [`settings`], of a table that is read already.
pub fn settings_of(registry: &Registry, mut table: toml::Table) -> Result<Settings, String> {
    let kind = table.remove("kind").ok_or("no kind")?;
    let entry = registry.find::<ComponentEntry>(kind.as_str().unwrap_or_default());
    let entry = entry.ok_or(format!("kind is {kind}"))?;
    read(registry, &table, entry.description.params)
}

fn read(registry: &Registry, table: &toml::Table, params: &[Param]) -> Result<Settings, String> {
    if let Some(key) = table.keys().find(|key| !params.iter().any(|param| param.name == **key)) {
        return Err(format!("unknown key {key}"));
    }
    let mut settings = Settings::default();
    for param in params {
        let value = match (table.get(param.name), param.default) {
            (Some(value), _) => value.clone(),
            (None, Some("")) => continue,
            (None, Some(text)) => {
                let line: toml::Table = format!("x = {text}").parse().expect("a good default");
                line["x"].clone()
            }
            (None, None) => return Err(format!("{} is missing", param.name)),
        };
        let value = convert(registry, &value, param.kind);
        settings.set(param.name, value.map_err(|error| format!("{}: {error}", param.name))?);
    }
    Ok(settings)
}

fn quantity(value: &toml::Value, units: &[(&str, f64)]) -> Result<f64, String> {
    let text = value.as_str().ok_or("not a quantity")?;
    let end = text.find(|c: char| !(c.is_ascii_digit() || c == '.')).ok_or("no unit")?;
    let unit = units.iter().find(|unit| unit.0 == text[end..].trim());
    let number: f64 = text[..end].parse().map_err(|_| format!("{text} is not a number"))?;
    Ok(number * unit.ok_or(format!("{text} has another unit"))?.1)
}

const TIMES: &[(&str, f64)] = &[("ns", 1.0), ("us", 1e3), ("ms", 1e6), ("s", 1e9)];
const SIZES: &[(&str, f64)] =
    &[("B", 1.0), ("KiB", 1024.0), ("MiB", 1_048_576.0), ("kB", 1e3), ("MB", 1e6)];

fn convert(registry: &Registry, value: &toml::Value, kind: Kind) -> Result<Value, String> {
    let number = value.as_float().or(value.as_integer().map(|n| n as f64));
    let time = |value: &toml::Value| quantity(value, TIMES).map(SimDuration::from_ns_f64);
    let list = || value.as_array().ok_or("not a list");
    Ok(match kind {
        Kind::Count { min, max } => {
            let n = value.as_integer().and_then(|n| u64::try_from(n).ok()).ok_or("not a count")?;
            if !(min..=max).contains(&n) {
                return Err(format!("{n} is not in {min}..={max}"));
            }
            Value::Count(n)
        }
        Kind::Number { .. } => Value::Number(number.ok_or("not a number")?),
        Kind::Duration => Value::Duration(time(value)?),
        Kind::Bytes => Value::Bytes(quantity(value, SIZES)? as u64),
        Kind::Rate => {
            let text = value.as_str().and_then(|text| text.strip_suffix("/s")).ok_or("no rate")?;
            Value::Rate(quantity(&text.into(), SIZES)? as u64)
        }
        Kind::Rpm => Value::Number(quantity(value, &[("rpm", 1.0)])?),
        Kind::Power => Value::Number(quantity(value, &[("W", 1.0)])?),
        Kind::Flag => Value::Flag(value.as_bool().ok_or("not a flag")?),
        Kind::Choice(words) => {
            let word = value.as_str().filter(|w| words.contains(w)).ok_or("not a choice")?;
            Value::Text(word.to_owned())
        }
        Kind::Numbers => {
            let number = |v: &toml::Value| v.as_float().or(v.as_integer().map(|n| n as f64));
            Value::Numbers(list()?.iter().map(|v| number(v).expect("numbers")).collect())
        }
        Kind::Counts => {
            let count = |v: &toml::Value| v.as_integer().and_then(|n| u64::try_from(n).ok());
            Value::Counts(list()?.iter().map(|v| count(v).expect("counts")).collect())
        }
        Kind::Curve => {
            let point = |v: &toml::Value| {
                let pair = v.as_array().ok_or("not a pair")?;
                let x = pair[0].as_float().or(pair[0].as_integer().map(|n| n as f64));
                Ok::<_, String>((x.ok_or("not a number")?, time(&pair[1])?))
            };
            Value::Curve(list()?.iter().map(point).collect::<Result<_, _>>()?)
        }
        Kind::Tables(params) => {
            let row = |v: &toml::Value| read(registry, v.as_table().expect("a table"), params);
            Value::Tables(list()?.iter().map(row).collect::<Result<_, _>>()?)
        }
        Kind::Entry(slot) => Value::Entry(entry_choice(registry, value, slot)?),
        other => return Err(format!("{other:?} is not read here")),
    })
}

fn entry_choice(
    registry: &Registry,
    value: &toml::Value,
    slot: &str,
) -> Result<EntryChoice, String> {
    let mut table = value.as_table().cloned().unwrap_or_default();
    let name = match value.as_str() {
        Some(name) => name.to_owned(),
        None => table.remove("kind").and_then(|k| k.as_str().map(str::to_owned)).ok_or("kind")?,
    };
    let params = match slot {
        SeekEntry::CATEGORY => registry.find::<SeekEntry>(&name).map(|e| e.description.params),
        _ => registry.find::<SchedulerEntry>(&name).map(|e| e.description.params),
    };
    let params = params.ok_or(format!("no {slot} called {name}"))?;
    Ok(EntryChoice { name, settings: read(registry, &table, params)? })
}

/// Builds the drive described by `text`, at path `path` in a run with seed 1.
pub fn build_at(text: &str, path: &str) -> Result<Box<dyn Component>, Vec<Problem>> {
    build_table(text.parse().unwrap_or_else(|error| panic!("{error}")), path)
}

/// As [`build_at`], of a table that is read already.
pub fn build_table(table: toml::Table, path: &str) -> Result<Box<dyn Component>, Vec<Problem>> {
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

/// What a test does with the drive: called at the start, at wake-ups and at completions.
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
