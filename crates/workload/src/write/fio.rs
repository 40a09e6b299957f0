//! fio iolog version 3: `time file action offset length`, time in microseconds, one file a volume.

use super::WriterEntry;
use super::text::{RecordFormatter, TextWriter};
use crate::record::Record;
use hybridsim_config::registry::Description;
use hybridsim_engine::{Op, SECTOR_BYTES};
use std::io::{self, Write};

#[derive(Default)]
struct Fio {
    opened: Vec<bool>,
}

impl Fio {
    fn open(&mut self, out: &mut dyn Write, us: u64, volume: u16, file: &str) -> io::Result<()> {
        let volume = usize::from(volume);
        if volume >= self.opened.len() {
            self.opened.resize(volume + 1, false);
        }
        if !std::mem::replace(&mut self.opened[volume], true) {
            writeln!(out, "{us} {file} add\n{us} {file} open")?;
        }
        Ok(())
    }
}

impl RecordFormatter for Fio {
    fn format(&mut self, out: &mut dyn Write, record: &Record, name: &str) -> io::Result<bool> {
        let request = &record.request;
        let us = record.at.as_ns() / 1_000;
        let file = match name {
            "" => format!("volume{}", request.volume),
            name => name.to_owned(),
        };
        let action = match request.op {
            Op::Read => "read",
            Op::Write => "write",
            Op::Trim => "trim",
            Op::Flush => "sync",
            Op::Zone(_) => return Ok(false),
        };
        self.open(out, us, request.volume, &file)?;
        if request.op == Op::Flush {
            writeln!(out, "{us} {file} {action} 0 0")?;
            return Ok(true);
        }
        let offset = u128::from(request.lba.0) * u128::from(SECTOR_BYTES);
        writeln!(out, "{us} {file} {action} {offset} {}", request.bytes())?;
        Ok(true)
    }
}

pub(super) const ENTRY: WriterEntry = WriterEntry {
    description: Description {
        name: "fio",
        summary: "fio iolog version 3, one file for each volume.",
        origin: "fio HOWTO, trace file format v3",
        params: &[],
    },
    extension: "log",
    loses: &["zone management", "flags", "times finer than 1 us", "response times"],
    create: |out, _| {
        Ok(Box::new(TextWriter::create(out, "fio version 3 iolog\n", Fio::default())?))
    },
};
