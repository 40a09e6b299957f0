//! The CSV of `trace convert`, with a header line and all fields of a record.

use super::lines::{Commas, LineError, LineParser, ParsedLine, open_lines};
use super::normalise::RawRequest;
use super::number::{self, NumberError};
use super::{Confidence, FormatEntry};
use hybridsim_config::registry::Description;
use hybridsim_engine::{Flags, Op};

/// The header line, by which the format is detected.
pub(crate) const HEADER: &str = "time_ns,op,volume,lba,sectors,flags,response_ns";

pub(super) const ENTRY: FormatEntry = FormatEntry {
    description: Description {
        name: "csv",
        summary: "CSV with a header line: time_ns, op, volume, lba, sectors, flags, response_ns.",
        origin: "docs/reference/traces.md",
        params: &[],
    },
    sniff: |head| match head.bytes.starts_with(HEADER.as_bytes()) {
        true => Confidence::Certain,
        false => Confidence::No,
    },
    open: |input| open_lines(input, Csv),
    same_as: &[],
    sample: b"time_ns,op,volume,lba,sectors,flags,response_ns\n0,read,0,2048,8,1,180000\n\
        15000,write,1,4096,16,0,\n15500,trim,0,8192,2048,0,\n20000,flush,0,0,0,0,90000\n",
};

/// The error of a word that names no operation.
const OPERATIONS: &str = "is none of read, write, trim, flush, zone_reset, zone_finish, \
                          zone_open, zone_close and zone_commit";

struct Csv;

impl LineParser for Csv {
    #[inline]
    fn parse(&mut self, line: &[u8]) -> Result<ParsedLine, LineError> {
        if line.starts_with(HEADER.as_bytes()) {
            return Ok(ParsedLine::NoRequest);
        }
        let mut fields = Commas::new(line);
        let time_ns = fields.whole("the time")?;
        let word = fields.text();
        let op = std::str::from_utf8(word).ok().and_then(Op::from_name);
        let op = op.ok_or(LineError::new("the operation", OPERATIONS))?;
        let volume = fields.whole("the volume")?;
        let start = fields.whole("the lba")?;
        let sectors = fields.whole("the sectors")?;
        let flags = u16::try_from(fields.whole("the flags")?)
            .map_err(|_| LineError::number("the flags", NumberError::TooLarge))?;
        let raw = RawRequest::sectors(time_ns, volume, op, start, sectors).with_flags(Flags(flags));
        let response_ns = match fields.text() {
            b"" => RawRequest::NO_RESPONSE,
            text => number::whole(text).map_err(|e| LineError::number("the response", e))?,
        };
        fields.end()?;
        Ok(ParsedLine::Request(raw.with_response(response_ns)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::lines::check_line;

    #[test]
    fn lines() {
        let check = |line, expect: &str| check_line(&mut Csv, line, expect);
        check(HEADER, "no request");
        check("5,read,2,1024,8,0,77", "5 ns, volume 2: read 1024+8 in 77");
        check("5,write,2,1024,8,0,", "5 ns, volume 2: write 1024+8");
        check("5,walk,2,1024,8,0,", &format!("the operation {OPERATIONS}"));
        check("5,zone_reset,2,1024,512,0,", "5 ns, volume 2: zone_reset 1024+512");
        check("5,write,2,1024,8,513,", "5 ns, volume 2: write 1024+8 flags 513");
        check("5,read,2,1024,8,65536,", "the flags is too large");
        check("5,read,2,1024,8,0,1,1", "the line has more columns than this format");
    }
}
