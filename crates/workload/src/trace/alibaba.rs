//! Alibaba block trace CSV: `device_id,opcode,offset,length,timestamp`.

use super::FormatEntry;
use super::lines::{Commas, LineError, LineParser, ParsedLine, text_format};
use super::normalise::RawRequest;
use hybridsim_config::registry::Description;

pub(super) const ENTRY: FormatEntry = text_format::<Alibaba>(
    Description {
        name: "alibaba",
        summary: "Alibaba cloud block CSV: device, R or W, offset and length in bytes, time in us.",
        origin: "Alibaba block traces (Li et al., IISWC 2020)",
        params: &[],
    },
    b"41,W,81920,16384,1577800000000100\n72,R,5242880,360448,1577800000000200\n\
        12,R,12288,8192,1577800000000300\n",
);

#[derive(Default)]
struct Alibaba;

impl LineParser for Alibaba {
    #[inline]
    fn parse(&mut self, line: &[u8]) -> Result<ParsedLine, LineError> {
        let mut fields = Commas::new(line);
        let device = fields.whole("the device")?;
        let op = fields.read_or_write("the opcode")?;
        let offset = fields.whole("the offset")?;
        let length = fields.whole("the length")?;
        let time_ns = fields.scaled("the timestamp", 3)?;
        fields.end()?;
        Ok(ParsedLine::Request(RawRequest::bytes(time_ns, device, op, offset, length)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::lines::check_line;

    #[test]
    fn lines() {
        let check = |line, expect: &str| check_line(&mut Alibaba, line, expect);
        check(
            "419,W,8192,16384,1577800000000100",
            "1577800000000100000 ns, volume 419: write 16+32",
        );
        check("419,R,8192,100,5", "5000 ns, volume 419: read 16+1 widened");
        check("419,Q,8192,100,5", "the opcode is neither read nor write");
        check("419,R,8192,100,", "the timestamp is missing");
    }
}
