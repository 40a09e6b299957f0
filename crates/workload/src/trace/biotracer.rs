//! BIOtracer logs of smartphones: sector, sectors, bytes, type, and four times in seconds
//! (generation, dequeueing, issue to the device, completion).

use super::lines::{Blanks, LineError, LineParser, ParsedLine, open_lines, sniff_lines};
use super::normalise::RawRequest;
use super::{Confidence, FormatEntry};
use hybridsim_config::param::Kind;
use hybridsim_config::registry::Description;
use hybridsim_engine::{Op, SECTOR_BYTES};

hybridsim_config::choices! {
    /// Requests that are read, by the phone's clock.
    enum PhoneClock { Unix = "unix", Any = "any" }
}

hybridsim_config::params! {
    struct Parameters {
        clock: PhoneClock = Kind::Choice(PhoneClock::NAMES), default "\"unix\"",
            "unix leaves out requests from before the phone's clock was set to Unix time during \
             boot; any keeps them and removes the jumps.";
    }
}

pub(super) const ENTRY: FormatEntry = FormatEntry {
    description: Description {
        name: "biotracer",
        summary: "BIOtracer log: first sector, sectors, bytes, type, and four times in seconds.",
        origin: "smartphone traces (Zhou et al., IISWC 2015)",
        params: Parameters::PARAMS,
    },
    sniff: |head| sniff_lines(head, &mut Sniffed, Confidence::Certain),
    open: |input| {
        let unix = Parameters::from_settings(&input.settings).clock == PhoneClock::Unix;
        open_lines(input, BioTracer { unix })
    },
    same_as: &[],
    sample: b"0\t\t8\t\t4096\t\t4\t\t1.740000000\t\t1.740100000\t\t1.740200000\t\t1.740300000\n\
        8600\t\t88\t\t45056\t\t0\t\t1398400000.600000001\t\t1398400000.610000001\t\t\
        1398400000.620000001\t\t1398400000.630000001\n\
        50200\t\t48\t\t24576\t\t1\t\t1398400000.700000001\t\t1398400000.710000001\t\t\
        1398400000.720000001\t\t1398400000.730000001\n",
};

/// 1 January 2000, earlier than any phone with this tracer.
const UNIX_FROM_NS: u64 = 946_684_800_000_000_000;
const UNSET: &str =
    "requests from before the clock was set to Unix time; left out (clock = \"any\" keeps them)";

struct BioTracer {
    unix: bool,
}

impl LineParser for BioTracer {
    #[inline]
    fn parse(&mut self, line: &[u8]) -> Result<ParsedLine, LineError> {
        let mut fields = Blanks::new(line);
        let start = fields.whole("the sector")?;
        let sectors = fields.whole("the size in sectors")?;
        fields.whole("the size in bytes")?;
        let kind = fields.whole("the type")?;
        let time_ns = fields.scaled("the generation time", 9)?;
        fields.scaled("the dequeueing time", 9)?;
        fields.scaled("the issue time", 9)?;
        let done_ns = fields.scaled("the completion time", 9)?;
        fields.end()?;
        if self.unix && time_ns < UNIX_FROM_NS {
            return Ok(ParsedLine::Skipped(UNSET));
        }
        let op = if kind & 1 == 1 { Op::Write } else { Op::Read };
        let raw = RawRequest::sectors(time_ns, 0, op, start, sectors);
        Ok(ParsedLine::Request(
            raw.with_response(done_ns.checked_sub(time_ns).unwrap_or(RawRequest::NO_RESPONSE)),
        ))
    }
}

/// The lines whose two sizes agree, by which the format is detected.
struct Sniffed;

impl LineParser for Sniffed {
    fn parse(&mut self, line: &[u8]) -> Result<ParsedLine, LineError> {
        let mut fields = Blanks::new(line);
        fields.text();
        let (sectors, bytes) = (fields.whole("the size")?, fields.whole("the size")?);
        if sectors.checked_mul(SECTOR_BYTES) != Some(bytes) {
            return Err(LineError::new("the size in bytes", "is not that in sectors"));
        }
        BioTracer { unix: false }.parse(line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::lines::check_line;

    #[test]
    fn lines() {
        let any = |line, expect: &str| check_line(&mut BioTracer { unix: false }, line, expect);
        let unix = |line, expect: &str| check_line(&mut BioTracer { unix: true }, line, expect);
        let early = "7\t\t8\t\t4096\t\t5\t\t1.5\t\t1.6\t\t1.7\t\t1.75";
        any(early, "1500000000 ns, volume 0: write 7+8 in 250000000");
        unix(early, &format!("skipped: {UNSET}"));
        unix(
            "7 8 4096 4 1000000000 1 1 1000000001",
            "1000000000000000000 ns, volume 0: read 7+8 in 1000000000",
        );
        unix("7 8 4096 4 1000000000 1 1", "the completion time is missing");
    }
}
