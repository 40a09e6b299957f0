//! Arrays: several devices presented as one. One file each.
//!
//! - Without redundancy: [`concat`], [`stripe`].
//! - Mirrors: [`raid1`] and [`raid10`], which share [`mirror`].
//! - Parity: [`raid4`], [`raid5`], [`raid6`] and [`declustered`], which share [`parity`].
//!
//! Redundant arrays share [`redundant`], their component, [`rebuild`]: member failures, spares and
//! rebuild, and [`params`].

pub mod concat;
pub mod declustered;
mod fanout;
pub mod mirror;
mod params;
pub mod parity;
pub mod raid1;
pub mod raid10;
pub mod raid4;
pub mod raid5;
pub mod raid6;
mod range_set;
pub mod rebuild;
mod redundant;
mod resync;
pub mod stripe;
mod striping;
mod zoned;

use hybridsim_config::build::ComponentEntry;

/// All arrays.
pub const ENTRIES: &[ComponentEntry] = &[
    concat::ENTRY,
    stripe::ENTRY,
    raid1::ENTRY,
    raid10::ENTRY,
    raid4::ENTRY,
    raid5::ENTRY,
    raid6::ENTRY,
    declustered::ENTRY,
];
