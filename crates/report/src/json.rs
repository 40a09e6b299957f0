//! Results as JSON.

use serde::Serialize;

/// `value` (results, chart data, or a list of them) indented, with a final newline.
///
/// # Panics
/// Panics when `value` has keys that are not text.
pub fn pretty(value: &impl Serialize) -> String {
    let text = serde_json::to_string_pretty(value).expect("results have only plain values");
    // JSON has these in strings only, where it does not ask to escape them; terminals execute them.
    let mut escaped = String::with_capacity(text.len() + 1);
    for letter in text.chars() {
        match letter {
            '\u{7f}'..='\u{9f}' => escaped += &format!("\\u{:04x}", u32::from(letter)),
            _ => escaped.push(letter),
        }
    }
    escaped + "\n"
}
