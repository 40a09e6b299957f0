//! One line of a trace, and what reads them.

use hybridsim_engine::{Request, SimDuration, SimTime};
use std::fmt;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// One request of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// Arrival, counted from the first record of the trace. Zero for every record of a format
    /// without times.
    pub at: SimTime,
    /// The request, addressed within its volume.
    pub request: Request,
    /// The response time measured when the trace was taken, where the format has one.
    pub response: Option<SimDuration>,
}

/// Where in a trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Place {
    /// The file as a whole.
    #[default]
    File,
    /// A line of a text file, counted from 1.
    Line(u64),
    /// A record of a binary file, counted from 1.
    Record(u64),
}

impl Place {
    /// The number of the line or record; 0 for the file as a whole.
    pub const fn number(self) -> u64 {
        match self {
            Self::File => 0,
            Self::Line(number) | Self::Record(number) => number,
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File => Ok(()),
            Self::Line(line) => write!(f, ":{line}"),
            Self::Record(record) => write!(f, ": record {record}"),
        }
    }
}

/// A trace that cannot be read, with the place and what to do.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{}{place}: {message}", path.display())]
pub struct TraceError {
    /// The file.
    pub path: PathBuf,
    /// Where in it.
    pub place: Place,
    /// What is wrong and what to do.
    pub message: String,
}

impl TraceError {
    /// An error at `place` of `path`.
    pub fn new(path: &Path, place: Place, message: impl Into<String>) -> Self {
        Self { path: path.to_owned(), place, message: message.into() }
    }
}

/// Something odd the reader got over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    /// First place concerned.
    pub place: Place,
    /// How often it happened.
    pub count: u64,
    /// What it was and what was done about it.
    pub message: String,
}

/// Delivers the records of a trace, one after the other, in constant memory.
pub trait RecordReader {
    /// The next record, `None` at the end and after an error. Times never decrease: readers of
    /// formats that may be unsorted repair them and warn.
    ///
    /// # Errors
    /// A [`TraceError`] that names the place. A trace without a single request is an error.
    fn next(&mut self) -> Result<Option<Record>, TraceError>;

    /// Oddities so far, one entry per kind.
    fn warnings(&self) -> &[Warning];

    /// How much of the file has been read, 0 to 1, where that is known.
    fn progress(&self) -> Option<f64>;

    /// Whether the records carry arrival times. Without them only a closed-loop replay makes
    /// sense.
    fn has_times(&self) -> bool {
        true
    }

    /// What the trace calls the volumes seen so far: `volumes()[request.volume]`. Readers number
    /// volumes densely in order of first appearance.
    fn volumes(&self) -> &[String] {
        &[]
    }
}
