//! Workload characterisation of a trace, as `trace info` shows it, in one pass and bounded memory.
//!
//! Counts, sizes, times and sequentiality are exact. Footprint, update ratio, hot spots and reuse
//! are exact up to a maximum of tracked blocks; beyond it they are estimated from a sample of the
//! address space (Waldspurger et al., FAST 2015), reported as a `sampled_fraction` below 1.

mod footprint;
mod profiler;
mod quantiles;
mod reuse;
mod rows;
mod serving;

pub use footprint::{BlockKey, sample_hash, sampled};
pub use profiler::{Profiler, block_numbers, blocks, profile};
pub use reuse::{SlotSet, StackDistances};
pub use serving::ServingProfile;

use crate::block_events::BlockEvents;
use serde::Serialize;

/// The profile of a trace. Sequences of sizes ascend; fractions are 0 to 1.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Profile {
    /// Requests with data: reads, writes and trims.
    pub requests: u64,
    pub reads: u64,
    pub writes: u64,
    pub trims: u64,
    pub flushes: u64,
    /// Zone management: resets, finishes, opens and closes.
    pub zone_commands: u64,
    /// `reads / requests`.
    pub read_fraction: f64,
    pub bytes: u64,
    pub read_bytes: u64,
    pub written_bytes: u64,
    pub request_bytes_mean: f64,
    /// Requests by length, in classes up to powers of two.
    pub sizes: Vec<SizeClass>,
    /// Size of the union of all sectors accessed, summed over volumes.
    pub footprint_bytes: u64,
    /// Fraction of the address space sampled for the footprint; 1 is exact.
    pub footprint_sampled_fraction: f64,
    /// Size of the device that a replay needs, with volumes one after the other.
    pub device_bytes: u64,
    /// Share of requests that start where the previous one on the same volume ended.
    pub sequential_fraction: f64,
    /// Whether the requests carry arrival times.
    pub has_times: bool,
    /// Numbers of block-layer events, where the trace logs several for each request.
    pub block_events: Option<BlockEvents>,
    /// First to last arrival.
    pub span_ns: u64,
    /// Absent without times or with one request.
    pub interarrival_ns: Option<Distribution>,
    /// Recorded response times, where the trace has them.
    pub response_ns: Option<Distribution>,
    /// Update ratio by length of the writes.
    pub updates: Vec<UpdateClass>,
    /// Concentration of accesses.
    pub hot_spots: HotSpots,
    pub reuse: Reuse,
    pub volumes: Vec<Volume>,
}

/// Requests of one class of lengths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct SizeClass {
    /// Longest request of the class; the class below ends at half of it.
    pub up_to_bytes: u64,
    pub reads: u64,
    pub writes: u64,
    pub trims: u64,
}

/// Mean, spread and quantiles of many values, in nanoseconds. Quantiles are within 0.8 %.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Distribution {
    pub count: u64,
    pub mean: f64,
    pub stddev: f64,
    pub min: u64,
    pub p50: u64,
    pub p90: u64,
    pub p99: u64,
    pub p999: u64,
    pub max: u64,
}

/// Update ratio of writes of one class of lengths (chang-slc-mlc, Figure 7b).
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct UpdateClass {
    /// Longest write of the class; the class below ends at half of it.
    pub up_to_bytes: u64,
    pub writes: u64,
    pub written_bytes: u64,
    /// Size of the union of the sectors written.
    pub distinct_bytes: u64,
    /// `written_bytes / distinct_bytes`.
    pub update_ratio: f64,
    /// Fraction of the address space sampled for the union; 1 is exact.
    pub sampled_fraction: f64,
}

/// Concentration of reads and writes, in blocks of 4 KiB.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct HotSpots {
    /// Distinct blocks accessed.
    pub blocks: u64,
    /// Share of accesses to the most accessed 1 % of these blocks.
    pub top_percent_fraction: f64,
    /// Fraction of blocks sampled; 1 is exact.
    pub sampled_fraction: f64,
}

/// LRU stack distances of reads and writes, in blocks of 4 KiB, sampled.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Reuse {
    /// Fraction of blocks sampled; 1 is exact.
    pub sampled_fraction: f64,
    /// Share of first accesses to a block.
    pub cold_fraction: f64,
    /// Hit ratios of an LRU cache.
    pub lru: Vec<LruPoint>,
}

/// The hit ratio of an LRU cache of one size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct LruPoint {
    pub cache_bytes: u64,
    pub hit_ratio: f64,
}

/// One volume.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Volume {
    /// The number to give in `volumes` of a replay.
    pub number: u16,
    /// The trace's name; empty where it has none.
    pub name: String,
    /// Requests with data.
    pub requests: u64,
    pub reads: u64,
    pub bytes: u64,
    /// End of the last byte accessed.
    pub extent_bytes: u64,
}

#[cfg(test)]
mod tests;
