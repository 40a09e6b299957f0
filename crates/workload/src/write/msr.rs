//! MSR Cambridge CSV: `Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime`, times in
//! ticks of 100 ns.

use super::WriterEntry;
use super::text::{RecordFormatter, TextWriter};
use crate::record::Record;
use hybridsim_config::registry::Description;
use hybridsim_engine::{Op, SECTOR_BYTES};
use std::io::{self, Write};

/// Time zero: 1 January 2000 as a Windows file time.
const START_TICKS: u64 = 125_911_584_000_000_000;

struct Msr;

impl RecordFormatter for Msr {
    fn format(&mut self, out: &mut dyn Write, record: &Record, _name: &str) -> io::Result<bool> {
        let request = &record.request;
        let op = match request.op {
            Op::Read => "Read",
            Op::Write => "Write",
            Op::Trim | Op::Flush | Op::Zone(_) => return Ok(false),
        };
        let ticks = START_TICKS + record.at.as_ns() / 100;
        let offset = u128::from(request.lba.0) * u128::from(SECTOR_BYTES);
        let response = record.response.map_or(0, |time| time.as_ns() / 100);
        let (volume, bytes) = (request.volume, request.bytes());
        writeln!(out, "{ticks},host,{volume},{op},{offset},{bytes},{response}")?;
        Ok(true)
    }
}

pub(super) const ENTRY: WriterEntry = WriterEntry {
    description: Description {
        name: "msr",
        summary: "MSR Cambridge CSV: file time, host, disk, Read or Write, offset and size in \
                  bytes, response time.",
        origin: "MSR Cambridge traces, SNIA IOTTA",
        params: &[],
    },
    extension: "csv",
    loses: &[
        "trims",
        "flushes",
        "zone management",
        "flags",
        "times finer than 100 ns",
        "the absence of a response time (written as 0)",
        "names of volumes",
    ],
    create: |out, _| Ok(Box::new(TextWriter::create(out, "", Msr)?)),
};
