//! Configuration, below every device: parameters and their units, TOML text to typed settings, the
//! registry, and what a builder is given.
//!
//! - [`param`], [`effect`]: what a component declares; the checked values it reads back.
//! - [`mod@params`]: parameters declared as the fields of a struct.
//! - [`document`], [`units`], [`check`]: from TOML text with positions to those values.
//! - [`ineffective`]: keys that were given and have no effect.
//! - [`diagnostic`]: messages that point into the text.
//! - [`registry`], [`build`]: what can be chosen by name, and how it is built.

#![warn(missing_docs)]

pub mod build;
pub mod check;
pub mod diagnostic;
pub mod document;
pub mod effect;
pub mod ineffective;
pub mod param;
pub mod params;
pub mod registry;
pub mod units;
