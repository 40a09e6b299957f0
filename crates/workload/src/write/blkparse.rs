//! The text blkparse prints, D (issue) events only.

use super::WriterEntry;
use super::text::{RecordFormatter, TextWriter};
use crate::record::Record;
use hybridsim_config::registry::Description;
use hybridsim_engine::{Flags, Op};
use std::io::{self, Write};

#[derive(Default)]
struct BlkParse {
    sequence: u64,
}

/// The RWBS column; `None` for zone management, which the kernel traces without letters.
fn letters(op: Op, flags: Flags) -> Option<String> {
    let mut text = match op {
        Op::Read => "R",
        Op::Write => "W",
        Op::Trim => "D",
        Op::Flush => "FN",
        Op::Zone(_) => return None,
    }
    .to_owned();
    for (flag, letter) in
        [(Flags::FUA, 'F'), (Flags::AHEAD, 'A'), (Flags::SYNC, 'S'), (Flags::META, 'M')]
    {
        if op != Op::Flush && flags.contains(flag) {
            text.push(letter);
        }
    }
    Some(text)
}

/// The device number in a name such as `8,16`, as the blkparse reader names volumes.
fn device(name: &str, volume: u16) -> String {
    // Commas in names were replaced by `_`.
    let numbers = name.split_once('_').map(|(major, minor)| (major.parse(), minor.parse()));
    match numbers {
        Some((Ok::<u32, _>(major), Ok::<u32, _>(minor))) => format!("{major},{minor}"),
        _ => format!("8,{}", u32::from(volume) * 16),
    }
}

impl RecordFormatter for BlkParse {
    fn format(&mut self, out: &mut dyn Write, record: &Record, name: &str) -> io::Result<bool> {
        let request = &record.request;
        let ns = record.at.as_ns();
        let (s, rest) = (ns / 1_000_000_000, ns % 1_000_000_000);
        let Some(letters) = letters(request.op, request.flags) else { return Ok(false) };
        self.sequence += 1;
        let device = device(name, request.volume);
        write!(out, "{device:>6}  0 {:>8} {s:>5}.{rest:09}  1  D {letters:>3} ", self.sequence)?;
        if request.op == Op::Flush {
            writeln!(out, "[trace]")?;
        } else {
            writeln!(out, "{} + {} [trace]", request.lba, request.sectors)?;
        }
        Ok(true)
    }
}

pub(super) const ENTRY: WriterEntry = WriterEntry {
    description: Description {
        name: "blkparse",
        summary: "blkparse default text, D (issue) events.",
        origin: "blkparse(1)",
        params: &[],
    },
    extension: "txt",
    loses: &[
        "response times",
        "zone management",
        "the pin, append and background flags",
        "placement handles",
        "flags of flushes",
        "names of \
              volumes that are no device numbers",
    ],
    create: |out, _| Ok(Box::new(TextWriter::create(out, "", BlkParse::default())?)),
};
