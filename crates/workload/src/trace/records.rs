//! Binary formats with records of fixed length.

use super::FormatInput;
use super::bytes::TraceFile;
use super::normalise::{NormalisedReader, RawRequest, RequestSource, WarningLog};
use crate::record::{RecordReader, SourceLocation, TraceResult};

pub(crate) enum ParsedRecord {
    Request(RawRequest),
    /// Left out with this warning.
    Skipped(&'static str),
}

/// Parses one record at a time.
pub(crate) trait RecordParser {
    /// Length of a record.
    fn bytes(&self) -> usize;
    /// Whether records have times.
    fn has_times(&self) -> bool {
        true
    }
    /// Parses a record of that many bytes. The error names the problem.
    fn parse(&mut self, record: &[u8]) -> Result<ParsedRecord, String>;
}

/// The requests of a binary file.
struct RecordSource<P> {
    file: TraceFile,
    parser: P,
    record: u64,
    /// Whether any record was a request.
    read: bool,
}

pub(crate) const CUT: &str = "the last record is truncated; left out";

impl<P: RecordParser> RecordSource<P> {
    /// Reads until the next record is buffered. Returns whether there is one.
    #[cold]
    fn buffer(&mut self, bytes: usize, warnings: &mut WarningLog) -> TraceResult<bool> {
        let location = SourceLocation::Record(self.record + 1);
        let held = self.file.peek(bytes, location)?.len();
        if held < bytes && held > 0 {
            warnings.add(location, CUT);
            self.file.consume(held);
        }
        Ok(held == bytes)
    }

    #[cold]
    fn skip(&self, message: &str, warnings: &mut WarningLog) {
        warnings.add(self.location(), message);
    }

    #[cold]
    fn skip_bad(&self, message: String, warnings: &mut WarningLog) -> TraceResult<()> {
        warnings.bad_record(self.file.error(self.location(), message), self.read)
    }
}

impl<P: RecordParser> RequestSource for RecordSource<P> {
    #[inline(always)]
    fn next_request(
        &mut self,
        request: &mut RawRequest,
        warnings: &mut WarningLog,
    ) -> TraceResult<bool> {
        let bytes = self.parser.bytes();
        loop {
            let Some(held) = self.file.buffered(bytes) else {
                match self.buffer(bytes, warnings)? {
                    true => continue,
                    false => return Ok(false),
                }
            };
            let record = self.parser.parse(held);
            self.file.consume(bytes);
            self.record += 1;
            match record {
                Ok(ParsedRecord::Request(raw)) => {
                    self.read = true;
                    *request = raw;
                    return Ok(true);
                }
                Ok(ParsedRecord::Skipped(message)) => self.skip(message, warnings),
                Err(message) => self.skip_bad(message, warnings)?,
            }
        }
    }

    fn location(&self) -> SourceLocation {
        SourceLocation::Record(self.record)
    }

    fn file(&self) -> &TraceFile {
        &self.file
    }

    fn has_times(&self) -> bool {
        self.parser.has_times()
    }
}

pub(crate) fn open_records<P: RecordParser + 'static>(
    input: FormatInput,
    parser: P,
) -> Box<dyn RecordReader> {
    let FormatInput { file, reorder_records, warnings, .. } = input;
    let source = RecordSource { file, parser, record: 0, read: false };
    Box::new(NormalisedReader::new(source, reorder_records, warnings))
}

/// Little-endian numbers at an offset of a record.
#[inline]
pub(crate) fn u16_at(record: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([record[at], record[at + 1]])
}
#[inline]
pub(crate) fn u32_at(record: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(record[at..at + 4].try_into().expect("four bytes"))
}
#[inline]
pub(crate) fn u64_at(record: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(record[at..at + 8].try_into().expect("eight bytes"))
}
