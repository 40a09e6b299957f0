//! MSR Cambridge CSV: `Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime`.

use super::FormatEntry;
use super::lines::{Commas, LineError, LineParser, ParsedLine, text_format};
use super::names::NameTable;
use super::normalise::RawRequest;
use super::number::NumberError;
use hybridsim_config::registry::Description;

pub(super) const ENTRY: FormatEntry = text_format::<Msr>(
    Description {
        name: "msr",
        summary: "MSR Cambridge CSV: Windows file time, host, disk, Read or Write, offset and size \
                  in bytes, response time in 100 ns.",
        origin: "MSR Cambridge traces (Narayanan et al., FAST 2008), SNIA IOTTA",
        params: &[],
    },
    b"128166000000000000,src,0,Write,8192,2048,2500\n\
        128166000000000700,src,0,Write,1048576,512,2000\n\
        128166000012000000,src,1,Read,65536,4096,3000\n",
);

#[derive(Default)]
struct Msr {
    hosts: NameTable,
}

/// Windows file time is in units of 100 ns.
fn ticks(value: u64, column: &'static str) -> Result<u64, LineError> {
    value.checked_mul(100).ok_or(LineError::number(column, NumberError::TooLarge))
}

impl LineParser for Msr {
    #[inline]
    fn parse(&mut self, line: &[u8]) -> Result<ParsedLine, LineError> {
        let mut fields = Commas::new(line);
        let time_ns = ticks(fields.whole("the timestamp")?, "the timestamp")?;
        let host = self.hosts.number("the host", fields.text())?;
        let disk = fields.whole("the disk number")?;
        if disk > u64::from(u32::MAX) {
            return Err(LineError::number("the disk number", NumberError::TooLarge));
        }
        let op = fields.read_or_write("the type")?;
        let offset = fields.whole("the offset")?;
        let size = fields.whole("the size")?;
        let response_ns = ticks(fields.whole("the response time")?, "the response time")?;
        fields.end()?;
        let volume = host << 32 | disk;
        Ok(ParsedLine::Request(
            RawRequest::bytes(time_ns, volume, op, offset, size).with_response(response_ns),
        ))
    }

    fn label(&self, volume: u64) -> String {
        format!("{}_{}", self.hosts.name(volume >> 32), volume & u64::from(u32::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::lines::check_line;

    #[test]
    fn lines() {
        let mut msr = Msr::default();
        let mut check = |line, expect: &str| check_line(&mut msr, line, expect);
        check("5,hm,0,Write,1024,2048,2833", "500 ns, volume hm_0: write 2+4 in 283300");
        check("6,src1,7,Read,1024,512,0", "600 ns, volume src1_7: read 2+1 in 0");
        check("6,src1,7,Read,1024,512", "the response time is missing");
        check("6,src1,7,Read,1024,512,1,1", "the line has more columns than this format");
        check("999999999999999999,a,0,Read,0,512,1", "the timestamp is too large");
        check("6,src1,7777777777,Read,1024,512,1", "the disk number is too large");
    }
}
