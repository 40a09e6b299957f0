//! Requests as policies written in Python see them.

use hybridsim_engine::{Flags, Op};
use pyo3::prelude::*;

/// A request. Sectors have 512 bytes.
#[pyclass(frozen, module = "hybridsim")]
pub struct Request {
    request: hybridsim_engine::Request,
    /// Identifies a queued request among those in the queue.
    #[pyo3(get)]
    pub key: u64,
    /// Time of entering the queue, in ns.
    #[pyo3(get)]
    since_ns: u64,
}

impl Request {
    /// The request, as the owner of a queue knows it.
    pub fn new(request: hybridsim_engine::Request, key: u64, since_ns: u64) -> Self {
        Self { request, key, since_ns }
    }

    fn has(&self, flag: Flags) -> bool {
        self.request.flags.contains(flag)
    }
}

#[pymethods]
impl Request {
    /// `"read"`, `"write"`, `"trim"`, `"flush"`, or zone management: `"zone_reset"`,
    /// `"zone_finish"`, `"zone_open"`, `"zone_close"`, `"zone_commit"`.
    #[getter]
    fn op(&self) -> &'static str {
        self.request.op.name()
    }

    /// First sector.
    #[getter]
    fn first_sector(&self) -> u64 {
        self.request.lba.0
    }

    /// Length in sectors.
    #[getter]
    fn sectors(&self) -> u32 {
        self.request.sectors
    }

    /// Volume of the workload.
    #[getter]
    fn volume(&self) -> u16 {
        self.request.volume
    }

    /// Whether an application waits for it.
    #[getter]
    fn is_sync(&self) -> bool {
        self.has(Flags::SYNC)
    }

    /// True for file-system metadata.
    #[getter]
    fn is_metadata(&self) -> bool {
        self.has(Flags::META)
    }

    /// True for read-ahead.
    #[getter]
    fn is_read_ahead(&self) -> bool {
        self.has(Flags::AHEAD)
    }

    /// True for a zone append.
    #[getter]
    fn is_append(&self) -> bool {
        self.request.op == Op::Write && self.has(Flags::APPEND)
    }

    fn __repr__(&self) -> String {
        let (op, sectors, first) = (self.op(), self.request.sectors, self.request.lba.0);
        format!("<{op} of {sectors} sectors at {first}>")
    }
}
