//! Event text of WiscSee's preprocessor:
//! `pid event op offset size time pre_wait sync`.

use super::FormatEntry;
use super::lines::{Blanks, LineError, LineParser, ParsedLine, text_format};
use super::normalise::RawRequest;
use hybridsim_config::registry::Description;
use hybridsim_engine::{Flags, Op};

pub(super) const ENTRY: FormatEntry = text_format::<Events>(
    Description {
        name: "events",
        summary: "Event text: pid, D or C, read, write or discard, offset and size in bytes, time \
                  in seconds, wait before, sync. D events are requests, C events completions.",
        origin: "WiscSee (He et al., EuroSys 2017), reduced blktrace output",
        params: &[],
    },
    b"700 D read 290816 4096 0.000000000 0 False\n\
        0 C read 290816 4096 0.000120000 0.00012 False\n\
        700 D write 331776 4096 0.000190000 7.0e-05 True\n",
);

#[derive(Default)]
struct Events;

impl LineParser for Events {
    #[inline]
    fn parse(&mut self, line: &[u8]) -> Result<ParsedLine, LineError> {
        let mut fields = Blanks::new(line);
        fields.whole("the pid")?;
        let done = match fields.text() {
            b"D" => false,
            b"C" => true,
            _ => return Err(LineError::new("the event", "is neither D nor C")),
        };
        let op = match fields.text() {
            b"read" => Op::Read,
            b"write" => Op::Write,
            b"discard" => Op::Trim,
            b"flush" => Op::Flush,
            _ => return Err(LineError::new("the op", "is none of read, write, discard, flush")),
        };
        let offset = fields.whole("the offset")?;
        let size = fields.whole("the size")?;
        let time_ns = fields.scaled("the time", 9)?;
        fields.scaled("the wait", 9)?;
        let flags = match fields.text() {
            b"True" => Flags::SYNC,
            b"False" => Flags::NONE,
            _ => return Err(LineError::new("the sync column", "is neither True nor False")),
        };
        fields.end()?;
        let raw = RawRequest::bytes(time_ns, 0, op, offset, size).with_flags(flags);
        Ok(ParsedLine::Request(if done { raw.as_completion() } else { raw }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::lines::check_line;

    #[test]
    fn lines() {
        let check = |line, expect: &str| check_line(&mut Events, line, expect);
        check("3 D read 1024 4096 0.5 0 False", "500000000 ns, volume 0: read 2+8");
        check("3 D write 1024 512 0.5 7.0e-05 True", "500000000 ns, volume 0: write 2+1 flags 1");
        check("3 D discard 1024 512 0.5 0 False", "500000000 ns, volume 0: trim 2+1");
        check("0 C read 1024 4096 0.5 0 False", "500000000 ns, volume 0: read 2+8 done");
        check("3 Q read 1024 4096 0.5 0 False", "the event is neither D nor C");
        check("3 D erase 1024 4096 0.5 0 False", "the op is none of read, write, discard, flush");
        check("3 D read 1024 4096 0.5 0", "the sync column is neither True nor False");
    }
}
