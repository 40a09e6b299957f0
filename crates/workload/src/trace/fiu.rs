//! FIU traces: `time pid process lba size op major minor md5`.

use super::FormatEntry;
use super::lines::{LineError, LineParser, ParsedLine, text_format};
use super::normalise::RawRequest;
use super::number::{self, NumberError};
use hybridsim_config::registry::Description;
use hybridsim_engine::Op;

pub(super) const ENTRY: FormatEntry = text_format::<Fiu>(
    Description {
        name: "fiu",
        summary: "FIU text: time in ns, process, LBA and size in sectors, W or R, device, MD5.",
        origin: "FIU IODedup traces (Koller and Rangaswami, FAST 2010), SNIA IOTTA",
        params: &[],
    },
    b"./x.blkparse\0\0\x00644\0\n28 ctime=1410000000.5\n\
        \0\0\x0089966000000000 42 nfsd 5080 8 W 6 0 00112233445566778899aabbccddeeff\n\
        89966000004000 42 nfsd 5088 8 R 6 1 00112233445566778899aabbccddeeff\n\0\0\0\0",
);

/// The files are members of tar archives, often extracted with header and padding.
const INCOMPLETE: &str = "lines without the nine columns (archive header, padding); left out";
const COLUMNS: usize = 9;

#[derive(Default)]
struct Fiu;

impl LineParser for Fiu {
    #[inline]
    fn parse(&mut self, line: &[u8]) -> Result<ParsedLine, LineError> {
        let start = line.iter().position(|byte| *byte != 0).unwrap_or(line.len());
        let mut columns: [&[u8]; COLUMNS] = [b""; COLUMNS];
        let mut count = 0;
        for column in line[start..].split(|b| *b == b' ').filter(|column| !column.is_empty()) {
            if count < COLUMNS {
                columns[count] = column;
            }
            count += 1;
        }
        if count != COLUMNS {
            return Ok(ParsedLine::Skipped(INCOMPLETE));
        }
        let whole = |at: usize, column| {
            number::whole(columns[at]).map_err(|error| LineError::number(column, error))
        };
        let time_ns = whole(0, "the time")?;
        let (start, sectors) = (whole(3, "the LBA")?, whole(4, "the size")?);
        let op = match columns[5] {
            b"W" => Op::Write,
            b"R" => Op::Read,
            _ => return Err(LineError::new("the op", "is neither W nor R")),
        };
        let (major, minor) = (whole(6, "the major number")?, whole(7, "the minor number")?);
        if major.max(minor) > u64::from(u32::MAX) {
            return Err(LineError::number("the device number", NumberError::TooLarge));
        }
        Ok(ParsedLine::Request(RawRequest::sectors(
            time_ns,
            major << 32 | minor,
            op,
            start,
            sectors,
        )))
    }

    fn label(&self, volume: u64) -> String {
        format!("{},{}", volume >> 32, volume & u64::from(u32::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::lines::check_line;

    #[test]
    fn lines() {
        let check = |line, expect: &str| check_line(&mut Fiu, line, expect);
        check("899 4253 nfsd 508 8 W 6 1 88b9", "899 ns, volume 6,1: write 508+8");
        check("\0\0899 4253 nfsd 508 8 R 6 0 88b9", "899 ns, volume 6,0: read 508+8");
        check("899 4253 nfsd 508 8 W 6 0", &format!("skipped: {INCOMPLETE}"));
        check("\0\0\0\0", &format!("skipped: {INCOMPLETE}"));
        check("899 4253 nfsd x 8 R 6 0 88b9", "the LBA is not a number");
        check("899 4253 nfsd 5 8 D 6 0 88b9", "the op is neither W nor R");
    }
}
