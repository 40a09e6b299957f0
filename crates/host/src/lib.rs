//! Submission queues, I/O schedulers and volumes.

/// Placeholder until the room declares its own.
pub const PARAMS: &[hybridsim_engine::param::Param] = &[];
