//! Facts as records, handed to Python in batches.

use crate::failure;
use hybridsim_engine::{
    Cause, Event, EventRecord, EventSink, FlashAct, FlashUnit, LatencyPhase, Op, PowerState,
};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::collections::BTreeMap;

/// Bytes of a record; `python/hybridsim/events.py` declares the same layout to numpy.
const RECORD_BYTES: usize = 36;
/// Records in a batch.
const BATCH: usize = 1 << 16;

/// Collects events and calls a Python function with each batch.
pub struct Batches {
    callback: Py<PyAny>,
    bytes: Vec<u8>,
}

/// A event without its variants; what is not told is 0.
#[derive(Default)]
struct Record {
    code: u8,
    op: u8,
    label: u8,
    unit: u16,
    extra: u32,
    value: u64,
    ns: u64,
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

    fn push(&mut self, stamped: &EventRecord) {
        let record = flatten(&stamped.event);
        let bytes = &mut self.bytes;
        bytes.extend_from_slice(&stamped.time.as_ns().to_le_bytes());
        bytes.extend_from_slice(&record.ns.to_le_bytes());
        bytes.extend_from_slice(&record.value.to_le_bytes());
        bytes.extend_from_slice(&record.extra.to_le_bytes());
        bytes.extend_from_slice(&stamped.node.0.to_le_bytes());
        bytes.extend_from_slice(&record.unit.to_le_bytes());
        bytes.extend_from_slice(&[record.code, record.op, record.label, 0]);
    }
}

impl EventSink for Batches {
    fn take(&mut self, events: &[EventRecord]) {
        for stamped in events {
            self.push(stamped);
        }
        if self.bytes.len() >= BATCH * RECORD_BYTES {
            self.flush();
        }
    }
}

/// The record of `event`. The names of the codes are in `python/hybridsim/events.py`.
fn flatten(event: &Event) -> Record {
    let plain = |code, value| Record { code, value, ..Record::default() };
    match *event {
        Event::Arrived { op, sectors, lba } => {
            Record { op: op as u8, extra: sectors, ..plain(0, lba.0) }
        }
        Event::Completed { op, sectors, lba, latency } => {
            Record { op: op as u8, extra: sectors, ns: latency.as_ns(), ..plain(1, lba.0) }
        }
        Event::PhaseTime { op, phase, time } => {
            Record { op: op as u8, label: phase as u8, ns: time.as_ns(), ..plain(2, 0) }
        }
        Event::QueueDepth { depth } => plain(3, depth.into()),
        Event::Seek { distance, time } => Record { ns: time.as_ns(), ..plain(4, distance.into()) },
        Event::Rotate { time } => Record { ns: time.as_ns(), ..plain(5, 0) },
        Event::MediaTransfer { sectors, time } => {
            Record { ns: time.as_ns(), ..plain(6, sectors.into()) }
        }
        Event::DiskCache { op, outcome } => {
            Record { op: op as u8, label: outcome as u8, ..plain(7, 0) }
        }
        Event::StateTime { state, time } => {
            Record { label: state as u8, ns: time.as_ns(), ..plain(8, 0) }
        }
        Event::FlashRead { cause, die } => Record { label: cause as u8, unit: die, ..plain(9, 0) },
        Event::FlashProgram { cause, die } => {
            Record { label: cause as u8, unit: die, ..plain(10, 0) }
        }
        Event::FlashErase { cause, die, block, erases } => {
            Record { label: cause as u8, unit: die, extra: erases, ..plain(11, block.into()) }
        }
        Event::FreeBlocks { free } => plain(12, free.into()),
        Event::Wear { erases, blocks } => Record { extra: erases, ..plain(13, blocks.into()) },
        Event::CacheLookup { op, hits, misses } => {
            Record { op: op as u8, extra: misses, ..plain(14, hits.into()) }
        }
        Event::Bypassed { op, sectors } => Record { op: op as u8, ..plain(15, sectors.into()) },
        Event::Destaged { sectors } => plain(16, sectors.into()),
        Event::CleanupStarted => plain(17, 0),
        Event::CleanupEnded { pages } => plain(18, pages.into()),
        Event::DirtyPages { pages } => plain(19, pages.into()),
        Event::Custom { name, value } => Record { label: name, ..plain(20, value) },
        Event::VictimSearch { blocks } => plain(21, blocks.into()),
        Event::PowerCut { lost } => plain(22, lost.into()),
        Event::Recovered { took } => Record { ns: took.as_ns(), ..plain(23, 0) },
        Event::FlashBusy { unit, act, cause, begin, end } => {
            let (code, unit) = match unit {
                FlashUnit::Die(die) => (24, die),
                FlashUnit::Channel(channel) => (25, channel),
            };
            let (label, extra, ns) = (cause as u8, act as u32, end.since(begin).as_ns());
            Record { label, unit, extra, ns, ..plain(code, begin.as_ns()) }
        }
        Event::ReadUnwritten { pages } => plain(26, pages.into()),
    }
}

/// Names of the numbers in a record's fields, in their order.
#[pyfunction]
pub fn fact_names() -> BTreeMap<&'static str, Vec<&'static str>> {
    BTreeMap::from([
        ("acts", FlashAct::ALL.map(FlashAct::name).to_vec()),
        ("ops", Op::ALL.map(Op::name).to_vec()),
        ("causes", Cause::ALL.map(Cause::name).to_vec()),
        ("parts", LatencyPhase::ALL.map(LatencyPhase::name).to_vec()),
        ("states", PowerState::ALL.map(PowerState::name).to_vec()),
    ])
}
