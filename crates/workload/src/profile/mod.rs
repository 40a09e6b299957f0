//! What a trace is like: the figures `trace info` shows, taken in one pass and bounded memory.
//!
//! Counts, sizes, times and sequentiality are exact. Footprint, update ratio, hot spots and reuse
//! are exact while they fit a fixed room; beyond it they are counted on a sample of the address
//! space (Waldspurger et al., FAST 2015), and say so in a `sampled_fraction` below 1.

mod footprint;
mod profiler;
mod quantiles;
mod reuse;
mod rows;

pub use footprint::{sample_hash, sampled};
pub use profiler::{Profiler, blocks, profile};
pub use reuse::{Key, StackDistances};

use serde::Serialize;

/// The profile of a trace. Sequences of sizes ascend; fractions are 0 to 1.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Profile {
    /// Requests with data: reads, writes and trims.
    pub requests: u64,
    /// Reads.
    pub reads: u64,
    /// Writes.
    pub writes: u64,
    /// Trims.
    pub trims: u64,
    /// Flushes, which are no requests with data.
    pub flushes: u64,
    /// Reads of `requests`.
    pub read_fraction: f64,
    /// Bytes of all requests.
    pub bytes: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub written_bytes: u64,
    /// Mean length.
    pub request_bytes_mean: f64,
    /// Requests by length, in classes up to powers of two.
    pub sizes: Vec<SizeClass>,
    /// Bytes of the union of all sectors touched, per volume and summed.
    pub footprint_bytes: u64,
    /// Share of the address space the footprint was counted on; 1 is exact.
    pub footprint_sampled_fraction: f64,
    /// Share of requests that start where the one before on the same volume ended.
    pub sequential_fraction: f64,
    /// Whether the requests carry arrival times.
    pub has_times: bool,
    /// First to last arrival.
    pub span_ns: u64,
    /// Time from each request to the next; absent without times or with one request.
    pub interarrival_ns: Option<Distribution>,
    /// Response times measured when the trace was taken, where it has them.
    pub response_ns: Option<Distribution>,
    /// How often sectors were written again, by length of the writes.
    pub updates: Vec<UpdateClass>,
    /// How concentrated accesses are.
    pub hot_spots: HotSpots,
    /// How soon blocks are used again.
    pub reuse: Reuse,
    /// Per volume.
    pub volumes: Vec<Volume>,
}

/// Requests of one class of lengths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct SizeClass {
    /// Longest request of the class; the class below ends at half of it.
    pub up_to_bytes: u64,
    /// Reads.
    pub reads: u64,
    /// Writes.
    pub writes: u64,
    /// Trims.
    pub trims: u64,
}

/// Mean, spread and quantiles of many values, in nanoseconds. Quantiles are within 0.8 %.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Distribution {
    /// Number of values.
    pub count: u64,
    /// Mean.
    pub mean: f64,
    /// Standard deviation.
    pub stddev: f64,
    /// Smallest.
    pub min: u64,
    /// Median.
    pub p50: u64,
    /// 90 % are at most this.
    pub p90: u64,
    /// 99 % are at most this.
    pub p99: u64,
    /// 99.9 % are at most this.
    pub p999: u64,
    /// Largest.
    pub max: u64,
}

/// How often writes of one class of lengths overwrote each other (chang-slc-mlc, Figure 7b).
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct UpdateClass {
    /// Longest write of the class; the class below ends at half of it.
    pub up_to_bytes: u64,
    /// Writes.
    pub writes: u64,
    /// Bytes written by them.
    pub written_bytes: u64,
    /// Bytes of the union of sectors they wrote.
    pub distinct_bytes: u64,
    /// `written_bytes / distinct_bytes`.
    pub update_ratio: f64,
    /// Share of the address space the union was counted on; 1 is exact.
    pub sampled_fraction: f64,
}

/// How concentrated reads and writes are, in blocks of 4 KiB.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct HotSpots {
    /// Blocks touched.
    pub blocks: u64,
    /// Share of accesses that the most used 1 % of the touched blocks get.
    pub top_percent_fraction: f64,
    /// Share of blocks counted; 1 is exact.
    pub sampled_fraction: f64,
}

/// LRU stack distances of reads and writes, in blocks of 4 KiB, sampled.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Reuse {
    /// Share of blocks followed; 1 is exact.
    pub sampled_fraction: f64,
    /// Share of accesses to blocks not seen before.
    pub cold_fraction: f64,
    /// Hit ratios of an LRU cache.
    pub lru: Vec<LruPoint>,
}

/// The hit ratio of an LRU cache of one size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct LruPoint {
    /// Its size.
    pub cache_bytes: u64,
    /// Share of block accesses it would have.
    pub hit_ratio: f64,
}

/// One volume.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Volume {
    /// Its number, as `volumes` of a replay wants it.
    pub number: u16,
    /// What the trace calls it; empty where it has no name.
    pub name: String,
    /// Requests with data.
    pub requests: u64,
    /// Reads of them.
    pub reads: u64,
    /// Bytes of all requests.
    pub bytes: u64,
    /// End of the last byte touched.
    pub extent_bytes: u64,
}

#[cfg(test)]
mod tests;
