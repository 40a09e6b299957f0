//! Settings from TOML text, for tests.

use crate::synthetic::distribution;
use hybridsim_config::check;
use hybridsim_config::param::{Param, Settings};
use hybridsim_config::registry::Registry;

/// Distributions are the only entries that a generator chooses.
pub fn registry() -> Registry {
    let mut registry = Registry::default();
    registry.add_all(distribution::ENTRIES);
    registry
}

/// The settings of `params` with their defaults, and what `text` (TOML) says instead.
pub fn settings(params: &'static [Param], text: &str) -> Settings {
    check::read(text, &[params], &registry()).unwrap_or_else(|problems| panic!("{problems}"))
}
