//! Layouts of blocks on a device.

mod buckets;
mod slots;

pub use buckets::{Buckets, BucketsOptions};
pub use slots::Slots;

use crate::level::Held;
use hybridsim_engine::{Flags, Lba, Op, Request};
use serde::Serialize;

/// Turns blocks that are written, loaded and dropped into requests to a device.
pub trait Layout {
    /// Appends the requests that write a block.
    ///
    /// # Errors
    /// No space: the device is too small for the layout.
    fn write(&mut self, held: Held, handle: u8, out: &mut Vec<Request>) -> Result<(), String>;
    /// Appends the requests that load a block.
    fn load(&self, held: Held, out: &mut Vec<Request>);
    /// Appends the requests that follow from dropping a block.
    ///
    /// # Errors
    /// As [`Layout::write`].
    fn discard(&mut self, held: Held, out: &mut Vec<Request>) -> Result<(), String>;
    /// Blocks written by the layout itself.
    fn counts(&self) -> LayoutCounts {
        LayoutCounts::default()
    }
}

/// Work of a layout.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct LayoutCounts {
    /// Blocks copied by compaction.
    pub copied: u64,
    /// Buckets freed by compaction, and because all their blocks were dropped.
    pub compacted: u64,
    pub emptied: u64,
    /// Compactions above the threshold, for want of space.
    pub forced: u64,
}

/// A request for a block at a position in units of blocks.
fn block_request(op: Op, position: u64, sectors: u32, handle: u8) -> Request {
    let request = Request::new(op, Lba(position * u64::from(sectors)), sectors);
    Request { flags: Flags::NONE.with_handle(handle), ..request }
}
