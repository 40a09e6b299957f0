//! Caches: the policies, the bookkeeping of paged caches, and caches that are devices of their own.
//!
//! - [`admission`], [`replacement`], [`cleanup`]: policies, one file each. They are asked and
//!   answer; the controller alone moves data, so no policy can lose any.
//! - [`paged`]: what caches of pages have in common: what is cached where, who may touch it.
//! - [`memory_cache`]: a controller's cache of lines in front of a device.
//! - [`cache_device`]: a device as the cache of another.

pub mod admission;
mod bits;
pub mod cache_device;
pub mod cleanup;
pub mod event;
pub mod memory_cache;
pub mod paged;
pub mod replacement;
pub mod streams;

pub use event::CacheEvent;

use hybridsim_config::build::ComponentEntry;
use hybridsim_config::registry::Registry;

/// The components this crate offers.
pub const ENTRIES: &[ComponentEntry] = &[memory_cache::ENTRY, cache_device::ENTRY];

/// Adds everything of this crate to `registry`.
pub fn register(registry: &mut Registry) {
    registry.add_all(ENTRIES);
    registry.add_all(admission::ENTRIES);
    registry.add_all(replacement::ENTRIES);
    registry.add_all(cleanup::ENTRIES);
}
