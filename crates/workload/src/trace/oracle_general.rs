//! libCacheSim's oracleGeneral: binary records of 24 bytes, little-endian: time in seconds (u32),
//! object (u64), size in bytes (u32), number of the next request for the object (i64).

use super::extents::Extents;
use super::normalise::RawRequest;
use super::records::{ParsedRecord, RecordParser, open_records, u32_at, u64_at};
use super::{Confidence, FileHead, FormatEntry};
use hybridsim_config::param::{Kind, Settings};
use hybridsim_config::registry::Description;
use hybridsim_engine::{Op, SECTOR_BYTES};

hybridsim_config::choices! {
    /// Meaning of an object's number.
    enum ObjectNumber { Sector = "sector", Byte = "byte", Dense = "dense" }
}

hybridsim_config::params! {
    /// Parameters of formats with objects.
    pub(super) struct Parameters {
        objects: ObjectNumber = Kind::Choice(ObjectNumber::NAMES), default "\"sector\"",
            "Meaning of an object's number: its first sector, its first byte, or (`dense`) an \
             identifier; then objects are laid out densely in order of first appearance (memory \
             grows with their number).";
    }
}

pub(super) const ENTRY: FormatEntry = FormatEntry {
    description: Description {
        name: "oracle-general",
        summary: "libCacheSim oracleGeneral binary: seconds, object, bytes, next use. Reads only.",
        origin: "libCacheSim, trace type oracleGeneral",
        params: Parameters::PARAMS,
    },
    sniff,
    open: |input| {
        let objects = Objects::new(&input.settings);
        Ok(open_records(input, objects))
    },
    same_as: &[],
    sample: b"\x01\0\0\0\x10\0\0\0\0\0\0\0\0\x10\0\0\x02\0\0\0\0\0\0\0\
        \x01\0\0\0\x20\0\0\0\0\0\0\0\0\x02\0\0\xff\xff\xff\xff\xff\xff\xff\xff\
        \x05\0\0\0\x10\0\0\0\0\0\0\0\0\x10\0\0\xff\xff\xff\xff\xff\xff\xff\xff",
};

const BYTES: usize = 24;

/// Meaning of the number of an object.
pub(super) enum Objects {
    Sector,
    Byte,
    Dense(Extents<u64>),
}

/// The format has no magic number, but times do not decrease and the next use is later.
fn sniff(head: &FileHead<'_>) -> Confidence {
    let (mut count, mut last_s) = (0u64, 0);
    for record in head.bytes.chunks_exact(BYTES) {
        let (time_s, size) = (u32_at(record, 0), u32_at(record, 12));
        let next = u64_at(record, 16) as i64;
        let ahead = next == -1 || next == -2 || next > count as i64;
        if time_s < last_s || size == 0 || size > 1 << 30 || !ahead {
            return Confidence::No;
        }
        last_s = time_s;
        count += 1;
    }
    let truncated = head.whole && !head.bytes.len().is_multiple_of(BYTES);
    match count {
        0 => Confidence::No,
        1 => Confidence::Possible,
        _ if truncated => Confidence::Possible,
        _ => Confidence::Likely,
    }
}

impl Objects {
    pub fn new(settings: &Settings) -> Self {
        match Parameters::from_settings(settings).objects {
            ObjectNumber::Dense => Self::Dense(Extents::default()),
            ObjectNumber::Byte => Self::Byte,
            ObjectNumber::Sector => Self::Sector,
        }
    }

    /// First sector, sectors, and whether the range was extended to whole sectors.
    // Always inlined: a call is a sixth of what a record takes.
    #[inline(always)]
    pub fn locate(&mut self, object: u64, size: u64) -> Result<(u64, u64, bool), String> {
        let sectors = size.div_ceil(SECTOR_BYTES);
        let start = match self {
            Self::Byte => {
                let raw = RawRequest::bytes(0, 0, Op::Read, object, size);
                return Ok((raw.start, raw.sectors, raw.rounded));
            }
            Self::Sector if object >= 1 << 55 => {
                return Err(format!(
                    "object {object} is not an address; open the trace with objects = \"dense\""
                ));
            }
            Self::Sector => object,
            Self::Dense(extents) => extents.locate(&object, sectors),
        };
        Ok((start, sectors, false))
    }
}

impl RecordParser for Objects {
    fn bytes(&self) -> usize {
        BYTES
    }

    #[inline]
    fn parse(&mut self, record: &[u8]) -> Result<ParsedRecord, String> {
        let time_ns = u64::from(u32_at(record, 0)) * 1_000_000_000;
        let (object, size) = (u64_at(record, 4), u64::from(u32_at(record, 12)));
        let (start, sectors, rounded) = self.locate(object, size)?;
        let mut raw = RawRequest::sectors(time_ns, 0, Op::Read, start, sectors);
        raw.rounded = rounded;
        Ok(ParsedRecord::Request(raw))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn starts(mut objects: Objects, records: &[(u64, u32)]) -> Vec<(u64, u64)> {
        let raw = |(object, size): &(u64, u32)| {
            let bytes =
                [&[0; 4][..], &object.to_le_bytes(), &size.to_le_bytes(), &[0xff; 8]].concat();
            match objects.parse(&bytes) {
                Ok(ParsedRecord::Request(raw)) => (raw.start, raw.sectors),
                Ok(ParsedRecord::Skipped(_)) => (0, 0),
                Err(message) => {
                    assert!(message.contains("dense"), "{message}");
                    (u64::MAX, 0)
                }
            }
        };
        records.iter().map(raw).collect()
    }

    #[test]
    fn objects() {
        let records = [(1024, 4096), (u64::MAX, 512), (1024, 100), (1024, 8192), (7, 512)];
        let got = starts(Objects::Sector, &records);
        assert_eq!(got, [(1024, 8), (u64::MAX, 0), (1024, 1), (1024, 16), (7, 1)]);
        let got = starts(Objects::Dense(Extents::default()), &records);
        assert_eq!(got, [(0, 8), (8, 1), (0, 1), (9, 16), (25, 1)]);
        let got = starts(Objects::Byte, &records);
        assert_eq!(got[0], (2, 8));
    }
}
