//! Common to all text formats: a buffered line writer and volume names.

use super::RecordWriter;
use crate::record::Record;
use std::io::{self, BufWriter, Write};

/// Writes records as lines of one format.
pub trait RecordFormatter {
    /// Writes the line; `false` where the format cannot represent the record. `name` is the name of
    /// the volume; empty where it has none.
    fn format(&mut self, out: &mut dyn Write, record: &Record, name: &str) -> io::Result<bool>;
}

/// A text trace being written.
pub struct TextWriter<F> {
    out: BufWriter<Box<dyn Write>>,
    formatter: F,
    names: Vec<String>,
}

impl<F: RecordFormatter> TextWriter<F> {
    /// Starts the file with `header`, which may be empty.
    pub fn create(out: Box<dyn Write>, header: &str, formatter: F) -> io::Result<Self> {
        let mut out = BufWriter::with_capacity(1 << 16, out);
        out.write_all(header.as_bytes())?;
        Ok(Self { out, formatter, names: Vec::new() })
    }
}

impl<F: RecordFormatter> RecordWriter for TextWriter<F> {
    fn name_volumes(&mut self, names: &[String]) {
        let new = names.iter().skip(self.names.len()).map(|name| sanitised(name));
        self.names.extend(new);
    }

    fn write(&mut self, record: &Record) -> io::Result<bool> {
        let volume = usize::from(record.request.volume);
        let name = self.names.get(volume).map_or("", String::as_str);
        self.formatter.format(&mut self.out, record, name)
    }

    fn finish(mut self: Box<Self>) -> io::Result<()> {
        self.out.flush()
    }
}

/// The name with `_` for characters that could end a column.
fn sanitised(name: &str) -> String {
    let keep = |c: char| if c.is_alphanumeric() || "-._/:".contains(c) { c } else { '_' };
    name.chars().map(keep).collect()
}
