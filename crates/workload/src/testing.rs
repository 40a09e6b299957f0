//! Settings from TOML text, for tests.

use crate::synthetic::{self, distribution};
use hybridsim_config::check;
use hybridsim_config::param::{Param, Settings};
use hybridsim_config::registry::Registry;

/// The entries that a generator chooses.
pub fn registry() -> Registry {
    let mut registry = Registry::default();
    registry.add_all(distribution::ENTRIES);
    registry.add_all(synthetic::lsm::COMPACTIONS);
    registry.add_all(synthetic::ENTRIES);
    registry
}

/// The settings of `params` with their defaults, and what `text` (TOML) says instead.
pub fn settings(params: &'static [Param], text: &str) -> Settings {
    check::read(text, &[params], &registry()).unwrap_or_else(|problems| panic!("{problems}"))
}

/// A number below 4096 that has no regular distance to those of other rows.
pub fn scattered(row: u64) -> u64 {
    let mixed = (row + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed ^ mixed >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 52
}
