//! Scenario files, presets, the registry and the command line.
//!
//! A program of one's own with more FTLs, policies or formats adds entries to
//! [`registry::standard`] and calls [`cli`].

pub mod build;
pub mod calibrate;
mod cli;
pub mod draw;
pub mod exports;
pub mod fuzz;
pub mod import;
pub mod mrc;
pub mod presets;
pub mod registry;
pub mod reproduce;
pub mod run;
pub mod scenario;
pub mod state;
pub mod sweep;
mod text;
pub mod workload;

use hybridsim_engine::registry::Registry;

/// Runs the command line `args` (program name first); returns the exit code.
pub fn cli(registry: &Registry, args: impl IntoIterator<Item = std::ffi::OsString>) -> u8 {
    cli::run_with(registry, args)
}
