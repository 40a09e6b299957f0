//! Draws the keys of components, entries and tables, with the keys that their effect depends on.

use crate::coverage::{label, owner};
use crate::{ANY, COMPONENTS_MANY, DEPTH_MAX, DEPTH_MAX_SIMPLE, Draw, is_child};
use hybridsim_config::check;
use hybridsim_config::effect::Needs;
use hybridsim_config::param::{self, Kind, Param};
use hybridsim_config::registry::Description;
use toml::{Table, Value};

/// A table that is being drawn.
pub(crate) struct Open {
    owner: String,
    params: &'static [Param],
    keys: Table,
}

/// The largest count and the largest size, unless the default is above half of it: more would take
/// gigabytes and minutes.
const COUNT_MAX: u64 = 4096;
const BYTES_MAX: u64 = 16 << 20;
/// Attempts to draw a value that a condition allows.
const ATTEMPTS: u32 = 8;
/// Optional keys of a table of which a system's share is drawn; of longer tables fewer.
const KEYS_TYPICAL: f64 = 20.0;
/// Keys of entries and of inner tables are drawn this many times as often.
const INNER: f64 = 3.0;

impl<'a> Draw<'a> {
    /// Adds a component of `kind` with its children; returns its name.
    pub(crate) fn component(&mut self, kind: &str, depth: u32) -> String {
        let depth_max = match self.is_simple {
            true => DEPTH_MAX_SIMPLE,
            false if self.count < COMPONENTS_MANY => DEPTH_MAX,
            false => 0,
        };
        let fits = |entry: &Description| match kind {
            ANY if self.has_zones(entry.name) => depth == 0,
            ANY => depth < depth_max || !entry.params.iter().any(is_child),
            kind => entry.name == kind,
        };
        let entries: Vec<_> = self.registry.descriptions("component").filter(fits).collect();
        assert!(!entries.is_empty(), "there is no component of kind {kind}");
        let entry = self.pick(&entries);
        self.count += 1;
        let name = format!("c{}", self.count);
        let around = std::mem::take(&mut self.open);
        let mut keys = self.table(entry.name.to_owned(), entry.params, depth, 1.0);
        self.open = around;
        keys.insert("kind".to_owned(), entry.name.into());
        self.components.insert(name.clone(), keys.into());
        name
    }

    /// A table of `owner`: what is required or has samples, and some of the other keys.
    fn table(&mut self, owner: String, params: &'static [Param], depth: u32, times: f64) -> Table {
        self.open.push(Open { owner, params, keys: Table::new() });
        for param in params {
            if param.default.is_none() || self.is_usual(param) {
                self.give(param, depth);
            }
        }
        let others = params.iter().filter(|it| it.default.is_some() && !is_child(it)).count();
        let share = self.share * times * (KEYS_TYPICAL / others.max(1) as f64).min(1.0);
        for param in params {
            if param.default.is_some() && !is_child(param) && self.stream.chance(share) {
                param.all_needs().for_each(|need| self.meet(need, 0, depth));
                self.give(param, depth);
            }
        }
        self.open.pop().expect("it was pushed").keys
    }

    /// Whether most systems give `param`, though it has a default.
    fn is_usual(&mut self, param: &Param) -> bool {
        let kind = &self.open.last().expect("a table is open").owner.clone();
        match param.kind {
            _ if self.is_sampled(kind, param) && !is_child(param) => true,
            // Optional children, such as journals and spares, would make every system large.
            Kind::Component | Kind::Components => !self.is_simple && self.stream.chance(0.25),
            Kind::Entry(_) => self.stream.chance(0.5),
            Kind::Table(inner) => {
                inner.iter().any(|it| self.is_sampled(&label(kind, param.name), it))
            }
            _ => false,
        }
    }

    fn is_sampled(&self, owner: &str, param: &Param) -> bool {
        !self.registry.samples(owner, param).is_empty()
    }

    /// Draws a value of `param` of the innermost table.
    fn give(&mut self, param: &'static Param, depth: u32) {
        let kind = self.open.last().expect("a table is open").owner.clone();
        let value = self.value(&kind, param, depth);
        self.drawn.insert(label(&kind, param.name));
        let table = self.open.last_mut().expect("a table is open");
        table.keys.insert(param.name.to_owned(), value);
    }

    /// Makes `need` met, where that is a matter of one key of the table `up` tables out.
    fn meet(&mut self, need: &Needs, up: usize, depth: u32) {
        let (path, words, wanted) = match *need {
            Needs::Any(needs) => {
                let need = &needs[self.stream.below(needs.len() as u64) as usize];
                return self.meet(need, up, depth);
            }
            Needs::Is(path, words) => (path, words, true),
            Needs::Not(path, words) => (path, words, false),
            Needs::Provides(path, capability) => {
                return self.meet_capability(path, capability, depth);
            }
        };
        let (name, up) = path.strip_prefix("^.").map_or((path, up), |name| (name, up + 1));
        let Some(at) = self.open.len().checked_sub(up + 1) else { return };
        let table = &mut self.open[at];
        let Some(param) = table.params.iter().find(|param| param.name == name) else { return };
        if wanted && words.contains(&"absent") {
            if param.default.is_some() {
                table.keys.remove(name);
            }
            return;
        }
        let inner = self.open.split_off(at + 1);
        for _ in 0..ATTEMPTS {
            if words.contains(&&*self.word(param)) == wanted {
                break;
            }
            self.give(param, depth);
        }
        self.open.extend(inner);
    }

    /// Chooses an entry that provides `capability` for the parameter at `path`.
    fn meet_capability(&mut self, path: &str, capability: &str, depth: u32) {
        let (name, up) = path.strip_prefix("^.").map_or((path, 0), |name| (name, 1));
        let Some(at) = self.open.len().checked_sub(up + 1) else { return };
        let inner = self.open.split_off(at + 1);
        let param = self.open[at].params.iter().find(|param| param.name == name);
        if let Some(param) = param
            && let Kind::Entry(category) = param.kind
        {
            let provides = |entry: &Description| {
                self.registry.provides(category, entry.name).contains(&capability)
            };
            let entries: Vec<_> = self.registry.descriptions(category).filter(provides).collect();
            if !entries.is_empty() {
                let entry = self.pick(&entries);
                let value = self.chosen(category, entry, depth);
                self.open[at].keys.insert(name.to_owned(), value);
            }
        }
        self.open.extend(inner);
    }

    /// The value of `param` in the innermost table as conditions name it; its default there.
    fn word(&self, param: &'static Param) -> String {
        let table = self.open.last().expect("a table is open");
        let Some(value) = table.keys.get(param.name) else {
            let settings = check::defaults(std::slice::from_ref(param), self.registry);
            return settings.value(param.name).map_or("absent".to_owned(), param::Value::word);
        };
        let text = Table::from_iter([(param.name.to_owned(), value.clone())]).to_string();
        let settings = check::read(&text, &[std::slice::from_ref(param)], self.registry);
        let settings = settings.unwrap_or_default();
        settings.value(param.name).map_or("absent".to_owned(), param::Value::word)
    }

    /// A value for `param` of `kind`: a sample or an entry where there are any, else a value within
    /// its range.
    fn value(&mut self, kind: &str, param: &'static Param, depth: u32) -> Value {
        let samples: Vec<&'a Value> = self.registry.samples(kind, param).iter().collect();
        let sample = (!samples.is_empty()).then(|| self.pick(&samples));
        match param.kind {
            Kind::Component => {
                let kind = sample.and_then(Value::as_str).unwrap_or(ANY);
                self.component(kind, depth + 1).into()
            }
            Kind::Components => {
                let kinds: Vec<&str> = match sample.and_then(Value::as_array) {
                    Some(kinds) => kinds.iter().filter_map(Value::as_str).collect(),
                    // Four suit every array; other numbers are rejected now and then.
                    None if depth > 0 || self.stream.chance(0.6) => vec![ANY; 4],
                    None => vec![ANY; 2 + self.stream.below(5) as usize],
                };
                let names = kinds.iter().map(|kind| self.component(kind, depth + 1).into());
                Value::Array(names.collect())
            }
            // Other samples of entries are the simplest of them.
            Kind::Entry(category)
                if sample.is_none_or(|it| it.as_str() == Some(ANY))
                    || self.stream.chance(self.share) =>
            {
                self.entry(category, depth)
            }
            Kind::Table(inner) => self.table(label(kind, param.name), inner, depth, INNER).into(),
            Kind::Tables(inner) => {
                let table = self.table(label(kind, param.name), inner, depth, INNER);
                Value::Array(vec![table.into()])
            }
            Kind::Entries(category) => Value::Array(vec![self.entry(category, depth)]),
            _ => sample.cloned().unwrap_or_else(|| self.within(param)),
        }
    }

    pub(crate) fn entry(&mut self, category: &str, depth: u32) -> Value {
        let entries: Vec<_> = self.registry.descriptions(category).collect();
        assert!(!entries.is_empty(), "nothing is registered as {category}");
        let entry = self.pick(&entries);
        self.chosen(category, entry, depth)
    }

    /// `entry` with its required keys and some others.
    fn chosen(&mut self, category: &str, entry: Description, depth: u32) -> Value {
        let mut keys = self.table(owner(category, entry.name), entry.params, depth, INNER);
        if keys.is_empty() {
            return entry.name.into();
        }
        keys.insert("kind".to_owned(), entry.name.into());
        keys.into()
    }

    /// A value of `param`: near its default, at a bound of its range, or between.
    fn within(&mut self, param: &'static Param) -> Value {
        let default = match param.default {
            Some(_) => check::defaults(std::slice::from_ref(param), self.registry),
            None => param::Settings::default(),
        };
        let default = default.value(param.name);
        match param.kind {
            Kind::Count { min, max } => {
                let near =
                    if let Some(param::Value::Count(count)) = default { *count } else { min };
                let top = COUNT_MAX.max(2 * near.min(max / 2)).clamp(min, max);
                let low = min.saturating_add(self.stream.below(4));
                let count = self.pick(&[min, low, low, near / 2, near.saturating_mul(2), top]);
                i64::try_from(count.clamp(min, max)).unwrap_or(i64::MAX).into()
            }
            Kind::Number { min, max } => {
                let low = if min <= 0.0 && max >= 0.0 { 0.0 } else { min };
                let between = low + self.stream.unit() * (max - low).min(1.0);
                let near = if let Some(param::Value::Number(it)) = default { *it } else { between };
                let top = max.min(low + 1000.0);
                let number = self.pick(&[low, between, between, near / 2.0, near * 2.0, top]);
                number.clamp(min, max).into()
            }
            Kind::Bytes => {
                let near = if let Some(param::Value::Bytes(it)) = default { *it } else { 1 << 16 };
                let near = near.min(BYTES_MAX);
                let fixed = [0, 512, 4096, 1 << 20];
                let fixed = self.pick(&fixed);
                let bytes = self.pick(&[fixed, near / 2, near * 2, near + 512]);
                // Not by `units`, which the relation `spelt_out` tests; durations neither.
                format!("{bytes}B").into()
            }
            Kind::Duration => {
                let near =
                    if let Some(param::Value::Duration(it)) = default { it.as_ns() } else { 0 };
                let fixed = self.pick(&[0, 10_000, 50_001, 2_000_000, 1_000_000_000]);
                let ns = self.pick(&[fixed, fixed, near / 2, near * 2]);
                format!("{ns}ns").into()
            }
            kind => self.plain(kind),
        }
    }

    /// A value of a kind without a range.
    fn plain(&mut self, kind: Kind) -> Value {
        match kind {
            Kind::MeanBytes => self.pick(&["512B", "4.38KiB", "1MiB"]).into(),
            Kind::Rate => self.pick(&["1MB/s", "100MB/s", "4GB/s"]).into(),
            Kind::Rpm => self.pick(&["3600rpm", "7200rpm", "15000rpm"]).into(),
            Kind::Power => self.pick(&["0W", "1W", "12.5W"]).into(),
            Kind::Energy => self.pick(&["0uJ", "1uJ", "50uJ"]).into(),
            Kind::Flag => self.stream.chance(0.5).into(),
            Kind::Choice(words) => self.pick(words).into(),
            Kind::Counts => {
                let count = self.stream.below(4);
                Value::Array((0..count).map(|at| Value::from(1 + 3 * at as i64)).collect())
            }
            Kind::Numbers => {
                let count = 1 + self.stream.below(4);
                Value::Array((0..count).map(|at| Value::from(at as f64 / 4.0)).collect())
            }
            Kind::Curve => {
                let point = |at: f64, time: &str| Value::Array(vec![at.into(), time.into()]);
                Value::Array(vec![point(1.0, "1ms"), point(100.0, "4ms")])
            }
            _ => "text".into(),
        }
    }
}
