//! Errors that end a run early; each names the component or input at fault.

use crate::request::Lba;
use crate::time::SimTime;
use thiserror::Error;

/// Why a run cannot continue.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Fault {
    /// A read did not return the last write.
    #[error(
        "wrong data: sector {lba} read at {time} returned write {got}, expected one of {expected:?}"
    )]
    WrongData {
        /// The sector.
        lba: Lba,
        /// Completion time of the read.
        time: SimTime,
        /// The version that was returned.
        got: u64,
        /// The versions that would have been valid.
        expected: Vec<u64>,
    },
    /// A request lies outside the device.
    #[error(
        "request for sectors {first}..{end} exceeds the {capacity} sectors of {device}; \
         choose `workload.address` = \"remap\", \"scale\" or \"wrap\", or a larger device"
    )]
    OutOfRange {
        /// First sector requested.
        first: Lba,
        /// First sector after the range.
        end: Lba,
        /// Capacity of the device in sectors.
        capacity: u64,
        /// Path of the device.
        device: String,
    },
    /// A device has no usable space left, or is worn out.
    #[error("{device}: {reason}")]
    Device {
        /// Path of the device.
        device: String,
        /// The problem, and the remedy.
        reason: String,
    },
    /// A policy violated its interface.
    #[error("{device}: {reason}")]
    Policy {
        /// Path of the component that uses it.
        device: String,
        /// The policy, and the violation.
        reason: String,
    },
    /// Code registered as an entry raised an error that its interface cannot return, such as a
    /// policy written in Python.
    #[error("{0}")]
    Plugin(String),
    /// The power failed, and a component does not model that.
    #[error("{device}: a `{kind}` does not model power failures")]
    PowerFailureUnsupported {
        /// Path of the component.
        device: String,
        /// Kind of the component.
        kind: &'static str,
    },
    /// Verification expects the data of an append at the sector it names.
    #[error(
        "{device}: a zone append that names sector {named} is written to {written}: with `verify`, \
         appends have to name the sector they are written to; issue them in order, or use writes"
    )]
    UnverifiableAppend {
        /// Path of the component.
        device: String,
        /// The sector that the request names.
        named: Lba,
        /// The sector that it is written to.
        written: Lba,
    },
    /// The workload cannot continue (a broken trace).
    #[error("{0}")]
    Workload(String),
    /// The workload asks for more than the system can serve.
    #[error("{0}")]
    Overload(String),
    /// An event lies beyond the longest time that a run can simulate.
    #[error(
        "the run would go on beyond 584 years of simulated time (2^64 ns), the longest there can \
         be: shorten latencies, pauses and arrival times"
    )]
    TimeExhausted,
    /// The simulator violated one of its own invariants.
    #[error("invariant broken: {0}; this is a defect of the simulator, please report it")]
    Invariant(String),
    /// The user asked to stop.
    #[error("interrupted")]
    Interrupted,
}
