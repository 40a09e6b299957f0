//! What is observed of a run: folds over the stream of events.
//!
//! Components emit events and keep no statistics. Every fold consumes the stream in constant memory
//! and is independent of the models. [`Recorder`] bundles them; [`RunResults`] is the summary,
//! [`Pictures`] the data for figures. The metrics of a family of devices, from the sum kept during
//! the run to the key in the results, stand in one file of `metrics`.

mod backlog;
pub mod breakdown;
pub mod busy;
mod busy_map;
pub mod counters;
pub mod events;
pub mod fingerprint;
pub mod invariants;
pub mod latency;
pub mod logarithm;
pub mod marks;
mod metrics;
pub mod pictures;
pub mod recorder;
pub mod results;
pub mod series;
pub mod spans;
pub mod steady;
mod summary;
pub mod tenants;
#[cfg(test)]
mod testing;
pub mod timeline;

pub use fingerprint::Fingerprint;
pub use hybridsim_engine::Op;
pub use invariants::Invariants;
pub use latency::{Latencies, LatencyFold};
pub use pictures::Pictures;
pub use recorder::{Detail, Finished, Recorder, Warmup};
pub use results::{Cost, Label, RunResults};
pub use summary::{EndedBy, Ending};
pub use tenants::TenantInfo;
