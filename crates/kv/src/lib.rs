//! A cache of the key-value blocks of a language model over GPU memory, host memory and storage.
//!
//! A request of a serving trace looks up the blocks of its prompt. Blocks up to the first one that
//! no level holds are used; the rest of the prompt is computed. [`tier::Tier`] moves blocks between
//! the levels and decides what is written to storage; a [`layout`] turns that into requests to a
//! device, of which this crate knows nothing else.
//!
//! - [`model`]: bytes of a token's keys and values, from the shape of the model.
//! - [`policy`], [`level`]: eviction, with the replacement policies of caches and two of its own.
//! - [`tier`]: levels, and when blocks are written to storage.
//! - [`layout`]: slots or buckets on the device; [`lifetime`]: placement handles.
//! - [`generate`]: serving traces like a given one.

pub mod generate;
pub mod layout;
pub mod level;
pub mod lifetime;
pub mod model;
pub mod policy;
pub mod tier;
