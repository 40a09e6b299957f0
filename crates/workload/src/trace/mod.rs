//! Trace formats, one file each: found by content or by name, read as a stream.
//!
//! A format turns lines or binary records into rows; everything they have in common (compressed
//! files, times that go back, volume numbers, odd sizes) is done once, in `bytes` and `rows`.

use crate::record::{Place, Record, RecordReader, TraceError, Warning};
use hybridsim_engine::param::Settings;
use hybridsim_engine::registry::{Description, Entry};
use std::path::Path;

/// How sure a format is that some content is its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Confidence {
    /// It is not.
    No,
    /// It could be read this way, but other formats look just like it.
    Possible,
    /// It looks like this format.
    Likely,
    /// A magic number, a header or a shape no other format has.
    Certain,
}

/// A registered trace format.
#[derive(Clone, Copy)]
pub struct FormatEntry {
    /// What it tells of itself.
    pub description: Description,
    /// Judges the first bytes of a file, already unpacked.
    pub sniff: fn(&Head<'_>) -> Confidence,
    /// Opens a file.
    pub open: fn(Opening) -> Result<Box<dyn RecordReader>, TraceError>,
    /// Formats that read the same content to the same records unless told otherwise.
    pub same_as: &'static [&'static str],
    /// A few records in this format.
    pub sample: &'static [u8],
}

impl Entry for FormatEntry {
    const SLOT: &'static str = "trace-format";
    fn description(&self) -> Description {
        self.description
    }
}

/// How to open a trace.
#[derive(Clone, Debug)]
pub struct OpenOptions {
    /// The format's name; `None` finds it by content.
    pub format: Option<String>,
    /// Parameters of the format; absent ones take their defaults.
    pub settings: Settings,
    /// Records held back to put unsorted ones in order. What is out of order by more is given the
    /// time of the record before it. 0 keeps the order of the file.
    pub reorder_records: usize,
}

impl Default for OpenOptions {
    fn default() -> Self {
        Self { format: None, settings: Settings::default(), reorder_records: 4096 }
    }
}

/// A trace open for reading.
pub struct OpenTrace {
    /// Its format.
    pub format: Description,
    /// Formats that could read it as well, less likely.
    pub also: Vec<&'static str>,
    /// How it is packed, such as `gzip`.
    pub packing: Option<&'static str>,
    /// Its records.
    pub reader: Box<dyn RecordReader>,
}

impl RecordReader for OpenTrace {
    fn next(&mut self) -> Result<Option<Record>, TraceError> {
        self.reader.next()
    }
    fn warnings(&self) -> &[Warning] {
        self.reader.warnings()
    }
    fn progress(&self) -> Option<f64> {
        self.reader.progress()
    }
    fn has_times(&self) -> bool {
        self.reader.has_times()
    }
    fn volumes(&self) -> &[String] {
        self.reader.volumes()
    }
}

/// What a format judges.
#[derive(Clone, Copy)]
pub struct Head<'a> {
    /// The first bytes of the file, unpacked; at most 64 KiB.
    pub bytes: &'a [u8],
    /// Whether that is the whole file.
    pub whole: bool,
}

/// What a format opens. (Its content arrives with the next commit.)
pub struct Opening {
    /// The format's parameters.
    pub settings: Settings,
}

/// All built-in formats.
pub const ENTRIES: &[FormatEntry] = &[];

/// Opens the trace at `path` with the built-in formats.
///
/// # Errors
/// Missing file, directory, empty or unknown content, ambiguous content, unknown format.
pub fn open(path: &Path, options: &OpenOptions) -> Result<OpenTrace, TraceError> {
    open_with(ENTRIES, path, options)
}

/// As [`open`], with formats of the caller's choice.
///
/// # Errors
/// As [`open`].
pub fn open_with(
    entries: &[FormatEntry],
    path: &Path,
    _options: &OpenOptions,
) -> Result<OpenTrace, TraceError> {
    let count = entries.len();
    Err(TraceError::new(path, Place::File, format!("none of the {count} formats reads it yet")))
}
