//! Records what clients request as a native trace, and the faults beside it.

use hybridsim_engine::{Request, SimDuration, SimTime};
use hybridsim_simulation::faults::FaultOrder;
use hybridsim_simulation::state::{self, NewFile};
use hybridsim_workload::native::{Header, NativeWriter};
use hybridsim_workload::record::Record;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// A trace that is being written. When it cannot be written any further, because the disk is full,
/// there will be no trace; clients are served all the same.
pub struct TraceFile {
    writer: NativeWriter<BufWriter<File>>,
    file: NewFile,
    /// Why nothing more is written.
    failed: Option<io::Error>,
    /// The file for faults, if there are any.
    faults: PathBuf,
}

impl TraceFile {
    /// Begins the trace at `path`; `notes` say where it comes from.
    ///
    /// # Errors
    /// Fails when it cannot be written.
    pub fn create(path: &Path, notes: Vec<(String, String)>) -> io::Result<Self> {
        let file = NewFile::at(path);
        let header = Header { notes, ..Header::default() };
        let writer = NativeWriter::new(BufWriter::new(File::create(file.partial())?), &header)?;
        Ok(Self { writer, file, failed: None, faults: faults_beside(path) })
    }

    /// Adds a request that arrives at `at`. An error is returned by [`TraceFile::finish`].
    pub fn write(&mut self, at: SimTime, request: Request) {
        if self.failed.is_none() {
            self.failed = self.writer.write(&Record { at, request, response: None }).err();
        }
    }

    /// Completes the file, and writes `faults` beside it, if there are any.
    ///
    /// # Errors
    /// Fails when a file could not be written, now or before.
    pub fn finish(self, faults: &[(SimDuration, FaultOrder)]) -> io::Result<()> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        let mut out = self.writer.finish()?;
        out.flush()?;
        self.file.complete()?;
        if faults.is_empty() {
            // The faults of an earlier trace of this name.
            return match fs::remove_file(&self.faults) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
                _ => Ok(()),
            };
        }
        let entry = |(at, order): &(SimDuration, FaultOrder)| {
            format!("[[run.faults]]\n{}\n", order.to_toml(*at))
        };
        state::write(&self.faults, faults.iter().map(entry).collect::<String>().as_bytes())
    }
}

/// The file of the faults beside the trace at `path`.
pub fn faults_beside(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".faults.toml");
    PathBuf::from(name)
}
