//! CloudPhysics' vscsi traces: binary, little-endian, two versions.

use super::normalise::RawRequest;
use super::records::{ParsedRecord, RecordParser, open_records, u16_at, u32_at, u64_at};
use super::{Confidence, FileHead, FormatEntry};
use crate::record::SourceLocation;
use hybridsim_config::registry::Description;
use hybridsim_engine::{Op, SECTOR_BYTES};

pub(super) const ENTRY: FormatEntry = FormatEntry {
    description: Description {
        name: "vscsi",
        summary: "vscsi binary, version 1 (32-byte records) or 2 (40 bytes, with response times).",
        origin: "CloudPhysics traces (Waldspurger et al., FAST 2015)",
        params: &[],
    },
    sniff,
    open: |mut input| {
        let version = version(&input.file.head()?).unwrap_or(Version::One);
        if input.file.peek(version.bytes(), SourceLocation::Record(1))?.len() < version.bytes() {
            let message = "shorter than one vscsi record";
            return Err(input.file.error(SourceLocation::File, message));
        }
        Ok(open_records(input, version))
    },
    same_as: &[],
    sample: b"\x01\0\0\0\0\x10\0\0\x01\0\0\0\x2a\0\0\x01\x40\x01\0\0\0\0\0\0\x10\x27\0\0\0\0\0\0\
        \x02\0\0\0\0\x02\0\0\x01\0\0\0\x28\0\0\x01\x80\x01\0\0\0\0\0\0\x20\x28\0\0\0\0\0\0\
        \x03\0\0\0\0\x10\0\0\x02\0\0\0\x2a\0\0\x01\x41\x01\0\0\0\0\0\0\x30\x2a\0\0\0\0\0\0",
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Version {
    /// Serial number, length, elements, command, version, block, time.
    One,
    /// Command, version, serial number, length, elements, block, time, response time.
    Two,
}

/// The operation of a SCSI command (SCSI block commands, table of operation codes).
fn op(command: u16) -> Option<Op> {
    match command {
        0x08 | 0x28 | 0xa8 | 0x88 => Some(Op::Read),
        0x0a | 0x2a | 0xaa | 0x8a | 0x2e | 0xae | 0x8e | 0x41 | 0x93 | 0x89 => Some(Op::Write),
        0x42 => Some(Op::Trim),
        0x35 | 0x91 => Some(Op::Flush),
        _ => None,
    }
}

impl Version {
    const fn bytes(self) -> usize {
        match self {
            Self::One => 32,
            Self::Two => 40,
        }
    }

    /// (command, version field) of a record.
    fn command(self, record: &[u8]) -> (u16, u16) {
        match self {
            Self::One => (u16_at(record, 12), u16_at(record, 14)),
            Self::Two => (u16_at(record, 0), u16_at(record, 2)),
        }
    }

    const fn high_byte(self) -> u16 {
        match self {
            Self::One => 1,
            Self::Two => 2,
        }
    }

    fn fits(self, head: &[u8]) -> bool {
        let mut records = head.chunks_exact(self.bytes()).take(64).peekable();
        records.peek().is_some()
            && records.all(|record| {
                let (command, version) = self.command(record);
                command < 256 && version >> 8 == self.high_byte()
            })
    }
}

fn version(head: &FileHead<'_>) -> Option<Version> {
    [Version::One, Version::Two].into_iter().find(|version| version.fits(head.bytes))
}

fn sniff(head: &FileHead<'_>) -> Confidence {
    match version(head) {
        Some(_) => Confidence::Certain,
        None => Confidence::No,
    }
}

impl RecordParser for Version {
    fn bytes(&self) -> usize {
        (*self).bytes()
    }

    fn parse(&mut self, record: &[u8]) -> Result<ParsedRecord, String> {
        let (command, version) = self.command(record);
        if version >> 8 != self.high_byte() {
            return Err(format!(
                "the record's version field is {version:#06x}, not {}: damaged, or not vscsi",
                self.high_byte()
            ));
        }
        let Some(op) = op(command) else {
            return Ok(ParsedRecord::Skipped("SCSI commands without data transfer; left out"));
        };
        let length_at = match self {
            Self::One => 4,
            Self::Two => 8,
        };
        let length = u64::from(u32_at(record, length_at));
        let start = u64_at(record, 16);
        let time_us = u64_at(record, 24);
        let time_ns = time_us.checked_mul(1000).ok_or("the time is too large")?;
        let mut raw = RawRequest::sectors(time_ns, 0, op, start, length.div_ceil(SECTOR_BYTES));
        raw.rounded = !length.is_multiple_of(SECTOR_BYTES);
        if op == Op::Flush {
            raw.sectors = 0;
        }
        if *self == Self::Two {
            raw = raw.with_response(u64_at(record, 32).saturating_mul(1000));
        }
        Ok(ParsedRecord::Request(raw))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(version: Version, command: u16, length: u32, block: u64, time_us: u64) -> Vec<u8> {
        let (sn, sg) = (7u32.to_le_bytes(), 1u32.to_le_bytes());
        let command = [command.to_le_bytes(), (version.high_byte() << 8).to_le_bytes()].concat();
        let length = length.to_le_bytes();
        let mut bytes = match version {
            Version::One => [&sn[..], &length, &sg, &command].concat(),
            Version::Two => [&command[..], &sn, &length, &sg].concat(),
        };
        bytes.extend(block.to_le_bytes());
        bytes.extend(time_us.to_le_bytes());
        if version == Version::Two {
            bytes.extend(250u64.to_le_bytes());
        }
        bytes
    }

    #[test]
    fn records() {
        for mut version in [Version::One, Version::Two] {
            let mut check = |command, length, time_us, expect: &str| {
                let bytes = record(version, command, length, 99, time_us);
                assert_eq!(super::version(&FileHead { bytes: &bytes, whole: true }), Some(version));
                let got = match version.parse(&bytes) {
                    Ok(ParsedRecord::Request(raw)) => {
                        let response = (version == Version::Two).then_some(250_000);
                        assert_eq!(raw.response_ns, response.unwrap_or(RawRequest::NO_RESPONSE));
                        format!("{} {} {}+{}", raw.time_ns, raw.op.name(), raw.start, raw.sectors)
                    }
                    Ok(ParsedRecord::Skipped(message)) => message.to_owned(),
                    Err(message) => message,
                };
                assert_eq!(got, expect);
            };
            check(0x28, 4096, 5, "5000 read 99+8");
            check(0x8a, 513, 5, "5000 write 99+2");
            check(0x42, 512, 5, "5000 trim 99+1");
            check(0x35, 0, 5, "5000 flush 99+0");
            check(0x12, 36, 5, "SCSI commands without data transfer; left out");
            check(0x28, 512, u64::MAX, "the time is too large");
        }
    }
}
