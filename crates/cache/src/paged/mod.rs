//! Block metadata of caches that hold pages of a disk in flash.
//!
//! - [`directory`]: which page is cached in which slot, and which of its sectors are valid.
//! - [`split`]: splits a request into sub-requests, each contiguous on one medium.
//! - [`locks`]: page locks. [`trimmed`]: sectors that read as zeros after a trim.

pub mod directory;
pub mod locks;
pub mod split;
pub mod trimmed;

/// Memory for directory, order and locks of a page in a cache, about, with what tables that double
/// hold while they grow.
pub const CACHED_PAGE_BYTES: u64 = 136;
