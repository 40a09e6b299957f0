//! I/O schedulers: which waiting request goes to the device next. One file each.
//!
//! All break ties by order of arrival. Only [`fcfs`] and [`sptf`] with a small window bound how
//! long a request can be passed over; each file says what its policy can starve.

pub mod clook;
pub mod fcfs;
pub mod look;
pub mod sorted;
pub mod sptf;
pub mod sstf;
#[cfg(test)]
mod tests;

use hybridsim_engine::schedule::SchedulerEntry;

/// All schedulers.
pub const ENTRIES: &[SchedulerEntry] =
    &[fcfs::ENTRY, sstf::ENTRY, look::ENTRY, clook::ENTRY, sptf::ENTRY];
