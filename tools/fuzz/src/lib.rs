//! Random systems under random workloads with every check on.
//!
//! Systems are drawn from the registry, so every registered FTL, policy, scheduler or component is
//! included. Components are small (see [`Registry::add_samples`]), so that caches overflow and
//! devices fill up within a few thousand requests. In every third system the power fails
//! repeatedly, unless one of its components may lose acknowledged writes by design.

#[cfg(unix)]
pub mod client;
pub mod input;
pub mod seeds;

use hybridsim_config::diagnostic::SourceText;
use hybridsim_config::param::{Kind, Param};
use hybridsim_config::registry::{Description, Registry};
use hybridsim_engine::{Fault, Stream};
use hybridsim_simulation::build::ZNS_KIND;
use hybridsim_simulation::run::{self, RunError};
use hybridsim_simulation::scenario::{Input, Scenario};
use std::path::PathBuf;
use toml::{Table, Value};

/// The outcome of one random system.
#[derive(Debug)]
pub enum Verdict {
    /// It ran, and every check held.
    Passed,
    /// The combination was rejected with a clear message, as impossible ones must be.
    Refused,
    /// A check failed.
    Failed {
        /// The scenario, to run again.
        scenario: String,
        /// The check and its message.
        reason: String,
    },
}

/// Draws system number `seed` and runs it.
pub fn one(registry: &Registry, seed: u64) -> Verdict {
    let mut draw = Draw::new(registry, seed);
    let system = draw.component(ANY, 0);
    run(registry, seed, draw.scenario(seed, &system))
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
    if checked.run.power_cut_every.is_some()
        && run::check(&checked, registry).is_ok_and(|it| it.loses_writes)
    {
        let lines = scenario.lines().filter(|line| !line.starts_with("power_cut_every"));
        return run(registry, seed, lines.map(|line| format!("{line}\n")).collect());
    }
    let done = match run::run(&checked, registry, run::Options::default()) {
        Err(RunError::Scenario(_)) => return Verdict::Refused,
        Err(RunError::Trace(reason)) => return Verdict::Failed { scenario, reason },
        Ok(done) => done,
    };
    if matches!(done.fault, Some(Fault::PowerFailureUnsupported { .. })) {
        return Verdict::Refused;
    }
    // A device may correctly report that it is full or worn out.
    let broken = done.fault.filter(|fault| !run::is_device_answer(fault));
    let violations = done.results.violations;
    match broken.map(|fault| fault.to_string()) {
        Some(reason) => Verdict::Failed { scenario, reason },
        None if violations.is_empty() => Verdict::Passed,
        None => Verdict::Failed { scenario, reason: violations.join("; ") },
    }
}

/// Draws from the registry.
struct Draw<'a> {
    registry: &'a Registry,
    stream: Stream,
    components: Table,
    count: u32,
}

/// Depth of the deepest system.
const DEPTH_MAX: u32 = 3;
/// The sample that stands for a child of any kind.
const ANY: &str = "any";

impl<'a> Draw<'a> {
    fn new(registry: &'a Registry, seed: u64) -> Self {
        let stream = Stream::new(seed, "fuzz");
        Self { registry, stream, components: Table::new(), count: 0 }
    }

    fn scenario(&mut self, seed: u64, system: &str) -> String {
        let depth = 1 + self.stream.below(32);
        let mut mode = if self.stream.chance(0.5) { "open" } else { "closed" };
        let scheduler = self.entry("scheduler");
        let mut generator = self.generator();
        let mut power = String::new();
        let keys = &self.components[system];
        if keys["kind"].as_str() == Some(ZNS_KIND) && self.stream.chance(0.7) {
            // It waits for completions, so no power failures.
            (mode, generator) = ("open", self.zones(system));
        } else if self.stream.chance(1.0 / 3.0) {
            power = format!("power_cut_every = {}\n", 50 << self.stream.below(5));
        }
        let components =
            Table::from_iter([("component".to_owned(), Value::from(self.components.clone()))]);
        format!(
            "system = \"{system}\"\n[run]\nseed = {seed}\nverify = true\n{power}\
             [host]\nmode = \"{mode}\"\nqueue_depth = {depth}\nscheduler = {scheduler}\n\
             [workload]\ngenerator = {generator}\n{components}"
        )
    }

    fn pick<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.stream.below(choices.len() as u64) as usize]
    }

    /// A generator of small requests in a small address range, so that they overlap.
    fn generator(&mut self) -> String {
        let space_kib = 64 << self.stream.below(4);
        let read = self.stream.below(101);
        let mix = self.pick(&["randrw", "rw", "randtrimwrite", "randwrite"]);
        let sizes = self.pick(&["512B", "4KiB", "12KiB", "3KiB"]);
        let rate = self.pick(&[100, 2_000, 50_000]);
        format!(
            "{{ kind = \"fio\", requests = 2000, rw = \"{mix}\", rwmixread = {read}, \
             bs = \"{sizes}\", span = \"{space_kib}KiB\", norandommap = true, \
             rate_iops = {rate}, rate_process = \"poisson\" }}"
        )
    }

    /// A generator that writes the zones of `system` in order.
    fn zones(&mut self, system: &str) -> String {
        let capacity = self.components[system]["zone_capacity"].clone();
        let (active, readers) = (1 + self.stream.below(4), self.stream.below(4));
        let write = self.pick(&["write", "append"]);
        let fill = self.pick(&["0.3", "1.0"]);
        let (finish, open) = (self.stream.chance(0.5), self.stream.chance(0.5));
        format!(
            "{{ kind = \"zones\", requests = 2000, zone_size = \"128KiB\", \
             zone_capacity = {capacity}, active = {active}, write = \"{write}\", fill = {fill}, \
             finish = {finish}, open = {open}, readers = {readers} }}"
        )
    }

    /// Adds a component of `kind` with its children; returns its name.
    fn component(&mut self, kind: &str, depth: u32) -> String {
        let fits = |entry: &Description| match kind {
            ANY if entry.name == ZNS_KIND => depth == 0,
            ANY => depth < DEPTH_MAX || !entry.params.iter().any(is_child),
            kind => entry.name == kind,
        };
        let entries: Vec<_> = self.registry.descriptions("component").filter(fits).collect();
        assert!(!entries.is_empty(), "there is no component of kind {kind}");
        let entry = self.pick(&entries);
        self.count += 1;
        let name = format!("c{}", self.count);
        let mut keys = Table::from_iter([("kind".to_owned(), Value::from(entry.name))]);
        for param in entry.params {
            let value = self.value(entry.name, param, depth);
            keys.extend(value.map(|value| (param.name.to_owned(), value)));
        }
        self.components.insert(name.clone(), keys.into());
        name
    }

    /// A value for `param` of a component of `kind`: a sample or an entry where there are any, else
    /// a value within its range if it has no default.
    fn value(&mut self, kind: &str, param: &Param, depth: u32) -> Option<Value> {
        let samples: Vec<&'a Value> = self.registry.samples(kind, param).iter().collect();
        let sample = (!samples.is_empty()).then(|| self.pick(&samples));
        let optional = param.default.is_some();
        match param.kind {
            // Optional children, such as journals and spares, would make every system large.
            Kind::Component | Kind::Components if optional && self.stream.chance(0.75) => None,
            Kind::Component => {
                let kind = sample.and_then(Value::as_str).unwrap_or(ANY);
                Some(self.component(kind, depth + 1).into())
            }
            Kind::Components => {
                let kinds: Vec<&str> = match sample.and_then(Value::as_array) {
                    Some(kinds) => kinds.iter().filter_map(Value::as_str).collect(),
                    // Four suit every array; other numbers are rejected now and then.
                    None if depth > 0 || self.stream.chance(0.6) => vec![ANY; 4],
                    None => vec![ANY; 2 + self.stream.below(5) as usize],
                };
                let names = kinds.iter().map(|kind| self.component(kind, depth + 1).into());
                Some(Value::Array(names.collect()))
            }
            _ if sample.is_some() => sample.cloned(),
            Kind::Entry(_) if optional && self.stream.chance(0.3) => None,
            Kind::Entry(category) => Some(self.entry(category)),
            _ if optional => None,
            kind => Some(self.within(kind)),
        }
    }

    /// An entry of `category` with its required parameters.
    fn entry(&mut self, category: &str) -> Value {
        let entries: Vec<_> = self.registry.descriptions(category).collect();
        assert!(!entries.is_empty(), "nothing is registered as {category}");
        let entry = self.pick(&entries);
        let mut keys = self.required(entry.params);
        if keys.is_empty() {
            return entry.name.into();
        }
        keys.insert("kind".to_owned(), entry.name.into());
        keys.into()
    }

    fn required(&mut self, params: &[Param]) -> Table {
        let required = params.iter().filter(|param| param.default.is_none());
        required.map(|param| (param.name.to_owned(), self.within(param.kind))).collect()
    }

    /// A small value of `kind`.
    fn within(&mut self, kind: Kind) -> Value {
        match kind {
            Kind::Count { min, max } => {
                let count = min.saturating_add(self.stream.below(4)).min(max);
                i64::try_from(count).unwrap_or(i64::MAX).into()
            }
            Kind::Number { min, max } => {
                let low = if min <= 0.0 && max >= 0.0 { 0.0 } else { min };
                (low + self.stream.unit() * (max - low).min(1.0)).into()
            }
            Kind::Duration => self.pick(&["0us", "50us", "2ms"]).into(),
            Kind::Bytes => self.pick(&["4KiB", "64KiB", "1MiB"]).into(),
            Kind::Rate => "100MB/s".into(),
            Kind::Rpm => "7200rpm".into(),
            Kind::Power => "1W".into(),
            Kind::Energy => "1uJ".into(),
            Kind::Flag => self.stream.chance(0.5).into(),
            Kind::Choice(words) => self.pick(words).into(),
            Kind::Text | Kind::Component => "text".into(),
            Kind::Entry(category) => self.entry(category),
            Kind::Components => Value::Array(Vec::new()),
            Kind::Counts => Value::from(vec![1, 2]),
            Kind::Numbers => Value::from(vec![1.0, 2.0]),
            Kind::Curve => {
                let point = |at: f64, time: &str| Value::Array(vec![at.into(), time.into()]);
                Value::Array(vec![point(1.0, "1ms"), point(100.0, "4ms")])
            }
            Kind::Tables(params) => Value::Array(vec![self.required(params).into()]),
        }
    }
}

fn is_child(param: &Param) -> bool {
    matches!(param.kind, Kind::Component | Kind::Components)
}

#[cfg(test)]
mod tests;
