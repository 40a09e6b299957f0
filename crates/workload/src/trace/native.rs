//! The native format, `.hst`, among the trace formats.

use super::{Confidence, FormatEntry, FormatInput, TraceFile};
use crate::native::{MAGIC, NativeReader};
use crate::record::{Record, RecordReader, SourceLocation, TraceResult, Warning};
use hybridsim_config::registry::Description;
use std::io::{self, Read};

pub(crate) const ENTRY: FormatEntry = FormatEntry {
    description: Description {
        name: "native",
        summary: "hybridsim's own: compact, checked, and the fastest to read (.hst).",
        origin: "docs/reference/traces.md",
        params: &[],
    },
    sniff: |head| match head.bytes.starts_with(&MAGIC) {
        true => Confidence::Certain,
        false => Confidence::No,
    },
    open,
    same_as: &[],
    sample: include_bytes!("../native/sample.hst"),
};

/// Maximum bytes of one read; the file buffers at least as many.
const READ_BYTES_MAX: usize = 64 * 1024;

struct UnpackedFile(TraceFile);

impl Read for UnpackedFile {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let wanted = buffer.len().min(READ_BYTES_MAX);
        let held =
            self.0.peek(wanted, SourceLocation::File).map_err(|e| io::Error::other(e.message))?;
        let count = held.len();
        buffer[..count].copy_from_slice(held);
        self.0.consume(count);
        Ok(count)
    }
}

struct NativeTrace(NativeReader<UnpackedFile>);

fn open(input: FormatInput) -> TraceResult<Box<dyn RecordReader>> {
    let path = input.file.path().to_owned();
    let reader = NativeReader::new(UnpackedFile(input.file), &path, None)?;
    Ok(Box::new(NativeTrace(reader)))
}

impl RecordReader for NativeTrace {
    #[inline]
    fn next(&mut self) -> TraceResult<Option<Record>> {
        self.0.next()
    }
    fn next_batch(&mut self, batch: &mut Vec<Record>) -> TraceResult<()> {
        self.0.next_batch(batch)
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
