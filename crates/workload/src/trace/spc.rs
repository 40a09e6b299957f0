//! SPC text, as the UMass Trace Repository publishes it: `ASU,LBA,size,opcode,time`.

use super::FormatEntry;
use super::lines::{Commas, LineError, LineParser, ParsedLine, text_format};
use super::normalise::RawRequest;
use hybridsim_config::registry::Description;
use hybridsim_engine::{Op, SECTOR_BYTES};

pub(super) const ENTRY: FormatEntry = text_format::<Spc>(
    Description {
        name: "spc",
        summary: "SPC text: ASU, LBA in sectors, size in bytes, r or w, time in seconds.",
        origin: "Storage Performance Council trace file format 1.0.1; UMass Trace Repository",
        params: &[],
    },
    b"0,4000,3584,w,0.000000\n1,90,3072,R,0.030000\n0,4007,3584,w,0.030000\n",
);

#[derive(Default)]
struct Spc;

impl LineParser for Spc {
    #[inline]
    fn parse(&mut self, line: &[u8]) -> Result<ParsedLine, LineError> {
        let mut fields = Commas::new(line);
        let unit = fields.whole("the ASU")?;
        let start = fields.whole("the LBA")?;
        let length = fields.whole("the size")?;
        let op: Op = fields.read_or_write("the opcode")?;
        let time_ns = fields.scaled("the time", 9)?;
        // Further fields are optional and free (SPC trace file format, section 4).
        let sectors = length.div_ceil(SECTOR_BYTES);
        let mut raw = RawRequest::sectors(time_ns, unit, op, start, sectors);
        raw.rounded = !length.is_multiple_of(SECTOR_BYTES);
        Ok(ParsedLine::Request(raw))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::lines::check_line;

    #[test]
    fn lines() {
        let check = |line, expect: &str| check_line(&mut Spc, line, expect);
        check("0,4000,3584,w,0.000000", "0 ns, volume 0: write 4000+7");
        check("4, 700 ,512,R,28.5,x", "28500000000 ns, volume 4: read 700+1");
        check("4,700,513,r,28", "28000000000 ns, volume 4: read 700+2 widened");
        check("4,700,513,x,28", "the opcode is neither read nor write");
        check("4,700,513,w", "the time is missing");
        check("4,-1,513,w,0", "the LBA is negative");
        check("4,1,513,w,NaN", "the time is not a number");
    }
}
