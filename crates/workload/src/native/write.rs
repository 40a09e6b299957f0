//! Writes the native format as a stream, without seeking back.

use super::block::{ColumnBuffers, encode};
use super::{
    BLOCK_BYTES_MAX, BLOCK_MARK, BLOCK_RECORDS, END_MARK, HEADER_BYTES_MAX, Header, MAGIC,
    NAME_BYTES_MAX, VERSION, checksum,
};
use crate::record::Record;
use hybridsim_engine::{SECTOR_BYTES, SimTime};
use std::io::{self, Write};

/// zstd's default; higher levels cost far more time than they save space on these columns.
const LEVEL: i32 = 3;

/// Writes records as a native trace.
pub struct NativeWriter<W: Write> {
    out: W,
    digest: blake3::Hasher,
    compressor: hybridsim_codecs::Compressor<'static>,
    buffers: ColumnBuffers,
    pending: Vec<Record>,
    names: Vec<String>,
    new_names: usize,
    content: Vec<u8>,
    compressed: Vec<u8>,
    blocks: u64,
    records: u64,
    volumes: u32,
    last: SimTime,
    announced: Header,
}

fn invalid(message: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, message)
}

impl<W: Write> NativeWriter<W> {
    /// Starts a trace with `header`.
    ///
    /// # Errors
    /// If `out` cannot be written, or the header's notes are longer than 1 MiB.
    pub fn new(out: W, header: &Header) -> io::Result<Self> {
        let mut writer = Self {
            out,
            digest: blake3::Hasher::new(),
            compressor: hybridsim_codecs::Compressor::new(LEVEL)?,
            buffers: ColumnBuffers::default(),
            pending: Vec::with_capacity(BLOCK_RECORDS),
            names: Vec::new(),
            new_names: 0,
            content: Vec::new(),
            compressed: Vec::new(),
            blocks: 0,
            records: 0,
            volumes: 0,
            last: SimTime::ZERO,
            announced: header.clone(),
        };
        let bytes = encode_header(header)?;
        writer.put(&bytes)?;
        Ok(writer)
    }

    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.digest.update(bytes);
        self.out.write_all(bytes)
    }

    /// Sets the names of volumes, in the order of their numbers. Names already set remain; names
    /// longer than 255 bytes are truncated.
    pub fn name_volumes(&mut self, names: &[String]) {
        for name in names.iter().skip(self.names.len()) {
            let mut length = name.len().min(NAME_BYTES_MAX);
            while !name.is_char_boundary(length) {
                length -= 1;
            }
            self.names.push(name[..length].to_owned());
            self.new_names += 1;
        }
    }

    /// Adds a record.
    ///
    /// # Errors
    /// If the file cannot be written, or the record is earlier than the one before.
    pub fn write(&mut self, record: &Record) -> io::Result<()> {
        if record.at < self.last {
            return Err(invalid(format!(
                "record {} arrives at {}, earlier than its predecessor at {}",
                self.records + 1,
                record.at,
                self.last
            )));
        }
        self.last = record.at;
        self.records += 1;
        self.volumes = self.volumes.max(u32::from(record.request.volume) + 1);
        self.pending.push(*record);
        if self.pending.len() == BLOCK_RECORDS { self.write_block() } else { Ok(()) }
    }

    fn write_block(&mut self) -> io::Result<()> {
        self.content.clear();
        let first_new = self.names.len() - self.new_names;
        encode(&mut self.content, &self.names[first_new..], &self.pending, &mut self.buffers);
        self.new_names = 0;
        let length = u32::try_from(self.content.len()).unwrap_or(u32::MAX);
        if length > BLOCK_BYTES_MAX {
            return Err(invalid("the names of the volumes are too long in total".to_owned()));
        }
        let compressed_max = hybridsim_codecs::compress_bound(self.content.len());
        self.compressed.clear();
        self.compressed.reserve(compressed_max);
        let compressed = self.compressor.compress_to_buffer(&self.content, &mut self.compressed)?;
        let mut head = Vec::with_capacity(super::BLOCK_HEADER_BYTES);
        head.extend(BLOCK_MARK);
        head.extend((self.pending.len() as u32).to_le_bytes());
        head.extend(length.to_le_bytes());
        head.extend((compressed as u32).to_le_bytes());
        let sum = checksum(&[&head, &self.compressed]);
        head.extend(sum.to_le_bytes());
        self.put(&head)?;
        let payload = std::mem::take(&mut self.compressed);
        self.put(&payload)?;
        self.compressed = payload;
        self.blocks += 1;
        self.pending.clear();
        Ok(())
    }

    /// Writes buffered records and the end section; returns the underlying writer, flushed.
    ///
    /// # Errors
    /// If the file cannot be written, or the header announced other totals.
    pub fn finish(mut self) -> io::Result<W> {
        if !self.pending.is_empty() {
            self.write_block()?;
        }
        let volumes = self.volumes.max(self.names.len() as u32);
        for (what, said, is) in [
            ("records", self.announced.records, self.records),
            ("ns of span", self.announced.span.map(|span| span.as_ns()), self.last.as_ns()),
            ("volumes", self.announced.volumes.map(u64::from), u64::from(volumes)),
        ] {
            if said.is_some_and(|said| said != is) {
                return Err(invalid(format!("the header does not say {is} {what}")));
            }
        }
        let mut end = Vec::with_capacity(super::END_BYTES);
        end.extend(END_MARK);
        end.extend(self.records.to_le_bytes());
        end.extend(self.last.as_ns().to_le_bytes());
        end.extend(volumes.to_le_bytes());
        end.extend(self.blocks.to_le_bytes());
        end.extend(self.digest.finalize().as_bytes());
        let sum = checksum(&[&end]);
        end.extend(sum.to_le_bytes());
        self.out.write_all(&end)?;
        self.out.flush()?;
        Ok(self.out)
    }
}

fn encode_header(header: &Header) -> io::Result<Vec<u8>> {
    let mut body = Vec::new();
    body.extend((SECTOR_BYTES as u32).to_le_bytes());
    body.extend(u32::from(header.has_times).to_le_bytes());
    body.extend(header.records.unwrap_or(u64::MAX).to_le_bytes());
    body.extend(header.span.map_or(u64::MAX, |span| span.as_ns()).to_le_bytes());
    body.extend(header.volumes.unwrap_or(u32::MAX).to_le_bytes());
    let notes = u32::try_from(header.notes.len()).unwrap_or(u32::MAX);
    body.extend(notes.to_le_bytes());
    for text in header.notes.iter().flat_map(|(key, text)| [key, text]) {
        body.extend(u32::try_from(text.len()).unwrap_or(u32::MAX).to_le_bytes());
        body.extend(text.as_bytes());
    }
    let length = u32::try_from(body.len()).ok().filter(|length| *length <= HEADER_BYTES_MAX);
    let length = length.ok_or_else(|| invalid("the notes are longer than 1 MiB".to_owned()))?;
    let mut bytes = Vec::with_capacity(body.len() + 20);
    bytes.extend(MAGIC);
    bytes.extend(VERSION.to_le_bytes());
    bytes.extend(0u16.to_le_bytes());
    bytes.extend(length.to_le_bytes());
    bytes.extend(body);
    let sum = checksum(&[&bytes]);
    bytes.extend(sum.to_le_bytes());
    Ok(bytes)
}
