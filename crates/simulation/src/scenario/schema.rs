//! `hybridsim schema`: the scenario format as JSON Schema (draft 2020-12), for editors.

use super::tenants::TENANT;
use super::{HOST, RunSettings, WORKLOAD};
use crate::presets;
use hybridsim_config::check::{plain_number, takes};
use hybridsim_config::param::{Kind, Param};
use hybridsim_config::registry::{Description, Registry};
use serde_json::{Map, Value, json};

/// The schema of a scenario file.
pub fn schema(registry: &Registry) -> Value {
    let mut definitions = Map::new();
    for category in registry.categories() {
        let entries: Vec<Description> = registry.descriptions(category).collect();
        let choices = if category == "component" {
            components(&entries)
        } else {
            let names: Vec<&str> = entries.iter().map(|entry| entry.name).collect();
            let number = plain_number(registry, category).map(|_| json!({ "type": "number" }));
            let tables = entries.iter().map(named);
            [json!({ "enum": names })].into_iter().chain(tables).chain(number).collect()
        };
        definitions.insert(category.to_owned(), json!({ "anyOf": choices }));
    }
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "hybridsim scenario",
        "type": "object",
        "additionalProperties": false,
        "required": ["component"],
        "properties": {
            "title": { "type": "string", "description": "What to call the run in results." },
            "system": { "type": "string", "description": "The top component." },
            "run": table(&[RunSettings::PARAMS]),
            "host": table(HOST),
            "workload": workload(),
            "component": {
                "type": "object",
                "additionalProperties": { "$ref": "#/$defs/component" },
            },
        },
        "$defs": definitions,
    })
}

/// One workload, or several in tables of their own.
fn workload() -> Value {
    let mut one = table(WORKLOAD);
    one["additionalProperties"] = table(TENANT);
    one
}

/// The table of `entry`, which names it as its `kind`.
fn named(entry: &Description) -> Value {
    let mut table = table(&[entry.params]);
    table["description"] = json!(entry.summary);
    table["properties"]["kind"] = json!({ "const": entry.name });
    push_required(&mut table, "kind");
    table
}

/// Components that name their kind, those that start from a preset, of which each kind has some,
/// and those that start from a file.
fn components(entries: &[Description]) -> Vec<Value> {
    let presets: Vec<(String, String)> = presets::kinds();
    let with_preset = entries.iter().filter_map(|entry| {
        let names: Vec<&str> = presets
            .iter()
            .filter(|(_, kind)| kind == entry.name)
            .map(|(preset, _)| preset.as_str())
            .collect();
        if names.is_empty() {
            return None;
        }
        let mut table = named(entry);
        for param in entry.params {
            if matches!(param.kind, Kind::Entry(_)) {
                // Its kind may be in the preset.
                let whole = table["properties"][param.name].take();
                table["properties"][param.name] = json!({ "anyOf": [whole, { "type": "object" }] });
            }
        }
        table["properties"]["preset"] = json!({ "enum": names });
        table["required"] = json!(["preset"]);
        Some(table)
    });
    let from_file = json!({ "type": "object", "required": ["preset"],
        "properties": { "preset": { "type": "string", "pattern": "\\.toml$" } } });
    let with_count = |mut table: Value| {
        table["properties"]["count"] = json!({
            "type": "integer", "minimum": 1,
            "description": "Copies of this component in the list of its parent.",
        });
        table
    };
    entries.iter().map(named).chain(with_preset).chain([from_file]).map(with_count).collect()
}

fn push_required(table: &mut Value, key: &str) {
    match table.get_mut("required").and_then(Value::as_array_mut) {
        Some(list) => list.push(json!(key)),
        None => table["required"] = json!([key]),
    }
}

fn table(groups: &[&[Param]]) -> Value {
    let mut properties = Map::new();
    let mut required = Vec::new();
    for param in groups.iter().copied().flatten() {
        let mut schema = value(param.kind);
        schema["description"] = json!(format!("{} Takes {}.", param.help, takes(param.kind)));
        match param.default {
            None => required.push(param.name),
            Some("") => {}
            Some(default) => schema["default"] = json!(default),
        }
        properties.insert(param.name.to_owned(), schema);
    }
    let mut table =
        json!({ "type": "object", "properties": properties, "additionalProperties": false });
    if !required.is_empty() {
        table["required"] = json!(required);
    }
    table
}

fn value(kind: Kind) -> Value {
    match kind {
        Kind::Count { min, max } => json!({ "type": "integer", "minimum": min, "maximum": max }),
        Kind::Number { .. } => json!({ "type": ["number", "string"] }),
        Kind::Duration
        | Kind::Bytes
        | Kind::MeanBytes
        | Kind::Rate
        | Kind::Rpm
        | Kind::Power
        | Kind::Energy => {
            json!({ "type": "string", "pattern": "^[0-9][0-9_.]* ?[A-Za-zµ]+(/s)?$" })
        }
        Kind::Flag => json!({ "type": "boolean" }),
        Kind::Text | Kind::Component => json!({ "type": "string" }),
        Kind::Choice(words) => json!({ "enum": words }),
        Kind::Entry(category) => json!({ "$ref": format!("#/$defs/{category}") }),
        Kind::Components => json!({ "type": "array", "items": { "type": "string" } }),
        Kind::Counts => json!({ "type": "array", "items": { "type": "integer" } }),
        Kind::Numbers => json!({ "type": "array", "items": { "type": "number" } }),
        Kind::Curve => json!({ "type": "array", "items": { "type": "array",
            "prefixItems": [{ "type": "number" }, { "type": "string" }] } }),
        Kind::Table(params) => table(&[params]),
        Kind::Tables(params) => json!({ "type": "array", "items": table(&[params]) }),
        Kind::Entries(category) => {
            json!({ "type": "array", "items": { "$ref": format!("#/$defs/{category}") } })
        }
    }
}
