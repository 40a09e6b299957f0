//! Fields of JSON lines, with errors that name them.

use super::super::number;
use serde_json::{Map, Value};

/// A line as a JSON value.
pub(super) fn value(line: &[u8]) -> Result<Value, String> {
    serde_json::from_slice(line).map_err(|error| format!("is not a line of JSON: {error}"))
}

/// A line as an object.
pub(super) fn object(line: &[u8]) -> Result<Map<String, Value>, String> {
    match value(line)? {
        Value::Object(fields) => Ok(fields),
        _ => Err("is not a JSON object".to_owned()),
    }
}

pub(super) fn field<'a>(fields: &'a Map<String, Value>, key: &str) -> Result<&'a Value, String> {
    fields.get(key).ok_or_else(|| format!("has no `{key}`"))
}

/// A whole number; a fraction of zero is accepted, since some writers print 12.0.
pub(super) fn whole(value: &Value, key: &str) -> Result<u64, String> {
    let whole =
        |number: f64| (number >= 0.0 && number.fract() == 0.0 && number < 9e15).then_some(number);
    let from_f64 = || value.as_f64().and_then(whole).map(|number| number as u64);
    value.as_u64().or_else(from_f64).ok_or_else(|| format!("`{key}` is no whole number: {value}"))
}

pub(super) fn whole_field(fields: &Map<String, Value>, key: &str) -> Result<u64, String> {
    whole(field(fields, key)?, key)
}

/// A time in units of 10^-`shift` nanoseconds, to the nanosecond.
pub(super) fn time(value: &Value, key: &str, shift: usize) -> Result<u64, String> {
    let wrong = || format!("`{key}` is no time: {value}");
    let Value::Number(number) = value else { return Err(wrong()) };
    if let Ok(ns) = number::scaled(number.to_string().as_bytes(), shift) {
        return Ok(ns);
    }
    // With an exponent, as in 1.7e9.
    let ns = number.as_f64().ok_or_else(wrong)? * libm::pow(10.0, shift as f64);
    if (0.0..9e18).contains(&ns) { Ok(ns as u64) } else { Err(wrong()) }
}

/// Tokens in a block.
pub(super) fn block_tokens(value: &Value, key: &str) -> Result<u32, String> {
    let tokens = whole(value, key)?;
    match u32::try_from(tokens) {
        Ok(tokens) if tokens > 0 => Ok(tokens),
        _ => Err(format!("`{key}` is {tokens}: a block has 1 to 4 billion tokens")),
    }
}
