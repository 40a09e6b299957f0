//! Trace formats `trace convert` writes, one file each.

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
use hybridsim_config::registry::{Description, Entry};
use std::fmt;
use std::io::{self, Write};

/// Writes one trace.
pub trait RecordWriter {
    /// Tells what the volumes are called, in the order of their numbers, whenever more are known.
    fn name_volumes(&mut self, _names: &[String]) {}

    /// The next record. `false` when the format has no way to say it and it was left out.
    ///
    /// # Errors
    /// When the file cannot be written.
    fn write(&mut self, record: &Record) -> io::Result<bool>;

    /// Writes what is left.
    ///
    /// # Errors
    /// When the file cannot be written.
    fn finish(self: Box<Self>) -> io::Result<()>;
}

/// Begins a trace.
pub type Create = fn(Box<dyn Write>, &Header) -> io::Result<Box<dyn RecordWriter>>;

/// A registered output format.
#[derive(Clone, Copy)]
pub struct WriterEntry {
    /// What it tells of itself; the name is that of the reader of the same format.
    pub description: Description,
    /// What names of such files end in, without the dot.
    pub extension: &'static str,
    /// What a record has and this format does not keep.
    pub loses: &'static [&'static str],
    /// Begins a trace.
    pub create: Create,
}

impl Entry for WriterEntry {
    const CATEGORY: &'static str = "trace-writer";
    fn description(&self) -> Description {
        self.description
    }
}

/// All output formats.
pub const ENTRIES: &[WriterEntry] = &[
    native::ENTRY,
    csv::ENTRY,
    disksim::ENTRY,
    spc::ENTRY,
    msr::ENTRY,
    fio::ENTRY,
    blkparse::ENTRY,
];

/// What a conversion did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Converted {
    /// Records written.
    pub records: u64,
    /// Records the format could not say, left out.
    pub left_out: u64,
}

/// Why a conversion failed.
#[derive(Debug)]
pub enum ConvertError {
    /// Reading the one trace.
    Read(TraceError),
    /// Writing the other.
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

/// Writes all records of `reader`. `pulse` gets the progress about every 65,536 records.
///
/// # Errors
/// What the reader says, or that the file cannot be written.
pub fn convert(
    reader: &mut dyn RecordReader,
    mut writer: Box<dyn RecordWriter>,
    pulse: &mut dyn FnMut(Option<f64>),
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
            pulse(reader.progress());
        }
    }
    writer.finish().map_err(ConvertError::Write)?;
    Ok(converted)
}

#[cfg(test)]
mod tests;
