//! The text blkparse prints by default:
//! `major,minor cpu sequence time pid action RWBS sector + sectors [process]`.

use super::lines::{Blanks, LineError, LineParser, ParsedLine, head_lines, open_lines};
use super::normalise::RawRequest;
use super::number::{self, NumberError};
use super::{Confidence, FileHead, FormatEntry};
use crate::block_events::{BlockEvent, BlockEvents, Parameters};
use hybridsim_config::registry::Description;
use hybridsim_engine::{Flags, Op};

pub(super) const ENTRY: FormatEntry = FormatEntry {
    description: Description {
        name: "blkparse",
        summary: "blkparse default text; discards are trims; other events and the closing summary \
                  are ignored.",
        origin: "blkparse(1)",
        params: Parameters::PARAMS,
    },
    sniff,
    open: |mut input| {
        let choice = Parameters::from_settings(&input.settings).event;
        let head = input.file.head()?;
        let events = BlockEvents::new(choice, |event| has_event(&head, event));
        open_lines(input, BlkParse { events })
    },
    same_as: &[],
    sample: b"  8,33   4        1     0.000000000  39  D   N 0 (00 ..) [kworker/u65:0]\n\
        \x20 8,33  30        1     0.001300000  50  D   R 5400 + 8 [systemd-udevd]\n\
        \x20 8,33  30        1     0.001500000  50  C   R 5400 + 8 [0]\n\
        \x20 8,33  30        2     0.001600000  50  D  DS 5408 + 8 [fstrim]\n\
        \x20 8,33  30        3     0.001620000  50  D  WFS 1600 + 8 [jbd2]\n\
        \x20 8,33  30        4     0.001700000  50  D  FN [jbd2]\n\
        CPU0 (8,33):\n Reads Queued:           0,        0KiB\nEvents (8,33): 7 entries\n",
};

/// Whether `head` has a line with this event.
fn has_event(head: &FileHead<'_>, event: BlockEvent) -> bool {
    head_lines(head).any(|(line, _)| {
        let mut fields = Blanks::new(line);
        device(fields.text()).is_some() && action(fields.text_at(4)) == Some(event)
    })
}

/// The event that an action is of, if it is one of these.
#[inline]
fn action(text: &[u8]) -> Option<BlockEvent> {
    match text {
        b"Q" => Some(BlockEvent::Queued),
        b"I" => Some(BlockEvent::Inserted),
        b"D" => Some(BlockEvent::Issued),
        b"C" => Some(BlockEvent::Completed),
        _ => None,
    }
}

fn sniff(head: &FileHead<'_>) -> Confidence {
    let (mut events, mut others) = (0, 0);
    for (line, doubtful) in head_lines(head) {
        if is_event(line) {
            events += 1;
        } else {
            others += usize::from(!doubtful && !is_summary(line));
        }
    }
    match (events, others) {
        (0, _) => Confidence::No,
        (_, 0) => Confidence::Certain,
        (events, others) if events > others => Confidence::Possible,
        _ => Confidence::No,
    }
}

/// Device, CPU, sequence, time, pid, action.
fn is_event(line: &[u8]) -> bool {
    let mut fields = Blanks::new(line);
    device(fields.text()).is_some()
        && fields.whole("").is_ok()
        && fields.whole("").is_ok()
        && fields.scaled("", 9).is_ok()
        && fields.whole("").is_ok()
        && fields.text().first().is_some_and(u8::is_ascii_alphabetic)
}

/// Lines of the closing summary start with a letter.
fn is_summary(line: &[u8]) -> bool {
    line.trim_ascii_start().first().is_some_and(u8::is_ascii_alphabetic)
}

#[inline]
pub(super) fn device(text: &[u8]) -> Option<u64> {
    let comma = text.iter().position(|byte| *byte == b',')?;
    let major = u32::try_from(number::whole(&text[..comma]).ok()?).ok()?;
    let minor = u32::try_from(number::whole(&text[comma + 1..]).ok()?).ok()?;
    Some(u64::from(major) << 32 | u64::from(minor))
}

pub(super) fn device_label(volume: u64) -> String {
    format!("{},{}", volume >> 32, volume & u64::from(u32::MAX))
}

pub(super) const NO_DATA: &str = "events without data transfer (commands to the device); left out";
const NO_EVENT: &str = "lines that are not events; left out";

struct BlkParse {
    events: BlockEvents,
}

/// The op (`None` without data transfer) and flags in the letters of the RWBS column.
///
/// The column is `[F]op[F][A][S][M]`: a leading F is a flush before the data, one after the op is
/// force unit access (kernel, `blk_fill_rwbs`). A flush with data also counts as force unit access:
/// both make the write durable.
pub(super) fn letters(text: &[u8]) -> (Option<Op>, Flags) {
    let (flush, rest) = match text {
        [b'F', rest @ ..] => (true, rest),
        rest => (false, rest),
    };
    let op = match rest.first() {
        Some(b'R') => Some(Op::Read),
        Some(b'W') => Some(Op::Write),
        Some(b'D') => Some(Op::Trim),
        Some(b'F') => Some(Op::Flush),
        _ if flush => Some(Op::Flush),
        _ => None,
    };
    let mut flags = if flush { Flags::FUA } else { Flags::NONE };
    for letter in rest.iter().skip(1) {
        flags = flags.with(match letter {
            b'F' => Flags::FUA,
            b'A' => Flags::AHEAD,
            b'S' => Flags::SYNC,
            b'M' => Flags::META,
            _ => Flags::NONE,
        });
    }
    (op, flags)
}

impl LineParser for BlkParse {
    #[inline]
    fn parse(&mut self, line: &[u8]) -> Result<ParsedLine, LineError> {
        let mut fields = Blanks::new(line);
        let Some(volume) = device(fields.text()) else {
            return Ok(if is_summary(line) {
                ParsedLine::NoRequest
            } else {
                ParsedLine::Skipped(NO_EVENT)
            });
        };
        fields.whole("the CPU")?;
        fields.whole("the sequence number")?;
        let time_ns = fields.scaled("the time", 9)?;
        fields.whole("the pid")?;
        let text = fields.text();
        let Some(event) = action(text) else {
            return match text {
                b"" => Err(LineError::number("the action", NumberError::Missing)),
                _ => Ok(ParsedLine::NoRequest),
            };
        };
        let (op, flags) = letters(fields.text());
        if op.is_some() {
            self.events.add(event);
        }
        let done = event == BlockEvent::Completed;
        if event != self.events.arrival && !done {
            return Ok(ParsedLine::NoRequest);
        }
        let sector = fields.text();
        let is_range = fields.text() == b"+";
        if done && (!is_range || op.is_none()) {
            return Ok(ParsedLine::NoRequest);
        }
        let Some(op) = op else { return Ok(ParsedLine::Skipped(NO_DATA)) };
        if !is_range {
            // A flush has no range; a command has its bytes in brackets instead.
            return Ok(match op {
                _ if flags.contains(Flags::FUA) || op == Op::Flush => {
                    ParsedLine::Request(RawRequest::sectors(time_ns, volume, Op::Flush, 0, 0))
                }
                _ if sector.is_empty() => {
                    return Err(LineError::number("the sector", NumberError::Missing));
                }
                _ => ParsedLine::Skipped(NO_DATA),
            });
        }
        let start = number::whole(sector).map_err(|e| LineError::number("the sector", e))?;
        let sectors = fields.whole("the number of sectors")?;
        let op = if sectors == 0 && flags.contains(Flags::FUA) { Op::Flush } else { op };
        let raw = RawRequest::sectors(time_ns, volume, op, start, sectors);
        Ok(ParsedLine::Request(if done { raw.as_completion() } else { raw.with_flags(flags) }))
    }

    fn label(&self, volume: u64) -> String {
        device_label(volume)
    }

    fn block_events(&self) -> Option<BlockEvents> {
        Some(self.events)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block_events::ArrivalEvent;
    use crate::trace::lines::check_line;

    #[test]
    fn lines() {
        let mut parser = BlkParse { events: BlockEvents::new(ArrivalEvent::Issued, |_| false) };
        let mut check = |line: &str, expect: &str| check_line(&mut parser, line, expect);
        check("CPU0 (8,16):", "no request");
        check(" Reads Queued:   0,   0KiB", "no request");
        check("?!", &format!("skipped: {NO_EVENT}"));
        let mut event =
            |tail: &str, expect: &str| check(&format!("  8,16   3   5  1.5 36  {tail}"), expect);
        let request = |what: &str| format!("1500000000 ns, volume 8,16: {what}");
        event("D   R 49 + 256 [java]", &request("read 49+256"));
        event("D  WSM 49 + 8 [java]", &request("write 49+8 flags 3"));
        event("D  WFS 49 + 8 [java]", &request("write 49+8 flags 9"));
        event("D  FWFS 49 + 8 [java]", &request("write 49+8 flags 9"));
        event("D  RA 49 + 8 [java]", &request("read 49+8 flags 4"));
        event("D  DS 49 + 8 [fstrim]", &request("trim 49+8 flags 1"));
        event("D  FN [jbd2]", &request("flush 0+0"));
        event("D  FWS [jbd2]", &request("flush 0+0"));
        event("D  FF [jbd2]", &request("flush 0+0"));
        event("D  FWS 0 + 0 [jbd2]", &request("flush 0+0 flags 9"));
        event("D   N 0 (00 ..) [kworker]", &format!("skipped: {NO_DATA}"));
        event("D   R 36 (12 01 ..) [udevd]", &format!("skipped: {NO_DATA}"));
        event("Q   R 49 + 256 [java]", "no request");
        event("C   R 49 + 256 [0]", &request("read 49+256 done"));
        event("C   N 0 [0]", "no request");
        event("P   N [java]", "no request");
        event("D   R x + 256 [java]", "the sector is not a number");
        event("D   R 49 + -6 [java]", "the number of sectors is negative");
        event("D   R", "the sector is missing");
        event("", "the action is missing");
        let found = parser.events;
        assert_eq!((found.queued, found.issued, found.completed), (1, 14, 1));
    }
}
