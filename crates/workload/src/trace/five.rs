//! The family of text traces with five columns, `time device address size op`, which differ only in
//! units: how to read them, and how to tell them apart.

use super::bytes::Head;
use super::lines::{BadLine, Blanks, Line, LineParser, head_lines};
use super::number;
use super::rows::Row;
use hybridsim_engine::{Flags, Op};

/// The unit of addresses or sizes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    Sectors,
    Bytes,
    /// So many sectors.
    Pages(u64),
}

/// What the last column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Last {
    /// 1 = read, 0 = write.
    OneIsRead,
    /// Flags in hexadecimal, bit 0 = read.
    HexFlags,
}

/// Reads the five columns.
pub(crate) struct Five {
    /// Decimal places from the time's unit to nanoseconds; `None` for picoseconds.
    pub shift: Option<usize>,
    /// The size's unit; addresses are in bytes if sizes are, else in sectors.
    pub size: Unit,
    pub last: Last,
}

/// Decimal places from a unit to nanoseconds; `None` for picoseconds.
pub(crate) fn shift_of(unit: &str) -> Option<usize> {
    match unit {
        "s" => Some(9),
        "ms" => Some(6),
        "us" => Some(3),
        "ns" => Some(0),
        _ => None,
    }
}

impl LineParser for Five {
    #[inline]
    fn parse(&mut self, line: &[u8]) -> Result<Line, BadLine> {
        let mut fields = Blanks::new(line);
        let time_ns = match self.shift {
            Some(shift) => fields.scaled("the time", shift)?,
            None => (fields.scaled("the time", 0)?.saturating_add(500)) / 1000,
        };
        let device = fields.whole("the device")?;
        let start = fields.whole("the address")?;
        let size = fields.whole("the size")?;
        let op = match self.last {
            Last::OneIsRead => fields.one_is_read("the last column")?,
            Last::HexFlags => {
                let flags = number::hexadecimal(fields.text())
                    .map_err(|error| BadLine::number("the flags column", error))?;
                if flags & 1 == 1 { Op::Read } else { Op::Write }
            }
        };
        fields.end()?;
        Ok(Line::Row(
            match self.size {
                Unit::Bytes => Row::bytes(time_ns, device, op, start, size),
                Unit::Sectors => Row::sectors(time_ns, device, op, start, size),
                Unit::Pages(sectors) => {
                    Row::sectors(time_ns, device, op, start, size.saturating_mul(sectors))
                }
            }
            .with_flags(Flags::NONE),
        ))
    }
}

/// What the head of such a trace tells.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Evidence {
    pub rows: usize,
    pub bad: usize,
    /// All times are whole numbers.
    pub whole_times: bool,
    /// The last column is always 0 or 1.
    pub plain_ops: bool,
    /// All addresses and sizes are multiples of 512.
    pub byte_like: bool,
    /// Requests that start where the one before would end if sizes were sectors ...
    pub sector_runs: usize,
    /// ... and if they were pages of 4 KiB.
    pub page_runs: usize,
}

impl Evidence {
    pub fn of(head: &Head<'_>) -> Self {
        let mut found =
            Self { whole_times: true, plain_ops: true, byte_like: true, ..Self::default() };
        let mut five = Five { shift: Some(6), size: Unit::Sectors, last: Last::HexFlags };
        let mut before = None;
        for (line, doubtful) in head_lines(head) {
            let Ok(Line::Row(row)) = five.parse(line) else {
                found.bad += usize::from(!doubtful);
                continue;
            };
            let mut fields = Blanks::new(line);
            found.rows += 1;
            found.whole_times &= fields.text().iter().all(u8::is_ascii_digit);
            let last = line.trim_ascii_end();
            found.plain_ops &= last.ends_with(b"\t0")
                || last.ends_with(b"\t1")
                || last.ends_with(b" 0")
                || last.ends_with(b" 1");
            found.byte_like &=
                row.start.is_multiple_of(512) && row.sectors.is_multiple_of(512) && row.sectors > 0;
            if let Some((volume, start, size)) = before
                && volume == row.volume
                && size > 0
            {
                found.sector_runs += usize::from(row.start == start + size);
                found.page_runs += usize::from(row.start == start + size * 8);
            }
            before = Some((row.volume, row.start.min(1 << 60), row.sectors.min(1 << 40)));
        }
        found
    }

    /// Whether this is the family at all.
    pub const fn fits(&self) -> bool {
        self.rows > self.bad
    }

    /// Whether runs of requests say that sizes are pages.
    pub const fn pages(&self) -> bool {
        self.page_runs >= 3 && self.page_runs * 2 > self.sector_runs
    }

    /// Whether they do not deny that sizes are sectors.
    pub const fn sectors(&self) -> bool {
        !self.pages() || self.sector_runs * 2 > self.page_runs
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn evidence_of_units() {
        let check = |text: &str, pages, sectors, byte_like, whole_times| {
            let evidence = Evidence::of(&Head { bytes: text.as_bytes(), whole: true });
            let got =
                (evidence.pages(), evidence.sectors(), evidence.byte_like, evidence.whole_times);
            assert_eq!(got, (pages, sectors, byte_like, whole_times), "{text}");
        };
        check("1.0 0 7 1 1\n2.0 0 15 1 1\n3.0 0 23 2 1\n4.0 0 39 1 0\n", true, false, false, false);
        check("1.0 0 7 8 1\n2.0 0 15 8 1\n3.0 0 23 8 1\n4.0 0 31 8 0\n", false, true, false, false);
        check("1 0 512 4096 1\n2 0 1024 512 1\n", false, true, true, true);
        check("1.5 0 512 4096 1\n2 0 1024 0 1\n", false, true, false, false);
    }

    #[test]
    fn lines() {
        let mut five = Five { shift: Some(6), size: Unit::Sectors, last: Last::HexFlags };
        let mut check = |line: &str, expect: Result<(u64, Op), &str>| {
            let got = match five.parse(line.as_bytes()) {
                Ok(Line::Row(row)) => Ok((row.time_ns, row.op)),
                Ok(other) => panic!("{other:?}"),
                Err(bad) => Err(format!("{} {}", bad.column, bad.words)),
            };
            assert_eq!(got, expect.map_err(str::to_owned), "{line}");
        };
        check("33.33 0 36500    10 1", Ok((33_330_000, Op::Read)));
        check("33.33\t0\t36500\t10\t1e", Ok((33_330_000, Op::Write)));
        check("  33.33 0 36500 10 0  ", Ok((33_330_000, Op::Write)));
        check("33.33 0 36500 10", Err("the flags column is missing"));
        check("33.33 0 36500 10 0 7", Err("the line has more columns than this format"));
        check("-33.33 0 36500 10 0", Err("the time is negative"));
        check("1e400 0 36500 10 0", Err("the time is absurdly large"));
        check("1 0 36500 1O 0", Err("the size is not a number"));
    }
}
