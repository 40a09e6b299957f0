//! NAND flash: array, timing, bit errors, translation layers, garbage collection, wear levelling.
//!
//! A translation layer ([`ftl`]) records flash operations in [`ops`]. They change the state of the
//! array ([`array`]) at once; [`timing`] decides when they execute. Nothing here knows requests or
//! components: the SSDs are in the crate `hybridsim-ssd`.

pub mod array;
pub mod bit_errors;
mod bytes;
pub mod conformance;
pub mod defaults;
pub mod event;
pub mod ftl;
pub mod gc;
pub mod geometry;
mod heap;
mod lists;
pub mod ops;
pub mod packed;
pub mod placement;
pub mod precondition;
mod request;
pub mod restore;
mod state;
pub mod timing;
pub mod wear;

pub use event::{
    Cause, ECC_BITS, FlashAct, FlashBusy, FlashEvent, FlashUnit, INITIAL_ERASES, SLC_ENDURANCE,
    Throttling,
};
use hybridsim_config::registry::Registry;
pub use lists::LruList;
pub use state::SavedState;

/// Adds the entries that SSDs choose from.
pub fn register(registry: &mut Registry) {
    registry.add_all(ftl::ENTRIES);
    registry.add_all(gc::ENTRIES);
    registry.add_all(placement::ENTRIES);
    registry.add_all(wear::ENTRIES);
    registry.add_all(timing::ENTRIES);
    registry.add_all(bit_errors::ENTRIES);
}
