//! One line of a trace, and what reads them.

use hybridsim_engine::{Request, SimDuration, SimTime};
use std::path::PathBuf;
use thiserror::Error;

/// One request of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// Arrival, counted from the first record of the trace.
    pub at: SimTime,
    /// The request, addressed within its volume.
    pub request: Request,
    /// The response time measured when the trace was taken, where the format has one.
    pub response: Option<SimDuration>,
}

/// A trace that cannot be read, with the place and what to do.
#[derive(Debug, Error)]
#[error("{}{}: {message}", path.display(), place(.line))]
pub struct TraceError {
    /// The file.
    pub path: PathBuf,
    /// Line (text) or record (binary), counted from 1.
    pub line: Option<u64>,
    /// What is wrong and what to do.
    pub message: String,
}

fn place(line: &Option<u64>) -> String {
    line.map_or_else(String::new, |line| format!(":{line}"))
}

/// Something odd the reader got over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    /// First line or record concerned.
    pub line: u64,
    /// How often it happened.
    pub count: u64,
    /// What it was and what was done about it.
    pub message: String,
}

/// Delivers the records of a trace, one after the other, in constant memory.
pub trait RecordReader {
    /// The next record, `None` at the end. Times never decrease: readers of formats that may be
    /// unsorted repair them and warn.
    ///
    /// # Errors
    /// A [`TraceError`] that names the line.
    fn next(&mut self) -> Result<Option<Record>, TraceError>;

    /// Oddities so far.
    fn warnings(&self) -> &[Warning];

    /// How much of the file has been read, 0 to 1, where that is known.
    fn progress(&self) -> Option<f64>;
}
