//! Scenario files, presets, the registry and the command line.

pub mod build;
pub mod presets;
pub mod scenario;
