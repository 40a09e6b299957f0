//! Disk events of Event Tracing for Windows, as `xperf -a dumper` prints them:
//! `DiskRead, TimeStamp, Process Name ( PID), ThreadID, IrpPtr, ByteOffset, IOSize, ElapsedTime,
//! DiskNum, ...`.
//!
//! Events of requests have the time from initiation to completion (`DiskIo_TypeGroup1` and
//! `DiskIo_TypeGroup3` in Microsoft's reference of Event Tracing for Windows) and are logged at
//! completions, so a request arrives its elapsed time earlier. The reference does not state the
//! unit of printed times; public readers of the Exchange server traces take microseconds.

use super::clock::arrival_ns;
use super::lines::{
    Commas, LineError, LineParser, ParsedLine, head_lines, open_lines, sniff_lines,
};
use super::normalise::RawRequest;
use super::number;
use super::{Confidence, FileHead, FormatEntry};
use hybridsim_config::registry::Description;
use hybridsim_engine::Op;

pub(super) const ENTRY: FormatEntry = FormatEntry {
    description: Description {
        name: "xperf",
        summary: "Disk events of Windows as xperf -a dumper prints them: DiskRead, DiskWrite and \
                  DiskFlush with completion and elapsed time in us, byte offset, size, disk.",
        origin: "Event Tracing for Windows, xperf; Exchange server traces of SNIA IOTTA",
        params: &[],
    },
    sniff,
    open: |input| open_lines(input, Xperf),
    same_as: &[],
    sample: b"BeginHeader\n\
        \x20 DiskRead,  TimeStamp,  Process Name ( PID),  ThreadID,  IrpPtr,  ByteOffset,  IOSize, \
        ElapsedTime,  DiskNum, IrpFlags, DiskSvcTime, I/O Pri,  VolSnap,  FileObject, FileName\n\
        EndHeader\n\
        \x20 DiskReadInit,  1000,  mail.exe ( 812),  4001,  0xfa80010\n\
        \x20 DiskRead,  1750,  mail.exe ( 812),  4001,  0xfa80010,  0x100000,  0x2000,  750,  0, \
        0x60043,  700, Normal, Original, 0xf8a0, \"C:\\mail.edb\"\n\
        \x20 DiskWrite,  2900,  System ( 4),  77,  0xfa80020,  0x40000000,  0x1000,  400,  1, \
        0x60043,  390, Normal, Original, 0xf8a1, \"C:\\Log\"\n\
        \x20 DiskFlush,  3000,  System ( 4),  77,  0xfa80030,  90,  1, 0x60043,  90, Normal\n",
};

/// The line with which a dump begins.
const BEGIN: &[u8] = b"BeginHeader";

fn sniff(head: &FileHead<'_>) -> Confidence {
    // The header, a line for each kind of event, may be longer than the head.
    match head_lines(head).next() {
        Some((line, _)) if line.trim_ascii() == BEGIN => Confidence::Certain,
        _ => sniff_lines(head, &mut Xperf, Confidence::Certain),
    }
}

struct Xperf;

impl LineParser for Xperf {
    fn parse(&mut self, line: &[u8]) -> Result<ParsedLine, LineError> {
        let mut fields = Commas::new(line);
        let op = match fields.text() {
            b"DiskRead" => Op::Read,
            b"DiskWrite" => Op::Write,
            b"DiskFlush" => Op::Flush,
            _ => return Ok(ParsedLine::NoRequest),
        };
        let time = fields.text();
        if time == b"TimeStamp" {
            return Ok(ParsedLine::NoRequest);
        }
        let done_ns =
            number::scaled(time, 3).map_err(|error| LineError::number("the time", error))?;
        // Names of processes may contain commas; their numbers end them.
        loop {
            match fields.text() {
                b"" => return Err(LineError::new("the process with its number", "is missing")),
                text if ends_with_number(text) => break,
                _ => {}
            }
        }
        fields.text_at(1);
        let mut range = (0, 0);
        if op != Op::Flush {
            let mut number = |column| {
                number::whole_or_hexadecimal(fields.text())
                    .map_err(|error| LineError::number(column, error))
            };
            range = (number("the byte offset")?, number("the size")?);
        }
        let latency_ns = fields.scaled("the elapsed time", 3)?;
        let disk = fields.whole("the disk")?;
        let time_ns = arrival_ns(done_ns, latency_ns);
        let raw = RawRequest::bytes(time_ns, disk, op, range.0, range.1);
        Ok(ParsedLine::Request(raw.with_response(latency_ns)))
    }
}

/// Whether a field ends with a number in brackets, as a process does.
fn ends_with_number(text: &[u8]) -> bool {
    let inner = text.strip_suffix(b")").and_then(|text| text.rsplit(|byte| *byte == b'(').next());
    inner.is_some_and(|number| number::whole(number.trim_ascii()).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::lines::check_line;

    #[test]
    fn lines() {
        let check = |line, expect: &str| check_line(&mut Xperf, line, expect);
        check(
            " DiskRead,  5000, a.exe (  12),  8, 0xff, 0x1000, 0x0200,  2000,  3, 0x43, 9, Normal",
            "1000003000000 ns, volume 3: read 8+1 in 2000000",
        );
        check(
            "DiskWrite, 5000.5, a (x86), b.exe ( 12), 8, 0xff, 4096, 512, 2000, 3",
            "1000003000500 ns, volume 3: write 8+1 in 2000000",
        );
        check(
            "DiskFlush, 5000, a.exe ( 12), 8, 0xff, 2000, 3, 0x43",
            "1000003000000 ns, volume 3: flush 0+0 in 2000000",
        );
        check("DiskReadInit, 5000, a.exe ( 12), 8, 0xff", "no request");
        check("DiskRead, TimeStamp, Process Name ( PID), ThreadID", "no request");
        check("CSwitch, 5000, a.exe ( 12), 8", "no request");
        check("OS Version: 6.0.6001, Trace Size: 9KB", "no request");
        check("DiskRead, -1, a.exe ( 12), 8, 0xff, 0x1000, 0x200, 1, 3", "the time is negative");
        check("DiskRead, 5, a.exe", "the process with its number is missing");
        check(
            "DiskRead, 5, a.exe ( 12), 8, 0xff, 0x1g, 0x200, 1, 3",
            "the byte offset is not a number",
        );
        check("DiskRead, 5, a.exe ( 12), 8, 0xff, 0x1000", "the size is missing");
        check("DiskRead, 5, a.exe ( 12), 8, 0xff, 0, 0x200, 1", "the disk is missing");
    }

    #[test]
    fn a_dump_is_known_by_its_header_or_its_events() {
        let sniff = |text: &str| sniff(&FileHead { bytes: text.as_bytes(), whole: true });
        assert_eq!(sniff("BeginHeader\n   DbgId, TimeStamp\n"), Confidence::Certain);
        let read = "DiskRead, 5, a.exe ( 12), 8, 0xff, 0x1000, 0x200, 1, 0\n";
        assert_eq!(sniff(read), Confidence::Certain);
        assert_eq!(sniff("DiskReadInit, 5, a.exe ( 12), 8, 0xff\n"), Confidence::No);
    }
}
