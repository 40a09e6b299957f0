//! Results as JSON.

use serde::Serialize;

/// `value` (results, chart data, or a list of them) indented, with a final newline.
///
/// # Panics
/// Panics when `value` has keys that are not text.
pub fn pretty(value: &impl Serialize) -> String {
    serde_json::to_string_pretty(value).expect("results have only plain values") + "\n"
}
