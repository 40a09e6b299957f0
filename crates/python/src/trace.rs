//! Traces: looked at, converted, and read as records.

use crate::failure;
use crate::plugin;
use hybridsim_workload::block_events::BlockEvents;
use hybridsim_workload::native::Header;
use hybridsim_workload::profile::profile;
use hybridsim_workload::record::{Record, RecordReader, SourceLocation, TraceError, Warning};
use hybridsim_workload::trace::{FormatEntry, OpenOptions, OpenTrace, open_with};
use hybridsim_workload::write::{self, WriterEntry};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use serde_json::{Value, json};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

/// Bytes of a record; `python/hybridsim/traces.py` declares the same layout to numpy.
const RECORD_BYTES: usize = 33;

fn open(path: &Path, format: Option<String>) -> Result<OpenTrace, TraceError> {
    let formats: Vec<FormatEntry> = plugin::registry().iter::<FormatEntry>().collect();
    open_with(&formats, path, &OpenOptions { format, ..OpenOptions::default() })
}

/// A reader that ends with an error when the user wants to stop.
struct Interruptible {
    inner: OpenTrace,
    records: u64,
    path: PathBuf,
}

impl Interruptible {
    fn open(path: &Path, format: Option<String>) -> Result<Self, TraceError> {
        Ok(Self { inner: open(path, format)?, records: 0, path: path.to_owned() })
    }
}

impl RecordReader for Interruptible {
    fn next(&mut self) -> Result<Option<Record>, TraceError> {
        self.records += 1;
        if self.records & 0xFFFF == 0
            && let Err(error) = Python::attach(|py| py.check_signals())
        {
            failure::keep(error);
            return Err(TraceError::new(&self.path, SourceLocation::File, "interrupted"));
        }
        self.inner.next()
    }
    fn warnings(&self) -> &[Warning] {
        self.inner.warnings()
    }
    fn progress(&self) -> Option<f64> {
        self.inner.progress()
    }
    fn has_times(&self) -> bool {
        self.inner.has_times()
    }
    fn block_events(&self) -> Option<BlockEvents> {
        self.inner.block_events()
    }
    fn volumes(&self) -> &[String] {
        self.inner.volumes()
    }
}

/// Does `act` without holding the interpreter; a message becomes a `TraceError`.
fn detached<T: Send>(
    py: Python<'_>,
    act: impl FnOnce() -> Result<T, String> + Send,
) -> PyResult<T> {
    failure::guarded(|| {
        let (result, raised) = failure::gather(|| {
            let (result, raised) = py.detach(|| failure::gather(act));
            raised.into_iter().for_each(failure::keep);
            result
        });
        match (result, raised) {
            (_, Some(raised)) => Err(raised),
            (Err(message), None) => Err(failure::raise(py, "TraceError", message)),
            (Ok(value), None) => Ok(value),
        }
    })
}

fn as_values(warnings: &[Warning]) -> Vec<Value> {
    let one = |warning: &Warning| {
        json!({
            "place": warning.location.number(),
            "count": warning.count,
            "message": warning.message,
        })
    };
    warnings.iter().map(one).collect()
}

/// Reads a trace to its end; returns its format and profile as JSON.
#[pyfunction]
pub fn trace_info(py: Python<'_>, path: PathBuf, format: Option<String>) -> PyResult<String> {
    detached(py, || {
        let mut reader = Interruptible::open(&path, format).map_err(|error| error.to_string())?;
        let profile = profile(&mut reader, &mut |_| {}).map_err(|error| error.to_string())?;
        let info = json!({
            "format": reader.inner.format.name,
            "packing": reader.inner.compression,
            "also": reader.inner.also,
            "warnings": as_values(reader.warnings()),
            "profile": serde_json::to_value(&profile).expect("a profile is plain values"),
        });
        Ok(info.to_string())
    })
}

fn writer(name: Option<&str>, target: &Path) -> Result<WriterEntry, String> {
    let registry = plugin::registry();
    let extension = target.extension().and_then(|extension| extension.to_str());
    let fits = |entry: &WriterEntry| match name {
        Some(name) => entry.description.name == name,
        None => Some(entry.extension) == extension,
    };
    registry.iter::<WriterEntry>().find(fits).ok_or_else(|| {
        let known: Vec<String> = registry
            .iter::<WriterEntry>()
            .map(|entry| format!("{} (.{})", entry.description.name, entry.extension))
            .collect();
        let wish = name.map_or_else(
            || format!("the name {} does not determine a format to write", target.display()),
            |name| format!("the format {name:?} cannot be written"),
        );
        format!("{wish}; choose one with `to=`: {}", known.join(", "))
    })
}

/// Converts a trace. The target is whole or absent. Returns what was done as JSON.
#[pyfunction]
pub fn convert(
    py: Python<'_>,
    source: PathBuf,
    target: PathBuf,
    to: Option<String>,
    format: Option<String>,
) -> PyResult<String> {
    detached(py, || {
        let entry = writer(to.as_deref(), &target)?;
        let mut reader = Interruptible::open(&source, format).map_err(|error| error.to_string())?;
        let mut name = target.file_name().unwrap_or_default().to_owned();
        name.push(".partial");
        let partial = target.with_file_name(name);
        let failed = |error: std::io::Error| format!("cannot write {}: {error}", target.display());
        let out: Box<dyn Write> = Box::new(BufWriter::new(File::create(&partial).map_err(failed)?));
        let header = Header { has_times: reader.has_times(), ..Header::default() };
        let written = (entry.create)(out, &header)
            .map_err(failed)
            .and_then(|writer| {
                write::convert(&mut reader, writer, &mut |_| {}).map_err(|error| error.to_string())
            })
            .and_then(|done| std::fs::rename(&partial, &target).map(|()| done).map_err(failed));
        let done = written.inspect_err(|_| {
            // What is left of a failed conversion is of no use; that it cannot be removed either
            // is not what the user has to hear.
            drop(std::fs::remove_file(&partial));
        })?;
        let report = json!({
            "format": entry.description.name,
            "records": done.records,
            "left_out": done.left_out,
            "loses": entry.loses,
            "warnings": as_values(reader.warnings()),
        });
        Ok(report.to_string())
    })
}

/// Reads a trace in chunks.
#[pyclass(unsendable, module = "hybridsim")]
pub struct TraceReader {
    trace: OpenTrace,
    ended: bool,
}

#[pymethods]
impl TraceReader {
    #[new]
    fn new(py: Python<'_>, path: PathBuf, format: Option<String>) -> PyResult<Self> {
        let trace = failure::guarded(|| {
            open(&path, format).map_err(|error| failure::raise(py, "TraceError", error.to_string()))
        })?;
        Ok(Self { trace, ended: false })
    }

    /// The bytes of up to `records` records; empty at the end of the trace.
    fn next_chunk<'py>(
        &mut self,
        py: Python<'py>,
        records: usize,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let mut bytes = Vec::with_capacity(records.min(1 << 20) * RECORD_BYTES);
        failure::guarded(|| {
            while !self.ended && bytes.len() / RECORD_BYTES < records {
                match self.trace.next() {
                    Ok(Some(record)) => put(&mut bytes, &record),
                    Ok(None) => self.ended = true,
                    Err(error) => {
                        self.ended = true;
                        return Err(failure::raise(py, "TraceError", error.to_string()));
                    }
                }
            }
            Ok(())
        })?;
        Ok(PyBytes::new(py, &bytes))
    }

    /// Name of the format.
    #[getter]
    fn format(&self) -> &'static str {
        self.trace.format.name
    }

    /// The compression, such as `gzip`.
    #[getter]
    fn packing(&self) -> Option<&'static str> {
        self.trace.compression
    }

    /// Whether its records carry arrival times.
    #[getter]
    fn has_times(&self) -> bool {
        self.trace.has_times()
    }

    /// Names of the volumes seen so far, by number.
    #[getter]
    fn volumes(&self) -> Vec<String> {
        self.trace.volumes().to_vec()
    }

    /// Share of the file read, where known.
    #[getter]
    fn progress(&self) -> Option<f64> {
        self.trace.progress()
    }

    /// Oddities so far.
    #[getter]
    fn warnings(&self) -> Vec<String> {
        self.trace.warnings().iter().map(|warning| warning.message.clone()).collect()
    }
}

fn put(bytes: &mut Vec<u8>, record: &Record) {
    let request = &record.request;
    let response =
        record.response.map_or(-1, |time| i64::try_from(time.as_ns()).unwrap_or(i64::MAX));
    bytes.extend_from_slice(&record.at.as_ns().to_le_bytes());
    bytes.extend_from_slice(&request.lba.0.to_le_bytes());
    bytes.extend_from_slice(&response.to_le_bytes());
    bytes.extend_from_slice(&request.sectors.to_le_bytes());
    bytes.extend_from_slice(&request.volume.to_le_bytes());
    bytes.extend_from_slice(&request.flags.0.to_le_bytes());
    bytes.push(request.op.code());
}
