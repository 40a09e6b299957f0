//! Geometry: where a sector is on the platters.

mod interpolate;
pub mod layout;
mod mapping;
pub mod zone;

pub use layout::{Layout, Place};
pub use mapping::Mapping;
pub use zone::ZoneSpec;
