//! The host: what submits requests and schedules them.
//!
//! - [`driver`]: the root of every system; replays a workload and verifies the data reads return.
//! - [`tenants`]: the root of systems that several workloads share, with a queue for each.
//! - [`scheduler`]: the order in which waiting requests are dispatched.

mod arrivals;
pub mod driver;
pub mod scheduler;
pub mod tenants;

pub use driver::{
    Answer, Answered, Host, HostOptions, Mode, QueuePair, WAITS_FOR_COMPLETIONS, not_completed,
};
pub use tenants::TenantHost;
