//! Request traces of Mooncake, and those of Alibaba's Bailian service in the same shape.

use super::json;
use super::names;
use super::{FormatFacts, RawServing, ServingEntry, ServingEvent, ServingParser, has_keys};
use hybridsim_config::param::{Kind, Settings};
use hybridsim_config::registry::Description;

hybridsim_config::choices! {
    /// Unit of times.
    enum TimeUnit { Milliseconds = "ms", Seconds = "s" }
}

hybridsim_config::params! {
    struct Parameters {
        block_tokens: Option<u32> = Kind::Count { min: 1, max: 1 << 24 }, optional,
            "Tokens in a block; without it they follow from prompt lengths and numbers of blocks.";
        time_unit: TimeUnit = Kind::Choice(TimeUnit::NAMES), default "\"ms\"",
            "Unit of `timestamp`.";
    }
}

pub(super) const ENTRY: ServingEntry = ServingEntry {
    description: Description {
        name: "mooncake",
        summary: "request traces of Mooncake: JSON lines with times, lengths and block numbers",
        origin: "Qin et al., FAST 2025; github.com/kvcache-ai/Mooncake, FAST25-release/traces",
        params: Parameters::PARAMS,
    },
    sniff: |head| has_keys(head, &["hash_ids"]) && !has_keys(head, &["parent_chat_id"]),
    parser: |settings| {
        let Parameters { block_tokens, time_unit } = Parameters::from_settings(settings);
        let shift = if time_unit == TimeUnit::Seconds { 9 } else { 6 };
        Box::new(Mooncake { block_tokens, shift })
    },
    sample: br#"{"timestamp": 0, "input_length": 1100, "output_length": 52, "hash_ids": [0, 1, 2]}
{"timestamp": 3052, "input_length": 1531, "output_length": 26, "hash_ids": [0, 1, 3]}
"#,
};

pub(super) const BAILIAN: ServingEntry = ServingEntry {
    description: Description {
        name: "bailian",
        summary: "request traces of Alibaba's Bailian: as Mooncake's, but seconds, blocks of 16",
        origin: "github.com/alibaba-edu/qwen-bailian-usagetraces-anon",
        params: &[],
    },
    sniff: |head| has_keys(head, &["hash_ids", "parent_chat_id"]),
    parser: |_: &Settings| Box::new(Mooncake { block_tokens: Some(16), shift: 9 }),
    sample: concat!(
        r#"{"chat_id": 1, "parent_chat_id": -1, "timestamp": 0.5, "input_length": 40, "#,
        r#""output_length": 9, "type": "text", "turn": 1, "hash_ids": [4, 5, 6]}"#,
        "\n",
        r#"{"chat_id": 2, "parent_chat_id": 1, "timestamp": 2.25, "input_length": 70, "#,
        r#""output_length": 3, "type": "text", "turn": 2, "hash_ids": [4, 5, 7, 8, 9]}"#,
        "\n"
    )
    .as_bytes(),
};

struct Mooncake {
    block_tokens: Option<u32>,
    /// Decimal digits of the time's unit in nanoseconds.
    shift: usize,
}

impl ServingParser for Mooncake {
    fn facts(&self) -> FormatFacts {
        FormatFacts {
            block_tokens: self.block_tokens,
            has_output: true,
            has_blocks: true,
            whole_prompts: true,
        }
    }

    fn parse(&mut self, line: &[u8], events: &mut Vec<ServingEvent>) -> Result<(), String> {
        let fields = json::object(line)?;
        let serde_json::Value::Array(_) = json::field(&fields, "hash_ids")? else {
            return Err("`hash_ids` is no list".to_owned());
        };
        let size = fields.get("block_size").map(|size| json::block_tokens(size, "block_size"));
        events.push(ServingEvent::Request(RawServing {
            time_ns: json::time(json::field(&fields, "timestamp")?, "timestamp", self.shift)?,
            input_tokens: json::whole_field(&fields, "input_length")?,
            output_tokens: json::whole_field(&fields, "output_length")?,
            blocks: names::names(&fields["hash_ids"])?,
            block_tokens: size.transpose()?,
            ..RawServing::default()
        }));
        Ok(())
    }
}
