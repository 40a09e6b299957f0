//! Traces and generators: where requests come from.

pub mod record;
pub mod trace;

/// Placeholder until the room declares its own.
pub const PARAMS: &[hybridsim_engine::param::Param] = &[];
