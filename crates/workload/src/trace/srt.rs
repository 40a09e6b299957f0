//! HP Labs' SRT 1.3: a text header up to a form feed, then big-endian records of 32-bit words.

use super::bytes::{HEAD_BYTES, TraceFile};
use super::normalise::{NormalisedReader, RawRequest, RequestSource, WarningLog};
use super::number;
use super::records::CUT;
use super::{Confidence, FormatEntry};
use crate::record::{SourceLocation, TraceResult};
use hybridsim_config::registry::Description;
use hybridsim_engine::{Flags, Op};

pub(super) const ENTRY: FormatEntry = FormatEntry {
    description: Description {
        name: "srt",
        summary: "HP SRT 1.3 binary, with measured times; one volume per disk.",
        origin: "HP Labs traces (Ruemmler and Wilkes, USENIX Winter 1993)",
        params: &[],
    },
    sniff: |head| match head.bytes.starts_with(MAGIC) {
        true => Confidence::Certain,
        false => Confidence::No,
    },
    open: |input| {
        let source = Srt::new(input.file)?;
        Ok(Box::new(NormalisedReader::new(source, input.reorder_records, input.warnings)))
    },
    same_as: &[],
    sample: b"$$TR_IOREC-1.3 (sample)\0\nversion = 1.3;\nsectorsize  = 256,\n\x0c\
        \0\0\0\x38\0\x01\0\x01\x2a\0\0\0\0\0\0\x05\0\0\x01\0\0\0\x62\0\0\0\x20\0\0\0\x08\0\
        \0\0\x04\0\0\0\0\x01\0\0\0\x07\x01\0\0\x01\0\0\0\0\0\0\0\x02\
        \0\0\0\x38\0\x01\0\x01\x2a\0\0\0\0\0\0\x15\0\0\x01\0\0\0\x52\0\0\0\x02\0\0\0\x08\x21\
        \0\0\x05\0\0\0\0\x01\0\0\0\x07\0\0\x01\0\0\0\0\0\0\0\0\x02",
};

const MAGIC: &[u8] = b"$$TR_IOREC-1.3";
const FORM_FEED: u8 = 0x0c;
/// Length of a "short I/O" record.
const SHORT_WORDS: usize = 14;
const SHORT: u32 = 1;

struct Srt {
    file: TraceFile,
    record: u64,
    sector_bytes: u64,
}

/// The sector size in the header.
fn sector_bytes(header: &[u8]) -> Result<u64, &'static str> {
    const KEY: &[u8] = b"sectorsize";
    const UNCLEAR: &str = "the header's sectorsize is not a number from 1 to 65,536";
    let mut found = None;
    for at in memchr::memmem::find_iter(header, KEY) {
        let rest = header[at + KEY.len()..].trim_ascii_start();
        let rest = rest.strip_prefix(b"=").ok_or(UNCLEAR)?.trim_ascii_start();
        let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let bytes = number::whole(&rest[..digits]).map_err(|_| UNCLEAR)?;
        if bytes == 0 || bytes > 65_536 {
            return Err(UNCLEAR);
        }
        if found.is_some_and(|other| other != bytes) {
            return Err("the header has disks with different sectorsize; split the trace by disk");
        }
        found = Some(bytes);
    }
    Ok(found.unwrap_or(256))
}

impl Srt {
    fn new(mut file: TraceFile) -> TraceResult<Self> {
        let head = file.peek(HEAD_BYTES, SourceLocation::File)?;
        let header = match memchr::memchr(FORM_FEED, head) {
            Some(end) if head.starts_with(MAGIC) => &head[..end],
            _ => {
                let message = "no SRT 1.3 header: $$TR_IOREC-1.3 ... form feed, within 64 KiB";
                return Err(file.error(SourceLocation::File, message));
            }
        };
        let (sector_bytes, length) = (sector_bytes(header), header.len() + 1);
        let sector_bytes =
            sector_bytes.map_err(|message| file.error(SourceLocation::File, message))?;
        file.consume(length);
        Ok(Self { file, record: 0, sector_bytes })
    }

    /// The first words of the next record; `None` at the end.
    fn words(&mut self, warnings: &mut WarningLog) -> TraceResult<Option<[u32; SHORT_WORDS]>> {
        let location = SourceLocation::Record(self.record + 1);
        let first = self.file.peek(4, location)?;
        let held = first.len();
        let size = match first.try_into() {
            Ok(bytes) => u32::from_be_bytes(bytes) as usize,
            Err(_) => {
                if held > 0 {
                    warnings.add(location, CUT);
                    self.file.consume(held);
                }
                return Ok(None);
            }
        };
        if !(8..=4096).contains(&size) || !size.is_multiple_of(4) {
            let message = format!("a record of {size} bytes: the trace is damaged here");
            return Err(self.file.error(location, message));
        }
        let bytes = self.file.peek(size, location)?;
        let held = bytes.len();
        let mut words = [0; SHORT_WORDS];
        for (word, bytes) in words.iter_mut().zip(bytes.chunks_exact(4)) {
            *word = u32::from_be_bytes(bytes.try_into().expect("four bytes"));
        }
        self.file.consume(held);
        if held < size {
            warnings.add(location, CUT);
            return Ok(None);
        }
        self.record += 1;
        if words[1] & 0xffff == SHORT && size < SHORT_WORDS * 4 {
            let message = format!("a short-I/O record of {size} bytes: the trace is damaged here");
            return Err(self.file.error(location, message));
        }
        Ok(Some(words))
    }

    fn request(&self, words: &[u32; SHORT_WORDS]) -> RawRequest {
        let [_, _, seconds, microseconds, _start, stop, size, sector, device, ..] = *words;
        let flags = words[11];
        let us = |us: u32| u64::from(us) * 1000;
        let time_ns = u64::from(seconds) * 1_000_000_000 + us(microseconds);
        let op = if flags & 1 == 1 { Op::Read } else { Op::Write };
        let sync = if flags & 0x100_0000 != 0 { Flags::SYNC } else { Flags::NONE };
        let disk = u64::from(device >> 8 & 0xff);
        let offset = u64::from(sector) * self.sector_bytes;
        RawRequest::bytes(time_ns, disk, op, offset, u64::from(size))
            .with_flags(sync)
            .with_response(us(stop))
    }
}

impl RequestSource for Srt {
    fn next_request(
        &mut self,
        request: &mut RawRequest,
        warnings: &mut WarningLog,
    ) -> TraceResult<bool> {
        while let Some(words) = self.words(warnings)? {
            if words[1] & 0xffff == SHORT {
                *request = self.request(&words);
                return Ok(true);
            }
            warnings.add(self.location(), "records other than short I/O; left out");
        }
        Ok(false)
    }

    fn location(&self) -> SourceLocation {
        SourceLocation::Record(self.record)
    }

    fn file(&self) -> &TraceFile {
        &self.file
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sector_sizes_of_the_header() {
        let check = |header: &str, expect: Result<u64, ()>| {
            assert_eq!(sector_bytes(header.as_bytes()).map_err(drop), expect, "{header}");
        };
        check("", Ok(256));
        check("sectorsize  = 512,\nsectorsize=512", Ok(512));
        check("sectorsize  = 512,\nsectorsize = 256", Err(()));
        check("sectorsize", Err(()));
        check("sectorsize = 0", Err(()));
        check("sectorsize = 99999999999999999999999", Err(()));
    }
}
