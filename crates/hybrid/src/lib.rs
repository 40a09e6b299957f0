//! Controllers and caches that make several media one device.
//!
//! - [`hybrid_disk`]: flash in front of a disk, as in a hybrid hard disk.
//! - [`admission`], [`replacement`], [`cleanup`]: its policies, one file each. They are asked and
//!   answer; the controller alone moves data, so no policy can lose any.

pub mod admission;
pub mod cleanup;
pub mod hybrid_disk;
pub mod replacement;

use hybridsim_engine::build::LayerEntry;
use hybridsim_engine::registry::Registry;

/// All controllers.
pub const ENTRIES: &[LayerEntry] = &[hybrid_disk::ENTRY];

/// Adds everything of this crate to `registry`.
pub fn register(registry: &mut Registry) {
    registry.add_all(ENTRIES);
    registry.add_all(admission::ENTRIES);
    registry.add_all(replacement::ENTRIES);
    registry.add_all(cleanup::ENTRIES);
}
