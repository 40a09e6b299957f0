//! libCacheSim's lcs: a header of 8 KiB with the version, then binary records of fixed length.
//!
//! All versions have the time in seconds (u32) and the object (u64), which is the logical block
//! address in traces of block devices. Version 1 continues with the size (u32) and the next use
//! (i64), version 2 puts operation and tenant (u8 and u24) between them, version 3 and later have
//! sizes of 64 bits and further fields behind them.

use super::normalise::RawRequest;
use super::oracle_general::{Objects, Parameters};
use super::records::{ParsedRecord, RecordParser, open_records, u32_at, u64_at};
use super::{Confidence, FormatEntry};
use crate::record::SourceLocation;
use hybridsim_config::registry::Description;
use hybridsim_engine::Op;

const MAGIC: u64 = 0x1234_5678_9abc_def0;
const HEADER_BYTES: usize = 8192;

pub(super) const ENTRY: FormatEntry = FormatEntry {
    description: Description {
        name: "lcs",
        summary: "libCacheSim lcs binary, versions 1 to 8: seconds, object, size, operation.",
        origin: "libCacheSim, trace type lcs",
        params: Parameters::PARAMS,
    },
    sniff: |head| match head.bytes.first_chunk().map(|bytes| u64::from_le_bytes(*bytes)) {
        Some(MAGIC) => Confidence::Certain,
        _ => Confidence::No,
    },
    open: |mut input| {
        let location = SourceLocation::File;
        let header = input.file.peek(HEADER_BYTES, location)?;
        if header.len() < HEADER_BYTES {
            return Err(input.file.error(location, "ends within the header of 8 KiB"));
        }
        if u64_at(header, 0) != MAGIC || u64_at(header, HEADER_BYTES - 8) != MAGIC {
            let message = "the header does not begin and end with the mark of lcs: damaged";
            return Err(input.file.error(location, message));
        }
        let version = u64_at(header, 8);
        let Some(bytes) = record_bytes(version) else {
            let message = format!("version {version} of lcs is not known; 1 to 8 are");
            return Err(input.file.error(location, message));
        };
        input.file.consume(HEADER_BYTES);
        let objects = Objects::new(&input.settings);
        Ok(open_records(input, Lcs { version, bytes, objects }))
    },
    same_as: &[],
    sample: &SAMPLE,
};

/// Length of a record of `version`.
const fn record_bytes(version: u64) -> Option<usize> {
    match version {
        1 => Some(24),
        2 => Some(28),
        3 => Some(36),
        // One, two, four, eight or sixteen features of 32 bits.
        4..=8 => Some(36 + (4 << (version - 4))),
        _ => None,
    }
}

/// A header of version 2 and three records.
const SAMPLE: [u8; HEADER_BYTES + 3 * 28] = {
    let mut bytes = [0; HEADER_BYTES + 3 * 28];
    let magic = MAGIC.to_le_bytes();
    let mut at = 0;
    while at < 8 {
        bytes[at] = magic[at];
        bytes[HEADER_BYTES - 8 + at] = magic[at];
        at += 1;
    }
    bytes[8] = 2;
    let mut record = 0;
    while record < 3 {
        let at = HEADER_BYTES + record * 28;
        bytes[at] = 5 + record as u8;
        bytes[at + 4] = 16 * record as u8;
        bytes[at + 13] = 16;
        bytes[at + 16] = 1 + record as u8;
        bytes[at + 17] = 9;
        record += 1;
    }
    bytes
};

struct Lcs {
    version: u64,
    bytes: usize,
    objects: Objects,
}

/// The operation of libCacheSim's numbers: 0 none, 1 get, 2 gets, 9 delete, 12 read, 255 unknown;
/// the others store.
const fn op(number: u8) -> Op {
    match number {
        0..=2 | 12 | 255 => Op::Read,
        9 => Op::Trim,
        _ => Op::Write,
    }
}

impl RecordParser for Lcs {
    fn bytes(&self) -> usize {
        self.bytes
    }

    fn parse(&mut self, record: &[u8]) -> Result<ParsedRecord, String> {
        let time_ns = u64::from(u32_at(record, 0)) * 1_000_000_000;
        let object = u64_at(record, 4);
        let (size, rest) = match self.version {
            1 | 2 => (u64::from(u32_at(record, 12)), 16),
            _ => (u64_at(record, 12), 20),
        };
        let (op, tenant) = match self.version {
            1 => (Op::Read, 0),
            _ => (op(record[rest]), u64::from(u32_at(record, rest) >> 8)),
        };
        let (start, sectors, rounded) = self.objects.locate(object, size)?;
        let mut raw = RawRequest::sectors(time_ns, tenant, op, start, sectors);
        raw.rounded = rounded;
        Ok(ParsedRecord::Request(raw))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_of_all_versions() {
        let lengths: Vec<_> = (0..10).map(record_bytes).collect();
        let some = |list: [usize; 8]| list.map(Some).to_vec();
        assert_eq!(lengths[1..9], some([24, 28, 36, 40, 44, 52, 68, 100]));
        assert_eq!((lengths[0], lengths[9]), (None, None));
        for (version, expect) in [(1, "read 0"), (2, "write 7"), (3, "write 7"), (8, "write 7")] {
            let bytes = record_bytes(version).expect("known");
            let mut record = vec![0; bytes];
            (record[0], record[4], record[13]) = (3, 64, 16);
            let at = if version < 3 { 16 } else { 20 };
            if version > 1 {
                (record[at], record[at + 1]) = (3, 7);
            }
            let objects = Objects::Sector;
            let got = match (Lcs { version, bytes, objects }).parse(&record) {
                Ok(ParsedRecord::Request(raw)) => {
                    assert_eq!((raw.time_ns, raw.start, raw.sectors), (3_000_000_000, 64, 8));
                    format!("{} {}", raw.op.name(), raw.volume)
                }
                Ok(ParsedRecord::Skipped(message)) => message.to_owned(),
                Err(message) => message,
            };
            assert_eq!(got, expect, "version {version}");
        }
    }
}
