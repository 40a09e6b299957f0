//! Records what clients request as a native trace.

use hybridsim_engine::{Request, SimTime};
use hybridsim_simulation::state::NewFile;
use hybridsim_workload::native::{Header, NativeWriter};
use hybridsim_workload::record::Record;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

/// A trace that is being written. A disk that fills up ends the trace, not the serving of clients.
pub struct TraceFile {
    writer: NativeWriter<BufWriter<File>>,
    file: NewFile,
    /// Why nothing more is written.
    failed: Option<io::Error>,
}

impl TraceFile {
    /// Begins the trace at `path`; `notes` say where it comes from.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn create(path: &Path, notes: Vec<(String, String)>) -> io::Result<Self> {
        let file = NewFile::at(path);
        let header = Header { notes, ..Header::default() };
        let writer = NativeWriter::new(BufWriter::new(File::create(file.partial())?), &header)?;
        Ok(Self { writer, file, failed: None })
    }

    /// Adds a request that arrives at `at`. An error is returned by [`TraceFile::finish`].
    pub fn write(&mut self, at: SimTime, request: Request) {
        if self.failed.is_none() {
            self.failed = self.writer.write(&Record { at, request, response: None }).err();
        }
    }

    /// Completes the file.
    ///
    /// # Errors
    /// When the file could not be written, now or before.
    pub fn finish(self) -> io::Result<()> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        let mut out = self.writer.finish()?;
        out.flush()?;
        self.file.complete()
    }
}
