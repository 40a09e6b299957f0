//! NAND flash: the array, its timing, translation layers, garbage collection, wear.
//!
//! A request takes this way: [`device`] cuts it into pages and asks the translation layer
//! ([`ftl`]), which notes untimed operations in [`ops`]; they change the state of the cells
//! ([`array`]) at once, and [`timing`] decides when they take place. [`slc_mlc`] is a device of
//! another make: two arrays, managed together.

pub mod array;
mod bytes;
pub mod conformance;
pub mod defaults;
pub mod device;
pub mod event;
pub mod ftl;
pub mod gc;
pub mod geometry;
pub mod hotcold;
pub mod ops;
pub mod packed;
pub mod precondition;
pub mod slc_mlc;
pub mod timing;
pub mod wear;

pub use device::ENTRIES;
pub use event::{Cause, FlashAct, FlashBusy, FlashEvent, FlashUnit};
