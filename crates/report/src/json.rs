//! Results as JSON, the form other programs read.

use serde::Serialize;
use std::io::{self, Write};

/// Writes `value` (a summary, pictures, or a list of them) indented, with a newline at the end.
///
/// # Errors
/// When `out` cannot be written to.
pub fn write(out: &mut dyn Write, value: &impl Serialize) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut *out, value)?;
    out.write_all(b"\n")
}

/// The same on one line.
///
/// # Errors
/// When `out` cannot be written to.
pub fn write_line(out: &mut dyn Write, value: &impl Serialize) -> io::Result<()> {
    serde_json::to_writer(&mut *out, value)?;
    out.write_all(b"\n")
}
