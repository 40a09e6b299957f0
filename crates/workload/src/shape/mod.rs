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
pub const PARAMS: &[Param] = &[
    times::TIMES,
    times::TIME_SCALE,
    replay::LOOPS,
    slice::FIRST,
    slice::COUNT,
    slice::FROM,
    slice::UNTIL,
    rescale::ADDRESS_UNIT,
    rescale::SIZE_SCALE,
    rescale::ADDRESS_OFFSET,
    volumes::VOLUMES,
    volumes::LAYOUT,
    volumes::STRIDE,
    address::ADDRESS,
    address::GRANULE,
    address::FIT,
    replay::REQUEST_MAX,
];

#[cfg(test)]
mod tests;
