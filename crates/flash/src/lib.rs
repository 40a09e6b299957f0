//! NAND flash and the SSDs built from it: array, timing, translation layers, garbage collection,
//! wear levelling.
//!
//! [`device`] splits a request into pages and calls the translation layer ([`ftl`]), which records
//! flash operations in [`ops`]. They change the state of the array ([`array`]) at once; [`timing`]
//! decides when they execute. [`slc_mlc`] is an SSD with an SLC and an MLC array.

pub mod array;
mod bytes;
pub mod conformance;
pub mod defaults;
pub mod device;
pub mod event;
pub mod ftl;
pub mod gc;
pub mod geometry;
mod heap;
pub mod hotcold;
mod lists;
pub mod ops;
pub mod packed;
pub mod precondition;
mod restore;
pub mod slc_mlc;
mod state;
pub mod timing;
pub mod wear;

pub use device::ENTRIES;
pub use event::{Cause, FlashAct, FlashBusy, FlashEvent, FlashUnit};
pub use state::SavedState;
