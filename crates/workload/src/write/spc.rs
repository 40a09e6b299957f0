//! SPC text: `ASU,LBA,size,opcode,time`, size in bytes, time in seconds.

use super::WriterEntry;
use super::text::{RecordFormatter, TextWriter};
use crate::record::Record;
use hybridsim_config::registry::Description;
use hybridsim_engine::Op;
use std::io::{self, Write};

struct Spc;

impl RecordFormatter for Spc {
    fn format(&mut self, out: &mut dyn Write, record: &Record, _name: &str) -> io::Result<bool> {
        let request = &record.request;
        let op = match request.op {
            Op::Read => 'R',
            Op::Write => 'W',
            Op::Trim | Op::Flush | Op::Zone(_) => return Ok(false),
        };
        let ns = record.at.as_ns();
        let (s, rest) = (ns / 1_000_000_000, ns % 1_000_000_000);
        let (volume, lba, bytes) = (request.volume, request.lba, request.bytes());
        writeln!(out, "{volume},{lba},{bytes},{op},{s}.{rest:09}")?;
        Ok(true)
    }
}

pub(super) const ENTRY: WriterEntry = WriterEntry {
    description: Description {
        name: "spc",
        summary: "SPC text: ASU, LBA in sectors, size in bytes, R or W, time in seconds.",
        origin: "Storage Performance Council trace file format",
        params: &[],
    },
    extension: "spc",
    loses: &["trims", "flushes", "zone management", "flags", "response times", "names of volumes"],
    create: |out, _| Ok(Box::new(TextWriter::create(out, "", Spc)?)),
};
