//! Turns the records of a trace into arrivals at a device.
//!
//! Each step is one file with its parameters; [`replay`] applies them in order: rescale, slice,
//! select volumes, lay out volumes, map addresses, split requests, set arrival times, loop.

pub mod address;
pub mod replay;
pub mod rescale;
pub mod slice;
pub mod survey;
pub mod times;
pub mod volumes;

pub use replay::{Replay, ReplayError, Warnings, replay};

use hybridsim_config::param::Param;

/// All parameters of a replay, for the scenario's `[workload]` table.
pub const PARAMS: &[Param] = replay::Parameters::PARAMS;

#[cfg(test)]
mod tests;
