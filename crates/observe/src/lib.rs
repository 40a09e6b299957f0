//! What may be seen of a run: folds over the stream of events.
//!
//! Components tell events and count nothing. Every fold here takes the stream, keeps constant memory
//! and knows nothing of the models. [`Recorder`] bundles them; [`RunResults`] is what comes out,
//! [`Pictures`] what reports draw from. Ratios and energies are worked out in one place, from
//! sums, when the run has ended.

pub mod breakdown;
pub mod busy;
pub mod counters;
pub mod events;
pub mod fingerprint;
pub mod invariants;
pub mod latency;
pub mod logarithm;
mod metrics;
pub mod pictures;
pub mod recorder;
pub mod results;
pub mod series;
pub mod spans;
mod summary;
#[cfg(test)]
mod testing;
pub mod timeline;

pub use fingerprint::Fingerprint;
pub use hybridsim_engine::Op;
pub use invariants::Invariants;
pub use latency::{Latencies, LatencyFold};
pub use pictures::Pictures;
pub use recorder::{Detail, Ending, Finished, Recorder, Warmup};
pub use results::{Cost, Label, RunResults};
