//! A zoned SSD, after the NVMe Zoned Namespace Command Set Specification 1.1.
//!
//! The address space is divided into zones, which are written in order from their start and reset
//! as a whole. [`zone`] has their states and limits, [`stripe`] places the pages of a zone on the
//! dies, [`backend`] turns requests into flash operations, which the crate's timing models
//! schedule, and finishes zones step by step. There is no garbage collection and no table of
//! pages: a zone has a group of blocks, the same number of each plane.
//!
//! Imports point one way: from `params` to `backend`, and from there to `zone` and `stripe`.

mod backend;
mod params;
mod stripe;
mod zone;

pub use backend::ZnsSsd;
pub use params::{ENTRY, ZONE_SECTORS, ZnsParams, build_zns};
pub use zone::{STATISTIC_NAMES, ZoneState, is_status};

/// No group of blocks.
const NONE: u32 = u32::MAX;
