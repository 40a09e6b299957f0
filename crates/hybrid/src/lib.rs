//! Controllers and caches that make several media one device.
//!
//! - [`hybrid_disk`]: flash in front of a disk, as in a hybrid hard disk.
//! - [`nv_cache`]: a disk with a flash cache that the host controls by ATA-8 commands.
//! - [`flash_backed`]: the host's I/O scheduler over such a drive (paper 001).
//! - [`flash_cache`]: a flash cache that sizes its own read, write and over-provisioned space
//!   (paper 003).
//! - `paged`: what the caches of pages have in common: what is cached where, who may touch it.
//! - [`admission`], [`replacement`], [`cleanup`]: its policies, one file each. They are asked and
//!   answer; the controller alone moves data, so no policy can lose any.

pub mod admission;
pub mod cleanup;
pub mod flash_backed;
pub mod flash_cache;
pub mod hybrid_disk;
pub mod nv_cache;
mod paged;
pub mod replacement;
mod sorted;
mod streams;
#[cfg(test)]
mod testing;

use hybridsim_engine::build::LayerEntry;
use hybridsim_engine::registry::Registry;

/// All controllers.
pub const ENTRIES: &[LayerEntry] = &[
    hybrid_disk::ENTRY,
    nv_cache::ENTRY,
    nv_cache::host::ENTRY,
    flash_backed::ENTRY,
    flash_backed::curve_disk::ENTRY,
    flash_cache::ENTRY,
];

/// Adds everything of this crate to `registry`.
pub fn register(registry: &mut Registry) {
    registry.add_all(ENTRIES);
    registry.add_all(admission::ENTRIES);
    registry.add_all(replacement::ENTRIES);
    registry.add_all(cleanup::ENTRIES);
}
