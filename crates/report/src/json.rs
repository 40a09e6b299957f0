//! Results as JSON.

use serde::Serialize;
use std::io::{self, Write};

/// Writes `value` (results, chart data, or a list of them) indented, with a final newline.
///
/// # Errors
/// When `out` cannot be written to.
pub fn write(out: &mut dyn Write, value: &impl Serialize) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut *out, value)?;
    out.write_all(b"\n")
}

/// Writes `value` on one line.
///
/// # Errors
/// When `out` cannot be written to.
pub fn write_line(out: &mut dyn Write, value: &impl Serialize) -> io::Result<()> {
    serde_json::to_writer(&mut *out, value)?;
    out.write_all(b"\n")
}
