//! Tencent cloud block storage CSV: `Timestamp,Offset,Size,IOType,VolumeID`.

use super::FormatEntry;
use super::lines::{Commas, LineError, LineParser, ParsedLine, text_format};
use super::normalise::RawRequest;
use hybridsim_config::registry::Description;
use hybridsim_engine::Op;

pub(super) const ENTRY: FormatEntry = text_format::<Tencent>(
    Description {
        name: "tencent",
        summary: "Tencent CBS CSV: time in whole seconds (not sorted), offset and size in sectors, \
                  0 read or 1 write, volume.",
        origin: "Tencent block storage traces (Zhang et al., ATC 2020), SNIA IOTTA",
        params: &[],
    },
    b"1538000001,42400,128,1,1058\n1538000000,13800,128,0,1063\n\
        1538000000,49400,16,0,1063\n",
);

#[derive(Default)]
struct Tencent;

impl LineParser for Tencent {
    #[inline]
    fn parse(&mut self, line: &[u8]) -> Result<ParsedLine, LineError> {
        let mut fields = Commas::new(line);
        let time_ns = fields.scaled("the timestamp", 9)?;
        let start = fields.whole("the offset")?;
        let sectors = fields.whole("the size")?;
        let op = match fields.text() {
            b"0" => Op::Read,
            b"1" => Op::Write,
            _ => return Err(LineError::new("the type", "is neither 0 (read) nor 1 (write)")),
        };
        let volume = fields.whole("the volume")?;
        fields.end()?;
        Ok(ParsedLine::Request(RawRequest::sectors(time_ns, volume, op, start, sectors)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::lines::check_line;

    #[test]
    fn lines() {
        let check = |line, expect: &str| check_line(&mut Tencent, line, expect);
        check("15,42400,128,1,1058", "15000000000 ns, volume 1058: write 42400+128");
        check("15,42400,128,0,70000", "15000000000 ns, volume 70000: read 42400+128");
        check("15,42400,128,2,70000", "the type is neither 0 (read) nor 1 (write)");
        check("15,42400,128,0", "the volume is missing");
        check("99999999999999,1,1,0,0", "the timestamp is too large");
    }
}
