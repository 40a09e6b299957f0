//! Records what clients request as a native trace.

use hybridsim_engine::{Request, SimTime};
use hybridsim_simulation::state::NewFile;
use hybridsim_workload::native::{Header, NativeWriter};
use hybridsim_workload::record::Record;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

/// A trace that is being written.
pub struct TraceFile {
    writer: NativeWriter<BufWriter<File>>,
    file: NewFile,
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
        Ok(Self { writer, file })
    }

    /// Adds a request that arrives at `at`.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn write(&mut self, at: SimTime, request: Request) -> io::Result<()> {
        self.writer.write(&Record { at, request, response: None })
    }

    /// Completes the file.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn finish(self) -> io::Result<()> {
        let mut out = self.writer.finish()?;
        out.flush()?;
        self.file.complete()
    }
}
