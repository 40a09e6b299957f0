//! Checks tables against declared parameters: types, units, ranges, unknown keys.

use crate::diagnostic::{Diagnostic, Diagnostics, SourceText, Span};
use crate::document::{self, Datum, Item, Table};
use crate::param::{EntryChoice, Kind, Param, Settings, Value};
use crate::registry::{Description, Registry};
use crate::units;
use std::borrow::Cow;

/// The entry that a plain number stands for, when that number is its only parameter.
const CONSTANT: &str = "constant";

/// The parameter that a plain number in place of an entry of `category` sets, if it is allowed.
pub fn plain_number(registry: &Registry, category: &str) -> Option<&'static Param> {
    let constant = registry.descriptions(category).find(|entry| entry.name == CONSTANT)?;
    match constant.params {
        [only] if matches!(only.kind, Kind::Number { .. }) => Some(only),
        _ => None,
    }
}

/// Checks `text`, TOML without table headers, against the parameters of `groups`.
///
/// Component tests read their settings with it; scenarios are read by `hybridsim_simulation`.
///
/// # Errors
/// Every problem of `text`.
pub fn read(
    text: &str,
    groups: &[&'static [Param]],
    registry: &Registry,
) -> Result<Settings, Diagnostics> {
    let source = SourceText { name: "settings".to_owned(), text: text.to_owned() };
    let mut checker = Checker::new(registry);
    let settings = match document::parse(&source, 0) {
        Ok(table) => checker.settings(&table, groups, &[], "", None),
        Err(list) => return Err(Diagnostics { sources: vec![source], list }),
    };
    match checker.problems.is_empty() {
        true => Ok(settings),
        false => Err(Diagnostics { sources: vec![source], list: checker.problems }),
    }
}

/// The defaults of `params`; parameters without a default are left out.
pub fn defaults(params: &[Param], registry: &Registry) -> Settings {
    let mut checker = Checker::new(registry);
    let mut settings = Settings::default();
    for param in params {
        if let Some(text) = param.default.filter(|text| !text.is_empty()) {
            settings.set(param.name, checker.default_value(text, param.kind, param.name));
        }
    }
    settings
}

/// Checks values and collects all problems.
pub struct Checker<'a> {
    /// The entries to choose from.
    pub registry: &'a Registry,
    /// The problems found.
    pub problems: Vec<Diagnostic>,
    /// The source whose keys are not the user's own: a preset.
    pub preset: Option<usize>,
}

impl<'a> Checker<'a> {
    /// A checker without problems.
    pub const fn new(registry: &'a Registry) -> Self {
        Self { registry, problems: Vec::new(), preset: None }
    }
}

impl Checker<'_> {
    /// Adds a problem.
    pub fn problem(
        &mut self,
        span: Option<&Span>,
        key: &str,
        message: String,
        help: Option<String>,
    ) {
        self.problems.push(Diagnostic { span: span.cloned(), key: key.to_owned(), message, help });
    }

    /// Checks `table` against the parameters of `groups`. Keys in `reserved` are left to the
    /// caller.
    ///
    /// `place` is the location reported for missing parameters.
    pub fn settings(
        &mut self,
        table: &Table,
        groups: &[&'static [Param]],
        reserved: &[&str],
        path: &str,
        place: Option<&Span>,
    ) -> Settings {
        self.unknown_keys(table, groups, reserved, path, None);
        self.values(table, groups, path, place)
    }

    /// The values of `table`, whose keys have been checked.
    fn values(
        &mut self,
        table: &Table,
        groups: &[&'static [Param]],
        path: &str,
        place: Option<&Span>,
    ) -> Settings {
        let mut settings = Settings::default();
        for param in groups.iter().copied().flatten() {
            let key = join(path, param.name);
            let given = table.get(param.name);
            let value = match (given, param.default) {
                (Some(item), _) => self.value(&with_kind(item, param), param.kind, &key),
                (None, Some("")) => None,
                (None, Some(default)) => Some(self.default_value(default, param.kind, &key)),
                (None, None) => {
                    let help = format!("{} It takes {}.", param.help, takes(param.kind));
                    self.problem(place, &key, "is missing".to_owned(), Some(help));
                    None
                }
            };
            let own = given.is_some_and(|item| self.preset != Some(item.span.file));
            let Some(value) = value else { continue };
            let default = param.default.filter(|default| own && !default.is_empty());
            let default = default.map(|default| self.default_value(default, param.kind, &key));
            let given = own && default.as_ref() != Some(&value);
            settings.set(param.name, value);
            if given {
                settings.mark_given(param.name);
            }
        }
        settings
    }

    /// Keys that no parameter of `groups` has, where the table is one of an entry of `category`.
    fn unknown_keys(
        &mut self,
        table: &Table,
        groups: &[&'static [Param]],
        reserved: &[&str],
        path: &str,
        category: Option<&str>,
    ) {
        let params = || groups.iter().copied().flatten().map(|param| param.name);
        for (key, span, _) in table.iter() {
            let known = || params().chain(reserved.iter().copied());
            if known().any(|name| name == key) {
                continue;
            }
            let kinds = || {
                let kinds = self.entries_with(key, category?);
                (!kinds.is_empty()).then(|| format!("it belongs to another kind: {kinds}"))
            };
            let policy = self.policy_with(key, groups).map(|(param, policy)| {
                format!("it belongs to `{param}`: {param} = {{ kind = \"{policy}\", {key} = ... }}")
            });
            let table = || {
                let table = Self::table_with(key, groups)?;
                Some(format!("it belongs to `{table}`: {table} = {{ {key} = ... }}"))
            };
            let near = || near(key, known()).map(|name| format!("did you mean `{name}`?"));
            let all = || format!("known keys: {}", known().collect::<Vec<_>>().join(", "));
            let help = policy.or_else(table).or_else(kinds).or_else(near).unwrap_or_else(all);
            self.problem(Some(span), &join(path, key), "unknown key".to_owned(), Some(help));
        }
    }

    /// The entries of `category` with a parameter `key`.
    fn entries_with(&self, key: &str, category: &str) -> String {
        let has = |entry: &Description| entry.params.iter().any(|param| param.name == key);
        let entries = self.registry.descriptions(category).filter(has);
        entries.map(|entry| entry.name).collect::<Vec<_>>().join(", ")
    }

    /// The parameter of `groups` that takes a policy with a parameter `key`, and that policy.
    fn policy_with(
        &self,
        key: &str,
        groups: &[&'static [Param]],
    ) -> Option<(&'static str, &'static str)> {
        let has = |entry: &Description| entry.params.iter().any(|param| param.name == key);
        groups.iter().copied().flatten().find_map(|param| {
            let Kind::Entry(category) = param.kind else { return None };
            let entry = self.registry.descriptions(category).find(has)?;
            Some((param.name, entry.name))
        })
    }

    /// The table of `groups` with a parameter `key`.
    fn table_with(key: &str, groups: &[&'static [Param]]) -> Option<&'static str> {
        groups.iter().copied().flatten().find_map(|param| {
            let Kind::Table(inner) = param.kind else { return None };
            inner.iter().any(|it| it.name == key).then_some(param.name)
        })
    }

    /// Parses a declared default. A test over the registry finds defaults that do not parse.
    fn default_value(&mut self, text: &'static str, kind: Kind, key: &str) -> Value {
        let item = parse_default(text, kind);
        let before = self.problems.len();
        let value = self.value(&item, kind, key);
        assert_eq!(self.problems.len(), before, "default of {key}: {:?}", self.problems.last());
        value.expect("a default without problems has a value")
    }

    fn value(&mut self, item: &Item, kind: Kind, key: &str) -> Option<Value> {
        let result = match kind {
            Kind::Entry(category) => return self.entry(item, category, key),
            Kind::Tables(params) => return self.tables(item, params, key),
            Kind::Table(params) => return self.table(item, params, key).map(Value::Table),
            Kind::Entries(category) => return self.entries(item, category, key),
            _ => scalar(&item.value, kind),
        };
        match result {
            Ok(value) => Some(value),
            Err(message) => {
                self.problem(Some(&item.span), key, message, None);
                None
            }
        }
    }

    fn entry(&mut self, item: &Item, category: &'static str, key: &str) -> Option<Value> {
        let empty = Table::default();
        let (name, table) = match &item.value {
            Datum::Text(name) => (name.clone(), &empty),
            Datum::Table(table) => match table.get("kind").map(|kind| &kind.value) {
                Some(Datum::Text(name)) => (name.clone(), table),
                _ => {
                    let message = format!("the {category} table needs `kind = \"...\"`");
                    self.problem(Some(&item.span), key, message, None);
                    return None;
                }
            },
            other => return self.plain_entry(item, other, category, key),
        };
        let description = self.describe(category, &name, Some(&item.span), key)?;
        let (groups, span) = (&[description.params], Some(&item.span));
        self.unknown_keys(table, groups, &["kind"], key, Some(category));
        let settings = self.values(table, groups, key, span);
        Some(Value::Entry(EntryChoice { name, settings }))
    }

    /// A number in place of an entry.
    fn plain_entry(
        &mut self,
        item: &Item,
        found: &Datum,
        category: &'static str,
        key: &str,
    ) -> Option<Value> {
        let only = plain_number(self.registry, category);
        if let (Some(only), Datum::Integer(_) | Datum::Float(_)) = (only, found) {
            let value = self.value(item, only.kind, key)?;
            let settings = Settings::default().and(only.name, value);
            return Some(Value::Entry(EntryChoice { name: CONSTANT.to_owned(), settings }));
        }
        let expected = takes(Kind::Entry(category));
        let message = format!("expected {expected}, found {}", found.noun());
        self.problem(Some(&item.span), key, message, None);
        None
    }

    /// The description of `name` in `category`, or a problem that lists the entries.
    pub fn describe(
        &mut self,
        category: &str,
        name: &str,
        span: Option<&Span>,
        key: &str,
    ) -> Option<Description> {
        let found = self.registry.descriptions(category).find(|entry| entry.name == name);
        if found.is_none() {
            let names: Vec<&str> = self.registry.descriptions(category).map(|e| e.name).collect();
            let help =
                match (self.registry.absent(category, name), near(name, names.iter().copied())) {
                    (Some(help), _) => help.to_owned(),
                    (None, Some(near)) => format!("did you mean `{near}`?"),
                    (None, None) => format!("there are: {}", names.join(", ")),
                };
            self.problem(span, key, format!("there is no {category} called `{name}`"), Some(help));
        }
        found
    }

    fn entries(&mut self, item: &Item, category: &'static str, key: &str) -> Option<Value> {
        let Datum::List(list) = &item.value else {
            let expected = takes(Kind::Entries(category));
            let message = format!("expected {expected}, found {}", item.value.noun());
            self.problem(Some(&item.span), key, message, None);
            return None;
        };
        let mut choices = Vec::with_capacity(list.len());
        for (number, item) in list.iter().enumerate() {
            if let Value::Entry(choice) = self.entry(item, category, &format!("{key}[{number}]"))? {
                choices.push(choice);
            }
        }
        Some(Value::Entries(choices))
    }

    fn table(&mut self, item: &Item, params: &'static [Param], key: &str) -> Option<Settings> {
        let Datum::Table(table) = &item.value else {
            let message = format!("expected a table, found {}", item.value.noun());
            self.problem(Some(&item.span), key, message, None);
            return None;
        };
        Some(self.settings(table, &[params], &[], key, Some(&item.span)))
    }

    fn tables(&mut self, item: &Item, params: &'static [Param], key: &str) -> Option<Value> {
        let Datum::List(list) = &item.value else {
            let message = format!("expected a list of tables, found {}", item.value.noun());
            self.problem(Some(&item.span), key, message, None);
            return None;
        };
        let mut tables = Vec::with_capacity(list.len());
        for (number, entry) in list.iter().enumerate() {
            let key = format!("{key}[{number}]");
            tables.extend(self.table(entry, params, &key));
        }
        Some(Value::Tables(tables))
    }
}

/// A table without `kind` sets parameters of the default entry.
fn with_kind<'i>(item: &'i Item, param: &Param) -> Cow<'i, Item> {
    let (Kind::Entry(_), Datum::Table(table), Some(default)) =
        (param.kind, &item.value, param.default)
    else {
        return Cow::Borrowed(item);
    };
    if table.get("kind").is_some() || default.is_empty() {
        return Cow::Borrowed(item);
    }
    let kind = match parse_default(default, param.kind).value {
        Datum::Table(default) => default.get("kind").cloned(),
        value => Some(Item { value, span: item.span.clone() }),
    };
    let Some(kind) = kind else { return Cow::Borrowed(item) };
    let mut named = table.clone();
    named.insert("kind", item.span.clone(), kind);
    Cow::Owned(Item { value: Datum::Table(named), span: item.span.clone() })
}

/// Checks a value of a kind that needs no registry.
fn scalar(value: &Datum, kind: Kind) -> Result<Value, String> {
    match (kind, value) {
        (Kind::Count { min, max }, _) => count(value, min, max).map(Value::Count),
        (Kind::Number { min, max }, _) => number(value, min, max).map(Value::Number),
        (Kind::Duration, Datum::Text(text)) => units::duration(text).map(Value::Duration),
        (Kind::Bytes, Datum::Text(text)) => units::bytes(text).map(Value::Bytes),
        (Kind::MeanBytes, Datum::Text(text)) => units::mean_bytes(text).map(Value::Number),
        (Kind::Rate, Datum::Text(text)) => units::rate(text).map(Value::Rate),
        (Kind::Rpm, Datum::Text(text)) => units::rpm(text).map(Value::Number),
        (Kind::Power, Datum::Text(text)) => units::power(text).map(Value::Number),
        (Kind::Energy, Datum::Text(text)) => units::energy(text).map(Value::Number),
        (Kind::Flag, Datum::Flag(flag)) => Ok(Value::Flag(*flag)),
        (Kind::Text | Kind::Component, Datum::Text(text)) => Ok(Value::Text(text.clone())),
        (Kind::Choice(words), Datum::Text(text)) => choice(text, words),
        (Kind::Components, Datum::List(list)) => {
            let names = list.iter().map(|item| match &item.value {
                Datum::Text(text) => Ok(text.clone()),
                other => Err(format!("expected component names, found {}", other.noun())),
            });
            names.collect::<Result<_, _>>().map(Value::Texts)
        }
        (Kind::Counts, Datum::List(list)) => {
            let counts = list.iter().map(|item| count(&item.value, 0, u64::MAX));
            counts.collect::<Result<_, _>>().map(Value::Counts)
        }
        (Kind::Numbers, Datum::List(list)) => {
            let numbers = list.iter().map(|item| number(&item.value, f64::MIN, f64::MAX));
            numbers.collect::<Result<_, _>>().map(Value::Numbers)
        }
        (Kind::Curve, Datum::List(list)) => curve(list),
        _ => Err(format!("expected {}, found {}", takes(kind), value.noun())),
    }
}

fn choice(text: &str, words: &[&str]) -> Result<Value, String> {
    if words.contains(&text) {
        return Ok(Value::Text(text.to_owned()));
    }
    let hint = near(text, words.iter().copied())
        .map_or_else(String::new, |word| format!("; did you mean `{word}`?"));
    Err(format!("`{text}` is not one of {}{hint}", words.join(", ")))
}

fn count(value: &Datum, min: u64, max: u64) -> Result<u64, String> {
    let Datum::Integer(number) = value else {
        return Err(format!("expected a whole number, found {}", value.noun()));
    };
    match u64::try_from(*number) {
        Ok(count) if (min..=max).contains(&count) => Ok(count),
        _ => Err(format!("{number} is out of range; allowed is {}", range(min, max, u64::MAX))),
    }
}

fn number(value: &Datum, min: f64, max: f64) -> Result<f64, String> {
    let number = match value {
        Datum::Integer(whole) => *whole as f64,
        Datum::Float(number) => *number,
        Datum::Text(text) => units::percent(text)?,
        other => return Err(format!("expected a number, found {}", other.noun())),
    };
    if number.is_finite() && (min..=max).contains(&number) {
        Ok(number)
    } else {
        let range = range(min, max, f64::MAX);
        Err(format!("{} is out of range; allowed is {range}", short(number)))
    }
}

/// A number with few digits.
fn short(number: f64) -> String {
    match number.abs() {
        1e-6..1e15 | 0.0 => number.to_string(),
        _ => format!("{number:e}"),
    }
}

fn range<T: PartialEq + std::fmt::Display>(min: T, max: T, open: T) -> String {
    if max == open { format!("{min} or more") } else { format!("{min} to {max}") }
}

fn curve(list: &[Item]) -> Result<Value, String> {
    let mut points = Vec::with_capacity(list.len());
    for item in list {
        let Datum::List(pair) = &item.value else {
            return Err(format!("expected [number, \"time\"] pairs, found {}", item.value.noun()));
        };
        let [at, time] = pair.as_slice() else {
            return Err(format!("expected [number, \"time\"] pairs, found {} values", pair.len()));
        };
        let at = number(&at.value, 0.0, f64::MAX)?;
        let Datum::Text(time) = &time.value else {
            return Err(format!("expected a time such as \"1ms\", found {}", time.value.noun()));
        };
        points.push((at, units::duration(time)?));
    }
    if points.windows(2).any(|pair| pair[0].0 >= pair[1].0) {
        return Err("the first numbers of the pairs must ascend".to_owned());
    }
    Ok(Value::Curve(points))
}

/// The values that a kind takes, for messages and documentation.
pub fn takes(kind: Kind) -> String {
    match kind {
        Kind::Count { min, max } => format!("a whole number, {}", range(min, max, u64::MAX)),
        Kind::Number { min, max } if min == f64::MIN && max == f64::MAX => "a number".to_owned(),
        Kind::Number { min, max } => format!("a number, {}", range(min, max, f64::MAX)),
        Kind::Duration => "a time such as \"25us\"".to_owned(),
        Kind::Bytes => "a size such as \"4KiB\" or \"1GB\"".to_owned(),
        Kind::MeanBytes => "a mean size such as \"4.38KiB\"".to_owned(),
        Kind::Rate => "a rate such as \"100MB/s\"".to_owned(),
        Kind::Rpm => "a rotation speed such as \"7200rpm\"".to_owned(),
        Kind::Power => "power such as \"1.7W\"".to_owned(),
        Kind::Energy => "energy such as \"9.9uJ\"".to_owned(),
        Kind::Flag => "true or false".to_owned(),
        Kind::Text => "a string".to_owned(),
        Kind::Choice(words) => format!("one of {}", words.join(", ")),
        Kind::Entry(category) => format!("a name that `hybridsim list {category}` shows"),
        Kind::Component => "the name of another component".to_owned(),
        Kind::Components => "a list of component names".to_owned(),
        Kind::Counts => "a list of whole numbers".to_owned(),
        Kind::Numbers => "a list of numbers".to_owned(),
        Kind::Curve => "a list of [number, \"time\"] pairs, ascending".to_owned(),
        Kind::Table(params) => {
            let names: Vec<&str> = params.iter().map(|param| param.name).collect();
            format!("a table of {}", names.join(", "))
        }
        Kind::Tables(_) => "a list of tables".to_owned(),
        Kind::Entries(category) => {
            format!("a list of names that `hybridsim list {category}` shows")
        }
    }
}

/// A default as an item: TOML where it is TOML, a bare word as a string.
fn parse_default(text: &'static str, kind: Kind) -> Item {
    use crate::diagnostic::SourceText;
    let source = SourceText { name: "default".to_owned(), text: format!("value = {text}") };
    let quoted = SourceText { name: "default".to_owned(), text: format!("value = {text:?}") };
    let is_text = matches!(
        kind,
        Kind::Duration
            | Kind::Bytes
            | Kind::MeanBytes
            | Kind::Rate
            | Kind::Rpm
            | Kind::Power
            | Kind::Energy
    ) || matches!(kind, Kind::Text | Kind::Component | Kind::Choice(_));
    let unquoted = !text.starts_with(['"', '{', '[']);
    let words = if unquoted && is_text { [&quoted, &source] } else { [&source, &quoted] };
    let mut tables = words.into_iter().filter_map(|text| crate::document::parse(text, 0).ok());
    let table = tables.next().expect("either the text or the quoted text is TOML");
    table.get("value").expect("it has this key").clone()
}

/// The known word most like `word`, if any is close.
pub fn near<'k>(word: &str, known: impl Iterator<Item = &'k str>) -> Option<&'k str> {
    known
        .map(|name| (strsim::jaro_winkler(word, name), name))
        .filter(|(score, _)| *score > 0.8)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, name)| name)
}

/// `path.key`, or `key` at the top.
pub fn join(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
}
