//! NAND flash and the SSDs built from it: array, timing, translation layers, garbage collection,
//! wear levelling.
//!
//! [`device`] splits a request into pages and calls the translation layer ([`ftl`]), which records
//! flash operations in [`ops`]. They change the state of the array ([`array`]) at once; [`timing`]
//! decides when they execute. [`slc_mlc`] is an SSD with an SLC and an MLC array,
//! [`zns`] one with zones.

pub mod array;
pub mod bit_errors;
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
pub mod zns;

pub use device::ENTRIES;
pub use event::{
    Cause, ECC_BITS, FlashAct, FlashBusy, FlashEvent, FlashUnit, INITIAL_ERASES, SLC_ENDURANCE,
    Throttling,
};
use hybridsim_config::registry::Registry;
pub use state::SavedState;

/// Adds the devices of this crate and what they choose from.
pub fn register(registry: &mut Registry) {
    registry.add_all(ENTRIES);
    registry.add_all(ftl::ENTRIES);
    registry.add_all(gc::ENTRIES);
    registry.add_all(hotcold::ENTRIES);
    registry.add_all(wear::ENTRIES);
    registry.add_all(timing::ENTRIES);
    registry.add_all(bit_errors::ENTRIES);
    registry.add_all(device::throttle::ENTRIES);
    registry.add_all(device::stage::ENTRIES);
}
