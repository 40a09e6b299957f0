//! Trace formats, selected by content or by name and read as a stream.
//!
//! A format parses lines or binary records into raw requests. What all have in common is done once:
//! `bytes` decompresses files, `normalise` orders times, numbers volumes and rounds to sectors.

mod alibaba;
mod arc;
mod binary;
mod biosnoop;
mod biotracer;
mod blkparse;
mod blktrace;
mod bytes;
mod clock;
mod columns;
pub(crate) mod csv;
mod detect;
mod diskmon;
mod disksim_validate;
mod events;
mod extents;
mod fio;
mod fiu;
mod five_columns;
mod ftrace;
pub mod in_memory;
mod iotrace;
mod lcs;
mod lines;
mod msr;
mod names;
pub(crate) mod native;
mod normalise;
mod number;
mod oracle_general;
mod records;
mod replay_log;
pub mod serving;
mod spc;
mod srt;
mod systor;
mod tectonic;
mod tencent;
mod volumes;
mod vscsi;
mod window;
mod xperf;

use bytes::Archive;
pub use bytes::{FileHead, TraceFile};
pub use detect::{Detection, OtherReading};

use crate::block_events::BlockEvents;
use crate::record::{Record, RecordReader, SourceLocation, TraceError, TraceResult, Warning};
use detect::{Choice, choose};
use hybridsim_config::check;
use hybridsim_config::param::{Kind, Settings, Value};
use hybridsim_config::registry::{Description, Registry};
use normalise::WarningLog;
use std::path::Path;

/// Likelihood that content is in a format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Confidence {
    No,
    /// It can be read this way, but other formats look the same.
    Possible,
    Likely,
    /// It has a magic number, a header or columns that no other format has.
    Certain,
}

/// A registered trace format.
#[derive(Clone, Copy)]
pub struct FormatEntry {
    pub description: Description,
    /// Examines the first bytes of a file, already decompressed.
    pub sniff: fn(&FileHead<'_>) -> Confidence,
    pub open: fn(FormatInput) -> TraceResult<Box<dyn RecordReader>>,
    /// Formats that by default read the same content as the same records.
    pub same_as: &'static [&'static str],
    /// A few records in this format.
    pub sample: &'static [u8],
}

hybridsim_config::entry!(FormatEntry, "trace-format");

/// Options for opening a trace.
#[derive(Clone, Debug)]
pub struct OpenOptions {
    /// The format's name; `None` detects it by content.
    pub format: Option<String>,
    /// Parameters of the format; absent ones have their defaults.
    pub settings: Settings,
    /// Size of the window, in records, within which unsorted records are sorted by time. A record
    /// later than that gets the time of the record before it. 0 keeps the file's order.
    pub reorder_records: usize,
    /// Whether records that cannot be read are left out and counted; otherwise the first ends the
    /// trace.
    pub skip_bad_lines: bool,
}

impl Default for OpenOptions {
    fn default() -> Self {
        Self {
            format: None,
            settings: Settings::default(),
            reorder_records: 4096,
            skip_bad_lines: false,
        }
    }
}

/// An open trace.
pub struct OpenTrace {
    pub format: Description,
    /// Evidence for the format.
    pub detection: Detection,
    /// Formats that could also read it, less likely.
    pub also: Vec<&'static str>,
    /// Compression, such as `gzip`.
    pub compression: Option<&'static str>,
    pub reader: Box<dyn RecordReader>,
}

impl RecordReader for OpenTrace {
    fn next(&mut self) -> TraceResult<Option<Record>> {
        self.reader.next()
    }
    fn next_batch(&mut self, batch: &mut Vec<Record>) -> TraceResult<()> {
        self.reader.next_batch(batch)
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
    fn block_events(&self) -> Option<BlockEvents> {
        self.reader.block_events()
    }
    fn volumes(&self) -> &[String] {
        self.reader.volumes()
    }
}

/// A file to be read in a format.
pub struct FormatInput {
    pub file: TraceFile,
    /// The format's parameters.
    pub settings: Settings,
    /// As [`OpenOptions::reorder_records`].
    pub reorder_records: usize,
    pub(crate) warnings: WarningLog,
}

/// The built-in formats.
pub const ENTRIES: &[FormatEntry] = &[
    alibaba::ENTRY,
    arc::ENTRY,
    binary::ENTRY,
    biosnoop::ENTRY,
    biotracer::ENTRY,
    blkparse::ENTRY,
    blktrace::ENTRY,
    columns::ENTRY,
    csv::ENTRY,
    diskmon::ENTRY,
    five_columns::DISKSIM,
    disksim_validate::ENTRY,
    events::ENTRY,
    fio::ENTRY,
    fiu::ENTRY,
    five_columns::FLASHSIM,
    ftrace::ENTRY,
    iotrace::ENTRY,
    lcs::ENTRY,
    five_columns::MQSIM,
    msr::ENTRY,
    native::ENTRY,
    oracle_general::ENTRY,
    replay_log::ENTRY,
    five_columns::REPLAYER_BYTES,
    five_columns::REPLAYER_SECTORS,
    spc::ENTRY,
    srt::ENTRY,
    five_columns::SSDSIM,
    systor::ENTRY,
    tectonic::ENTRY,
    tencent::ENTRY,
    vscsi::ENTRY,
    xperf::ENTRY,
];

/// Opens the trace at `path` with the built-in formats.
///
/// # Errors
/// Missing file, directory, empty or unknown content, ambiguous content, unknown format.
pub fn open(path: &Path, options: &OpenOptions) -> TraceResult<OpenTrace> {
    open_with(ENTRIES, path, options)
}

/// As [`open`], with formats of the caller's choice.
///
/// # Errors
/// As [`open`].
pub fn open_with(
    entries: &[FormatEntry],
    path: &Path,
    options: &OpenOptions,
) -> TraceResult<OpenTrace> {
    let named = options.format.as_deref().map(|name| named(entries, name)).transpose();
    let named = named.map_err(|message| TraceError::new(path, SourceLocation::File, message))?;
    let mut file = TraceFile::open(path)?;
    let head = file.head()?;
    if head.bytes.is_empty() {
        return Err(file.error(SourceLocation::File, "decompresses to nothing: it has no requests"));
    }
    if let Some(archive) = Archive::of(head.bytes) {
        // FIU's reader skips the header with which members were cut out of archives.
        let certain = || entries.iter().any(|entry| (entry.sniff)(&head) == Confidence::Certain);
        if archive != Archive::Tar || !(named.is_some() || certain()) {
            return Err(file.error(SourceLocation::File, archive.message()));
        }
    }
    if let (None, Some(serving)) = (named, serving::sniff(&head)) {
        let message = serving::no_block_trace(serving.description.name);
        return Err(file.error(SourceLocation::File, message));
    }
    let choice = match named {
        Some(entry) => Ok(Choice {
            entry,
            settings: Settings::default(),
            detection: Detection {
                reading: entry.description.name.to_owned(),
                ..Default::default()
            },
            also: Vec::new(),
        }),
        None => choose(entries, &head),
    };
    let Choice { entry, settings: suggested, detection, also } =
        choice.map_err(|message| file.error(SourceLocation::File, message))?;
    check_settings(&entry.description, &options.settings)
        .map_err(|message| file.error(SourceLocation::File, message))?;
    let mut settings = check::defaults(entry.description.params, &Registry::default());
    for (name, value) in suggested.iter().chain(options.settings.iter()) {
        settings.set(name, value.clone());
    }
    let compression = file.compression();
    let mut warnings = WarningLog::new(options.skip_bad_lines);
    if let Some(message) = detection.warning() {
        warnings.add(SourceLocation::File, &message);
    }
    let input = FormatInput { file, settings, reorder_records: options.reorder_records, warnings };
    let reader = (entry.open)(input)?;
    Ok(OpenTrace { format: entry.description, detection, also, compression, reader })
}

fn names(entries: &[FormatEntry]) -> String {
    let names: Vec<_> = entries.iter().map(|entry| entry.description.name).collect();
    names.join(", ")
}

fn named<'a>(entries: &'a [FormatEntry], name: &str) -> Result<&'a FormatEntry, String> {
    entries.iter().find(|entry| entry.description.name == name).ok_or_else(|| {
        format!("there is no trace format \"{name}\"; the formats are {}", names(entries))
    })
}

/// The settings of a format detected by content cannot be checked earlier.
fn check_settings(description: &Description, settings: &Settings) -> Result<(), String> {
    for (name, value) in settings.iter() {
        let Some(param) = description.params.iter().find(|param| param.name == name) else {
            let known: Vec<_> = description.params.iter().map(|param| param.name).collect();
            return Err(format!(
                "format {} has no parameter `{name}`; it has {}",
                description.name,
                if known.is_empty() { "none".to_owned() } else { known.join(", ") }
            ));
        };
        let fits = match (&param.kind, value) {
            (Kind::Choice(words), Value::Text(word)) => words.contains(&word.as_str()),
            (Kind::Bytes, Value::Bytes(bytes)) if param.name.ends_with("_bytes") => {
                (512..=1 << 30).contains(bytes) && bytes.is_multiple_of(512)
            }
            (Kind::Bytes, Value::Bytes(bytes)) => (1..=1 << 30).contains(bytes),
            (Kind::Text, Value::Text(_)) => true,
            (Kind::Count { min, max }, Value::Count(count)) => (min..=max).contains(&count),
            _ => false,
        };
        if !fits {
            return Err(format!("`{name}` cannot be {value:?}: {}", param.help));
        }
    }
    Ok(())
}

#[cfg(test)]
mod ambiguous;
#[cfg(test)]
mod hostile;
#[cfg(test)]
mod real;
