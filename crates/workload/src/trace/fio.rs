//! fio's iologs, versions 1 to 3.
//!
//! Version 1 is `rw, offset, length` without times. Version 2 has file actions, and times only as
//! `wait` lines; in version 3 every line starts with the time since the start in microseconds.

use super::lines::{Blanks, Commas, LineError, LineParser, ParsedLine, open_lines, sniff_lines};
use super::names::NameTable;
use super::normalise::RawRequest;
use super::{Confidence, FileHead, FormatEntry};
use hybridsim_config::registry::Description;
use hybridsim_engine::Op;

pub(super) const ENTRY: FormatEntry = FormatEntry {
    description: Description {
        name: "fio",
        summary: "fio iolog, version 1, 2 (times only from wait lines) or 3; one volume per file.",
        origin: "fio HOWTO, trace file format v1, v2, v3",
        params: &[],
    },
    sniff,
    open: |mut input| {
        let mut fio = Fio::default();
        let head = input.file.head()?;
        // Version 2 has times if there are waits here; later ones cause a warning.
        fio.times = match head.bytes {
            bytes if bytes.starts_with(b"fio version 3 iolog") => true,
            bytes => memchr::memmem::find(bytes, b" wait ").is_some(),
        };
        open_lines(input, fio)
    },
    same_as: &[],
    sample: b"fio version 3 iolog\n5 /dev/sda add\n7 /dev/sda open\n9 /dev/sda write 8192 4096\n\
        15 /dev/sdb read 4096 512\n20 /dev/sda sync 0 0\n31 /dev/sda trim 0 65536\n\
        40 /dev/sda close\n",
};

fn sniff(head: &FileHead<'_>) -> Confidence {
    if head.bytes.starts_with(b"fio version ") {
        return Confidence::Certain;
    }
    sniff_lines(head, &mut Fio::default(), Confidence::Likely)
}

const LATE_WAIT: &str = "wait lines, but none in the first 64 KiB; read as a trace without times";

#[derive(Default)]
struct Fio {
    version: u8,
    times: bool,
    waited_ns: u64,
    files: NameTable,
}

impl Fio {
    fn header(&mut self, line: &[u8]) -> Result<ParsedLine, LineError> {
        self.version = match line.trim_ascii_end() {
            b"fio version 2 iolog" => 2,
            b"fio version 3 iolog" => 3,
            _ => return Err(LineError::new("the iolog version", "is not 2 or 3")),
        };
        Ok(ParsedLine::NoRequest)
    }

    fn version_1(line: &[u8]) -> Result<ParsedLine, LineError> {
        let mut fields = Commas::new(line);
        let op = match fields.text() {
            b"0" => Op::Read,
            b"1" => Op::Write,
            b"2" => Op::Flush,
            _ => return Err(LineError::new("the direction", "is not 0, 1 or 2")),
        };
        let offset = fields.whole("the offset")?;
        let length = fields.whole("the length")?;
        fields.end()?;
        Ok(ParsedLine::Request(RawRequest::bytes(0, 0, op, offset, length)))
    }
}

impl LineParser for Fio {
    #[inline]
    fn parse(&mut self, line: &[u8]) -> Result<ParsedLine, LineError> {
        if line.starts_with(b"fio version ") {
            return self.header(line);
        }
        if self.version == 0 {
            return Self::version_1(line);
        }
        let mut fields = Blanks::new(line);
        let time_ns = match self.version {
            3 => fields.scaled("the time", 3)?,
            _ => self.waited_ns,
        };
        let file = fields.text();
        let op = match fields.text() {
            b"add" | b"open" | b"close" => return Ok(ParsedLine::NoRequest),
            b"read" => Op::Read,
            b"write" => Op::Write,
            b"trim" => Op::Trim,
            b"sync" | b"datasync" => Op::Flush,
            b"wait" if self.version == 2 => {
                let waited_ns = fields.scaled("the time to wait", 3)?;
                self.waited_ns = self.waited_ns.saturating_add(waited_ns);
                return Ok(if self.times {
                    ParsedLine::NoRequest
                } else {
                    ParsedLine::Skipped(LATE_WAIT)
                });
            }
            _ => return Err(LineError::new("the action", "is not one of fio's")),
        };
        let offset = fields.whole("the offset")?;
        let length = fields.whole("the length")?;
        fields.end()?;
        let volume = self.files.number("the file", file)?;
        let length = if op == Op::Flush { 0 } else { length };
        Ok(ParsedLine::Request(RawRequest::bytes(time_ns, volume, op, offset, length)))
    }

    fn label(&self, volume: u64) -> String {
        self.files.name(volume)
    }

    fn has_times(&self) -> bool {
        self.times
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::lines::check_line;

    #[test]
    fn version_1() {
        let check = |line, expect: &str| check_line(&mut Fio::default(), line, expect);
        check("0, 1024, 4096", "0 ns, volume : read 2+8");
        check("1,1024,512", "0 ns, volume : write 2+1");
        check("3,1024,512", "the direction is not 0, 1 or 2");
    }

    #[test]
    fn version_2() {
        let mut fio = Fio { times: true, ..Fio::default() };
        let mut check = |line, expect: &str| check_line(&mut fio, line, expect);
        check("fio version 2 iolog", "no request");
        check("/dev/sda add", "no request");
        check("/dev/sda write 8192 4096", "0 ns, volume /dev/sda: write 16+8");
        check("/dev/sda wait 500 0", "no request");
        check("b trim 8192 4096", "500000 ns, volume b: trim 16+8");
        check("b wait 500 0", "no request");
        check("b datasync 0 0", "1000000 ns, volume b: flush 0+0");
        check("b explode 0 0", "the action is not one of fio's");
        check("b read 0", "the length is missing");
    }

    #[test]
    fn version_3() {
        let mut fio = Fio::default();
        let mut check = |line, expect: &str| check_line(&mut fio, line, expect);
        check("fio version 4 iolog", "the iolog version is not 2 or 3");
        check("fio version 3 iolog", "no request");
        check("5 a open", "no request");
        check("15 a read 512 512", "15000 ns, volume a: read 1+1");
        check("15 a wait 512 512", "the action is not one of fio's");
        check("-1 a read 512 512", "the time is negative");
    }
}
