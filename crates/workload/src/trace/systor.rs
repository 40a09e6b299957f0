//! SYSTOR '17 CSV: `Timestamp,Response,IOType,LUN,Offset,Size`.

use super::FormatEntry;
use super::lines::{Commas, LineError, LineParser, ParsedLine, text_format};
use super::normalise::RawRequest;
use super::number;
use hybridsim_config::registry::Description;
use hybridsim_engine::Op;

pub(super) const ENTRY: FormatEntry = text_format::<Systor>(
    Description {
        name: "systor17",
        summary: "SYSTOR '17 CSV: time and response in seconds, R or W, LUN, offset and size in \
                  bytes; not sorted.",
        origin: "virtual desktop traces (Lee et al., SYSTOR 2017), SNIA IOTTA",
        params: &[],
    },
    b"Timestamp,Response,IOType,LUN,Offset,Size\n\
        1456000001.250000000,0.000500000,R,0,1048576,131072\n\
        1456000001.125000000,0.008000000,W,3,2097152,122880\n",
);

#[derive(Default)]
struct Systor;

impl LineParser for Systor {
    #[inline]
    fn parse(&mut self, line: &[u8]) -> Result<ParsedLine, LineError> {
        if line.starts_with(b"Timestamp,") {
            return Ok(ParsedLine::NoRequest);
        }
        let mut fields = Commas::new(line);
        let time_ns = fields.scaled("the timestamp", 9)?;
        let response_ns = match fields.text() {
            b"" => RawRequest::NO_RESPONSE,
            text => number::scaled(text, 9).map_err(|e| LineError::number("the response", e))?,
        };
        let op = match fields.text() {
            b"R" => Op::Read,
            b"W" => Op::Write,
            b"" => {
                return Ok(ParsedLine::Skipped(
                    "requests that are neither read nor write; left out",
                ));
            }
            _ => return Err(LineError::new("the type", "is neither R nor W")),
        };
        let lun = fields.whole("the LUN")?;
        let offset = fields.whole("the offset")?;
        let size = fields.whole("the size")?;
        fields.end()?;
        Ok(ParsedLine::Request(
            RawRequest::bytes(time_ns, lun, op, offset, size).with_response(response_ns),
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::lines::check_line;

    #[test]
    fn lines() {
        let check = |line, expect: &str| check_line(&mut Systor, line, expect);
        check("Timestamp,Response,IOType,LUN,Offset,Size", "no request");
        check("5.000000001,0.5,R,2,1024,512", "5000000001 ns, volume 2: read 2+1 in 500000000");
        check("5.000000001,,W,2,1024,512", "5000000001 ns, volume 2: write 2+1");
        check("5,,,2,1024,512", "skipped: requests that are neither read nor write; left out");
        check("5,,X,2,1024,512", "the type is neither R nor W");
        check("5,1,R,2,-8,512", "the offset is negative");
    }
}
