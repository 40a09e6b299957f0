//! The hard disk: geometry, seeks, rotation, on-board buffer, power.
//!
//! A request goes down this list: [`drive`] takes it and queues it, [`cache`] may have its data,
//! [`mechanics`] moves the arm and waits for the platter ([`seek`], [`rotation`], [`geometry`]),
//! and [`power`] remembers what state the drive was in meanwhile.
//!
//! Three simpler devices stand beside it: [`mems`], a disk whose access time depends on the
//! distance alone ([`curve_disk`]), and an ideal device for comparisons and tests ([`constant`]).

pub mod cache;
pub mod constant;
pub mod curve_disk;
pub mod drive;
pub mod event;
pub mod geometry;
pub mod mechanics;
pub mod mems;
pub mod power;
pub mod rotation;
pub mod seek;

use hybridsim_config::build::ComponentEntry;

pub use event::{DiskCacheOutcome, DiskEvent};

/// The parts this crate offers.
pub const ENTRIES: &[ComponentEntry] =
    &[drive::ENTRY, mems::ENTRY, curve_disk::ENTRY, constant::ENTRY];
