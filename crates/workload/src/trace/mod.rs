//! Trace formats, one file each: found by content or by name, read as a stream.
//!
//! A format turns lines or binary records into rows; everything they have in common (compressed
//! files, times that go back, volume numbers, odd sizes) is done once, in `bytes` and `rows`.

mod alibaba;
mod arc;
mod biotracer;
mod blkparse;
mod blktrace;
mod bytes;
mod clock;
pub(crate) mod csv;
mod diskmon;
mod disksim;
mod disksim_validate;
mod events;
mod fio;
mod fiu;
mod five;
mod flashsim;
mod lines;
mod mqsim;
mod msr;
mod names;
mod number;
mod oracle_general;
mod records;
mod replay_log;
mod replayer;
mod rows;
mod spc;
mod srt;
mod ssdsim;
mod systor;
mod tencent;
mod vscsi;

pub use bytes::{Head, Input};

use crate::record::{Place, Record, RecordReader, TraceError, Warning};
use hybridsim_config::param::{Kind, Param, Settings, Value};
use hybridsim_config::registry::{Description, Entry};
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
    const CATEGORY: &'static str = "trace-format";
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

/// What a format opens.
pub struct Opening {
    /// The file.
    pub input: Input,
    /// The format's parameters; only those that were given.
    pub settings: Settings,
    /// As [`OpenOptions::reorder_records`].
    pub reorder_records: usize,
}

/// All built-in formats.
pub const ENTRIES: &[FormatEntry] = &[
    alibaba::ENTRY,
    arc::ENTRY,
    biotracer::ENTRY,
    blkparse::ENTRY,
    blktrace::ENTRY,
    csv::ENTRY,
    diskmon::ENTRY,
    disksim::ENTRY,
    disksim_validate::ENTRY,
    events::ENTRY,
    fio::ENTRY,
    fiu::ENTRY,
    flashsim::ENTRY,
    mqsim::ENTRY,
    msr::ENTRY,
    crate::native::ENTRY,
    oracle_general::ENTRY,
    replay_log::ENTRY,
    replayer::ENTRY_BYTES,
    replayer::ENTRY_SECTORS,
    spc::ENTRY,
    srt::ENTRY,
    ssdsim::ENTRY,
    systor::ENTRY,
    tencent::ENTRY,
    vscsi::ENTRY,
];

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
    options: &OpenOptions,
) -> Result<OpenTrace, TraceError> {
    let named = options.format.as_deref().map(|name| named(entries, name)).transpose();
    let named = named.map_err(|message| TraceError::new(path, Place::File, message))?;
    let mut input = Input::open(path)?;
    let head = input.head()?;
    if head.bytes.is_empty() {
        return Err(input.error(Place::File, "unpacks to nothing; there is no request"));
    }
    let (entry, also) = match named {
        Some(entry) => (entry, Vec::new()),
        None => {
            let choice = choose(entries, &head);
            choice.map_err(|message| input.error(Place::File, message))?
        }
    };
    check_settings(&entry.description, &options.settings)
        .map_err(|message| input.error(Place::File, message))?;
    let packing = input.packing();
    let settings = options.settings.clone();
    let opening = Opening { input, settings, reorder_records: options.reorder_records };
    Ok(OpenTrace { format: entry.description, also, packing, reader: (entry.open)(opening)? })
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

/// The format `head` is in, and those it could also be.
fn choose<'a>(
    entries: &'a [FormatEntry],
    head: &Head<'_>,
) -> Result<(&'a FormatEntry, Vec<&'static str>), String> {
    let judged: Vec<_> = entries.iter().map(|entry| ((entry.sniff)(head), entry)).collect();
    let best = judged.iter().map(|(confidence, _)| *confidence).max().unwrap_or(Confidence::No);
    if best == Confidence::No {
        return Err(format!(
            "no known trace format fits the content; if it is one of them, name it: {}",
            names(entries)
        ));
    }
    let top: Vec<_> = judged.iter().filter(|(c, _)| *c == best).map(|(_, entry)| *entry).collect();
    let agree = |entry: &&FormatEntry| {
        let same = |other: &&FormatEntry| entry.same_as.contains(&other.description.name);
        top.iter().all(|other| same(other) || other.description.name == entry.description.name)
    };
    let Some(chosen) = top.iter().copied().find(agree) else {
        let names: Vec<_> = top.iter().map(|entry| entry.description.name).collect();
        return Err(format!(
            "the content fits several formats; name the right one of {}",
            names.join(", ")
        ));
    };
    let others = judged
        .iter()
        .filter(|(c, e)| *c > Confidence::No && e.description.name != chosen.description.name);
    Ok((chosen, others.map(|(_, entry)| entry.description.name).collect()))
}

/// Formats found by content get settings nobody could check before.
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
            (Kind::Bytes, Value::Bytes(bytes)) => {
                (512..=1 << 30).contains(bytes) && bytes.is_multiple_of(512)
            }
            _ => false,
        };
        if !fits {
            return Err(format!("`{name}` cannot be {value:?}: {}", param.help));
        }
    }
    Ok(())
}

/// The word chosen for `param`, or its default.
fn choice<'a>(settings: &'a Settings, param: &Param) -> &'a str {
    let default = param.default.unwrap_or("").trim_matches('"');
    settings.text_opt(param.name).unwrap_or(default)
}

/// The unit of a text trace's times.
const fn time_unit(default: &'static str) -> Param {
    const UNITS: Kind = Kind::Choice(&["s", "ms", "us", "ns", "ps"]);
    Param::with("time_unit", UNITS, default, "Unit of the times: s, ms, us, ns or ps.")
}

#[cfg(test)]
mod hostile;
#[cfg(test)]
mod real;
