//! What controllers that cache pages of a disk in flash have in common.
//!
//! - `cache`: what is cached where. `cut`: a request's runs on both media.
//! - `flow`: who may touch which pages. `trimmed`: what the disk need not keep.

pub mod cache;
pub mod cut;
pub mod flow;
pub mod trimmed;
