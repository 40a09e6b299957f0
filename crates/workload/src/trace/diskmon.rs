//! DiskMon logs: `number time duration disk request sector length`.

use super::FormatEntry;
use super::lines::{Blanks, LineError, LineParser, ParsedLine, text_format};
use super::normalise::RawRequest;
use hybridsim_config::registry::Description;

pub(super) const ENTRY: FormatEntry = text_format::<DiskMon>(
    Description {
        name: "diskmon",
        summary: "DiskMon log: number, time and duration in seconds, disk, Read or Write, first \
                  sector, sectors.",
        origin: "Sysinternals DiskMon, saved logs",
        params: &[],
    },
    b"0\t0.015625\t0.00038\t0\tWrite\t3200\t8\r\n\
        1\t0.53125\t0\t0\tRead\t1080\t8\r\n2\t11719.5\t0.0042\t1\tRead\t5\t32\r\n",
);

#[derive(Default)]
struct DiskMon;

impl LineParser for DiskMon {
    #[inline]
    fn parse(&mut self, line: &[u8]) -> Result<ParsedLine, LineError> {
        let mut fields = Blanks::new(line);
        fields.whole("the number")?;
        let time_ns = fields.scaled("the time", 9)?;
        let response_ns = fields.scaled("the duration", 9)?;
        let disk = fields.whole("the disk")?;
        let op = fields.read_or_write("the request")?;
        let start = fields.whole("the sector")?;
        let sectors = fields.whole("the length")?;
        fields.end()?;
        Ok(ParsedLine::Request(
            RawRequest::sectors(time_ns, disk, op, start, sectors).with_response(response_ns),
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::lines::check_line;

    #[test]
    fn lines() {
        let check = |line, expect: &str| check_line(&mut DiskMon, line, expect);
        check("0\t0.5\t0.25\t1\tWrite\t7\t8", "500000000 ns, volume 1: write 7+8 in 250000000");
        check("0\t0.5\t2.5e-05\t1\tRead\t7\t8", "500000000 ns, volume 1: read 7+8 in 25000");
        check("0\t0.5\t0.25\t1\tVerify\t7\t8", "the request is neither read nor write");
        check("0\t0.5\t0.25\t1\tRead\t7", "the length is missing");
    }
}
