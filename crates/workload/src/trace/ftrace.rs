//! Block events as text of ftrace, `trace-cmd report` and `perf script`:
//! `task-pid [cpu] flags time: block_rq_issue: major,minor RWBS bytes () sector + sectors [task]`.

use super::blkparse::{NO_DATA, device, device_label, letters};
use super::lines::{Blanks, LineError, LineParser, ParsedLine, head_lines, open_lines};
use super::normalise::RawRequest;
use super::number::{self, NumberError};
use super::{Confidence, FileHead, FormatEntry};
use crate::block_events::{BlockEvent, BlockEvents, Parameters};
use hybridsim_config::registry::Description;
use hybridsim_engine::{Flags, Op};

pub(super) const ENTRY: FormatEntry = FormatEntry {
    description: Description {
        name: "ftrace",
        summary: "Text of ftrace, trace-cmd report or perf script with block events: \
                  block_rq_issue (D), block_rq_insert (I), block_bio_queue (Q) and completions.",
        origin: "Linux kernel, include/trace/events/block.h",
        params: Parameters::PARAMS,
    },
    sniff,
    open: |mut input| {
        let choice = Parameters::from_settings(&input.settings).event;
        let head = input.file.head()?;
        let has = |step| head_lines(&head).any(|(line, _)| step_of(line) == Some(step));
        let events = BlockEvents::new(choice, has);
        open_lines(input, Ftrace { events })
    },
    same_as: &[],
    sample: b"# tracer: nop\n\
        \x20     dd-1234   [002] d..2.  100.000100: block_rq_issue: 8,0 R 4096 () 2048 + 8 [dd]\n\
        \x20 <idle>-0      [002] d.h2.  100.000350: block_rq_complete: 8,0 R () 2048 + 8 [0]\n\
        my task  77 [000]   100.000400: block:block_rq_issue: 8,0 WS 8192 () 4096 + 16 [my task]\n\
        kworker/1:1H-90 [001] 100.000500: block_rq_issue: 8,0 FF 0 () 0 + 0 be,0,4 [kworker/1:1H]\n\
        kworker/1:1H-90 [001] 100.000501: block_unplug: [kworker/1:1H] 1\n",
};

const NO_EVENT: &str = "lines that are not events; left out";
const LOST: &str = "events lost by the recorder: their requests are missing";

/// The name of a block event with its colon, without the name of the subsystem.
fn block_event(text: &[u8]) -> Option<&[u8]> {
    let text = text.strip_prefix(b"block:").unwrap_or(text);
    text.strip_suffix(b":").filter(|name| name.starts_with(b"block_"))
}

/// The step of a request that an event logs.
fn step(name: &[u8]) -> Option<BlockEvent> {
    match name {
        b"block_bio_queue" => Some(BlockEvent::Queued),
        b"block_rq_insert" => Some(BlockEvent::Inserted),
        b"block_rq_issue" => Some(BlockEvent::Issued),
        // The kernel logs the second for devices without requests of their own alone.
        b"block_rq_complete" | b"block_bio_complete" => Some(BlockEvent::Completed),
        _ => None,
    }
}

/// A line divided at its event.
struct EventLine<'a> {
    /// The last two fields before the name, the nearest first.
    before: [&'a [u8]; 2],
    /// The name of a block event.
    name: &'a [u8],
    fields: Blanks<'a>,
}

impl<'a> EventLine<'a> {
    /// `None` without a block event.
    fn of(line: &'a [u8]) -> Option<Self> {
        let mut fields = Blanks::new(line);
        let mut before = [&b""[..]; 2];
        loop {
            let text = fields.text();
            if text.is_empty() {
                return None;
            }
            match block_event(text) {
                Some(name) => return Some(Self { before, name, fields }),
                None => before = [text, before[0]],
            }
        }
    }

    /// The time, which stands before the name, or before perf's number of events.
    fn time_ns(&self) -> Result<u64, LineError> {
        let [last, earlier] = self.before;
        let text = last.strip_suffix(b":").or_else(|| {
            let is_period = last.iter().all(u8::is_ascii_digit);
            earlier.strip_suffix(b":").filter(|_| is_period)
        });
        let text = text.ok_or(LineError::number("the time", NumberError::Missing))?;
        let time = number::scaled(text, 9).map_err(|error| LineError::number("the time", error))?;
        if !text.contains(&b'.') {
            let problem = "is not in seconds: record with a clock that is (trace_clock `local`)";
            return Err(LineError::new("the time", problem));
        }
        Ok(time)
    }
}

/// The step that a line logs.
fn step_of(line: &[u8]) -> Option<BlockEvent> {
    step(EventLine::of(line)?.name)
}

/// Whether the recorder wrote that events were lost: `CPU:2 [LOST 57 EVENTS]`.
fn is_loss(line: &[u8]) -> bool {
    let text = line.trim_ascii().to_ascii_lowercase();
    text.starts_with(b"cpu")
        && [&b"lost"[..], b"dropped"].iter().any(|word| memchr::memmem::find(&text, word).is_some())
}

/// A line between events: an event of another subsystem (`12.5: sched_switch: ...`), a header of
/// trace-cmd, or a frame of a call chain of ftrace (` => submit_bio`) or perf
/// (`  401136 main (/usr/bin/dd)`).
fn belongs(line: &[u8]) -> bool {
    let text = line.trim_ascii();
    if [&b"cpus="[..], b"version", b"CPU", b"=>"].iter().any(|word| text.starts_with(word)) {
        return true;
    }
    let mut fields = Blanks::new(line);
    let first = fields.text();
    let is_indented = line.first().is_some_and(u8::is_ascii_whitespace);
    let is_address = first.len() >= 6 && first.iter().all(u8::is_ascii_hexdigit);
    if is_indented && is_address && text.ends_with(b")") {
        return true;
    }
    let is_time = |text: &[u8]| {
        let time = text.strip_suffix(b":").filter(|text| text.contains(&b'.'));
        time.is_some_and(|text| number::scaled(text, 9).is_ok())
    };
    let mut text = first;
    while !text.is_empty() {
        if is_time(text) {
            return true;
        }
        text = fields.text();
    }
    false
}

fn sniff(head: &FileHead<'_>) -> Confidence {
    let (mut events, mut others) = (0, 0);
    for (line, doubtful) in head_lines(head) {
        match EventLine::of(line) {
            Some(event) if event.time_ns().is_ok() => {
                events += usize::from(step(event.name).is_some());
            }
            _ => others += usize::from(!doubtful && !belongs(line)),
        }
    }
    match (events, others) {
        (0, _) => Confidence::No,
        (_, 0) => Confidence::Certain,
        (events, others) if events > others => Confidence::Possible,
        _ => Confidence::No,
    }
}

struct Ftrace {
    events: BlockEvents,
}

/// Skips the bytes of a command in brackets, `(12 01 00)`, which are blank for a block transfer.
fn skip_command(fields: &mut Blanks<'_>) -> Result<(), LineError> {
    let mut text = fields.text();
    if !text.starts_with(b"(") {
        return Err(LineError::new("the command in brackets", "is missing"));
    }
    while !text.ends_with(b")") {
        text = fields.text();
        if text.is_empty() {
            return Err(LineError::new("the command in brackets", "has no end"));
        }
    }
    Ok(())
}

impl LineParser for Ftrace {
    fn parse(&mut self, line: &[u8]) -> Result<ParsedLine, LineError> {
        let Some(mut event) = EventLine::of(line) else {
            return Ok(match (is_loss(line), belongs(line)) {
                (true, _) => ParsedLine::Skipped(LOST),
                (false, true) => ParsedLine::NoRequest,
                (false, false) => ParsedLine::Skipped(NO_EVENT),
            });
        };
        let time_ns = event.time_ns()?;
        let Some(step) = step(event.name) else { return Ok(ParsedLine::NoRequest) };
        let fields = &mut event.fields;
        let volume = device(fields.text());
        let volume = volume.ok_or(LineError::new("the device", "is not major,minor"))?;
        let (op, flags) = letters(fields.text());
        if op.is_some() {
            self.events.add(step);
        }
        let done = step == BlockEvent::Completed;
        if step != self.events.arrival && !done {
            return Ok(ParsedLine::NoRequest);
        }
        if event.name.starts_with(b"block_rq_") {
            if !done {
                fields.whole("the number of bytes")?;
            }
            skip_command(fields)?;
        }
        let start = fields.whole("the sector")?;
        if fields.text() != b"+" {
            return Err(LineError::new("the number of sectors", "has no + before it"));
        }
        let sectors = fields.whole("the number of sectors")?;
        let is_flush = op == Some(Op::Flush) || (sectors == 0 && flags.contains(Flags::FUA));
        let raw = match op {
            _ if is_flush => RawRequest::sectors(time_ns, volume, Op::Flush, 0, 0),
            Some(op) if sectors > 0 => {
                RawRequest::sectors(time_ns, volume, op, start, sectors).with_flags(flags)
            }
            _ if done => return Ok(ParsedLine::NoRequest),
            _ => return Ok(ParsedLine::Skipped(NO_DATA)),
        };
        Ok(ParsedLine::Request(if done { raw.as_completion() } else { raw }))
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

    fn parser(choice: ArrivalEvent) -> Ftrace {
        Ftrace { events: BlockEvents::new(choice, |_| false) }
    }

    #[test]
    fn lines_of_each_tool() {
        let mut issued = parser(ArrivalEvent::Issued);
        let mut check = |line: &str, expect: &str| check_line(&mut issued, line, expect);
        let read = "1500000000 ns, volume 8,16: read 49+8";
        check("   dd-36  [003] d..1.   1.5: block_rq_issue: 8,16 R 4096 () 49 + 8 [dd]", read);
        check("dd-36 [003] 1.500000: block_rq_issue:  8,16 R 4096 () 49 + 8 none,0,0 [dd]", read);
        check("my dd  36 [003] 1.500000: block:block_rq_issue: 8,16 R 4096 () 49 + 8 [dd]", read);
        check("dd 36/36 [003] 1.5:   1 block:block_rq_issue: 8,16 R 4096 () 49 + 8 [dd]", read);
        let tail = |text: &str| format!("dd-36 [003] 1.5: block_rq_{text}");
        let write = "1500000000 ns, volume 8,16: write 49+8";
        check(&tail("issue: 8,16 WFS 4096 () 49 + 8 [x]"), &format!("{write} flags 9"));
        check(&tail("complete: 8,16 W () 49 + 8 [0]"), &format!("{write} done"));
        check(&tail("issue: 8,16 FF 0 () 0 + 0 [x]"), "1500000000 ns, volume 8,16: flush 0+0");
        let trim = "1500000000 ns, volume 8,16: trim 49+8 flags 1";
        check(&tail("issue: 8,16 DS 4096 () 49 + 8 [x]"), trim);
        check(&tail("issue: 8,16 N 36 (12 01 00) 0 + 0 [x]"), &format!("skipped: {NO_DATA}"));
        check(&tail("complete: 8,16 N (12 01) 0 + 0 [0]"), "no request");
        check("dd-36 [003] 1.5: block_bio_queue: 8,16 R 49 + 8 [dd]", "no request");
        check("dd-36 [003] 1.5: block_touch_buffer: [dd]", "no request");
        check("dd-36 [003] 1.5: sched_switch: prev_comm=dd", "no request");
        check("cpus=4", "no request");
        check("\tffffffff81234567 submit_bio ([kernel.kallsyms])", "no request");
        check("          401136 main (/usr/bin/dd)", "no request");
        check(" => submit_bio", "no request");
        check("CPU:2 [LOST 57 EVENTS]", &format!("skipped: {LOST}"));
        check("CPU:2 [57 EVENTS DROPPED]", &format!("skipped: {LOST}"));
        check("?!", &format!("skipped: {NO_EVENT}"));
        let found = issued.events;
        assert_eq!((found.issued, found.completed, found.queued), (7, 1, 1));
        let mut queued = parser(ArrivalEvent::Queued);
        check_line(&mut queued, "dd-36 [003] 1.5: block_bio_queue: 8,16 R 49 + 8 [dd]", read);
    }

    #[test]
    fn bad_lines() {
        let mut issued = parser(ArrivalEvent::Issued);
        let mut check = |time: &str, tail: &str, expect: &str| {
            let line = format!("dd-36 [003] {time} block_rq_issue: {tail}");
            check_line(&mut issued, &line, expect);
        };
        let good = "8,16 R 4096 () 49 + 8 [x]";
        check("-1.5:", good, "the time is negative");
        check("1.5", good, "the time is missing");
        let clock = "is not in seconds: record with a clock that is (trace_clock `local`)";
        check("15:", good, &format!("the time {clock}"));
        check("1.5:", "8 R 4096 () 49 + 8 [x]", "the device is not major,minor");
        check("1.5:", "8,16 R x () 49 + 8 [x]", "the number of bytes is not a number");
        check("1.5:", "8,16 R 4096 49 + 8 [x]", "the command in brackets is missing");
        check("1.5:", "8,16 R 4096 (12 49 + 8 [x]", "the command in brackets has no end");
        check("1.5:", "8,16 R 4096 () -1 + 8 [x]", "the sector is negative");
        check("1.5:", "8,16 R 4096 () 49 8 [x]", "the number of sectors has no + before it");
        check("1.5:", "8,16 R 4096 () 49 +", "the number of sectors is missing");
    }

    #[test]
    fn events_of_other_subsystems_do_not_hide_the_format() {
        let head = |text: &'static str| FileHead { bytes: text.as_bytes(), whole: true };
        let block = "cpus=2\ndd-1 [0] 1.5: sched_switch: x\ndd-1 [0] 1.6: irq_handler_entry: y\n\
                     dd-1 [0] 1.7: block_rq_issue: 8,0 R 4096 () 8 + 8 [dd]\n";
        assert_eq!(sniff(&head(block)), Confidence::Certain);
        assert_eq!(sniff(&head("dd-1 [0] 1.5: sched_switch: x\n")), Confidence::No);
    }
}
