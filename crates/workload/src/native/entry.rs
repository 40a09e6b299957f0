//! The native format as one of the trace formats.

use super::{MAGIC, NativeReader};
use crate::record::{Place, Record, RecordReader, TraceError, Warning};
use crate::trace::{Confidence, FormatEntry, Input, Opening};
use hybridsim_config::registry::Description;
use std::io::{self, Read};

/// The native format.
pub const ENTRY: FormatEntry = FormatEntry {
    description: Description {
        name: "native",
        summary: "hybridsim's own: compact, checked, and the fastest to read (.hst).",
        origin: "docs/traces.md",
        params: &[],
    },
    sniff: |head| match head.bytes.starts_with(&MAGIC) {
        true => Confidence::Certain,
        false => Confidence::No,
    },
    open,
    same_as: &[],
    sample: include_bytes!("sample.hst"),
};

/// Bytes a single read asks for at most; the input holds at least as many.
const PIECE_BYTES: usize = 64 * 1024;

struct Bytes(Input);

impl Read for Bytes {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let wanted = buffer.len().min(PIECE_BYTES);
        let held = self.0.peek(wanted, Place::File).map_err(|e| io::Error::other(e.message))?;
        let count = held.len();
        buffer[..count].copy_from_slice(held);
        self.0.consume(count);
        Ok(count)
    }
}

struct NativeTrace(NativeReader<Bytes>);

fn open(opening: Opening) -> Result<Box<dyn RecordReader>, TraceError> {
    let path = opening.input.path().to_owned();
    let reader = NativeReader::new(Bytes(opening.input), &path, None)?;
    Ok(Box::new(NativeTrace(reader)))
}

impl RecordReader for NativeTrace {
    #[inline]
    fn next(&mut self) -> Result<Option<Record>, TraceError> {
        self.0.next()
    }
    fn warnings(&self) -> &[Warning] {
        self.0.warnings()
    }
    fn progress(&self) -> Option<f64> {
        self.0.input().0.progress()
    }
    fn has_times(&self) -> bool {
        self.0.has_times()
    }
    fn volumes(&self) -> &[String] {
        self.0.volumes()
    }
}
