//! Meta's traces of Tectonic, a distributed file system: requests for parts of blocks.
//!
//! Baleen's files (Wong et al., FAST 2024) are text, whose columns differ by year; CacheLib's are
//! CSV with the names of columns in the first line, which CacheBench replays
//! (`BlockChunkReplayGenerator`). Columns and operations are those of Baleen's simulator
//! (BCacheSim, `legacy_utils.py`) and of CacheBench.
//!
//! A trace does not say where a device holds its blocks. Here every block has an extent of the
//! largest size of a block, and extents follow one another in order of first appearance: an
//! assumption, under which blocks that are written one after the other are sequential.

use super::extents::Extents;
use super::lines::{
    Blanks, Commas, LineError, LineParser, ParsedLine, Row, head_lines, open_lines, sniff_lines,
};
use super::names::NameTable;
use super::normalise::RawRequest;
use super::number::{self, NumberError};
use super::{Confidence, FormatEntry};
use hybridsim_config::param::Kind;
use hybridsim_config::registry::Description;
use hybridsim_engine::{Op, SECTOR_BYTES};

hybridsim_config::params! {
    struct Parameters {
        block_bytes: u64 = Kind::Bytes, default "\"8MiB\"",
            "Size of the extent that each block gets, the largest size of a block: a multiple of \
             512 bytes, up to 1 GiB. Memory grows with the number of blocks.";
    }
}

pub(super) const ENTRY: FormatEntry = FormatEntry {
    description: Description {
        name: "tectonic",
        summary: "Meta's block traces, of Baleen (text) and CacheLib (CSV): block, offset, bytes, \
                  seconds, operation. Blocks are laid out in order of first appearance.",
        origin: "Baleen (Wong et al., FAST 2024); CacheLib, CacheBench",
        params: Parameters::PARAMS,
    },
    // Numbers without names could be of something else.
    sniff: |head| {
        let confidence = match head_lines(head).any(|(line, _)| has_names(line)) {
            true => Confidence::Certain,
            false => Confidence::Likely,
        };
        sniff_lines(head, &mut Tectonic::new(BLOCK_BYTES), confidence)
    },
    open: |input| {
        let parser = Tectonic::new(Parameters::from_settings(&input.settings).block_bytes);
        open_lines(input, parser)
    },
    same_as: &[],
    sample: b"# block_id io_offset io_size op_time op_name user_namespace user_name rs_shard_id \
        op_count host_name\n\
        7001 0 131072 1679702400.25 1 3 12 4 1 88\n\
        7001 131072 65536 1679702400.5 2 3 12 4 2 88\n\
        7002 0 8388608 1679702401.25 4 3 9 0 1 91\n",
};

/// The default of `block_bytes`, as in Baleen's simulator.
const BLOCK_BYTES: u64 = 8 << 20;
/// The largest `op_count`.
const COUNT_MAX: u64 = 65_536;
const BEYOND: &str =
    "requests beyond the end of their block; left out (`block_bytes` is the size of blocks)";
const OTHER: &str = "requests that neither get nor put a chunk; left out";

/// Columns counted from 0, and their number.
#[derive(Clone, Copy)]
struct Layout {
    columns: usize,
    block: usize,
    offset: usize,
    size: usize,
    time: usize,
    op: usize,
    /// The shard or host, of which each has a block of this number.
    part: Option<usize>,
    /// How many equal requests the line stands for.
    count: Option<usize>,
}

impl Layout {
    /// The columns of a text of Baleen by their number: of 2019 (pipeline, namespace and user
    /// follow the operation), 2021 (namespace, user, host, count) and 2023 (namespace, user, shard,
    /// count, host).
    fn of_text(columns: usize) -> Option<Self> {
        let text = |part, count| {
            let (block, offset, size, time, op) = (0, 1, 2, 3, 4);
            Some(Self { columns, block, offset, size, time, op, part, count })
        };
        match columns {
            8 => text(None, None),
            9 | 10 => text(Some(7), Some(8)),
            _ => None,
        }
    }

    /// The columns that a first line names.
    fn of_names(row: &Row<'_>) -> Option<Self> {
        Some(Self {
            columns: row.columns().len(),
            block: row.position("block_id")?,
            offset: row.position("io_offset")?,
            size: row.position("io_size")?,
            time: row.position("op_time")?,
            op: row.position("op_name")?,
            part: row.position("rs_shard_id").or_else(|| row.position("host_name")),
            count: row.position("op_count"),
        })
    }
}

struct Tectonic {
    block_bytes: u64,
    layout: Option<Layout>,
    extents: Extents<Vec<u8>>,
    /// Block and part of the last line.
    key: Vec<u8>,
    /// The last request, and how many equal ones follow it.
    repeat: Option<(RawRequest, u64)>,
}

/// Whether a line has the names of columns.
fn has_names(line: &[u8]) -> bool {
    let is_csv = line.contains(&b',');
    let row = if is_csv { Commas::new(line).row() } else { Blanks::new(line).row() };
    // Text of Baleen has them in a comment.
    row.is_ok_and(|row| ["block_id", "io_offset"].iter().all(|it| row.position(it).is_some()))
}

/// The operation of a number or a name; `None` if it moves no data.
fn op(text: &[u8]) -> Result<Option<Op>, LineError> {
    match text {
        b"1" | b"2" | b"5" => Ok(Some(Op::Read)),
        b"3" | b"4" | b"6" => Ok(Some(Op::Write)),
        b"100" => Ok(None),
        text if text.starts_with(b"getChunkData") => Ok(Some(Op::Read)),
        text if text.starts_with(b"putChunk") => Ok(Some(Op::Write)),
        text if text.first().is_some_and(u8::is_ascii_alphabetic) => Ok(None),
        _ => Err(LineError::new("the operation", "is neither 1 to 6 nor 100, nor a name")),
    }
}

impl Tectonic {
    fn new(block_bytes: u64) -> Self {
        Self {
            block_bytes,
            layout: None,
            extents: Extents::default(),
            key: Vec::new(),
            repeat: None,
        }
    }
}

impl LineParser for Tectonic {
    fn parse(&mut self, line: &[u8]) -> Result<ParsedLine, LineError> {
        let is_csv = line.contains(&b',');
        let row = if is_csv { Commas::new(line).row()? } else { Blanks::new(line).row()? };
        let columns = row.columns();
        if self.layout.is_none() {
            self.layout = Layout::of_names(&row);
            if self.layout.is_some() {
                return Ok(ParsedLine::NoRequest);
            }
        }
        let of_text = || Layout::of_text(columns.len()).filter(|_| !is_csv);
        let layout = self.layout.or_else(of_text).ok_or(LineError::new(
            "the line",
            "has not the 8, 9 or 10 columns of Baleen's traces, and no line before it names \
             block_id, io_offset, io_size, op_time and op_name",
        ))?;
        if columns.len() != layout.columns {
            return Err(LineError::new("the line", "has not as many columns as the first line"));
        }
        let number = |column, at: usize| {
            number::whole(columns[at]).map_err(|error| LineError::number(column, error))
        };
        let time_ns = number::scaled(columns[layout.time], 9)
            .map_err(|error| LineError::number("the time", error))?;
        let Some(op) = op(columns[layout.op])? else { return Ok(ParsedLine::Skipped(OTHER)) };
        let (offset, size) =
            (number("the offset", layout.offset)?, number("the size", layout.size)?);
        NameTable::check("the block", columns[layout.block])?;
        if !is_csv {
            number("the block", layout.block)?;
        }
        let count = match layout.count {
            Some(at) if !columns[at].is_empty() => number("the count", at)?,
            _ => 1,
        };
        if count > COUNT_MAX {
            return Err(LineError::number("the count", NumberError::TooLarge));
        }
        if offset.checked_add(size).is_none_or(|end| end > self.block_bytes) {
            return Ok(ParsedLine::Skipped(BEYOND));
        }
        if count == 0 || size == 0 {
            return Ok(ParsedLine::NoRequest);
        }
        self.layout = Some(layout);
        self.key.clear();
        self.key.extend_from_slice(columns[layout.block]);
        self.key.push(0);
        self.key.extend_from_slice(layout.part.map_or(b"", |at| columns[at]));
        let start = self.extents.locate(self.key.as_slice(), self.block_bytes / SECTOR_BYTES);
        let start = start.saturating_mul(SECTOR_BYTES).saturating_add(offset);
        let raw = RawRequest::bytes(time_ns, 0, op, start, size);
        self.repeat = Some((raw, count - 1));
        Ok(ParsedLine::Request(raw))
    }

    fn repeated(&mut self) -> Option<RawRequest> {
        let (raw, left) = self.repeat.as_mut()?;
        *left = left.checked_sub(1)?;
        Some(*raw)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::detect::choose;
    use crate::trace::lines::check_line;
    use crate::trace::{ENTRIES, FileHead};

    fn parser() -> Tectonic {
        Tectonic::new(BLOCK_BYTES)
    }

    #[test]
    fn texts_of_each_year() {
        let mut of_2019 = parser();
        let mut check = |line, expect: &str| check_line(&mut of_2019, line, expect);
        check("70 512 1024 1.5 1 9 8 7", "1500000000 ns, volume 0: read 1+2");
        check("71 512 1024 1.5 3 9 8 7", "1500000000 ns, volume 0: write 16385+2");
        check("70 0 512 2 6 9 8 7", "2000000000 ns, volume 0: write 0+1");
        check("70 8388096 512 2 5 9 8 7", "2000000000 ns, volume 0: read 16383+1");
        check("70 8388096 513 2 5 9 8 7", &format!("skipped: {BEYOND}"));
        check("70 18446744073709551615 512 2 5 9 8 7", &format!("skipped: {BEYOND}"));
        check("70 0 512 2 100 9 8 7", &format!("skipped: {OTHER}"));
        check("70 0 0 2 1 9 8 7", "no request");
        check("70 0 512 2 7 9 8 7", "the operation is neither 1 to 6 nor 100, nor a name");
        check("70 0 512 -2 1 9 8 7", "the time is negative");
        check("7x 0 512 2 1 9 8 7", "the block is not a number");
        check("70 0 512 2 1 9 8 7 6", "the line has not as many columns as the first line");
        // The same number on another host, or in another shard, is another block.
        let mut of_2021 = parser();
        check_line(&mut of_2021, "70 0 512 2 1 8 7 55 1", "2000000000 ns, volume 0: read 0+1");
        check_line(&mut of_2021, "70 0 512 2 1 8 7 56 1", "2000000000 ns, volume 0: read 16384+1");
        let mut of_2023 = parser();
        check_line(&mut of_2023, "70 0 512 2 1 8 7 0 1 55", "2000000000 ns, volume 0: read 0+1");
        check_line(&mut of_2023, "70 0 512 2 1 8 7 0 1 56", "2000000000 ns, volume 0: read 0+1");
        let large = "70 0 512 2 1 8 7 0 65537 56";
        check_line(&mut of_2023, large, "the count is too large");
    }

    #[test]
    fn every_kind_is_found_by_content() {
        let names = "op_time,block_id,block_id_size,io_size,io_offset,user_name,user_namespace,\
                     op_name,op_count,host_name,rs_shard_id\n\
                     5,ab7,16,1024,512,u,n,getChunkData.Temp,1,h,2\n";
        // Whole seconds have the columns of BIOtracer's logs.
        for text in [
            "# of 2019\n70 512 1024 1570000000 1 9 8 7\n71 512 1024 1570000001 3 9 8 7\n",
            "70 512 1024 1634000000.5 1 9 8 7 2\n71 512 1024 1634000001 3 9 8 7 1\n",
            "70 512 1024 1679702400 1 9 8 0 2 7\n71 512 1024 1679702401 3 9 8 0 1 7\n",
            names,
        ] {
            let head = FileHead { bytes: text.as_bytes(), whole: true };
            let found = choose(ENTRIES, &head).unwrap_or_else(|error| panic!("{text}: {error}"));
            let is_guess = text != names;
            assert_eq!(
                (found.entry.description.name, found.detection.is_guess()),
                ("tectonic", is_guess)
            );
            assert!(!found.also.contains(&"biotracer"), "{text}");
        }
    }

    #[test]
    fn tables_with_names() {
        let mut table = parser();
        let mut check = |line, expect: &str| check_line(&mut table, line, expect);
        check("op_time,block_id,io_size,io_offset,op_name,op_count,rs_shard_id", "no request");
        check("5,ab7,1024,512,getChunkData.Temp,1,2", "5000000000 ns, volume 0: read 1+2");
        check("5,ab7,1024,512,putChunk.Permanent,,3", "5000000000 ns, volume 0: write 16385+2");
        check("5,,1024,512,putChunk,1,3", "the block is missing");
        let mut of_hosts = parser();
        let mut check = |line, expect: &str| check_line(&mut of_hosts, line, expect);
        check("op_time,block_id,io_size,io_offset,op_name,host_name", "no request");
        check("5,ab7,512,0,putChunk,h1", "5000000000 ns, volume 0: write 0+1");
        check("5,ab7,512,0,putChunk,h2", "5000000000 ns, volume 0: write 16384+1");
        let mut check = |line, expect: &str| check_line(&mut table, line, expect);
        check("5,ab7,1024,512,deleteChunk,1,3", &format!("skipped: {OTHER}"));
        check("5,ab7,1024,512,putChunk", "the line has not as many columns as the first line");
        let mut bare = parser();
        check_line(
            &mut bare,
            "5,ab7,1024,512,getChunkData,1,2",
            "the line has not the 8, 9 or 10 columns of Baleen's traces, and no line before it \
             names block_id, io_offset, io_size, op_time and op_name",
        );
    }

    #[test]
    fn a_line_stands_for_equal_requests() {
        let mut of_2023 = parser();
        let line = "70 0 512 2 1 8 7 0 4 55";
        check_line(&mut of_2023, line, "2000000000 ns, volume 0: read 0+1");
        let times: Vec<_> =
            std::iter::from_fn(|| of_2023.repeated().map(|raw| raw.time_ns)).collect();
        assert_eq!(times, [2_000_000_000; 3]);
        check_line(&mut of_2023, "70 0 512 3 1 8 7 0 1 55", "3000000000 ns, volume 0: read 0+1");
        assert_eq!(of_2023.repeated(), None);
    }
}
