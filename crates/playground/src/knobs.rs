//! The keys of a scenario that the page offers as sliders and choices.

use hybridsim_config::param::{Kind, Param, Value};
use hybridsim_config::registry::Registry;
use hybridsim_simulation::scenario::Scenario;
use serde_json::{Value as Json, json};

/// The values that a key is offered with: less than it takes, so that every one is of use.
enum Offer {
    /// Least and greatest number, and the step between two.
    Range(f64, f64, f64),
    /// Least and greatest size, as powers of two of bytes.
    Size(u32, u32),
    /// All entries, words, or `true` and `false`.
    Choice,
}

/// Names of keys, the most important first.
const OFFERS: [(&str, Offer); 14] = [
    ("over_provisioning", Offer::Range(0.02, 1.0, 0.01)),
    ("map_unit", Offer::Size(12, 16)),
    ("ftl", Offer::Choice),
    ("size", Offer::Size(20, 36)),
    ("replacement", Offer::Choice),
    ("admission", Offer::Choice),
    ("write_policy", Offer::Choice),
    ("read_share", Offer::Range(0.0, 1.0, 0.05)),
    ("write_cache", Offer::Choice),
    ("queue_depth", Offer::Range(1.0, 256.0, 1.0)),
    ("scheduler", Offer::Choice),
    ("flash_queue_depth", Offer::Range(1.0, 256.0, 1.0)),
    ("cleanup", Offer::Choice),
    ("precondition", Offer::Choice),
];

/// The keys of `scenario` that the page offers, with their values.
pub fn knobs(scenario: &Scenario, registry: &Registry) -> Vec<Json> {
    let mut all = Vec::new();
    for component in &scenario.components {
        for param in component.description.params {
            let value = component.settings.value(param.name);
            let key = format!("component.{}.{}", component.name, param.name);
            all.extend(knob(&key, param, value, registry));
        }
    }
    if scenario.tenants.is_empty() {
        for param in hybridsim_host::driver::PARAMS {
            let value = scenario.host.value(param.name);
            all.extend(knob(&format!("host.{}", param.name), param, value, registry));
        }
    }
    all.sort_by_key(|(rank, _)| *rank);
    all.into_iter().map(|(_, knob)| knob).collect()
}

/// The key with its rank, if the page offers it.
fn knob(
    key: &str,
    param: &Param,
    value: Option<&Value>,
    registry: &Registry,
) -> Option<(usize, Json)> {
    let rank = OFFERS.iter().position(|(name, _)| *name == param.name)?;
    let mut knob = json!({ "key": key, "help": param.help, "value": value.map(Value::word) });
    match (&OFFERS[rank].1, param.kind) {
        (Offer::Range(min, max, step), Kind::Number { .. } | Kind::Count { .. }) => {
            knob["range"] = json!([min, max, step]);
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
