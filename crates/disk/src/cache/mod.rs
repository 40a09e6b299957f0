//! The on-board buffer: segments, read-ahead and buffered writes.

pub mod ahead;
pub mod segments;

pub use ahead::{AheadLimit, AheadPolicy, Sweep};
pub use segments::{Segments, SegmentsSpec};
