//! Any binary file with records of fixed length, described by the user as for Python's `struct`.
//!
//! Among them are bare block numbers (`<Q`) and libCacheSim's standard binary traces (`<IQI`).

use super::columns::TimeUnit;
use super::normalise::RawRequest;
use super::records::{ParsedRecord, RecordParser, open_records};
use super::{Confidence, FormatEntry};
use crate::record::SourceLocation;
use hybridsim_config::effect::Needs;
use hybridsim_config::param::{Kind, Settings};
use hybridsim_config::registry::Description;
use hybridsim_engine::{Op, SECTOR_BYTES};

const FIELD: Kind = Kind::Count { min: 1, max: 64 };

hybridsim_config::params! {
    struct Parameters {
        layout: String = Kind::Text, default "\"<Q\"",
            "Fields of a record as in Python's `struct`: `<` (or `>` for big-endian), then b, B, \
             h, H, i, I, l, L, q or Q per field and x per ignored byte, each with a count before \
             it if repeated.";
        time: Option<u64> = FIELD, optional,
            "Field of the arrival time, counted from 1; no times when absent.";
        time_unit: TimeUnit = Kind::Choice(TimeUnit::NAMES), default "\"s\""
            needs &[Needs::given("time")],
            "Unit of the times: s, ms, us, 100ns or ns.";
        op: Option<u64> = FIELD, optional, "Field of the operation; all reads when absent.";
        read: u64 = Kind::Count { min: 0, max: u64::MAX }, default "0" needs &[Needs::given("op")],
            "The number in the field of the operation that means a read; all others are writes.";
        offset: u64 = FIELD, default "1", "Field of the address.";
        size: Option<u64> = FIELD, optional,
            "Field of the length; when absent each request is one unit of the addresses long.";
        volume: Option<u64> = FIELD, optional, "Field of the volume; one volume when absent.";
        unit: u64 = Kind::Bytes, default "\"512B\"", "Unit of the addresses, such as 1B or 4KiB.";
        size_unit: u64 = Kind::Bytes, default "\"1B\"" needs &[Needs::given("size")],
            "Unit of the lengths.";
    }
}

pub(super) const ENTRY: FormatEntry = FormatEntry {
    description: Description {
        name: "binary",
        summary: "Any binary records of fixed length whose fields you describe, such as bare block \
                  numbers.",
        origin: "docs/reference/traces.md",
        params: Parameters::PARAMS,
    },
    // Any file fits.
    sniff: |_| Confidence::No,
    open: |input| {
        let parser = Binary::new(&input.settings);
        let parser = parser.map_err(|message| input.file.error(SourceLocation::File, message))?;
        Ok(open_records(input, parser))
    },
    same_as: &[],
    sample: b"\xa0\x86\x01\0\0\0\0\0\xa1\x86\x01\0\0\0\0\0\x10\0\0\0\0\0\0\0",
};

/// Longest record.
const RECORD_BYTES_MAX: usize = 4096;

/// A field of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Field {
    at: usize,
    bytes: usize,
    signed: bool,
}

struct Binary {
    bytes: usize,
    big_endian: bool,
    time: Option<Field>,
    unit_ns: u64,
    op: Option<Field>,
    read: u64,
    offset: Field,
    size: Option<Field>,
    volume: Option<Field>,
    unit: u64,
    size_unit: u64,
}

/// The fields of a layout, the length of a record, and whether numbers are big-endian.
fn layout(text: &str) -> Result<(Vec<Field>, usize, bool), String> {
    let bad = |what: String| format!("`layout` = \"{text}\": {what}");
    let (big_endian, fields) = match text.as_bytes().split_first() {
        Some((b'<', rest)) => (false, rest),
        Some((b'>', rest)) => (true, rest),
        _ => return Err(bad("must begin with < (little-endian) or > (big-endian)".to_owned())),
    };
    let (mut list, mut at, mut count) = (Vec::new(), 0usize, None);
    for &byte in fields {
        let bytes = match byte {
            b'0'..=b'9' => {
                let digit = usize::from(byte - b'0');
                count = Some((count.unwrap_or(0) * 10 + digit).min(RECORD_BYTES_MAX + 1));
                continue;
            }
            b'x' | b'b' | b'B' => 1,
            b'h' | b'H' => 2,
            b'i' | b'I' | b'l' | b'L' => 4,
            b'q' | b'Q' => 8,
            other => return Err(bad(format!("there is no field `{}`", other.escape_ascii()))),
        };
        for _ in 0..count.take().unwrap_or(1) {
            if byte != b'x' {
                list.push(Field { at, bytes, signed: byte.is_ascii_lowercase() });
            }
            at += bytes;
        }
        if at > RECORD_BYTES_MAX {
            return Err(bad(format!("a record has at most {RECORD_BYTES_MAX} bytes")));
        }
    }
    if at == 0 {
        return Err(bad("has no fields".to_owned()));
    }
    Ok((list, at, big_endian))
}

impl Binary {
    fn new(settings: &Settings) -> Result<Self, String> {
        let params = Parameters::from_settings(settings);
        let (fields, bytes, big_endian) = layout(&params.layout)?;
        let field = |name: &str, number: u64| {
            fields
                .get(number as usize - 1)
                .copied()
                .ok_or(format!("`{name}` = {number}, but `layout` has {} fields", fields.len()))
        };
        let optional =
            |name, number: Option<u64>| number.map(|number| field(name, number)).transpose();
        let unit_ns = match params.time_unit {
            TimeUnit::Seconds => 1_000_000_000,
            TimeUnit::Milliseconds => 1_000_000,
            TimeUnit::Microseconds => 1_000,
            TimeUnit::HundredNanoseconds => 100,
            TimeUnit::Nanoseconds => 1,
        };
        Ok(Self {
            bytes,
            big_endian,
            time: optional("time", params.time)?,
            unit_ns,
            op: optional("op", params.op)?,
            read: params.read,
            offset: field("offset", params.offset)?,
            size: optional("size", params.size)?,
            volume: optional("volume", params.volume)?,
            unit: params.unit,
            size_unit: params.size_unit,
        })
    }

    fn number(&self, field: Field, record: &[u8], name: &str) -> Result<u64, String> {
        let bytes = record[field.at..field.at + field.bytes].iter();
        let add = |value: u64, byte: &u8| value << 8 | u64::from(*byte);
        let value = if self.big_endian { bytes.fold(0, add) } else { bytes.rev().fold(0, add) };
        if field.signed && value >> (field.bytes * 8 - 1) == 1 {
            return Err(format!("the {name} is negative"));
        }
        Ok(value)
    }
}

impl RecordParser for Binary {
    fn bytes(&self) -> usize {
        self.bytes
    }

    fn has_times(&self) -> bool {
        self.time.is_some()
    }

    fn parse(&mut self, record: &[u8]) -> Result<ParsedRecord, String> {
        let scaled = |field: Field, unit: u64, name: &str| {
            let number = self.number(field, record, name)?;
            number.checked_mul(unit).ok_or_else(|| format!("the {name} is too large"))
        };
        let time_ns = match self.time {
            Some(field) => scaled(field, self.unit_ns, "time")?,
            None => 0,
        };
        let op = match self.op {
            Some(field) if self.number(field, record, "operation")? != self.read => Op::Write,
            _ => Op::Read,
        };
        let volume = match self.volume {
            Some(field) => self.number(field, record, "volume")?,
            None => 0,
        };
        let length = match self.size {
            Some(field) => scaled(field, self.size_unit, "size")?,
            None => self.unit,
        };
        // Addresses in sectors or larger units may be beyond 2^64 bytes.
        if self.unit.is_multiple_of(SECTOR_BYTES) {
            let start = scaled(self.offset, self.unit / SECTOR_BYTES, "address")?;
            let sectors = length.div_ceil(SECTOR_BYTES);
            let mut raw = RawRequest::sectors(time_ns, volume, op, start, sectors);
            raw.rounded = !length.is_multiple_of(SECTOR_BYTES);
            return Ok(ParsedRecord::Request(raw));
        }
        let offset = scaled(self.offset, self.unit, "address")?;
        Ok(ParsedRecord::Request(RawRequest::bytes(time_ns, volume, op, offset, length)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hybridsim_config::check::defaults;
    use hybridsim_config::param::Value;
    use hybridsim_config::registry::Registry;

    #[test]
    fn layouts() {
        let check = |text: &str, expect: &str| {
            let got = match layout(text) {
                Ok((fields, bytes, big)) => {
                    let list: Vec<_> = fields.iter().map(|f| (f.at, f.bytes, f.signed)).collect();
                    format!("{list:?} {bytes} {big}")
                }
                Err(message) => message,
            };
            assert!(got.contains(expect), "{text}: {got}");
        };
        check("<Q", "[(0, 8, false)] 8 false");
        check(">I2xq", "[(0, 4, false), (6, 8, true)] 14 true");
        check("<2Hb", "[(0, 2, false), (2, 2, false), (4, 1, true)] 5 false");
        check("Q", "must begin with");
        check("<", "has no fields");
        check("<Qz", "there is no field `z`");
        check("<99999999999999999999999Q", "at most 4096 bytes");
    }

    #[test]
    fn records() {
        let mut settings = defaults(Parameters::PARAMS, &Registry::default());
        settings.set("layout", Value::Text("<IQIB".to_owned()));
        for (name, field) in [("time", 1), ("offset", 2), ("size", 3), ("op", 4), ("read", 1)] {
            settings.set(name, Value::Count(field));
        }
        let mut parser = Binary::new(&settings).expect("it fits");
        let record = |object: u64, size: u32, op: u8| {
            [&7u32.to_le_bytes()[..], &object.to_le_bytes(), &size.to_le_bytes(), &[op]].concat()
        };
        let mut parse = |object, size, op| match parser.parse(&record(object, size, op)) {
            Ok(ParsedRecord::Request(raw)) => {
                format!("{} {} {}+{}", raw.time_ns, raw.op.name(), raw.start, raw.sectors)
            }
            Ok(ParsedRecord::Skipped(message)) => message.to_owned(),
            Err(message) => message,
        };
        assert_eq!(parse(99, 4096, 1), "7000000000 read 99+8");
        assert_eq!(parse(99, 513, 2), "7000000000 write 99+2");
        settings.set("unit", Value::Bytes(1 << 30));
        settings.set("offset", Value::Count(5));
        let error = Binary::new(&settings).err().expect("four fields");
        assert_eq!(error, "`offset` = 5, but `layout` has 4 fields");
        let mut bare = Binary::new(&defaults(Parameters::PARAMS, &Registry::default()))
            .expect("block numbers");
        assert!(!bare.has_times());
        let Ok(ParsedRecord::Request(raw)) = bare.parse(&5u64.to_le_bytes()) else { panic!() };
        assert_eq!((raw.start, raw.sectors, raw.op), (5, 1, Op::Read));
        let signed = defaults(Parameters::PARAMS, &Registry::default())
            .and("layout", Value::Text(">q".to_owned()));
        let mut signed = Binary::new(&signed).expect("it fits");
        let error = signed.parse(&(-5i64).to_be_bytes()).err();
        assert_eq!(error.as_deref(), Some("the address is negative"));
    }
}
