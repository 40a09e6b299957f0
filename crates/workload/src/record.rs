//! Records of a trace and their readers.

use crate::block_events::BlockEvents;
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
    /// The response time measured when the trace was recorded, where the format has one.
    pub response: Option<SimDuration>,
}

/// A location in a trace file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SourceLocation {
    /// The file as a whole.
    #[default]
    File,
    /// A line of a text file, counted from 1.
    Line(u64),
    /// A record of a binary file, counted from 1.
    Record(u64),
}

impl SourceLocation {
    /// The number of the line or record; 0 for the file as a whole.
    pub const fn number(self) -> u64 {
        match self {
            Self::File => 0,
            Self::Line(number) | Self::Record(number) => number,
        }
    }
}

impl fmt::Display for SourceLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File => Ok(()),
            Self::Line(line) => write!(f, ":{line}"),
            Self::Record(record) => write!(f, ": record {record}"),
        }
    }
}

/// An error in a trace, with its location and the remedy.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{}{location}: {message}", path.display())]
pub struct TraceError {
    pub path: PathBuf,
    pub location: SourceLocation,
    /// The cause and the remedy.
    pub message: String,
}

/// A value read from a trace, or the error that ends reading.
pub type TraceResult<T> = Result<T, TraceError>;

impl TraceError {
    /// An error at `location` of `path`.
    pub fn new(path: &Path, location: SourceLocation, message: impl Into<String>) -> Self {
        Self { path: path.to_owned(), location, message: message.into() }
    }
}

/// An irregularity of a trace that the reader handled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    /// The first location.
    pub location: SourceLocation,
    pub count: u64,
    /// The irregularity and how it was handled.
    pub message: String,
}

/// Records of a batch where the reader does not have them together.
pub(crate) const BATCH_RECORDS: usize = 512;

/// Delivers the records of a trace, one after the other, in constant memory.
pub trait RecordReader {
    /// The next record, `None` at the end and after an error. Times never decrease: readers of
    /// formats that may be unsorted repair them and warn.
    ///
    /// # Errors
    /// A [`TraceError`] that names the location. A trace without a single request is an error.
    fn next(&mut self) -> TraceResult<Option<Record>>;

    /// Replaces `batch` with the next records, at most 65,536; with none at the end. Faster than
    /// as many calls of [`RecordReader::next`].
    ///
    /// # Errors
    /// As [`RecordReader::next`]; `batch` then has the records before the error.
    fn next_batch(&mut self, batch: &mut Vec<Record>) -> TraceResult<()> {
        batch.clear();
        while batch.len() < BATCH_RECORDS {
            let Some(record) = self.next()? else { break };
            batch.push(record);
        }
        Ok(())
    }

    /// Irregularities so far, one entry per kind.
    fn warnings(&self) -> &[Warning];

    /// Fraction of the file that has been read, where known.
    fn progress(&self) -> Option<f64>;

    /// Whether the records carry arrival times. Without them only a closed-loop replay is
    /// possible.
    fn has_times(&self) -> bool {
        true
    }

    /// Numbers of block-layer events so far, where the trace logs several for each request.
    fn block_events(&self) -> Option<BlockEvents> {
        None
    }

    /// The trace's names of the volumes seen so far: `volumes()[request.volume]`. Volumes are
    /// numbered densely in order of first appearance.
    fn volumes(&self) -> &[String] {
        &[]
    }
}
