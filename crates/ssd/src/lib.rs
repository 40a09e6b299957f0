//! SSDs: front end, translation of requests to flash operations, the back end that executes them.
//!
//! [`device`] is the front end of every SSD, and the parts it is composed of. [`zns`] is an SSD
//! with zones, [`slc_mlc`] one with an SLC and an MLC array.

pub mod device;
pub mod slc_mlc;
pub mod zns;

pub use device::ENTRIES;
use hybridsim_config::registry::Registry;

/// Adds the SSDs and what they choose from.
pub fn register(registry: &mut Registry) {
    hybridsim_flash::register(registry);
    registry.add_all(ENTRIES);
    registry.add_all(device::throttle::ENTRIES);
    registry.add_all(device::stage::ENTRIES);
}

/// A registry of the SSDs and what they choose from, for tests and benches.
pub fn registry() -> Registry {
    let mut registry = Registry::default();
    register(&mut registry);
    registry
}
