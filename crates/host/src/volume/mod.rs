//! Volumes: several devices as one. One file each.

pub mod concat;
mod fanout;
pub mod stripe;

use hybridsim_engine::build::LayerEntry;

/// All volumes.
pub const ENTRIES: &[LayerEntry] = &[concat::ENTRY, stripe::ENTRY];
