//! Arrays: several devices as one. One file each.
//!
//! - Nothing redundant: [`concat`], [`stripe`].
//! - Copies: [`raid1`] and [`raid10`], which share [`mirror`].
//! - Parity: [`raid4`], [`raid5`], [`raid6`] and [`declustered`], which share [`parity`].
//!
//! Redundant arrays share [`members`]: failures, spares and the rebuild.

pub mod concat;
pub mod declustered;
mod fanout;
pub(crate) mod locks;
pub mod members;
pub mod mirror;
pub mod parity;
pub mod raid1;
pub mod raid10;
pub mod raid4;
pub mod raid5;
pub mod raid6;
mod resync;
mod steps;
pub mod stripe;
mod striping;

use hybridsim_config::build::ComponentEntry;

/// All volumes.
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
