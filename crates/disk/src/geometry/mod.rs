//! Geometry: where a sector is on the platters.

pub mod index;
mod interpolate;
pub mod layout;
mod mapping;
mod ranges;
mod spares;
pub mod zone;

pub use layout::{Layout, PhysicalAddress};
pub use mapping::Mapping;
pub use spares::Sparing;
pub use zone::ZoneSpec;
