//! Names of blocks: numbers or hashes, which the trace's reader numbers densely.

use rustc_hash::FxHashMap;
use serde_json::Value;

/// The name of a block: the number itself, or the hash of a text.
pub(super) type BlockName = u128;

/// Reads a name: a number, or a text such as a hash in hexadecimal digits.
pub(super) fn name(value: &Value) -> Result<BlockName, String> {
    // Signed and unsigned numbers of 64 bits that are equal as bits are the same hash.
    if let Some(number) = value.as_u64() {
        return Ok(number.into());
    }
    if let Some(number) = value.as_i64() {
        return Ok((number as u64).into());
    }
    match value {
        Value::String(text) if !text.is_empty() => {
            let digits = text.strip_prefix("0x").unwrap_or(text);
            let short = digits.len() <= 16 && text.starts_with("0x");
            if let Some(number) = short.then(|| u64::from_str_radix(digits, 16).ok()).flatten() {
                return Ok(number.into());
            }
            let hash = blake3::hash(text.as_bytes());
            let (bytes, _) = hash.as_bytes().split_at(16);
            Ok(u128::from_le_bytes(bytes.try_into().expect("sixteen bytes")) | 1 << 127)
        }
        _ => Err("has a name of a block that is neither a whole number nor a text".to_owned()),
    }
}

/// Reads a list of names.
pub(super) fn names(value: &Value) -> Result<Vec<BlockName>, String> {
    match value {
        Value::Array(list) => list.iter().map(name).collect(),
        single => Ok(vec![name(single)?]),
    }
}

/// Dense numbers of names.
#[derive(Default)]
pub(super) struct Numbers(FxHashMap<BlockName, u32>);

impl Numbers {
    /// The number of `name`: the next one if it is new.
    ///
    /// # Errors
    /// Too many blocks.
    pub fn number(&mut self, name: BlockName) -> Result<u32, String> {
        let next = self.0.len();
        if next >= super::NO_BLOCK as usize {
            return Err("the trace has more than 4 billion blocks".to_owned());
        }
        Ok(*self.0.entry(name).or_insert(next as u32))
    }

    pub fn get(&self, name: BlockName) -> Option<u32> {
        self.0.get(&name).copied()
    }
}
