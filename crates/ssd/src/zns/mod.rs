//! A zoned SSD, after the NVMe Zoned Namespace Command Set Specification 1.1.
//!
//! The address space is divided into zones, which are written in order from their start and reset
//! as a whole. [`zone`] has their states and their flash, [`stripe`] places the pages of a zone on
//! the dies, [`translation`] turns requests into flash operations and finishes zones step by step,
//! [`random_area`] takes writes in any order, [`background`] refreshes zones and erases those that
//! were reset while the device is idle. There is no garbage collection and no table of pages: a
//! zone has a group of blocks, the same number of each plane.

mod background;
mod params;
mod random_area;
mod report;
mod stripe;
mod translation;
mod zone;

pub use params::{ENTRY, ZnsParams, build_zns};
pub use translation::ZnsSsd;
pub use zone::STATISTIC_NAMES;

use hybridsim_flash::geometry::Lpn;

/// The spare area names no logical page, as no table has to be rebuilt from it.
const NO_OWNER: Lpn = Lpn(0);
/// No group of blocks.
const NONE: u32 = u32::MAX;
