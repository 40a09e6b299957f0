//! Reads the native format as a stream, with memory for one block whatever the header says.

use super::block::{ColumnBuffers, decode};
use super::{
    BLOCK_BYTES_MAX, BLOCK_HEADER_BYTES, BLOCK_MARK, BLOCK_RECORDS_MAX, END_BYTES, END_MARK,
    HEADER_BYTES_MAX, Header, MAGIC, PREAMBLE_BYTES, VERSION, checksum,
};
use crate::record::{
    BATCH_RECORDS, Record, RecordReader, SourceLocation, TraceError, TraceResult, Warning,
};
use hybridsim_engine::{SECTOR_BYTES, SimDuration, SimTime};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// The totals in the end section of a native trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Totals {
    /// Requests.
    pub records: u64,
    /// Time from the first to the last arrival.
    pub span: SimDuration,
    pub volumes: u32,
    /// BLAKE3 of everything before the end section, in hexadecimal.
    pub digest: String,
}

/// Reads a native trace.
pub struct NativeReader<R: Read> {
    input: R,
    path: PathBuf,
    header: Header,
    totals: Option<Totals>,
    digest: blake3::Hasher,
    decompressor: hybridsim_codecs::Decompressor<'static>,
    buffers: ColumnBuffers,
    compressed: Vec<u8>,
    content: Vec<u8>,
    names: Vec<String>,
    records: Vec<Record>,
    /// Index of the next record in `records`.
    at: usize,
    /// Records of earlier blocks.
    before: u64,
    blocks: u64,
    bytes_read: u64,
    bytes_total: Option<u64>,
    last: SimTime,
    volumes_used: u32,
    ended: bool,
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

fn long(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

impl<R: Read> NativeReader<R> {
    /// Reads the header. `path` is for messages; `bytes_total`, where known, for progress.
    ///
    /// # Errors
    /// If this is not a native trace, or of a newer version, or its header is damaged.
    pub fn new(input: R, path: &Path, bytes_total: Option<u64>) -> TraceResult<Self> {
        let decompressor = hybridsim_codecs::Decompressor::new()
            .map_err(|error| TraceError::new(path, SourceLocation::File, error.to_string()))?;
        let mut reader = Self {
            input,
            path: path.to_owned(),
            header: Header::default(),
            totals: None,
            digest: blake3::Hasher::new(),
            decompressor,
            buffers: ColumnBuffers::default(),
            compressed: Vec::new(),
            content: Vec::new(),
            names: Vec::new(),
            records: Vec::new(),
            at: 0,
            before: 0,
            blocks: 0,
            bytes_read: 0,
            bytes_total,
            last: SimTime::ZERO,
            volumes_used: 0,
            ended: false,
        };
        reader.read_header()?;
        Ok(reader)
    }

    pub fn header(&self) -> &Header {
        &self.header
    }

    pub(crate) const fn input(&self) -> &R {
        &self.input
    }

    /// The totals in the end section, once it has been reached and verified.
    pub fn totals(&self) -> Option<&Totals> {
        self.totals.as_ref()
    }

    fn fail(&self, location: SourceLocation, message: impl Into<String>) -> TraceError {
        TraceError::new(&self.path, location, message)
    }

    fn block_error(&self, what: &str) -> TraceError {
        let records = self.before + self.records.len() as u64 + 1;
        let message = format!(
            "block {} at byte {}: {what}; convert or copy the trace again",
            self.blocks + 1,
            self.bytes_read
        );
        self.fail(SourceLocation::Record(records), message)
    }

    /// Fills `buffer` with `length` bytes, or fewer at the end of the file.
    fn fetch(&mut self, buffer: &mut Vec<u8>, length: usize) -> TraceResult<usize> {
        buffer.clear();
        let mut bytes = (&mut self.input).take(length as u64);
        match bytes.read_to_end(buffer) {
            Ok(read) => Ok(read),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(buffer.len()),
            Err(error) => Err(self.block_error(&format!("it cannot be read ({error})"))),
        }
    }

    fn read_header(&mut self) -> TraceResult<()> {
        let mut bytes = Vec::new();
        self.fetch(&mut bytes, PREAMBLE_BYTES)?;
        let common = bytes.len().min(MAGIC.len());
        if bytes.is_empty() || bytes[..common] != MAGIC[..common] {
            return Err(self.fail(SourceLocation::File, "this is not a native trace (.hst)"));
        }
        let cut = "the file ends within its header: it is truncated; copy it again";
        if bytes.len() < PREAMBLE_BYTES {
            return Err(self.fail(SourceLocation::File, cut));
        }
        let version = u16::from_le_bytes([bytes[8], bytes[9]]);
        let length = word(&bytes, 12);
        if version == 0 || version > VERSION {
            let message = format!(
                "the header says version {version} of the native format, this program reads \
                 version {VERSION}: use a newer hybridsim, or the file is damaged"
            );
            return Err(self.fail(SourceLocation::File, message));
        }
        if length > HEADER_BYTES_MAX {
            let message =
                format!("the header has a length of {length} bytes; the maximum is 1 MiB");
            return Err(self.fail(SourceLocation::File, message));
        }
        let mut body = Vec::new();
        let body_length = length as usize + 4;
        if self.fetch(&mut body, body_length)? < body_length {
            return Err(self.fail(SourceLocation::File, cut));
        }
        let (content, sum) = body.split_at(length as usize);
        if checksum(&[&bytes, content]) != word(sum, 0) {
            let message = "the header is damaged: its checksum does not match; copy it again";
            return Err(self.fail(SourceLocation::File, message));
        }
        self.header = decode_header(content).map_err(|message| {
            self.fail(SourceLocation::File, format!("the header is not valid: {message}"))
        })?;
        self.digest.update(&bytes).update(&body);
        self.bytes_read = (bytes.len() + body.len()) as u64;
        Ok(())
    }

    /// Reads the next block into `records`; leaves it empty at the end of the file.
    fn read_block(&mut self) -> TraceResult<()> {
        self.before += self.records.len() as u64;
        self.records.clear();
        self.at = 0;
        let mut compressed = std::mem::take(&mut self.compressed);
        let result = self.read_section(&mut compressed);
        self.compressed = compressed;
        result
    }

    fn read_section(&mut self, buffer: &mut Vec<u8>) -> TraceResult<()> {
        if self.fetch(buffer, 4)? < 4 {
            return Err(self.block_error("the file ends without its end mark: it is truncated"));
        }
        match <[u8; 4]>::try_from(&buffer[..]).expect("four bytes") {
            BLOCK_MARK => self.read_records(buffer),
            END_MARK => self.read_end(buffer),
            _ => Err(self.block_error("neither a block nor the end section starts here")),
        }
    }

    fn read_records(&mut self, buffer: &mut Vec<u8>) -> TraceResult<()> {
        if self.fetch(buffer, BLOCK_HEADER_BYTES - 4)? < BLOCK_HEADER_BYTES - 4 {
            return Err(self.block_error("the file is truncated within the block's header"));
        }
        let head: [u8; BLOCK_HEADER_BYTES - 4] = buffer[..].try_into().expect("its length");
        let (count, length, compressed) = (word(&head, 0), word(&head, 4), word(&head, 8));
        let compressed_max = hybridsim_codecs::compress_bound(BLOCK_BYTES_MAX as usize);
        if !(1..=BLOCK_RECORDS_MAX).contains(&count)
            || length > BLOCK_BYTES_MAX
            || compressed as usize > compressed_max
        {
            return Err(self.block_error("its header exceeds the maximum of a block"));
        }
        if self.fetch(buffer, compressed as usize)? < compressed as usize {
            return Err(self.block_error("the file is truncated within the block"));
        }
        if checksum(&[&BLOCK_MARK, &head[..12], buffer]) != word(&head, 12) {
            return Err(self.block_error("its checksum does not match: the file is damaged"));
        }
        self.digest.update(&BLOCK_MARK).update(&head).update(buffer);
        self.content.clear();
        self.content.reserve(length as usize);
        let unpacked = self.decompressor.decompress_to_buffer(&buffer[..], &mut self.content);
        if unpacked.ok() != Some(length as usize) {
            return Err(self.block_error("it does not decompress to the length in its header"));
        }
        let (names, records) = (&mut self.names, &mut self.records);
        let decoded = decode(&self.content, count as usize, names, records, &mut self.buffers);
        let in_order = self.records.first().is_some_and(|first| first.at >= self.last);
        if let Err(damage) = decoded {
            self.records.clear();
            return Err(self.block_error(damage));
        }
        if !in_order {
            self.records.clear();
            return Err(self.block_error("its times decrease"));
        }
        self.last = self.records.last().map_or(self.last, |record| record.at);
        let volumes = self.records.iter().map(|record| u32::from(record.request.volume) + 1);
        self.volumes_used = volumes.max().unwrap_or(0).max(self.volumes_used);
        self.blocks += 1;
        self.bytes_read += u64::from(compressed) + BLOCK_HEADER_BYTES as u64;
        Ok(())
    }

    fn read_end(&mut self, buffer: &mut Vec<u8>) -> TraceResult<()> {
        let location = SourceLocation::Record(self.before + 1);
        let length = END_BYTES - 4;
        let problem = if self.fetch(buffer, length)? < length {
            "the file is truncated within its end section"
        } else if checksum(&[&END_MARK, &buffer[..length - 4]]) != word(buffer, length - 4) {
            "the end section is damaged: its checksum does not match"
        } else if !self.totals_match(buffer) {
            "the totals in the end section do not match the blocks: some are missing or changed"
        } else if self.before == 0 {
            "the trace has no requests"
        } else {
            self.ended = true;
            let mut rest = Vec::new();
            if self.fetch(&mut rest, 1)? == 0 {
                return Ok(());
            }
            "there are data after the end of the trace"
        };
        let message =
            format!("after {} blocks, at byte {}: {problem}", self.blocks, self.bytes_read);
        Err(self.fail(location, message))
    }

    fn totals_match(&mut self, end: &[u8]) -> bool {
        let totals = Totals {
            records: long(end, 0),
            span: SimDuration::from_ns(long(end, 8)),
            volumes: word(end, 16),
            digest: self.digest.finalize().to_hex().to_string(),
        };
        let header = &self.header;
        let fits = totals.records == self.before
            && totals.span.as_ns() == self.last.as_ns()
            && totals.volumes == self.volumes_used.max(self.names.len() as u32)
            && long(end, 20) == self.blocks
            && &end[28..60] == self.digest.finalize().as_bytes()
            && header.records.is_none_or(|records| records == totals.records)
            && header.span.is_none_or(|span| span == totals.span)
            && header.volumes.is_none_or(|volumes| volumes == totals.volumes);
        self.totals = fits.then_some(totals);
        fits
    }
}

impl<R: Read> RecordReader for NativeReader<R> {
    #[inline]
    fn next(&mut self) -> TraceResult<Option<Record>> {
        if let Some(record) = self.records.get(self.at) {
            self.at += 1;
            return Ok(Some(*record));
        }
        if self.ended {
            return Ok(None);
        }
        if let Err(error) = self.read_block() {
            self.ended = true;
            return Err(error);
        }
        let record = self.records.first().copied();
        self.at = usize::from(record.is_some());
        Ok(record)
    }

    fn next_batch(&mut self, batch: &mut Vec<Record>) -> TraceResult<()> {
        batch.clear();
        if self.at >= self.records.len()
            && !self.ended
            && let Err(error) = self.read_block()
        {
            self.ended = true;
            return Err(error);
        }
        let end = self.records.len().min(self.at + BATCH_RECORDS);
        batch.extend_from_slice(self.records.get(self.at..end).unwrap_or(&[]));
        self.at = end;
        Ok(())
    }

    fn warnings(&self) -> &[Warning] {
        &[]
    }

    fn progress(&self) -> Option<f64> {
        let total = self.bytes_total?.max(1);
        Some((self.bytes_read as f64 / total as f64).min(1.0))
    }

    fn has_times(&self) -> bool {
        self.header.has_times
    }

    fn volumes(&self) -> &[String] {
        &self.names
    }
}

fn decode_header(body: &[u8]) -> Result<Header, String> {
    const FIXED: usize = 32;
    if body.len() < FIXED {
        return Err("it is too short".to_owned());
    }
    let sector = word(body, 0);
    if u64::from(sector) != SECTOR_BYTES {
        return Err(format!("sectors of {sector} bytes; this program reads 512"));
    }
    let known = |value: u64| (value != u64::MAX).then_some(value);
    let mut header = Header {
        records: known(long(body, 8)),
        span: known(long(body, 16)).map(SimDuration::from_ns),
        volumes: Some(word(body, 24)).filter(|&volumes| volumes != u32::MAX),
        has_times: word(body, 4) & 1 == 1,
        notes: Vec::new(),
    };
    let mut rest = &body[FIXED..];
    for _ in 0..word(body, 28) {
        let key = take_text(&mut rest)?;
        header.notes.push((key, take_text(&mut rest)?));
    }
    if rest.is_empty() { Ok(header) } else { Err("it is longer than its notes".to_owned()) }
}

fn take_text(rest: &mut &[u8]) -> Result<String, String> {
    let cut = || "a note is cut off".to_owned();
    let (length, tail) = rest.split_at_checked(4).ok_or_else(cut)?;
    let length = usize::try_from(word(length, 0)).unwrap_or(usize::MAX);
    let (text, tail) = tail.split_at_checked(length).ok_or_else(cut)?;
    *rest = tail;
    String::from_utf8(text.to_vec()).map_err(|_| "a note is not UTF-8".to_owned())
}
