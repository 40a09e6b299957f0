//! Traces and generators: where requests come from.

pub mod record;
pub mod trace;
