//! The host: what submits requests, schedules them and combines devices into volumes.
//!
//! - [`driver`]: the root of every system; replays a workload, checks what reads return.
//! - [`scheduler`]: which waiting request goes next, one file each.
//! - [`volume`]: several devices as one, one file each.
//! - [`bus`] and [`controller`]: the way to the devices; queues and caches on it.
//! - [`device`]: idealised devices, for comparisons and tests.
//! - [`conformance`]: the suite every controller and volume must pass, built in or not.

pub mod bus;
pub mod conformance;
pub mod controller;
pub mod device;
pub mod driver;
pub mod lanes;
pub mod scheduler;
pub mod volume;

pub use driver::{Host, HostOptions, Mode};
