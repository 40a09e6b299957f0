//! The keys of a scenario that the page offers as sliders and choices.

use hybridsim_config::param::{Kind, Param, Value};
use hybridsim_config::registry::Registry;
use hybridsim_simulation::scenario::Scenario;
use serde_json::{Value as Json, json};

/// Ranges of sliders: less than what is accepted, so that every position is a useful value.
const NUMBERS: [(&str, f64, f64, f64); 4] = [
    ("over_provisioning", 0.02, 1.0, 0.01),
    ("queue_depth", 1.0, 256.0, 1.0),
    ("flash_queue_depth", 1.0, 256.0, 1.0),
    ("read_share", 0.0, 1.0, 0.05),
];
/// Ranges of sizes, as powers of two of bytes.
const SIZES: [(&str, u32, u32); 4] =
    [("map_unit", 12, 16), ("size", 20, 36), ("write_buffer", 12, 30), ("merge_buffer", 12, 28)];
/// Choices between entries or words.
const CHOICES: [&str; 8] = [
    "ftl",
    "replacement",
    "admission",
    "scheduler",
    "precondition",
    "write_policy",
    "write_cache",
    "cleanup",
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
    all
}

fn knob(key: &str, param: &Param, value: Option<&Value>, registry: &Registry) -> Option<Json> {
    let mut knob = json!({ "key": key, "help": param.help, "value": value.map(Value::word) });
    match param.kind {
        Kind::Number { .. } | Kind::Count { .. } => {
            let (_, min, max, step) = NUMBERS.iter().find(|(name, ..)| *name == param.name)?;
            knob["range"] = json!([min, max, step]);
        }
        Kind::Bytes => {
            let (_, min, max) = SIZES.iter().find(|(name, ..)| *name == param.name)?;
            knob["size"] = json!([min, max]);
        }
        Kind::Entry(category) if CHOICES.contains(&param.name) => {
            let names = registry.descriptions(category).map(|entry| entry.name);
            knob["choices"] = json!(names.collect::<Vec<_>>());
        }
        Kind::Choice(words) if CHOICES.contains(&param.name) => knob["choices"] = json!(words),
        Kind::Flag if CHOICES.contains(&param.name) => knob["choices"] = json!([true, false]),
        _ => return None,
    }
    Some(knob)
}
