//! Translation layers that run on the host and make a device of one kind of another: a log that
//! turns any load into sequential writes of zones or segments ([`log_structured`]).

pub mod event;
pub mod log_structured;

pub use event::LayerEvent;

use hybridsim_config::build::ComponentEntry;

/// All layers.
pub const ENTRIES: &[ComponentEntry] = &[log_structured::ENTRY];
