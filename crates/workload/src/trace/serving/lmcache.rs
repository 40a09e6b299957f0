//! Lookup logs of LMCache: one line per request with the hashes of its whole chunks.

use super::json;
use super::names;
use super::{FormatFacts, RawServing, ServingEntry, ServingEvent, ServingParser, has_keys};
use hybridsim_config::param::Settings;
use hybridsim_config::registry::Description;
use serde_json::Value;

pub(super) const ENTRY: ServingEntry = ServingEntry {
    description: Description {
        name: "lmcache-lookups",
        summary: "lookup logs of LMCache (--lookup-hash-log-dir): hashes of whole chunks, shapes",
        origin: "LMCache, tools/cache_simulator/README.md, pull request 2928",
        params: &[],
    },
    sniff: |head| has_keys(head, &["chunk_hashes", "chunk_size", "seq_len"]),
    parser: |_: &Settings| Box::new(Lookups),
    sample: concat!(
        r#"{"timestamp": 1711929600.123, "chunk_size": 256, "seq_len": 600, "dtypes": "#,
        r#"["bfloat16"], "shapes": [[2, 32, 256, 1024]], "chunk_hashes": ["0xa1", "0xb2"]}"#,
        "\n",
        r#"{"timestamp": 1711929601.5, "chunk_size": 256, "seq_len": 800, "dtypes": "#,
        r#"["bfloat16"], "shapes": [[2, 32, 256, 1024]], "#,
        r#""chunk_hashes": ["0xa1", "0xb2", "0xc3"]}"#,
        "\n"
    )
    .as_bytes(),
};

struct Lookups;

impl ServingParser for Lookups {
    fn facts(&self) -> FormatFacts {
        FormatFacts { block_tokens: None, has_output: false, has_blocks: true, whole_prompts: true }
    }

    fn parse(&mut self, line: &[u8], events: &mut Vec<ServingEvent>) -> Result<(), String> {
        let fields = json::object(line)?;
        let chunk = json::block_tokens(json::field(&fields, "chunk_size")?, "chunk_size")?;
        let input_tokens = json::whole_field(&fields, "seq_len")?;
        let blocks = names::names(json::field(&fields, "chunk_hashes")?)?;
        if blocks.len() as u64 > input_tokens / u64::from(chunk) {
            return Err(format!(
                "has {} chunks of {chunk} tokens for a `seq_len` of {input_tokens}: only whole \
                 chunks have hashes",
                blocks.len()
            ));
        }
        events.push(ServingEvent::Request(RawServing {
            time_ns: json::time(json::field(&fields, "timestamp")?, "timestamp", 9)?,
            input_tokens,
            blocks,
            block_tokens: Some(chunk),
            block_bytes: chunk_bytes(fields.get("shapes"), fields.get("dtypes"))?,
            ..RawServing::default()
        }));
        Ok(())
    }
}

/// Bytes of a chunk: the sizes of its tensors, where the line has them.
fn chunk_bytes(shapes: Option<&Value>, dtypes: Option<&Value>) -> Result<Option<u64>, String> {
    let (Some(Value::Array(shapes)), Some(Value::Array(dtypes))) = (shapes, dtypes) else {
        return Ok(None);
    };
    if shapes.len() != dtypes.len() {
        return Err(format!("has {} `shapes` and {} `dtypes`", shapes.len(), dtypes.len()));
    }
    let mut bytes = 0u64;
    for (shape, dtype) in shapes.iter().zip(dtypes) {
        let Value::Array(lengths) = shape else {
            return Err("`shapes` is no list of lists of numbers".to_owned());
        };
        let mut size = number_bytes(dtype)?;
        for length in lengths {
            let length = json::whole(length, "shapes")?;
            size = size.checked_mul(length).ok_or("`shapes` has no size of a chunk")?;
        }
        bytes = bytes.checked_add(size).ok_or("`shapes` has no size of a chunk")?;
    }
    Ok((bytes > 0).then_some(bytes))
}

fn number_bytes(dtype: &Value) -> Result<u64, String> {
    let name = dtype.as_str().unwrap_or_default();
    match name.strip_prefix("torch.").unwrap_or(name) {
        "float64" | "int64" => Ok(8),
        "float32" | "int32" => Ok(4),
        "float16" | "bfloat16" | "half" | "int16" => Ok(2),
        "uint8" | "int8" => Ok(1),
        float8 if float8.starts_with("float8") || float8.starts_with("fp8") => Ok(1),
        _ => Err(format!("`dtypes` has {dtype}, whose size is not known")),
    }
}
