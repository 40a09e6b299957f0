//! The hard disk: geometry, seeks, rotation, on-board buffer, power.
//!
//! A request goes down this list: [`drive`] takes it and queues it, [`cache`] may have its data,
//! [`mechanics`] moves the arm and waits for the platter ([`seek`], [`rotation`], [`geometry`]),
//! and [`power`] remembers what state the drive was in meanwhile.

pub mod cache;
pub mod drive;
pub mod geometry;
pub mod mechanics;
pub mod mems;
pub mod power;
pub mod rotation;
pub mod seek;

use hybridsim_engine::build::LayerEntry;

/// The parts this crate offers.
pub const ENTRIES: &[LayerEntry] = &[drive::ENTRY, mems::ENTRY];
