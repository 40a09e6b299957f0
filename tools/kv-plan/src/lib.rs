//! Key-value caches on flash: hit ratio, time to first token, wear and cost by eviction policy,
//! write mode, size and drive.
//!
//! A [`Study`] replays a serving trace through the tier of `hybridsim-kv` for each cell of a table,
//! whose storage requests a simulated drive serves. Drives are scaled: a page of the simulated
//! drive stands for a part of a block, and reclaim units keep their size in blocks, so that
//! collection moves what it would move, in fewer operations.

mod drives;
mod engine;
mod study;
mod text;

pub use drives::{Drive, Drives};
pub use engine::SystemCounts;
pub use study::{Cell, LayoutChoice, Row, Study, StudyOptions, Target, block_bytes, write_mode};
pub use text::{html, terminal};
