//! The output of BCC's biosnoop: `TIME(s) COMM PID DISK T SECTOR BYTES [QUE(ms)] LAT(ms)`.
//!
//! Its times are those of completions, so a request arrives its latency earlier.

use super::FormatEntry;
use super::clock::arrival_ns;
use super::lines::{Blanks, LineError, LineParser, ParsedLine, text_format};
use super::names::NameTable;
use super::normalise::RawRequest;
use super::number;
use hybridsim_config::registry::Description;
use hybridsim_engine::{Op, SECTOR_BYTES};

pub(super) const ENTRY: FormatEntry = text_format::<BioSnoop>(
    Description {
        name: "biosnoop",
        summary: "BCC biosnoop: completion in s, command, process, disk, R or W, sector, bytes, \
                  [queueing and] latency in ms.",
        origin: "BCC and libbpf-tools, biosnoop(8)",
        params: &[],
    },
    b"TIME(s)     COMM           PID     DISK      T SECTOR     BYTES   LAT(ms)\n\
        0.000004    supervise      1950    xvda1     W 13092560   4096       0.74\n\
        0.000178    my tool        1950    xvda1     R 13092432   4096       0.61\n\
        0.001469    supervise      1956    nvme0n1   WS 13092440  8192      1.24\n",
);

/// Columns between the disk and the end: type, sector, bytes, latency, with queueing time or not.
const TAILS: [usize; 2] = [4, 5];

#[derive(Default)]
struct BioSnoop {
    disks: NameTable,
}

/// The operation of a type such as `R`, `WS` or `FF`.
fn op(letters: &[u8]) -> Option<Op> {
    let known = letters.iter().all(|letter| b"RWDFSAMN".contains(letter)) && letters.len() <= 4;
    let data = letters.strip_prefix(b"F").filter(|rest| !rest.is_empty()).unwrap_or(letters);
    match data.first().filter(|_| known)? {
        b'R' => Some(Op::Read),
        b'W' => Some(Op::Write),
        b'D' => Some(Op::Trim),
        b'F' => Some(Op::Flush),
        _ => None,
    }
}

impl LineParser for BioSnoop {
    fn parse(&mut self, line: &[u8]) -> Result<ParsedLine, LineError> {
        if line.trim_ascii_start().starts_with(b"TIME(s)") {
            return Ok(ParsedLine::NoRequest);
        }
        // Commands may contain blanks, so columns count from the end.
        let row = Blanks::new(line).row()?;
        let columns = row.columns();
        let count = columns.len();
        let at = TAILS.iter().find_map(|tail| {
            let at = count.checked_sub(*tail).filter(|at| *at >= 3)?;
            op(columns[at]).map(|op| (at, op))
        });
        let (at, op) = at.ok_or(LineError::new("the type", "is not found: R, W, D or F"))?;
        let scaled = |column, text, shift| {
            number::scaled(text, shift).map_err(|error| LineError::number(column, error))
        };
        let done_ns = scaled("the time", columns[0], 9)?;
        let volume = self.disks.number("the disk", columns[at - 1])?;
        let mut before_ns = 0u64;
        for text in &columns[at + 3..] {
            before_ns = before_ns.saturating_add(scaled("the latency", text, 6)?);
        }
        let bytes = number::whole(columns[at + 2]).map_err(|e| LineError::number("the size", e))?;
        let latency_ns = scaled("the latency", columns[count - 1], 6)?;
        if op == Op::Flush || bytes == 0 {
            let time_ns = arrival_ns(done_ns, before_ns);
            let raw = RawRequest::sectors(time_ns, volume, Op::Flush, 0, 0);
            return Ok(ParsedLine::Request(raw.with_response(latency_ns)));
        }
        let start =
            number::whole(columns[at + 1]).map_err(|e| LineError::number("the sector", e))?;
        let time_ns = arrival_ns(done_ns, before_ns);
        let sectors = bytes.div_ceil(SECTOR_BYTES);
        let mut raw = RawRequest::sectors(time_ns, volume, op, start, sectors);
        raw.rounded = !bytes.is_multiple_of(SECTOR_BYTES);
        Ok(ParsedLine::Request(raw.with_response(latency_ns)))
    }

    fn label(&self, volume: u64) -> String {
        self.disks.name(volume)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::lines::check_line;

    #[test]
    fn lines() {
        let mut parser = BioSnoop::default();
        let mut check = |line, expect: &str| check_line(&mut parser, line, expect);
        check(
            "0.5 supervise 1950 xvda1 W 13092560 4096 250.0",
            "1000250000000 ns, volume xvda1: write 13092560+8 in 250000000",
        );
        // With -Q: 0.1 s queued, then 0.2 s served.
        check(
            "0.5 my own tool 1950 sda RA 16 512 100 200",
            "1000200000000 ns, volume sda: read 16+1 in 200000000",
        );
        check("0.5 jbd2 7 sda FF 0 0 1", "1000499000000 ns, volume sda: flush 0+0 in 1000000");
        check("0.5 jbd2 7 sda D 8 4096 1", "1000499000000 ns, volume sda: trim 8+8 in 1000000");
        check("TIME(s)  COMM  PID  DISK  T  SECTOR  BYTES  LAT(ms)", "no request");
        check("0.5 jbd2 7 sda X 8 4096 1", "the type is not found: R, W, D or F");
        check("0.5 jbd2 7 sda W -8 4096 1", "the sector is negative");
        check("0.5 W 8 4096 1", "the type is not found: R, W, D or F");
    }
}
