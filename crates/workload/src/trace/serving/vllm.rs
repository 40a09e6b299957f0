//! Logs of the KV-cache events that vLLM, SGLang and LMCache publish, as JSON lines: a batch, or
//! one event, per line.
//!
//! A group of blocks that is stored in GPU memory was needed there and computed, or loaded from a
//! tier below: it is a request for these blocks, and input tokens that hit in GPU memory are not in
//! the log.

use super::json;
use super::names;
use super::{FormatFacts, RawServing, ServingEntry, ServingEvent, ServingParser, first_line};
use hybridsim_config::param::Settings;
use hybridsim_config::registry::Description;
use serde_json::{Map, Value};

pub(super) const ENTRY: ServingEntry = ServingEntry {
    description: Description {
        name: "kv-events",
        summary: "KV-cache events of vLLM, SGLang and LMCache (BlockStored, BlockRemoved), as JSON",
        origin: "vLLM, vllm/distributed/kv_events.py: EventBatch and its events",
        params: &[],
    },
    sniff: |head| {
        let line = first_line(head);
        let has = |text: &str| memchr::memmem::find(line, text.as_bytes()).is_some();
        (line.starts_with(b"{") || line.starts_with(b"["))
            && (has("\"BlockStored\"") || has("\"BlockRemoved\"") || has("\"AllBlocksCleared\""))
    },
    parser: |_: &Settings| Box::new(Events),
    sample: concat!(
        r#"{"ts": 10.5, "events": [{"type": "BlockStored", "block_hashes": [11, 12], "#,
        r#""parent_block_hash": null, "token_ids": [], "block_size": 16, "lora_id": null}]}"#,
        "\n",
        r#"[11.25, [["BlockStored", [13], 12, [], 16, null, "GPU"], "#,
        r#"["BlockRemoved", [11], "GPU"]], null]"#,
        "\n"
    )
    .as_bytes(),
};

struct Events;

impl ServingParser for Events {
    fn facts(&self) -> FormatFacts {
        FormatFacts {
            block_tokens: None,
            has_output: false,
            has_blocks: true,
            whole_prompts: false,
        }
    }

    fn parse(&mut self, line: &[u8], events: &mut Vec<ServingEvent>) -> Result<(), String> {
        match json::value(line)? {
            // A batch is [time, events, rank].
            Value::Array(batch) => {
                let [time, Value::Array(list), ..] = &batch[..] else {
                    return Err("is no batch [time, [events], ...]".to_owned());
                };
                batch_events(json::time(time, "ts", 9)?, list, events)
            }
            Value::Object(batch) => {
                let key = if batch.contains_key("ts") { "ts" } else { "timestamp" };
                let time_ns = json::time(json::field(&batch, key)?, key, 9)?;
                match batch.get("events") {
                    Some(Value::Array(list)) => batch_events(time_ns, list, events),
                    Some(_) => Err("`events` is no list".to_owned()),
                    None => event(time_ns, &batch, events),
                }
            }
            _ => Err("is neither a batch of events nor an event".to_owned()),
        }
    }
}

fn batch_events(
    time_ns: u64,
    list: &[Value],
    events: &mut Vec<ServingEvent>,
) -> Result<(), String> {
    for one in list {
        match one {
            Value::Object(fields) => event(time_ns, fields, events)?,
            Value::Array(fields) => event(time_ns, &named(fields)?, events)?,
            _ => return Err("has an event that is neither an object nor a list".to_owned()),
        }
    }
    Ok(())
}

/// The fields of an event that is a list, by their names.
fn named(fields: &[Value]) -> Result<Map<String, Value>, String> {
    let [Value::String(kind), rest @ ..] = fields else {
        return Err("has an event without a type".to_owned());
    };
    let keys: &[&str] = match kind.as_str() {
        "BlockStored" => {
            &["block_hashes", "parent_block_hash", "token_ids", "block_size", "lora_id", "medium"]
        }
        "BlockRemoved" => &["block_hashes", "medium"],
        _ => &[],
    };
    let mut map: Map<String, Value> =
        keys.iter().zip(rest).map(|(key, value)| ((*key).to_owned(), value.clone())).collect();
    map.insert("type".to_owned(), Value::String(kind.clone()));
    Ok(map)
}

fn event(
    time_ns: u64,
    fields: &Map<String, Value>,
    events: &mut Vec<ServingEvent>,
) -> Result<(), String> {
    let medium = fields.get("medium").and_then(Value::as_str).unwrap_or("GPU");
    if !medium.eq_ignore_ascii_case("gpu") && !medium.eq_ignore_ascii_case("device") {
        events.push(ServingEvent::Skipped("an event of another tier than GPU memory; left out"));
        return Ok(());
    }
    let kind = json::field(fields, "type")?;
    let blocks = || names::names(json::field(fields, "block_hashes")?);
    match kind.as_str() {
        Some("BlockStored") => {
            let size = json::block_tokens(json::field(fields, "block_size")?, "block_size")?;
            let parent = fields.get("parent_block_hash").filter(|parent| !parent.is_null());
            let blocks = blocks()?;
            events.push(ServingEvent::Request(RawServing {
                time_ns,
                input_tokens: blocks.len() as u64 * u64::from(size),
                blocks,
                parent: parent.map(names::name).transpose()?,
                block_tokens: Some(size),
                ..RawServing::default()
            }));
        }
        Some("BlockRemoved") => {
            events.push(ServingEvent::Removed { time_ns, blocks: blocks()? });
        }
        Some("AllBlocksCleared") => {
            events.push(ServingEvent::Skipped("all blocks were cleared; not an eviction"));
        }
        _ => return Err(format!("has an event of type {kind}, which is not known")),
    }
    Ok(())
}
