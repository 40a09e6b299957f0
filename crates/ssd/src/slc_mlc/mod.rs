//! The hybrid SLC/MLC SSD of chang-slc-mlc: a small SLC flash for hot data and a large MLC flash.
//!
//! A write passes the hot-data filter ([`hot_data_filter`]): small writes are hot. The utilisation
//! throttle ([`throttle`]) then protects the SLC flash from early wear. Accepted writes are
//! appended to the circular SLC log ([`slc_log`]), in which a hash table ([`hash_table`]) locates
//! sectors. All others go to the MLC flash, which is organised in block chains ([`block_chains`]).
//! [`hybrid_ftl`] owns both media and moves cold data to the MLC flash, [`translation`] times its
//! flash operations. No data are buffered in volatile memory: a write completes when it is
//! programmed.
//!
//! The same model covers a conventional MLC SSD (`slc_size = 0`), dynamic density control
//! ([`density`]), a TLC or QLC drive whose SLC cache takes all writes, and a third tier of
//! non-volatile memory ([`nvram`]). [`model`] has the analysis of the paper.
//!
//! The paper has sectors of 512 bytes in its evaluation and sectors as large as pages in its
//! analysis. Here the hash table holds sectors of 512 bytes; a small write of eight takes two SLC
//! pages of 2 KB. An MLC page holds all its sectors, so a write of part of a page reads the other
//! sectors from either medium and programs them again.
//!
//! Imports point one way: from `params` to `translation`, `nvram`, `hybrid_ftl`, the two media, and
//! the tables and policies below them.

mod block_chains;
mod density;
mod hash_table;
mod hot_data_filter;
mod hybrid_ftl;
pub mod model;
mod nvram;
mod operations;
mod params;
mod slc_log;
#[cfg(test)]
mod tests;
mod throttle;
mod translation;
mod trim_record;

pub use operations::STATISTIC_NAMES;
pub use params::{ENTRY, PARAMS, build_slc_mlc};
pub use translation::SlcMlcSsd;

/// No sector, page, block or slot.
const NONE: u32 = u32::MAX;
