//! What can be used in a scenario, and what its keys mean.

use crate::failure;
use crate::plugin;
use crate::run::{Source, read};
use hybridsim_config::check::takes;
use hybridsim_config::registry::Description;
use hybridsim_config::units;
use hybridsim_engine::SimDuration;
use hybridsim_simulation::build;
use hybridsim_simulation::presets;
use hybridsim_simulation::scenario::explain as explanation;
use hybridsim_simulation::scenario::resolve::resolve;
use hybridsim_simulation::scenario::schema as scenario_schema;
use pyo3::prelude::*;
use serde_json::{Map, Value, json};
use std::path::PathBuf;

/// Checks a scenario and its parts together; returns it resolved, as TOML.
#[pyfunction]
#[pyo3(signature = (source, sets, trace))]
pub fn check(
    py: Python<'_>,
    source: Source,
    sets: Vec<String>,
    trace: Option<PathBuf>,
) -> PyResult<String> {
    failure::guarded(|| {
        let scenario = read(py, source, sets, trace)?;
        let registry = plugin::registry();
        let (built, raised) = failure::gather(|| build::system(&scenario, &registry).map(drop));
        built.map_err(|diagnostics| {
            let error = failure::scenario(py, &diagnostics);
            error.set_cause(py, raised);
            error
        })?;
        Ok(resolve(&scenario, &registry))
    })
}

/// Everything that can be used, by kind, as JSON.
#[pyfunction]
pub fn listing() -> String {
    let registry = plugin::complete_registry();
    let mut kinds = Map::new();
    for category in registry.categories() {
        kinds.insert(category.to_owned(), registry.descriptions(category).map(entry).collect());
    }
    kinds.insert("preset".to_owned(), presets::list().into_iter().map(preset).collect());
    Value::Object(kinds).to_string()
}

fn preset((name, summary): (String, String)) -> Value {
    json!({ "name": name, "summary": summary, "origin": "", "params": [] })
}

fn entry(description: Description) -> Value {
    let params = description.params.iter().map(|param| {
        json!({
            "name": param.name,
            "help": param.help,
            "takes": takes(param.kind),
            "default": param.default.filter(|default| !default.is_empty()),
            "required": param.default.is_none(),
        })
    });
    json!({
        "name": description.name,
        "summary": description.summary,
        "origin": description.origin,
        "params": params.collect::<Vec<_>>(),
    })
}

/// Help for a key, a part, a policy or a kind of thing.
#[pyfunction]
pub fn explain(py: Python<'_>, key: &str) -> PyResult<String> {
    explanation::explain(&plugin::complete_registry(), key)
        .map_err(|message| failure::raise(py, "Error", message))
}

/// The scenario format as JSON Schema.
#[pyfunction]
pub fn schema() -> String {
    scenario_schema::schema(&plugin::complete_registry()).to_string()
}

/// A quantity such as `"25us"` in its base unit: ns, bytes, or bytes per second.
#[pyfunction]
pub fn parse_quantity(py: Python<'_>, kind: &str, text: &str) -> PyResult<u64> {
    let value = match kind {
        "time" => units::duration(text).map(SimDuration::as_ns),
        "size" => units::bytes(text),
        _ => units::rate(text),
    };
    value.map_err(|message| failure::raise(py, "UnitError", message))
}

/// The shortest way to write a quantity exactly.
#[pyfunction]
pub fn write_quantity(kind: &str, value: u64) -> String {
    match kind {
        "time" => units::write_duration(SimDuration::from_ns(value)),
        "size" => units::write_bytes(value),
        _ => format!("{}/s", units::write_bytes(value)),
    }
}
