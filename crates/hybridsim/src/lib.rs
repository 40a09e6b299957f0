//! The command line.
//!
//! A program of one's own with more FTLs, policies or formats adds entries to
//! [`registry::standard`] and calls [`cli`].

mod cli;

pub use hybridsim_simulation::{build, presets, registry, run, scenario, state};

use hybridsim_config::registry::Registry;

/// Runs the command line `args` (program name first); returns the exit code.
pub fn cli(registry: &Registry, args: impl IntoIterator<Item = std::ffi::OsString>) -> u8 {
    cli::run_with(registry, args)
}
