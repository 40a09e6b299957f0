//! Events as records, handed to Python in batches.

use crate::failure;
use hybridsim_engine::event::{FieldInfo, FieldValues};
use hybridsim_engine::{EventKind, EventRecord, EventSink};
use hybridsim_observe::events::kinds;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

/// Bytes of a record; `python/hybridsim/events.py` declares the same layout to numpy.
const RECORD_BYTES: usize = 32;
const BATCH: usize = 1 << 16;

/// Collects events and calls a Python function with each batch.
pub struct Batches {
    callback: Py<PyAny>,
    bytes: Vec<u8>,
}

impl Batches {
    /// Calls `callback` with the bytes of each batch.
    pub fn new(callback: Py<PyAny>) -> Self {
        Self { callback, bytes: Vec::with_capacity(BATCH * RECORD_BYTES) }
    }

    /// Hands over what has gathered. An exception is kept, and nothing is handed over after it.
    pub fn flush(&mut self) {
        if !self.bytes.is_empty() && !failure::is_pending() {
            Python::attach(|py| {
                let batch = PyBytes::new(py, &self.bytes);
                if let Err(error) = self.callback.call1(py, (batch,)) {
                    failure::keep(error);
                }
            });
        }
        self.bytes.clear();
    }

    fn push(&mut self, record: &EventRecord) {
        self.bytes.extend(record.words().into_iter().flat_map(u64::to_le_bytes));
    }
}

impl EventSink for Batches {
    fn take(&mut self, events: &[EventRecord]) {
        events.iter().for_each(|record| self.push(record));
        if self.bytes.len() >= BATCH * RECORD_BYTES {
            self.flush();
        }
    }
}

/// A field of an event: its name, its first byte and length in the record, whether it is a time in
/// nanoseconds, and the names its number stands for.
type Field = (&'static str, usize, usize, bool, Vec<&'static str>);

/// Every event: its number, its name, what it states, and its fields.
#[pyfunction]
pub fn event_kinds() -> Vec<(u8, &'static str, &'static str, Vec<Field>)> {
    let field = |field: &FieldInfo| {
        let (first, length) = field.slot.bytes();
        let (time, names) = match field.values {
            FieldValues::Number => (false, Vec::new()),
            FieldValues::Duration | FieldValues::Instant => (true, Vec::new()),
            FieldValues::Names(names) => (false, names.to_vec()),
        };
        (field.name, first, length, time, names)
    };
    let kind = |kind: &EventKind| {
        (kind.kind, kind.name, kind.doc.trim(), kind.fields.iter().map(field).collect())
    };
    kinds().into_iter().map(kind).collect()
}
