//! Other legal values of keys, and the values of the keys that conditions name.

use crate::subjects::{Subject, special};
use hybridsim_config::effect::Needs;
use hybridsim_config::param::{Kind, Param};
use hybridsim_config::registry::Registry;
use std::collections::BTreeMap;

/// Values of keys, by path.
pub type Assignments = BTreeMap<String, String>;

/// Other values of a key.
pub struct Others {
    pub list: Vec<String>,
    /// One of them is enough.
    pub any: bool,
}

/// Whether a parameter is part of the system's structure instead of a value.
pub fn is_structure(param: &Param) -> bool {
    matches!(param.kind, Kind::Component | Kind::Components)
}

/// Values of `param` other than the one that it has in `subject` under `context`.
pub fn others(
    registry: &Registry,
    subject: &Subject,
    param: &Param,
    context: &Assignments,
) -> Others {
    let key = format!("{}.{}", subject.path, param.name);
    let current = context.get(&key).cloned().or_else(|| subject.value(param.name));
    let current = current.or_else(|| param.default.map(str::to_owned)).unwrap_or_default();
    let current = current.trim_matches('"').to_owned();
    let own = special(&subject.name, param.name);
    let list = match own.is_empty() {
        true => candidates(registry, &subject.kind, param, &current),
        false => own.iter().map(|&value| value.to_owned()).collect(),
    };
    let any = !matches!(param.kind, Kind::Flag | Kind::Choice(_) | Kind::Entry(_));
    Others { list: list.into_iter().filter(|it| it.trim_matches('"') != current).collect(), any }
}

/// The kind of an entry in the text of a value.
pub fn kind_of(text: &str) -> &str {
    let rest = text.split_once("kind = \"").map_or(text.trim_matches('"'), |it| it.1);
    rest.split('"').next().unwrap_or(rest)
}

fn candidates(registry: &Registry, kind: &str, param: &Param, current: &str) -> Vec<String> {
    let number = |text: &str| {
        let digits = text.trim_end_matches(|it: char| it.is_alphabetic() || "/%".contains(it));
        (digits.parse::<f64>().ok(), text[digits.len()..].to_owned())
    };
    let (value, unit) = number(current);
    let scaled = |defaults: &[&str]| -> Vec<String> {
        let scaled = value.filter(|it| *it > 0.0).into_iter();
        let scaled = scaled.flat_map(|it| [it * 2.0, it * 10.0, it / 2.0, it / 10.0]);
        let scaled = scaled.map(|it| format!("\"{it}{unit}\""));
        scaled.chain(defaults.iter().map(|it| format!("\"{it}\""))).collect()
    };
    match param.kind {
        Kind::Flag => vec!["true".to_owned(), "false".to_owned()],
        Kind::Choice(words) => words.iter().map(|it| format!("\"{it}\"")).collect(),
        Kind::Entry(category) => {
            let entries = registry.descriptions(category);
            let kept = entries.filter(|it| it.name != kind_of(current));
            kept.map(|it| entry(registry, category, it.name)).collect()
        }
        Kind::Count { min, max } => {
            let now = value.map_or(min, |it| it as u64);
            let near = [now.saturating_mul(2), now + 1, now / 2, min, 2, 8, 64, max.min(1000)];
            let samples = registry.samples(kind, param).iter().filter_map(|it| it.as_integer());
            let near = samples.map(|it| it as u64).chain(near);
            let mut list: Vec<String> =
                near.filter(|it| (min..=max).contains(it)).map(|it| it.to_string()).collect();
            list.dedup();
            list
        }
        Kind::Number { min, max } => {
            let (low, high) = (min.max(-1e3), max.min(1e3));
            let near = value.map_or(vec![], |it| vec![it * 2.0, it / 2.0]);
            let all = near.into_iter().chain([0.5 * (low + high).min(2.0), high, low, 0.5, 2.0]);
            all.filter(|it| (min..=max).contains(it)).map(|it| format!("{it:?}")).collect()
        }
        Kind::Duration => scaled(&["1ms", "20us", "100ms", "2s", "0ns"]),
        Kind::Bytes | Kind::MeanBytes => scaled(&["64KiB", "4KiB", "1MiB", "0B"]),
        Kind::Rate => scaled(&["1MB/s", "100MB/s"]),
        Kind::Rpm => scaled(&["5400rpm"]),
        Kind::Power => scaled(&["3W"]),
        Kind::Energy => scaled(&["30uJ"]),
        _ => Vec::new(),
    }
}

/// An entry with values for what it requires.
pub fn entry(registry: &Registry, category: &str, name: &str) -> String {
    let found = registry.descriptions(category).find(|it| it.name == name);
    let params = found.map_or(&[][..], |it| it.params);
    let required = params.iter().filter(|it| it.default.is_none()).map(|param| {
        let own = special(&format!("{category} {name}"), param.name);
        let value = match own.first() {
            Some(value) => (*value).to_owned(),
            None => candidates(registry, "", param, "").into_iter().next().unwrap_or_default(),
        };
        format!(", {} = {value}", param.name)
    });
    format!("{{ kind = \"{name}\"{} }}", required.collect::<String>())
}

/// Values of other keys under which `param` is checked: the defaults, values that meet all of its
/// conditions, and these with every other value of each key that a condition names.
pub fn contexts(registry: &Registry, subject: &Subject, param: &Param) -> Vec<Assignments> {
    let mut all = vec![Assignments::new()];
    let mut met = Assignments::new();
    for need in param.all_needs() {
        meet(registry, subject, need, &mut met, 0);
    }
    all.push(met.clone());
    for need in param.all_needs() {
        vary(registry, subject, need, &met, &mut all);
    }
    all.sort();
    all.dedup();
    all
}

/// The declaration of the key `name` of the same table.
fn named(subject: &Subject, name: &str) -> Option<&'static Param> {
    subject.params.iter().find(|it| it.name == name)
}

/// Adds values that meet `need`, and the conditions of the keys it names.
fn meet(registry: &Registry, subject: &Subject, need: &Needs, into: &mut Assignments, depth: u32) {
    let (name, value) = match *need {
        Needs::Any([]) => return,
        Needs::Any([first, ..]) => return meet(registry, subject, first, into, depth),
        Needs::Provides(name, capability) => (name, able(registry, subject, name, capability)),
        Needs::Is(name, words) => {
            let word = words.iter().find(|it| **it != "absent");
            (name, word.map(|word| written(registry, subject, name, word)))
        }
        Needs::Not(name, words) => (name, not(registry, subject, name, words, into)),
    };
    if let Some(value) = value {
        into.insert(format!("{}.{}", subject.path, first(name)), value);
    }
    if let Some(param) = named(subject, name).filter(|_| depth < 3) {
        for need in param.all_needs() {
            meet(registry, subject, need, into, depth + 1);
        }
    }
}

/// An entry for the key `name` that provides `capability`.
fn able(registry: &Registry, subject: &Subject, name: &str, capability: &str) -> Option<String> {
    let Kind::Entry(category) = named(subject, name)?.kind else { return None };
    let mut entries = registry.descriptions(category);
    let found = entries.find(|it| registry.provides(category, it.name).contains(&capability))?;
    Some(entry(registry, category, found.name))
}

/// A value for the key `name` that is none of `words`, unless it has one already.
fn not(
    registry: &Registry,
    subject: &Subject,
    name: &str,
    words: &[&str],
    now: &Assignments,
) -> Option<String> {
    let param = named(subject, name)?;
    let current = now.get(&format!("{}.{name}", subject.path)).cloned();
    let current = current.or_else(|| subject.value(name));
    let current = current.or_else(|| param.default.map(str::to_owned)).unwrap_or_default();
    let is_zero = |it: &str| {
        let digits = it.trim_end_matches(|it: char| it.is_alphabetic() || it == '/');
        digits.parse::<f64>() == Ok(0.0)
    };
    let excluded = |it: &str| {
        words.contains(&it)
            || (words.contains(&"0") && is_zero(it))
            || (words.contains(&"absent") && (it.is_empty() || it == "[]"))
    };
    if !excluded(kind_of(&current)) {
        return None;
    }
    let own = special(&subject.name, name);
    let list = match own.is_empty() {
        true => candidates(registry, &subject.kind, param, &current),
        false => own.iter().map(|&it| it.to_owned()).collect(),
    };
    list.into_iter().find(|it| !excluded(kind_of(it)))
}

fn first(name: &str) -> &str {
    name.split('.').next().unwrap_or(name)
}

/// The text of value `word` of the key `name`; of a key of an entry, of the entry with it.
fn written(registry: &Registry, subject: &Subject, name: &str, word: &str) -> String {
    let (head, rest) = name.split_once('.').unwrap_or((name, ""));
    let Some(param) = named(subject, head) else { return format!("\"{word}\"") };
    match (param.kind, rest) {
        (Kind::Entry(category), "") => entry(registry, category, word),
        (Kind::Entry(category), rest) => {
            let mut entries = registry.descriptions(category);
            let with = entries.find(|it| it.params.iter().any(|param| param.name == rest));
            let kind = with.map_or("", |it| it.name);
            format!("{{ kind = \"{kind}\", {rest} = \"{word}\" }}")
        }
        (Kind::Choice(_), _) => format!("\"{word}\""),
        _ => word.to_owned(),
    }
}

/// Adds `met` with every other value of the keys that `need` names.
fn vary(
    registry: &Registry,
    subject: &Subject,
    need: &Needs,
    met: &Assignments,
    all: &mut Vec<Assignments>,
) {
    let name = match *need {
        Needs::Any(needs) => {
            needs.iter().for_each(|it| vary(registry, subject, it, met, all));
            return;
        }
        Needs::Is(name, _) | Needs::Not(name, _) | Needs::Provides(name, _) => name,
    };
    let key = format!("{}.{}", subject.path, first(name));
    let Some(param) = named(subject, first(name)) else { return };
    let mut without = met.clone();
    without.remove(&key);
    all.push(without);
    let words = match param.kind {
        Kind::Flag | Kind::Choice(_) | Kind::Entry(_) => {
            candidates(registry, &subject.kind, param, "")
        }
        _ => Vec::new(),
    };
    all.extend(words.into_iter().map(|word| {
        let mut varied = met.clone();
        varied.insert(key.clone(), word);
        varied
    }));
}
