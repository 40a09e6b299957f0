//! From a scenario file to results: scenarios, presets, the registry, and running a simulation.

pub mod build;
pub mod draw;
pub mod exports;
pub mod presets;
pub mod registry;
pub mod run;
pub mod scenario;
pub mod state;
pub mod text;
pub mod workload;
