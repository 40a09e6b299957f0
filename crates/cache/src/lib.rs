//! Caches: policies, the metadata of paged caches, and caches that are components of their own.
//!
//! - [`admission`], [`replacement`], [`cleanup`]: policies, one file each. Only the controller
//!   moves data, so no policy can lose any. [`policy_state`]: saving their state.
//! - [`paged`]: page directory, page locks and request splitting.
//! - [`memory_cache`]: a memory cache in front of a device.
//! - [`cache_device`]: one device as the cache of another.

pub mod admission;
mod bits;
pub mod cache_device;
pub mod cleanup;
pub mod conformance;
pub mod event;
mod flush;
pub mod memory_cache;
pub mod paged;
pub mod policy_state;
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
