//! Settings from declared defaults, for tests, benches and the conformance suite, which have no
//! scenario.

use crate::ftl;
use crate::gc;
use crate::hotcold;
use crate::wear;
use hybridsim_config::param::{EntryChoice, Kind, Param, Settings, Value};
use hybridsim_config::registry::Registry;
use hybridsim_engine::SimDuration;

/// All FTLs, policies and devices of this crate.
pub fn registry() -> Registry {
    let mut registry = Registry::default();
    registry.add_all(ftl::ENTRIES);
    registry.add_all(gc::ENTRIES);
    registry.add_all(wear::ENTRIES);
    registry.add_all(hotcold::ENTRIES);
    registry.add_all(crate::ENTRIES);
    registry
}

/// The defaults of `params`; parameters without a default are omitted. `registry` provides the
/// defaults of entries.
///
/// # Panics
/// When a default does not match the kind of its parameter.
pub fn settings(params: &[Param], registry: &Registry) -> Settings {
    let mut settings = Settings::default();
    for param in params {
        match param.default {
            None | Some("") => {}
            Some(text) => settings.set(param.name, value(param, text.trim_matches('"'), registry)),
        }
    }
    settings
}

/// The entry of `category` called `name` with its own defaults.
pub fn entry(category: &str, name: &str, registry: &Registry) -> Value {
    let found = registry.descriptions(category).find(|entry| entry.name == name);
    let params = found.map_or(&[][..], |entry| entry.params);
    Value::Entry(EntryChoice { name: name.to_owned(), settings: settings(params, registry) })
}

fn value(param: &Param, text: &str, registry: &Registry) -> Value {
    let bad = || -> ! { panic!("default of {}: cannot read `{text}`", param.name) };
    let number = || quantity(text).unwrap_or_else(|| bad());
    match param.kind {
        Kind::Count { .. } => Value::Count(text.parse().unwrap_or_else(|_| bad())),
        Kind::Number { .. } | Kind::Rpm | Kind::Power | Kind::Energy => Value::Number(number()),
        Kind::Duration => Value::Duration(SimDuration::from_ns_f64(number() * 1e9)),
        Kind::Bytes => Value::Bytes(number() as u64),
        Kind::Rate => Value::Rate(number() as u64),
        Kind::Flag => Value::Flag(text == "true"),
        Kind::Text | Kind::Choice(_) | Kind::Component => Value::Text(text.to_owned()),
        Kind::Entry(category) => entry(category, text, registry),
        _ => bad(),
    }
}

/// A number with a unit, in the base unit (seconds, bytes, watts, joules).
fn quantity(text: &str) -> Option<f64> {
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let factor = match unit.trim() {
        "" | "B" | "B/s" | "s" | "W" | "J" => 1.0,
        "KiB" => 1024.0,
        "MiB" => 1048576.0,
        "MB/s" => 1e6,
        "ms" | "mJ" => 1e-3,
        "us" | "uJ" => 1e-6,
        "ns" => 1e-9,
        _ => return None,
    };
    Some(number.parse::<f64>().ok()? * factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_declared_default_can_be_read() {
        let registry = registry();
        let settings = settings(&crate::device::PARAMS, &registry);
        assert_eq!(settings.bytes("page_size"), 4096);
        assert_eq!(settings.entry("ftl").settings.entry("gc").name, "greedy");
        assert_eq!(settings.duration("command_time"), SimDuration::ZERO);
    }
}
