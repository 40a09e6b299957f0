//! DiskSim's validation logs of real drives: `op buffer block size service nextarrival`.

use super::FormatEntry;
use super::lines::{Blanks, LineError, LineParser, ParsedLine, text_format};
use super::normalise::RawRequest;
use hybridsim_config::registry::Description;

pub(super) const ENTRY: FormatEntry = text_format::<Validate>(
    Description {
        name: "disksim-validate",
        summary: "DiskSim validation log: R or W, buffer outcome, first sector, sectors, measured \
                  access time and gap to the next arrival in us. One request at a time: the gap \
                  is the time from a request's completion to the next arrival.",
        origin: "DiskSim 4.0 distribution, traces observed on real drives",
        params: &[],
    },
    b"R Miss  564000     2     14000.370     13800.270\n\
        W Hit   16960  12   1300.0   32700.0\n\
        R Doub 1569     3     10600.040     19100.570\n",
);

#[derive(Default)]
struct Validate {
    next_ns: u64,
}

impl LineParser for Validate {
    #[inline]
    fn parse(&mut self, line: &[u8]) -> Result<ParsedLine, LineError> {
        let mut fields = Blanks::new(line);
        let op = fields.read_or_write("the op")?;
        let outcome = fields.text();
        if outcome.is_empty() || !outcome.iter().all(u8::is_ascii_alphabetic) {
            return Err(LineError::new("the buffer outcome", "is not a word"));
        }
        let start = fields.whole("the block")?;
        let sectors = fields.whole("the size")?;
        let service_ns = fields.scaled("the service time", 3)?;
        let gap_ns = fields.scaled("the time to the next arrival", 3)?;
        fields.end()?;
        let time_ns = self.next_ns;
        self.next_ns = time_ns.saturating_add(service_ns).saturating_add(gap_ns);
        Ok(ParsedLine::Request(
            RawRequest::sectors(time_ns, 0, op, start, sectors).with_response(service_ns),
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::lines::check_line;

    #[test]
    fn lines() {
        let mut log = Validate::default();
        let mut check = |line, expect: &str| check_line(&mut log, line, expect);
        check("R Miss  5640  2  14.5  13.25", "0 ns, volume 0: read 5640+2 in 14500");
        check("W Hit   5642  3  10.0  1.0", "27750 ns, volume 0: write 5642+3 in 10000");
        check("W Hit   5642  3  10.0", "the time to the next arrival is missing");
        check("W Trip  1  3  10.0 0", "38750 ns, volume 0: write 1+3 in 10000");
        check("W 5  1  3  10.0 0", "the buffer outcome is not a word");
    }
}
