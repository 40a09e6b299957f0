//! What text formats share: a buffered line writer and volume names.

use super::RecordWriter;
use crate::record::Record;
use std::io::{self, BufWriter, Write};

/// Writes a record as a line, or says that the format has none for it.
pub trait Lines {
    /// Writes the line. `name` is the volume's name; empty where it has none.
    fn line(&mut self, out: &mut dyn Write, record: &Record, name: &str) -> io::Result<bool>;
}

/// A text trace being written.
pub struct Text<L> {
    out: BufWriter<Box<dyn Write>>,
    lines: L,
    names: Vec<String>,
}

impl<L: Lines> Text<L> {
    /// Begins with `head`, which may be empty.
    pub fn create(out: Box<dyn Write>, head: &str, lines: L) -> io::Result<Self> {
        let mut out = BufWriter::with_capacity(1 << 16, out);
        out.write_all(head.as_bytes())?;
        Ok(Self { out, lines, names: Vec::new() })
    }
}

impl<L: Lines> RecordWriter for Text<L> {
    fn name_volumes(&mut self, names: &[String]) {
        let more = names.iter().skip(self.names.len()).map(|name| plain(name));
        self.names.extend(more);
    }

    fn write(&mut self, record: &Record) -> io::Result<bool> {
        let volume = usize::from(record.request.volume);
        let name = self.names.get(volume).map_or("", String::as_str);
        self.lines.line(&mut self.out, record, name)
    }

    fn finish(mut self: Box<Self>) -> io::Result<()> {
        self.out.flush()
    }
}

/// A name that cannot break a column: other characters become `_`.
fn plain(name: &str) -> String {
    let keep = |c: char| if c.is_alphanumeric() || "-._/:".contains(c) { c } else { '_' };
    name.chars().map(keep).collect()
}
