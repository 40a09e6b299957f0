//! CSV with a header line, for spreadsheets, data frames and scripts: every column of a record.

use super::WriterEntry;
use super::text::{RecordFormatter, TextWriter};
use crate::record::Record;
use crate::trace::csv::HEADER;
use hybridsim_config::registry::Description;
use std::io::{self, Write};

struct Csv;

impl RecordFormatter for Csv {
    fn format(&mut self, out: &mut dyn Write, record: &Record, _name: &str) -> io::Result<bool> {
        let request = &record.request;
        let (op, flags) = (request.op.name(), request.flags.0);
        let (at, volume, lba) = (record.at.as_ns(), request.volume, request.lba);
        write!(out, "{at},{op},{volume},{lba},{},{flags},", request.sectors)?;
        match record.response {
            Some(response) => writeln!(out, "{}", response.as_ns())?,
            None => writeln!(out)?,
        }
        Ok(true)
    }
}

pub(super) const ENTRY: WriterEntry = WriterEntry {
    description: Description {
        name: "csv",
        summary: "CSV with a header line: time_ns, op, volume, lba, sectors, flags, response_ns.",
        origin: "docs/reference/traces.md",
        params: &[],
    },
    extension: "csv",
    loses: &["names of volumes"],
    create: |out, _| Ok(Box::new(TextWriter::create(out, &format!("{HEADER}\n"), Csv)?)),
};
