//! DiskSim ASCII: `time device block size flags`, time in milliseconds, flags in hexadecimal with
//! bit 0 set for reads.

use super::WriterEntry;
use super::text::{RecordFormatter, TextWriter};
use crate::record::Record;
use hybridsim_config::registry::Description;
use hybridsim_engine::Op;
use std::io::{self, Write};

struct DiskSim;

impl RecordFormatter for DiskSim {
    fn format(&mut self, out: &mut dyn Write, record: &Record, _name: &str) -> io::Result<bool> {
        let request = &record.request;
        let flags = match request.op {
            Op::Read => 1,
            Op::Write => 0,
            Op::Trim | Op::Flush | Op::Zone(_) => return Ok(false),
        };
        let ns = record.at.as_ns();
        let (ms, rest) = (ns / 1_000_000, ns % 1_000_000);
        let (volume, lba, sectors) = (request.volume, request.lba, request.sectors);
        writeln!(out, "{ms}.{rest:06}\t{volume}\t{lba}\t{sectors}\t{flags:x}")?;
        Ok(true)
    }
}

pub(super) const ENTRY: WriterEntry = WriterEntry {
    description: Description {
        name: "disksim",
        summary: "DiskSim ASCII: time in ms, device, first sector, sectors, flags.",
        origin: "DiskSim 4.0 reference manual",
        params: &[],
    },
    extension: "trace",
    loses: &["trims", "flushes", "zone management", "flags", "response times", "names of volumes"],
    create: |out, _| Ok(Box::new(TextWriter::create(out, "", DiskSim)?)),
};
