//! `hybridsim schema`: the scenario format as JSON Schema (draft 2020-12), for editors.

use super::{RunSettings, WORKLOAD};
use hybridsim_config::check::{plain_number, takes};
use hybridsim_config::param::{Kind, Param};
use hybridsim_config::registry::Registry;
use serde_json::{Map, Value, json};

/// The schema of a scenario file.
pub fn schema(registry: &Registry) -> Value {
    let mut definitions = Map::new();
    for slot in registry.categories() {
        let entries: Vec<Value> = registry
            .descriptions(slot)
            .map(|entry| {
                let mut table = table(&[entry.params], false);
                table["description"] = json!(entry.summary);
                table["properties"]["kind"] = json!({ "const": entry.name });
                if slot == "component" {
                    table["properties"]["preset"] = json!({ "type": "string" });
                }
                push_required(&mut table, "kind");
                table
            })
            .collect();
        let names: Vec<&str> = registry.descriptions(slot).map(|entry| entry.name).collect();
        let choices = if slot == "component" {
            // A preset may name the kind and anything else.
            let preset = json!({ "type": "object", "required": ["preset"],
                "properties": { "preset": { "type": "string" } } });
            entries.into_iter().chain([preset]).collect::<Vec<_>>()
        } else {
            let number = plain_number(registry, slot).map(|_| json!({ "type": "number" }));
            [json!({ "enum": names })].into_iter().chain(entries).chain(number).collect()
        };
        definitions.insert(slot.to_owned(), json!({ "anyOf": choices }));
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
            "run": table(&[RunSettings::PARAMS], true),
            "host": table(&[hybridsim_host::driver::PARAMS], true),
            "workload": table(WORKLOAD, true),
            "component": {
                "type": "object",
                "additionalProperties": { "$ref": "#/$defs/component" },
            },
        },
        "$defs": definitions,
    })
}

fn push_required(table: &mut Value, key: &str) {
    match table.get_mut("required").and_then(Value::as_array_mut) {
        Some(list) => list.push(json!(key)),
        None => table["required"] = json!([key]),
    }
}

fn table(groups: &[&[Param]], closed: bool) -> Value {
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
    let mut table = json!({ "type": "object", "properties": properties });
    if closed {
        table["additionalProperties"] = json!(false);
    }
    if !required.is_empty() {
        table["required"] = json!(required);
    }
    table
}

fn value(kind: Kind) -> Value {
    match kind {
        Kind::Count { min, max } => json!({ "type": "integer", "minimum": min, "maximum": max }),
        Kind::Number { .. } => json!({ "type": ["number", "string"] }),
        Kind::Duration | Kind::Bytes | Kind::Rate | Kind::Rpm | Kind::Power | Kind::Energy => {
            json!({ "type": "string", "pattern": "^[0-9][0-9_.]* ?[A-Za-zµ]+(/s)?$" })
        }
        Kind::Flag => json!({ "type": "boolean" }),
        Kind::Text | Kind::Component => json!({ "type": "string" }),
        Kind::Choice(words) => json!({ "enum": words }),
        Kind::Entry(slot) => json!({ "$ref": format!("#/$defs/{slot}") }),
        Kind::Components => json!({ "type": "array", "items": { "type": "string" } }),
        Kind::Counts => json!({ "type": "array", "items": { "type": "integer" } }),
        Kind::Numbers => json!({ "type": "array", "items": { "type": "number" } }),
        Kind::Curve => json!({ "type": "array", "items": { "type": "array",
            "prefixItems": [{ "type": "number" }, { "type": "string" }] } }),
        Kind::Tables(params) => json!({ "type": "array", "items": table(&[params], true) }),
    }
}
