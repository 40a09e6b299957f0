//! From a scenario file to results: scenarios, presets, the registry, and running a simulation.

mod application;
pub mod build;
pub mod draw;
mod error;
pub mod exports;
pub mod faults;
pub mod memory;
mod observer;
pub mod parallel;
mod power;
pub mod presets;
mod progress;
pub mod registry;
pub mod run;
pub mod scenario;
pub mod session;
pub mod state;
pub mod text;
mod warnings;
pub mod workload;
pub mod write_amplification;
mod zones;
