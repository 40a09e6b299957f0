//! Traces and generators: where requests come from.

pub mod block_events;
mod fenwick;
pub mod native;
pub mod profile;
pub mod record;
pub mod shape;
pub mod synthetic;
pub mod trace;
pub mod write;

#[cfg(test)]
mod testing;
