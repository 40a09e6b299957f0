//! The hybrid SSD of chang-slc-mlc: a little SLC flash for hot data in front of MLC flash.
//!
//! A write first meets the hot-data filter ([`filter`]): small ones are hot. Then the utilization
//! throttle ([`throttle`]), which spares the SLC flash when it wears too fast. What passes both is
//! appended to the SLC log ([`log`]) and found by a hash table ([`hash`]); the rest goes to the MLC
//! flash, chains of blocks ([`mlc`]). [`store`] has both and moves cold data from one to the
//! other, [`device`] is the layer that gives it all its time. Nothing is buffered in volatile
//! memory: a write is answered when it is programmed.
//!
//! The same parts make a conventional MLC SSD (`slc_size = 0`), one with dynamic density control
//! ([`density`]), a drive of today with an SLC cache of all writes, and one with a third tier of
//! non-volatile memory ([`buffer`]). [`model`] has what the paper computes.
//!
//! The paper speaks of sectors of 512 bytes in its evaluation and of sectors as large as pages in
//! its analysis. Here the hash table holds sectors of 512 bytes; a small write of eight takes two
//! SLC pages of 2 KB. An MLC page holds all its sectors, so a write of part of a page reads the
//! rest, from either medium, and takes it along.

mod buffer;
mod density;
mod device;
mod filter;
mod hash;
mod log;
mod mlc;
pub mod model;
mod params;
mod recent;
mod recovery;
mod state;
mod store;
#[cfg(test)]
mod tests;
mod throttle;
mod trims;
mod work;

pub use device::SlcMlcSsd;
pub use filter::{COUNTERS, Filter, Search, threshold};
pub use hash::{HashTable, Probing};
pub use params::{ENTRY, PARAMS, build_slc_mlc};
pub use work::NAMES;
