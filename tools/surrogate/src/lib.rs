//! A storage system as a table of latency and throughput, for simulators that cannot run it.
//!
//! [`fit`] simulates the system at the knots of a grid over read share, request size and load, in
//! several states of its devices, refines the grid where interpolation is worst, and validates
//! the table on loads drawn at random that it was not fitted to. [`Surrogate`] is what is written;
//! its readers in other languages interpolate as [`Table`] does.

mod bench;
mod fit;
mod table;
mod text;

pub use bench::{Access, DeviceState};
pub use fit::{Axes, FitError, FitOptions, fit};
pub use table::{
    Distribution, ErrorSummary, Loop, Measured, PROBABILITIES, StateTables, Table, Validation,
};
pub use text::terminal;

use serde::Serialize;
use std::collections::BTreeMap;

/// Version of the format, which changes with its meaning.
pub const FORMAT: u32 = 1;

/// The table of a system.
#[derive(Clone, Debug, Serialize)]
pub struct Surrogate {
    /// `hybridsim-surrogate`.
    pub format: &'static str,
    /// [`FORMAT`].
    pub version: u32,
    /// Title of the scenario.
    pub title: String,
    /// Program version.
    pub program: String,
    /// The system with every value spelt out.
    pub system: String,
    /// Capacity in bytes.
    pub capacity_bytes: u64,
    /// Requests that the host of the scenario submits at a time; of more outstanding, the others
    /// wait in the host.
    pub queue_depth: u64,
    /// Order of addresses.
    pub access: Access,
    /// Request sizes and offsets are multiples of it, in bytes.
    pub alignment_bytes: u64,
    /// Probabilities of the quantiles in a [`Distribution`].
    pub probabilities: [f64; PROBABILITIES.len()],
    /// Tables by state of the devices.
    pub states: BTreeMap<String, StateTables>,
}
