//! The hard disk: geometry, seeks, rotation, on-board buffer, power.
//!
//! A request passes through [`drive`], which queues it, [`cache`], which may hold its data, and
//! [`mechanics`], which positions the head ([`seek`], [`rotation`], [`geometry`]); [`power`] tracks
//! the power states.
//!
//! Three simpler devices: [`mems`], a disk whose access time depends on the distance
//! alone ([`curve_disk`]), and an ideal device for comparisons and tests ([`constant`]).

pub mod cache;
pub mod constant;
pub mod curve_disk;
pub mod drive;
pub mod event;
mod faults;
pub mod geometry;
pub mod mechanics;
pub mod mems;
pub mod power;
pub mod rotation;
pub mod seek;
pub mod smr;

pub use event::{DiskCacheOutcome, DiskEvent};

use hybridsim_config::build::ComponentEntry;

/// The components of this crate.
pub const ENTRIES: &[ComponentEntry] =
    &[drive::ENTRY, mems::ENTRY, curve_disk::ENTRY, constant::ENTRY, smr::ENTRY];
