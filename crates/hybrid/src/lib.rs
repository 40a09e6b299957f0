//! Controllers and caches that combine several media into one device.
//!
//! - [`hybrid_disk`]: flash in front of a disk, as in a hybrid hard disk.
//! - [`nv_cache`]: a disk with a flash cache that the host controls by ATA-8 commands;
//!   [`nv_cache_host`]: a host I/O policy that issues these commands.
//! - [`flash_backed`]: the host's I/O scheduler over such a drive (bisson-fqueue).
//! - [`flash_cache`]: a flash cache that sizes its own read, write and over-provisioned space
//!   (op-fcl).

pub mod flash_backed;
pub mod flash_cache;
pub mod hybrid_disk;
pub mod nv_cache;
pub mod nv_cache_host;
mod paged_controller;
#[cfg(test)]
mod testing;

use hybridsim_config::build::ComponentEntry;

/// All controllers.
pub const ENTRIES: &[ComponentEntry] = &[
    hybrid_disk::ENTRY,
    nv_cache::ENTRY,
    nv_cache_host::ENTRY,
    flash_backed::ENTRY,
    flash_cache::ENTRY,
];
