//! Settings from TOML text, as the scenario reader makes them, for tests.

use crate::synthetic::{DistributionEntry, distribution};
use hybridsim_config::param::{EntryChoice, Kind, Param, Settings, Value};
use hybridsim_config::registry::{Description, Entry, Registry};
use hybridsim_engine::SimDuration;

/// Distributions are the only entries that a generator chooses.
pub fn registry() -> Registry {
    let mut registry = Registry::default();
    registry.add_all(distribution::ENTRIES);
    registry
}

/// The settings of `params` with their defaults, and what `text` (TOML) says instead.
pub fn settings(params: &[Param], text: &str) -> Settings {
    let mut table: toml::Table = text.parse().expect("test settings are TOML");
    read_table(params, &mut table)
}

fn read_table(params: &[Param], table: &mut toml::Table) -> Settings {
    let mut settings = Settings::default();
    for param in params {
        let value = table.remove(param.name).or_else(|| {
            let default = param.default.unwrap_or_else(|| panic!("`{}` is required", param.name));
            let line = format!("x = {default}");
            let mut parsed: toml::Table =
                if default.is_empty() { toml::Table::new() } else { line.parse().expect("TOML") };
            parsed.remove("x")
        });
        if let Some(value) = value {
            settings.set(param.name, read_value(param, &value));
        }
    }
    assert!(table.is_empty(), "unknown keys {table:?}");
    settings
}

fn number(value: &toml::Value) -> f64 {
    value.as_float().or(value.as_integer().map(|n| n as f64)).expect("a number")
}

fn count(value: &toml::Value) -> u64 {
    u64::try_from(value.as_integer().expect("a whole number")).expect("not negative")
}

/// `4KiB`, `100MB`, `25us`: the number and its unit's factor.
fn quantity(text: &str, units: &[(&str, u64)]) -> u64 {
    let at = text.find(|c: char| !c.is_ascii_digit()).expect("a unit");
    let unit = units.iter().find(|(name, _)| *name == &text[at..]).expect("a known unit");
    text[..at].parse::<u64>().expect("digits") * unit.1
}

const SIZES: &[(&str, u64)] = &[
    ("B", 1),
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("TiB", 1 << 40),
    ("KB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
];
const TIMES: &[(&str, u64)] = &[("ns", 1), ("us", 1_000), ("ms", 1_000_000), ("s", 1_000_000_000)];

fn read_value(param: &Param, value: &toml::Value) -> Value {
    let text = || value.as_str().expect("a text");
    let list = || value.as_array().expect("a list");
    match param.kind {
        Kind::Count { min, max } => {
            let count = count(value);
            assert!((min..=max).contains(&count), "{}", param.name);
            Value::Count(count)
        }
        Kind::Number { min, max } => {
            let number = number(value);
            assert!((min..=max).contains(&number), "{}", param.name);
            Value::Number(number)
        }
        Kind::Duration => Value::Duration(SimDuration::from_ns(quantity(text(), TIMES))),
        Kind::Bytes => Value::Bytes(quantity(text(), SIZES)),
        Kind::Flag => Value::Flag(value.as_bool().expect("a flag")),
        Kind::Text => Value::Text(text().to_owned()),
        Kind::Choice(words) => {
            assert!(words.contains(&text()), "{} is not one of {words:?}", text());
            Value::Text(text().to_owned())
        }
        Kind::Entry(slot) => read_entry(slot, value),
        Kind::Counts => Value::Counts(list().iter().map(count).collect()),
        Kind::Numbers => Value::Numbers(list().iter().map(number).collect()),
        Kind::Tables(params) => {
            let tables = list()
                .iter()
                .map(|table| read_table(params, &mut table.as_table().expect("a table").clone()));
            Value::Tables(tables.collect())
        }
        other => panic!("{other:?} is not used by workloads"),
    }
}

fn read_entry(slot: &str, value: &toml::Value) -> Value {
    assert_eq!(slot, DistributionEntry::CATEGORY);
    let mut table = value.as_table().expect("a table").clone();
    let kind = table.remove("kind").expect("a kind");
    let name = kind.as_str().expect("a word").to_owned();
    let entry = registry().find::<DistributionEntry>(&name).expect("a registered distribution");
    let Description { params, .. } = entry.description;
    Value::Entry(EntryChoice { name, settings: read_table(params, &mut table) })
}
