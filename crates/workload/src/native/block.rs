//! A block's content: the names of volumes that are new in it, then its records by column.

use super::NAME_BYTES_MAX;
use super::column::{ByteCursor, Damage, put_column, put_varint, unzigzag, zigzag};
use crate::record::Record;
use hybridsim_engine::{Flags, Lba, Op, Request, SimDuration, SimTime};

/// Buffers reused from block to block.
#[derive(Default)]
pub struct ColumnBuffers {
    column: Vec<u64>,
    /// Per volume, the end of its last request: the prediction of the next address.
    ends: Vec<u64>,
}

impl ColumnBuffers {
    fn reset(&mut self) {
        self.ends.fill(0);
    }

    fn end_of(&mut self, volume: u16) -> &mut u64 {
        let volume = usize::from(volume);
        if volume >= self.ends.len() {
            self.ends.resize(volume + 1, 0);
        }
        &mut self.ends[volume]
    }

    fn put(&mut self, out: &mut Vec<u8>, records: &[Record], value: impl Fn(&Record) -> u64) {
        self.column.clear();
        self.column.extend(records.iter().map(value));
        put_column(out, &self.column);
    }
}

/// Appends `names` and `records` to `out`.
pub fn encode(
    out: &mut Vec<u8>,
    names: &[String],
    records: &[Record],
    buffers: &mut ColumnBuffers,
) {
    put_varint(out, names.len() as u64);
    for name in names {
        put_varint(out, name.len() as u64);
        out.extend_from_slice(name.as_bytes());
    }
    let base = records.first().map_or(0, |record| record.at.as_ns());
    put_varint(out, base);
    buffers.put(out, records, |record| record.request.op.code().into());
    buffers.put(out, records, |record| u64::from(record.request.flags.0));
    buffers.put(out, records, |record| u64::from(record.request.volume));
    buffers.put(out, records, |record| u64::from(record.request.sectors));
    buffers.put(out, records, |record| {
        record.response.map_or(0, |time| time.as_ns().saturating_add(1))
    });
    let mut column = std::mem::take(&mut buffers.column);
    column.clear();
    let mut before = base;
    column.extend(records.iter().map(|record| {
        let at = record.at.as_ns();
        at - std::mem::replace(&mut before, at)
    }));
    put_column(out, &column);
    column.clear();
    buffers.reset();
    for record in records {
        let request = &record.request;
        let predicted = std::mem::replace(buffers.end_of(request.volume), request.end().0);
        column.push(zigzag(request.lba.0.wrapping_sub(predicted)));
    }
    put_column(out, &column);
    buffers.column = column;
}

/// The inverse of [`encode`]: replaces `records` and appends to `names`.
pub fn decode(
    content: &[u8],
    count: usize,
    names: &mut Vec<String>,
    records: &mut Vec<Record>,
    buffers: &mut ColumnBuffers,
) -> Result<(), Damage> {
    let mut bytes = ByteCursor(content);
    decode_names(&mut bytes, names)?;
    let base = bytes.varint()?;
    records.clear();
    let request = Request::new(Op::Read, Lba(0), 0);
    records.resize(count, Record { at: SimTime::ZERO, request, response: None });
    bytes.column(
        records,
        |value| Op::from_code(value).ok_or("an operation is unknown"),
        |record, op| record.request.op = op,
    )?;
    bytes.column(
        records,
        |value| u16::try_from(value).map_err(|_| "flags are out of range"),
        |record, flags| record.request.flags = Flags(flags),
    )?;
    bytes.column(
        records,
        |value| u16::try_from(value).map_err(|_| "a volume number is out of range"),
        |record, volume| record.request.volume = volume,
    )?;
    bytes.column(
        records,
        |value| u32::try_from(value).map_err(|_| "a length is out of range"),
        |record, sectors| record.request.sectors = sectors,
    )?;
    bytes.column(
        records,
        |value| Ok(value.checked_sub(1).map(SimDuration::from_ns)),
        |record, response| record.response = response,
    )?;
    let mut at = base;
    bytes.differences(records, |record, value| {
        at = at.checked_add(value).ok_or("a time is out of range")?;
        record.at = SimTime::from_ns(at);
        Ok(())
    })?;
    buffers.reset();
    bytes.differences(records, |record, value| {
        let request = &mut record.request;
        let end = buffers.end_of(request.volume);
        request.lba = Lba(end.wrapping_add(unzigzag(value)));
        *end = request.end().0;
        Ok(())
    })?;
    if bytes.0.is_empty() { Ok(()) } else { Err("its content is longer than its header says") }
}

fn decode_names(bytes: &mut ByteCursor<'_>, names: &mut Vec<String>) -> Result<(), Damage> {
    let count = bytes.varint()?;
    for _ in 0..count {
        if names.len() > usize::from(u16::MAX) {
            return Err("it has names of more than 65,536 volumes");
        }
        let length = bytes.varint()?;
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        if length > NAME_BYTES_MAX {
            return Err("the name of a volume is too long");
        }
        let name = std::str::from_utf8(bytes.take(length)?);
        names.push(name.map_err(|_| "the name of a volume is not UTF-8")?.to_owned());
    }
    Ok(())
}
