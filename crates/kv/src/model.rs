//! Sizes of keys and values by the shape of a model.

use serde::Serialize;

/// The shape of a model, as far as it determines the size of its keys and values.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ModelShape {
    pub name: &'static str,
    pub layers: u32,
    /// Numbers stored per token and layer: 2 x key-value heads x head size, or the compressed
    /// vector of multi-head latent attention.
    pub numbers: u32,
    /// File that states the shape.
    pub source: &'static str,
}

const fn grouped(
    name: &'static str,
    layers: u32,
    heads: u32,
    head_size: u32,
    source: &'static str,
) -> ModelShape {
    ModelShape { name, layers, numbers: 2 * heads * head_size, source }
}

/// Public models, from their `config.json`: `num_hidden_layers`, `num_key_value_heads` and
/// `head_dim`, or `kv_lora_rank` and `qk_rope_head_dim`.
pub const MODELS: &[ModelShape] = &[
    grouped("llama-3-8b", 32, 8, 128, "meta-llama/Llama-3.1-8B config.json"),
    grouped("llama-3-70b", 80, 8, 128, "meta-llama/Llama-3.1-70B config.json"),
    grouped("llama-3-405b", 126, 8, 128, "meta-llama/Llama-3.1-405B config.json"),
    grouped("mistral-7b", 32, 8, 128, "mistralai/Mistral-7B-v0.3 config.json"),
    grouped("qwen-2.5-7b", 28, 4, 128, "Qwen/Qwen2.5-7B config.json"),
    grouped("qwen-2.5-72b", 80, 8, 128, "Qwen/Qwen2.5-72B config.json"),
    grouped("qwen-3-32b", 64, 8, 128, "Qwen/Qwen3-32B config.json"),
    ModelShape {
        name: "deepseek-v3",
        layers: 61,
        numbers: 512 + 64,
        source: "deepseek-ai/DeepSeek-V3 config.json: kv_lora_rank 512, qk_rope_head_dim 64",
    },
];

/// Bits of a stored number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Precision(u32);

impl Precision {
    /// # Errors
    /// Not 4, 8, 16 or 32 bits.
    pub fn new(bits: u32) -> Result<Self, String> {
        match bits {
            4 | 8 | 16 | 32 => Ok(Self(bits)),
            _ => Err(format!("{bits} bits per number; keys and values have 4, 8, 16 or 32")),
        }
    }
}

impl ModelShape {
    /// The model called `name`.
    ///
    /// # Errors
    /// Names all there are.
    pub fn named(name: &str) -> Result<Self, String> {
        MODELS.iter().find(|model| model.name == name).copied().ok_or_else(|| {
            let names: Vec<_> = MODELS.iter().map(|model| model.name).collect();
            format!(
                "there is no model `{name}`: {}, or LAYERSxHEADSxSIZE, such as 32x8x128",
                names.join(", ")
            )
        })
    }

    /// A model by name, or by layers, key-value heads and head size as `32x8x128`.
    ///
    /// # Errors
    /// Neither.
    pub fn parse(text: &str) -> Result<Self, String> {
        let numbers: Option<Vec<u32>> = text.split('x').map(|part| part.parse().ok()).collect();
        let Some([layers, heads, size]) = numbers.as_deref() else { return Self::named(text) };
        let in_range = |value: u32| (1..=1 << 14).contains(&value);
        if !in_range(*layers) || !in_range(*heads) || !in_range(*size) {
            return Err(format!("`{text}`: layers, heads and head size are 1 to 16384"));
        }
        Ok(grouped("", *layers, *heads, *size, "as given"))
    }

    /// Bytes of the keys and values of a token.
    pub fn token_bytes(&self, precision: Precision) -> u64 {
        let bits = u64::from(self.layers) * u64::from(self.numbers) * u64::from(precision.0);
        bits.div_ceil(8)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn published_sizes_of_tokens() {
        let bytes =
            |name: &str| ModelShape::parse(name).unwrap().token_bytes(Precision::new(16).unwrap());
        assert_eq!(bytes("llama-3-8b"), 128 << 10);
        assert_eq!(bytes("llama-3-70b"), 320 << 10);
        // DeepSeek-V3 technical report: about 70 KB per token.
        assert_eq!(bytes("deepseek-v3"), 70_272);
        assert_eq!(bytes("32x8x128"), 128 << 10);
        assert!(ModelShape::parse("gpt").unwrap_err().contains("llama-3-8b"));
        assert!(ModelShape::parse("0x8x128").is_err());
        assert!(Precision::new(7).is_err());
    }
}
