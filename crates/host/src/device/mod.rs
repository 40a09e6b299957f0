//! Idealised devices: no medium, only a time to answer. For comparisons, bounds and tests.

pub mod constant;

use hybridsim_engine::build::LayerEntry;

/// All idealised devices.
pub const ENTRIES: &[LayerEntry] = &[constant::ENTRY];
