//! The family of text traces with five columns, `time device address size op`, which differ only in
//! units: DiskSim, FlashSim, MQSim, SSDsim, and a replayer of Microsoft's production traces.

mod weigh;

pub(crate) use weigh::{Reading, readings};

use super::bytes::FileHead;
use super::lines::{Blanks, FEW_BAD, LineError, LineParser, ParsedLine, open_lines};
use super::normalise::RawRequest;
use super::number;
use super::{Confidence, FormatEntry, FormatInput};
use crate::record::{RecordReader, TraceResult};
use hybridsim_config::param::Kind;
use hybridsim_config::params::field;
use hybridsim_config::registry::Description;
use hybridsim_engine::{Op, SECTOR_BYTES};
use weigh::HeadStatistics;

/// All formats of the family.
pub(crate) const NAMES: &[&str] =
    &["disksim", "flashsim", "mqsim", "replayer-bytes", "replayer-sectors", "ssdsim"];

hybridsim_config::choices! {
    enum TimeUnit {
        Seconds = "s",
        Milliseconds = "ms",
        Microseconds = "us",
        Nanoseconds = "ns",
        Picoseconds = "ps",
    }
}

hybridsim_config::params! {
    /// Parameters of formats with times in milliseconds.
    struct Milliseconds {
        time_unit: TimeUnit = Kind::Choice(TimeUnit::NAMES), default "\"ms\"",
            "Unit of the times: s, ms, us, ns or ps.";
    }
}

hybridsim_config::params! {
    /// Parameters of formats with times in nanoseconds. MQSim's unit is given in its workload
    /// file, not in the trace; the traces shipped use ns.
    struct Nanoseconds {
        time_unit: TimeUnit = Kind::Choice(TimeUnit::NAMES), default "\"ns\"",
            "Unit of the times: s, ms, us, ns or ps.";
    }
}

hybridsim_config::params! {
    struct FlashSim includes { times: Milliseconds } {
        page_bytes: u64 = Kind::Bytes, default "\"4KiB\"",
            "Unit of the sizes: a multiple of 512 bytes, up to 1 GiB.";
    }
}

pub(super) const DISKSIM: FormatEntry = FormatEntry {
    description: Description {
        name: "disksim",
        summary: "DiskSim ASCII: time in ms, device, first sector, sectors, flags in hexadecimal.",
        origin: "DiskSim 4.0 reference manual, section on input traces",
        params: Milliseconds::PARAMS,
    },
    sniff: |head| sniff(head, |_| true),
    open: |input| open(input, Unit::Sectors, OpColumn::HexFlags),
    same_as: &["replayer-sectors"],
    sample: b"13.190000\t30\t0\t5\t1\n17.820000\t20\t57001\t6\t1\n25.910000\t18\t28600\t12\t1c\n",
};

/// As DiskSim's, but with sizes in pages while addresses stay in sectors.
pub(super) const FLASHSIM: FormatEntry = FormatEntry {
    description: Description {
        name: "flashsim",
        summary: "FlashSim text: time in ms, device, first sector, size in pages, 1 read or 0 \
                  write.",
        origin: "traces shipped with FlashSim; units found from runs of sequential requests",
        params: FlashSim::PARAMS,
    },
    sniff: |head| sniff(head, |_| true),
    open: |input| {
        let page_bytes: u64 = field(&input.settings, "page_bytes");
        open(input, Unit::Pages(page_bytes / SECTOR_BYTES), OpColumn::HexFlags)
    },
    same_as: &[],
    sample: b"0.875000\t0\t7\t1\t1\n1.5\t0\t15\t2\t1\n2.5\t0\t31\t1\t1\n4.5\t0\t39\t3\t0\n",
};

pub(super) const MQSIM: FormatEntry = FormatEntry {
    description: Description {
        name: "mqsim",
        summary: "MQSim ASCII: time (ns by default), device, first sector, sectors, 1 read or 0 \
                  write.",
        origin: "MQSim (FAST 2018), trace-based IO flows",
        params: Nanoseconds::PARAMS,
    },
    sniff: |head| sniff(head, |found| found.plain_ops && found.whole_times),
    open: |input| open(input, Unit::Sectors, OpColumn::OneIsRead),
    same_as: &["ssdsim"],
    sample: b"938000000 4 26470 16 0\n938500000 3 19757 16 0\n938900000 13 93230 32 1\n",
};

pub(super) const SSDSIM: FormatEntry = FormatEntry {
    description: Description {
        name: "ssdsim",
        summary: "SSDsim ASCII: time in ns, device, first sector, sectors, 1 read or 0 write.",
        origin: "SSDsim (Hu et al., ICS 2011)",
        params: Nanoseconds::PARAMS,
    },
    sniff: |head| sniff(head, |found| found.plain_ops && found.whole_times),
    open: |input| open(input, Unit::Sectors, OpColumn::OneIsRead),
    same_as: &["mqsim"],
    sample: b"0 0 4000 7 0\n0 1 90 6 0\n30000000 0 4007 7 1\n",
};

const REPLAYER_ORIGIN: &str = "cuts of the MSR Cambridge and Microsoft production server traces";

pub(super) const REPLAYER_BYTES: FormatEntry = FormatEntry {
    description: Description {
        name: "replayer-bytes",
        summary: "Replayer text: time in ms, disk, offset and size in bytes, 1 read or 0 write.",
        origin: REPLAYER_ORIGIN,
        params: Milliseconds::PARAMS,
    },
    sniff: |head| sniff(head, |found| found.plain_ops),
    open: |input| open(input, Unit::Bytes, OpColumn::OneIsRead),
    same_as: &[],
    sample: b"0.000 0 2048000 4096 0\n223.400 0 31457280 36864 1\n24290.625 0 512 7680 0\n",
};

pub(super) const REPLAYER_SECTORS: FormatEntry = FormatEntry {
    description: Description {
        name: "replayer-sectors",
        summary: "Replayer text: time in ms, disk, offset and size in sectors, 1 read or 0 write.",
        origin: REPLAYER_ORIGIN,
        params: Milliseconds::PARAMS,
    },
    sniff: |head| sniff(head, |found| found.plain_ops),
    open: |input| open(input, Unit::Sectors, OpColumn::OneIsRead),
    same_as: &["disksim"],
    sample: b"0.000 5 17400 16 1\n0.250 5 16200 16 1\n0.600 5 17488 16 0\n",
};

/// The unit of addresses or sizes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unit {
    Sectors,
    Bytes,
    /// Pages of so many sectors.
    Pages(u64),
}

/// The coding of the last column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OpColumn {
    /// 1 = read, 0 = write.
    OneIsRead,
    /// Flags in hexadecimal, bit 0 = read.
    HexFlags,
}

struct FiveColumns {
    /// Decimal places from the time's unit to nanoseconds; `None` for picoseconds.
    shift: Option<usize>,
    /// The unit of sizes; addresses are in bytes if sizes are, else in sectors.
    size: Unit,
    op: OpColumn,
}

fn open(input: FormatInput, size: Unit, op: OpColumn) -> TraceResult<Box<dyn RecordReader>> {
    let time_unit: TimeUnit = field(&input.settings, "time_unit");
    let shift = match time_unit {
        TimeUnit::Seconds => Some(9),
        TimeUnit::Milliseconds => Some(6),
        TimeUnit::Microseconds => Some(3),
        TimeUnit::Nanoseconds => Some(0),
        TimeUnit::Picoseconds => None,
    };
    open_lines(input, FiveColumns { shift, size, op })
}

/// All formats of the family accept the same lines; [`readings`] weighs them.
fn sniff(head: &FileHead<'_>, accepts: impl Fn(&HeadStatistics) -> bool) -> Confidence {
    let found = HeadStatistics::of(head);
    match found.rows > found.bad && accepts(&found) {
        false => Confidence::No,
        true if found.bad * FEW_BAD <= found.rows => Confidence::Likely,
        true => Confidence::Possible,
    }
}

impl LineParser for FiveColumns {
    #[inline]
    fn parse(&mut self, line: &[u8]) -> Result<ParsedLine, LineError> {
        let mut fields = Blanks::new(line);
        let time_ns = match self.shift {
            Some(shift) => fields.scaled("the time", shift)?,
            None => (fields.scaled("the time", 0)?.saturating_add(500)) / 1000,
        };
        let device = fields.whole("the device")?;
        let start = fields.whole("the address")?;
        let size = fields.whole("the size")?;
        let op = match self.op {
            OpColumn::OneIsRead => fields.one_is_read("the last column")?,
            OpColumn::HexFlags => {
                let flags = number::hexadecimal(fields.text())
                    .map_err(|error| LineError::number("the flags column", error))?;
                if flags & 1 == 1 { Op::Read } else { Op::Write }
            }
        };
        fields.end()?;
        Ok(ParsedLine::Request(match self.size {
            Unit::Bytes => RawRequest::bytes(time_ns, device, op, start, size),
            Unit::Sectors => RawRequest::sectors(time_ns, device, op, start, size),
            Unit::Pages(sectors) => {
                RawRequest::sectors(time_ns, device, op, start, size.saturating_mul(sectors))
            }
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines() {
        let mut columns =
            FiveColumns { shift: Some(6), size: Unit::Sectors, op: OpColumn::HexFlags };
        let mut check = |line: &str, expect: Result<(u64, Op), &str>| {
            let got = match columns.parse(line.as_bytes()) {
                Ok(ParsedLine::Request(row)) => Ok((row.time_ns, row.op)),
                Ok(other) => panic!("{other:?}"),
                Err(bad) => Err(format!("{} {}", bad.column, bad.problem)),
            };
            assert_eq!(got, expect.map_err(str::to_owned), "{line}");
        };
        check("33.33 0 36500    10 1", Ok((33_330_000, Op::Read)));
        check("33.33\t0\t36500\t10\t1e", Ok((33_330_000, Op::Write)));
        check("  33.33 0 36500 10 0  ", Ok((33_330_000, Op::Write)));
        check("33.33 0 36500 10", Err("the flags column is missing"));
        check("33.33 0 36500 10 0 7", Err("the line has more columns than this format"));
        check("-33.33 0 36500 10 0", Err("the time is negative"));
        check("1e400 0 36500 10 0", Err("the time is too large"));
        check("1 0 36500 1O 0", Err("the size is not a number"));
    }
}
