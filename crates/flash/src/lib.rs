//! NAND flash and the SSDs built from it: array, timing, translation layers, garbage collection,
//! wear levelling.
//!
//! [`device`] splits a request into pages and calls the translation layer ([`ftl`]), which records
//! flash operations in [`ops`]. They change the state of the array ([`array`]) at once; [`timing`]
//! decides when they execute. [`slc_mlc`] is an SSD with an SLC and an MLC array,
//! [`zns`] one with zones.

pub mod array;
mod bit_errors;
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
pub use state::SavedState;

/// Memory that the tables of a flash device of this kind and these settings take, about, without
/// building it; `None` for components of other crates.
pub fn table_bytes(kind: &str, settings: &hybridsim_config::param::Settings) -> Option<u64> {
    match kind {
        "ssd" => Some(device::ssd_table_bytes(settings)),
        "slc-mlc-ssd" => Some(slc_mlc::table_bytes(settings)),
        zns::ZNS_KIND => Some(zns::table_bytes(settings)),
        _ => None,
    }
}

/// Exported capacity of a flash device of this kind and these settings, without building it;
/// `None` for components of other crates.
pub fn capacity_bytes(kind: &str, settings: &hybridsim_config::param::Settings) -> Option<u64> {
    match kind {
        "ssd" => Some(device::ssd_capacity_bytes(settings)),
        "slc-mlc-ssd" => Some(settings.bytes("capacity")),
        zns::ZNS_KIND => Some(zns::capacity_bytes(settings)),
        _ => None,
    }
}
