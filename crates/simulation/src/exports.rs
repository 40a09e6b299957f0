//! Results for other tools: percentile tables, results in fio's format, a list of all requests.

use crate::run::RunOutput;
use hybridsim_engine::CommonEvent;
use hybridsim_engine::{EventRecord, EventSink, LatencyPhase, Op};
use hybridsim_report::{fio, hgrm};
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// The files [`for_tools`] may give.
pub const NAMES: [&str; 4] =
    ["fio.json", "latency-all.hgrm", "latency-read.hgrm", "latency-write.hgrm"];

/// Files by name with their content, of the measured window. A kind of request of which there was
/// none has no table.
pub fn for_tools(done: &RunOutput) -> Vec<(&'static str, String)> {
    let [shape, all, read, write] = NAMES;
    let mut files = vec![
        (shape, format!("{:#}\n", fio::json(&done.results, &done.latencies))),
        (all, hgrm::table(&done.latencies.all())),
        (read, hgrm::table(done.latencies.of(Op::Read))),
        (write, hgrm::table(done.latencies.of(Op::Write))),
    ];
    files.retain(|(_, text)| !text.is_empty());
    files
}

/// Every request that completed, a row each, in the order of completion.
pub struct RequestLog {
    out: BufWriter<File>,
    path: PathBuf,
    partial: PathBuf,
    phases_ns: [u64; LatencyPhase::COUNT],
    /// The row being written.
    row: Vec<u8>,
    failed: Option<io::Error>,
}

impl RequestLog {
    /// Begins the list that will be in the file `path`.
    ///
    /// # Errors
    /// When nothing can be written there.
    pub fn create(path: &Path) -> io::Result<Self> {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let partial = path.with_file_name(format!(".{name}.partial"));
        let mut out = BufWriter::new(File::create(&partial)?);
        let breakdown =
            LatencyPhase::ALL.map(|component| format!("{}_ns", component.name())).join(",");
        let head = writeln!(out, "arrival_ns,latency_ns,op,first_sector,sectors,{breakdown}");
        let path = path.to_owned();
        let (phases_ns, row) = ([0; LatencyPhase::COUNT], Vec::with_capacity(256));
        Ok(Self { out, path, partial, phases_ns, row, failed: head.err() })
    }

    fn row(&mut self, record: &EventRecord) -> io::Result<()> {
        match record.event() {
            Some(CommonEvent::PhaseTime { phase, duration: time, .. }) => {
                self.phases_ns[phase as usize] += time.as_ns()
            }
            Some(CommonEvent::Completed { op, sectors, lba, latency }) => {
                let latency_ns = latency.as_ns();
                let arrival_ns = record.time.as_ns().saturating_sub(latency_ns);
                self.row.clear();
                put(&mut self.row, arrival_ns);
                put(&mut self.row, latency_ns);
                self.row.extend_from_slice(op.name().as_bytes());
                self.row.push(b',');
                put(&mut self.row, lba.0);
                put(&mut self.row, sectors.into());
                for ns in std::mem::take(&mut self.phases_ns) {
                    put(&mut self.row, ns);
                }
                self.row.pop();
                self.row.push(b'\n');
                self.out.write_all(&self.row)?;
            }
            _ => {}
        }
        Ok(())
    }

    /// Completes the file, which appears under its name only now.
    ///
    /// # Errors
    /// When it could not be written.
    pub fn finish(mut self) -> io::Result<()> {
        match self.failed.take() {
            Some(error) => Err(error),
            None => self.out.flush().and_then(|()| fs::rename(&self.partial, &self.path)),
        }
    }
}

/// Appends a number and a comma.
fn put(row: &mut Vec<u8>, number: u64) {
    match number {
        0 => row.push(b'0'),
        _ => row.extend_from_slice(itoa::Buffer::new().format(number).as_bytes()),
    }
    row.push(b',');
}

impl Drop for RequestLog {
    /// Removes the file of a run that did not begin.
    fn drop(&mut self) {
        drop(fs::remove_file(&self.partial));
    }
}

impl EventSink for RequestLog {
    fn take(&mut self, events: &[EventRecord]) {
        for record in events {
            if self.failed.is_none() {
                self.failed = self.row(record).err();
            }
        }
    }
}
