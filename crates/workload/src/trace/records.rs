//! Binary formats with records of one length.

use super::Opening;
use super::bytes::Input;
use super::rows::{Notes, Records, Row, RowSource};
use crate::record::{Place, RecordReader, TraceError};

/// What a record turned out to be.
pub(crate) enum Entry {
    Row(Row),
    /// Left out with this warning.
    Odd(&'static str),
}

/// Reads one record at a time.
pub(crate) trait EntryParser {
    /// Bytes of a record.
    fn bytes(&self) -> usize;
    /// Reads a record of that many bytes, or says what is wrong with it.
    fn parse(&mut self, record: &[u8]) -> Result<Entry, String>;
}

/// A binary file as rows.
struct Entries<P> {
    input: Input,
    parser: P,
    record: u64,
}

pub(crate) const CUT: &str = "the last record is cut off; left out";

impl<P: EntryParser> RowSource for Entries<P> {
    fn next_row(&mut self, notes: &mut Notes) -> Result<Option<Row>, TraceError> {
        let bytes = self.parser.bytes();
        loop {
            let place = Place::Record(self.record + 1);
            let held = self.input.peek(bytes, place)?;
            if held.is_empty() {
                return Ok(None);
            }
            if held.len() < bytes {
                notes.note(place, CUT);
                let rest = held.len();
                self.input.consume(rest);
                return Ok(None);
            }
            let entry = self.parser.parse(held);
            self.input.consume(bytes);
            self.record += 1;
            match entry {
                Ok(Entry::Row(row)) => return Ok(Some(row)),
                Ok(Entry::Odd(message)) => notes.note(place, message),
                Err(message) => return Err(self.input.error(place, message)),
            }
        }
    }

    fn place(&self) -> Place {
        Place::Record(self.record)
    }

    fn input(&self) -> &Input {
        &self.input
    }
}

/// Opens a binary format.
pub(crate) fn open_entries<P: EntryParser + 'static>(
    opening: Opening,
    parser: P,
) -> Box<dyn RecordReader> {
    let Opening { input, reorder_records, .. } = opening;
    Box::new(Records::new(Entries { input, parser, record: 0 }, reorder_records))
}

/// Little-endian numbers at an offset of a record.
pub(crate) fn u16_at(record: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([record[at], record[at + 1]])
}
pub(crate) fn u32_at(record: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(record[at..at + 4].try_into().expect("four bytes"))
}
pub(crate) fn u64_at(record: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(record[at..at + 8].try_into().expect("eight bytes"))
}
