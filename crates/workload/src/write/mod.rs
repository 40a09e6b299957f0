//! Trace formats that `trace convert` writes, one file each.

mod blkparse;
mod csv;
mod disksim;
mod fio;
mod msr;
mod native;
mod spc;
mod text;

use crate::native::Header;
use crate::record::{Record, RecordReader, TraceError};
use hybridsim_config::registry::Description;
use std::fmt;
use std::io::{self, Write};

/// Writes one trace.
pub trait RecordWriter {
    /// Sets the names of the volumes, in the order of their numbers; called again when there are
    /// new ones.
    fn name_volumes(&mut self, _names: &[String]) {}

    /// Writes a record. Returns `false` when the format cannot represent it and it was left out.
    ///
    /// # Errors
    /// If the file cannot be written.
    fn write(&mut self, record: &Record) -> io::Result<bool>;

    /// Writes buffered records and the end of the file.
    ///
    /// # Errors
    /// If the file cannot be written.
    fn finish(self: Box<Self>) -> io::Result<()>;
}

/// Creates a trace file with its header.
pub type Create = fn(Box<dyn Write>, &Header) -> io::Result<Box<dyn RecordWriter>>;

/// A registered output format.
#[derive(Clone, Copy)]
pub struct WriterEntry {
    /// The name is that of the reader of the same format.
    pub description: Description,
    /// The file name extension, without the dot.
    pub extension: &'static str,
    /// Information of a record that this format does not represent.
    pub loses: &'static [&'static str],
    pub create: Create,
}

hybridsim_config::entry!(WriterEntry, "trace-writer");

/// The built-in output formats.
pub const ENTRIES: &[WriterEntry] = &[
    native::ENTRY,
    csv::ENTRY,
    disksim::ENTRY,
    spc::ENTRY,
    msr::ENTRY,
    fio::ENTRY,
    blkparse::ENTRY,
];

/// The result of a conversion.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Converted {
    pub records: u64,
    /// Records left out because the format cannot represent them.
    pub left_out: u64,
}

/// Why a conversion failed.
#[derive(Debug)]
pub enum ConvertError {
    Read(TraceError),
    Write(io::Error),
}

impl fmt::Display for ConvertError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Read(error) => error.fmt(f),
            Self::Write(error) => write!(f, "the converted trace cannot be written: {error}"),
        }
    }
}

impl std::error::Error for ConvertError {}

/// Writes all records of `reader`. Calls `on_progress` about every 65,536 records.
///
/// # Errors
/// The reader's, or that the file cannot be written.
pub fn convert(
    reader: &mut dyn RecordReader,
    mut writer: Box<dyn RecordWriter>,
    on_progress: &mut dyn FnMut(Option<f64>),
) -> Result<Converted, ConvertError> {
    let mut converted = Converted::default();
    let mut named = 0;
    while let Some(record) = reader.next().map_err(ConvertError::Read)? {
        if reader.volumes().len() > named {
            named = reader.volumes().len();
            writer.name_volumes(reader.volumes());
        }
        let written = writer.write(&record).map_err(ConvertError::Write)?;
        converted.records += u64::from(written);
        converted.left_out += u64::from(!written);
        if (converted.records + converted.left_out) & 0xFFFF == 0 {
            on_progress(reader.progress());
        }
    }
    writer.finish().map_err(ConvertError::Write)?;
    Ok(converted)
}

#[cfg(test)]
mod tests;
