//! The log of a replay on a real device: `time,latency,op,size,offset,submit,done`.

use super::FormatEntry;
use super::lines::{Commas, LineError, LineParser, ParsedLine, text_format};
use super::normalise::RawRequest;
use hybridsim_config::registry::Description;

pub(super) const ENTRY: FormatEntry = text_format::<ReplayLog>(
    Description {
        name: "replay-log",
        summary: "Replay log CSV: planned time in ms, measured latency in us, 1 read or 0 write, \
                  size and offset in bytes, time of submission in ms, bytes returned.",
        origin: "replays of cloud traces on an NVMe SSD (the FlashNet collection)",
        params: &[],
    },
    b"0.000,110,1,4096,49152,0.090,4096\n0.500,140,0,512,512,0.590,512\n\
        14000.000,2200,1,69632,28672,14005.250,69632\n",
);

#[derive(Default)]
struct ReplayLog;

impl LineParser for ReplayLog {
    #[inline]
    fn parse(&mut self, line: &[u8]) -> Result<ParsedLine, LineError> {
        let mut fields = Commas::new(line);
        let time_ns = fields.scaled("the time", 6)?;
        let response_ns = fields.scaled("the latency", 3)?;
        let op = fields.one_is_read("the op")?;
        let size = fields.whole("the size")?;
        let offset = fields.whole("the offset")?;
        fields.scaled("the time of submission", 6)?;
        fields.whole("the bytes returned")?;
        fields.end()?;
        Ok(ParsedLine::Request(
            RawRequest::bytes(time_ns, 0, op, offset, size).with_response(response_ns),
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::lines::check_line;

    #[test]
    fn lines() {
        let check = |line, expect: &str| check_line(&mut ReplayLog, line, expect);
        check("1.5,120,1,4096,1024,1.6,4096", "1500000 ns, volume 0: read 2+8 in 120000");
        check("1.5,120,0,4096,1024,1.6,4096", "1500000 ns, volume 0: write 2+8 in 120000");
        check("1.5,120,0,4096,1024,1.6", "the bytes returned is missing");
        check("1.5,-120,0,4096,1024,1.6,1", "the latency is negative");
    }
}
