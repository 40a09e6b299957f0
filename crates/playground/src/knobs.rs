//! The keys of a scenario that the page offers as sliders and choices.

use hybridsim_config::param::{Kind, Param, Settings, Value};
use hybridsim_config::registry::Registry;
use hybridsim_simulation::scenario::Scenario;
use serde_json::{Value as Json, json};

/// The values that a key is offered with: less than it takes, so that every one is of use.
enum Offer {
    /// Least and greatest share, and the step between two; shown as percentages.
    Share(f64, f64, f64),
    /// Least and greatest number, and what is counted.
    Count(u32, u32, &'static str),
    /// Least and greatest number, as powers of two, and what is counted.
    Powers(u32, u32, &'static str),
    /// Least and greatest size, as powers of two of bytes.
    Size(u32, u32),
    /// All entries, words, or `true` and `false`.
    Choice,
}

/// Names of keys with their labels, the most important first.
const OFFERS: [(&str, &str, Offer); 22] = [
    ("over_provisioning", "Over-provisioning", Offer::Share(0.02, 1.0, 0.01)),
    ("map_unit", "Mapping unit", Offer::Size(12, 16)),
    ("ftl", "FTL", Offer::Choice),
    ("cache_entries", "Cached mapping entries", Offer::Powers(8, 22, "entries")),
    ("gc", "Garbage collection policy", Offer::Choice),
    ("size", "Size", Offer::Size(20, 36)),
    ("blocks_per_plane", "Flash blocks", Offer::Powers(5, 13, "blocks per plane")),
    ("replacement", "Replacement policy", Offer::Choice),
    ("admission", "Admission policy", Offer::Choice),
    ("write_policy", "Write policy", Offer::Choice),
    ("write_scheme", "Write scheme", Offer::Choice),
    ("read_share", "Flash for read caching", Offer::Share(0.0, 1.0, 0.05)),
    ("write_cache", "Write cache", Offer::Choice),
    ("queue_depth", "Queue depth", Offer::Count(1, 256, "requests")),
    ("block", "Request size", Offer::Size(12, 22)),
    ("read", "Reads", Offer::Share(0.0, 1.0, 0.05)),
    ("active", "Streams written at a time", Offer::Count(1, 64, "streams")),
    ("streams", "Streams tracked", Offer::Count(1, 64, "streams")),
    ("scheduler", "I/O scheduler", Offer::Choice),
    ("flash_queue_depth", "Queue depth of the flash", Offer::Count(1, 256, "requests")),
    ("cleanup", "Cleanup policy", Offer::Choice),
    ("precondition", "Preconditioning", Offer::Choice),
];

/// The keys of `scenario` that the page offers, with their values.
pub fn knobs(scenario: &Scenario, registry: &Registry) -> Vec<Json> {
    let mut all = Vec::new();
    for component in &scenario.components {
        let table = format!("component.{}", component.name);
        let params = component.description.params;
        add(&table, params, &component.settings, registry, &mut all);
    }
    if scenario.tenants.is_empty() {
        let params = hybridsim_host::driver::PARAMS;
        add("host", params, &scenario.host, registry, &mut all);
        if let Some(generator) = &scenario.source.generator {
            let params = params_of("generator", &generator.name, registry);
            let table = "workload.generator";
            add(table, params, &generator.settings, registry, &mut all);
        }
    }
    all.sort_by_key(|(rank, _)| *rank);
    all.into_iter().map(|(_, knob)| knob).collect()
}

/// Adds the keys of a table, and of the entries that it chooses, each with its rank.
fn add(
    table: &str,
    params: &'static [Param],
    settings: &Settings,
    registry: &Registry,
    all: &mut Vec<(usize, Json)>,
) {
    for param in params {
        let key = format!("{table}.{}", param.name);
        let value = settings.value(param.name);
        all.extend(knob(&key, param, value, registry));
        if let (Kind::Entry(category), Some(Value::Entry(choice))) = (param.kind, value) {
            let inner = params_of(category, &choice.name, registry);
            add(&key, inner, &choice.settings, registry, all);
        }
    }
}

/// The parameters of the entry `name`.
fn params_of(category: &str, name: &str, registry: &Registry) -> &'static [Param] {
    let found = registry.descriptions(category).find(|entry| entry.name == name);
    found.map_or(&[], |entry| entry.params)
}

/// The key with its rank, if the page offers it.
fn knob(
    key: &str,
    param: &Param,
    value: Option<&Value>,
    registry: &Registry,
) -> Option<(usize, Json)> {
    let rank = OFFERS.iter().position(|(name, ..)| *name == param.name)?;
    let (_, label, offer) = &OFFERS[rank];
    let value = value.map(Value::word);
    let mut knob = json!({ "key": key, "label": label, "help": param.help, "value": value });
    match (offer, param.kind) {
        (Offer::Share(min, max, step), Kind::Number { .. }) => {
            knob["share"] = json!([min, max, step]);
        }
        (Offer::Count(min, max, unit), Kind::Count { .. }) => {
            knob["count"] = json!([min, max, 1]);
            knob["unit"] = json!(unit);
        }
        (Offer::Powers(min, max, unit), Kind::Count { .. }) => {
            knob["powers"] = json!([min, max]);
            knob["unit"] = json!(unit);
        }
        (Offer::Size(min, max), Kind::Bytes) => knob["size"] = json!([min, max]),
        (Offer::Choice, Kind::Entry(category)) => {
            let names = registry.descriptions(category).map(|entry| entry.name);
            knob["choices"] = json!(names.collect::<Vec<_>>());
        }
        (Offer::Choice, Kind::Choice(words)) => knob["choices"] = json!(words),
        (Offer::Choice, Kind::Flag) => knob["choices"] = json!([true, false]),
        _ => return None,
    }
    Some((rank, knob))
}
