//! The host: what submits requests and schedules them.
//!
//! - [`driver`]: the root of every system; replays a workload, checks what reads return.
//! - [`scheduler`]: which waiting request goes next, one file each.

pub mod driver;
pub mod scheduler;

pub use driver::{Host, HostOptions, Mode};
