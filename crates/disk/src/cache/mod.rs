//! The on-board buffer: segments, read-ahead and buffered writes.

mod coverage;
mod order;
pub mod read_ahead;
pub mod segments;

pub use read_ahead::{ReadAhead, ReadAheadLimit, ReadAheadPolicy};
pub use segments::{Segments, SegmentsSpec};
