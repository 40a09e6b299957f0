//! The summary of a run, as it is stored and printed. `docs/results.md` documents every key.
//!
//! Ratios are computed here, from sums; one without a denominator is `null`, never NaN.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Raised when a key changes its meaning or goes away; new keys do not raise it.
pub const SCHEMA_VERSION: u32 = 2;

/// What the caller knows of a run and the events cannot tell.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Label {
    /// Name shown beside the run's figures.
    pub title: String,
    /// Scenario file or preset.
    pub scenario: String,
    /// Trace or generator.
    pub trace: String,
    /// Seed of all random streams.
    pub seed: u64,
    /// Versions of the program and what it was built from, by name.
    pub versions: BTreeMap<String, String>,
}

/// What the run cost on the computer that ran it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Cost {
    /// Seconds on the clock.
    pub wall_s: f64,
    /// Greatest memory in use, where known.
    pub peak_rss_bytes: Option<u64>,
}

/// The summary.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunResults {
    /// [`SCHEMA_VERSION`].
    pub schema_version: u32,
    /// Name, scenario, trace, seed, versions.
    #[serde(flatten)]
    pub label: Label,
    /// Whether the run reached its end.
    pub complete: bool,
    /// Requests completed in the whole run.
    pub requests: u64,
    /// Length of the whole run.
    pub simulated_ns: u64,
    /// Events the machine handled.
    pub events: u64,
    /// Events that components emitted.
    #[serde(alias = "facts")]
    pub event_records: u64,
    /// Seconds the run took.
    pub wall_s: f64,
    /// Requests per second of these.
    pub requests_per_wall_s: Option<f64>,
    /// Greatest memory in use.
    pub peak_rss_bytes: Option<u64>,
    /// 16 hexadecimal digits; equal runs have equal ones.
    pub fingerprint: String,
    /// Power failures.
    #[serde(default)]
    pub power_cuts: u64,
    /// Requests they took away; none of these completed.
    #[serde(default)]
    pub requests_lost: u64,
    /// What was left out of the statistics below.
    pub warmup: WarmupResult,
    /// Latencies of requests completed after the warm-up.
    pub latency_ns: ByKind<LatencyResult>,
    /// Work done per simulated second after the warm-up.
    pub throughput: Throughput,
    /// Mean time per request, by where it went.
    pub breakdown_ns: BreakdownResult,
    /// Sums over all components.
    pub totals: Totals,
    /// Metrics by component path.
    pub components: BTreeMap<String, Component>,
    /// What a reader of the figures should know.
    pub warnings: Vec<String>,
    /// Invariants that were broken; empty in a sound run.
    pub violations: Vec<String>,
}

/// What was left out of the statistics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct WarmupResult {
    /// Requests completed before the measured window.
    pub requests: u64,
    /// Simulated time before the measured window.
    pub ns: u64,
}

/// Something for all requests, and for each operation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ByKind<T> {
    /// All requests.
    pub all: T,
    /// Reads.
    pub read: T,
    /// Writes.
    pub write: T,
    /// Trims.
    pub trim: T,
    /// Flushes.
    #[serde(default)]
    pub flush: T,
}

/// Latencies in ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LatencyResult {
    /// Requests.
    pub count: u64,
    /// Exact mean.
    pub mean: Option<f64>,
    /// Standard deviation of the population.
    pub stddev: Option<f64>,
    /// Shortest.
    pub min: Option<u64>,
    /// Median, as all percentiles within 0.1 %.
    pub p50: Option<u64>,
    /// 90th percentile.
    pub p90: Option<u64>,
    /// 95th percentile.
    pub p95: Option<u64>,
    /// 99th percentile.
    pub p99: Option<u64>,
    /// 99.9th percentile.
    pub p999: Option<u64>,
    /// 99.99th percentile.
    pub p9999: Option<u64>,
    /// Longest.
    pub max: Option<u64>,
}

/// Work done after the warm-up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Throughput {
    /// Requests per simulated second.
    pub iops: Option<f64>,
    /// Bytes read and written per simulated second.
    pub bytes_per_s: Option<f64>,
    /// Reads per simulated second.
    pub read_iops: Option<f64>,
    /// Writes per simulated second.
    pub write_iops: Option<f64>,
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub write_bytes: u64,
    /// Bytes trimmed, which are not in `bytes_per_s`.
    #[serde(default)]
    pub trim_bytes: u64,
}

/// Mean time per request in ns, by part.
pub type PartTimes = BTreeMap<String, f64>;

/// Where the time went.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct BreakdownResult {
    /// All requests.
    pub all: PartTimes,
    /// Reads.
    pub read: PartTimes,
    /// Writes.
    pub write: PartTimes,
    /// About the slowest 1 % of all requests.
    pub slowest: SlowestResult,
}

/// The slowest requests.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SlowestResult {
    /// How many.
    pub requests: u64,
    /// They took at least this long.
    pub threshold_ns: Option<u64>,
    /// Mean time per such request.
    pub parts: PartTimes,
}

/// Sums over all components.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Totals {
    /// Energy of all components that draw power, after the warm-up.
    pub energy_j: Option<f64>,
    /// The same per request.
    pub energy_j_per_request: Option<f64>,
    /// Flash pages programmed for the host.
    pub host_programs: Option<u64>,
    /// Flash pages programmed for any cause.
    pub programs: Option<u64>,
    /// Flash blocks erased.
    pub erases: Option<u64>,
    /// `programs` over `host_programs`.
    pub write_amplification: Option<f64>,
    /// Share of cache pages found, where caches lie side by side and are of one kind.
    pub hit_ratio: Option<f64>,
}

/// Metrics of one component. Groups that do not apply are left out.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Component {
    /// Registered name of its kind.
    pub kind: String,
    /// Constants of its model.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub constants: BTreeMap<String, f64>,
    /// Time and energy.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub power: Option<Power>,
    /// A disk's mechanics.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub disk: Option<Disk>,
    /// Flash operations.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub flash: Option<Flash>,
    /// A cache's work.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub cache: Option<Cache>,
    /// A queue.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub queue: Option<Queue>,
    /// Returns to service after power failures.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub recovery: Option<Recovery>,
    /// An extension's own numbers.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub custom: BTreeMap<String, CustomResult>,
}

/// Time by power state, and energy.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Power {
    /// Time by state, states never entered left out.
    pub state_ns: BTreeMap<String, u64>,
    /// Share of the time neither idle nor in standby.
    pub busy_fraction: Option<f64>,
    /// Energy of states, operations and spin-ups.
    pub energy_j: Option<f64>,
    /// The same, by state, by kind of operation, and by what draws power all the time.
    #[serde(default)]
    pub energy_by_j: BTreeMap<String, f64>,
}

/// A disk's mechanics.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Disk {
    /// Arm movements.
    pub seeks: u64,
    /// Time spent in them.
    pub seek_ns: u64,
    /// Mean of one.
    pub seek_ns_mean: Option<f64>,
    /// Mean distance.
    pub seek_cylinders_mean: Option<f64>,
    /// Waits for a sector.
    pub rotations: u64,
    /// Time spent in them.
    pub rotation_ns: u64,
    /// Mean of one.
    pub rotation_ns_mean: Option<f64>,
    /// Transfers between medium and buffer.
    pub transfers: u64,
    /// Time spent in them.
    pub transfer_ns: u64,
    /// Bytes moved by them.
    pub media_bytes: u64,
    /// Reads by what the drive's buffer did.
    pub buffer_reads: BufferResult,
    /// Writes by what the drive's buffer did.
    pub buffer_writes: BufferResult,
    /// Spin-ups.
    pub spin_ups: u64,
}

/// Requests by what a drive's buffer did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct BufferResult {
    /// The medium had to be used.
    pub medium: u64,
    /// Everything was there.
    pub full: u64,
    /// Served by a read-ahead still running.
    pub ahead: u64,
    /// Taken into the buffer.
    pub taken: u64,
}

/// Flash operations.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Flash {
    /// Pages programmed for the host.
    pub host_programs: u64,
    /// Pages programmed by garbage collection.
    pub gc_programs: u64,
    /// Pages programmed in all.
    pub programs: u64,
    /// Pages read in all.
    pub reads: u64,
    /// Blocks erased in all.
    pub erases: u64,
    /// `programs` over `host_programs`.
    pub write_amplification: Option<f64>,
    /// Pages read, by cause.
    pub reads_by_cause: BTreeMap<String, u64>,
    /// Pages programmed, by cause.
    pub programs_by_cause: BTreeMap<String, u64>,
    /// Blocks erased, by cause.
    pub erases_by_cause: BTreeMap<String, u64>,
    /// Erase counts of all blocks over the device's life; `null` when it did not tell.
    pub erase_count: Option<EraseCount>,
    /// Erases after the warm-up of the units of each level: `device`, `package` (what hangs on one
    /// channel), `die`, `plane`, `block`.
    #[serde(default)]
    pub erases_by_level: BTreeMap<String, EraseSpread>,
    /// How long it will last at this pace; `null` when nothing was erased.
    #[serde(default)]
    pub lifetime: Option<Lifetime>,
    /// How busy its channels and dies were; `null` when nobody looked or it has no clock.
    #[serde(default)]
    pub utilisation: Option<Utilisation>,
    /// Pages asked for that held nothing: never written, or trimmed.
    #[serde(default)]
    pub unwritten_reads: u64,
    /// Searches for a victim to collect.
    #[serde(default)]
    pub victim_searches: u64,
    /// Blocks looked at in them.
    #[serde(default)]
    pub searched_blocks: u64,
    /// Joules spent on them.
    #[serde(default)]
    pub search_energy_j: f64,
    /// Fewest free blocks.
    pub free_blocks_min: Option<u64>,
    /// Free blocks at the end.
    pub free_blocks_end: Option<u64>,
}

/// How busy the channels and dies of a flash device were, by number.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Utilisation {
    /// Its channels: commands and data on the wire.
    pub channels: Vec<Busy>,
    /// Its dies: from a command until the die can take the next one.
    pub dies: Vec<Busy>,
}

/// How busy one of them was.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Busy {
    /// Share of the time.
    pub busy_fraction: Option<f64>,
    /// The same by cause; causes that took no time are left out.
    pub busy_by_cause: BTreeMap<String, f64>,
}

/// How erases spread over the units of a level.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct EraseSpread {
    /// Units.
    pub units: u64,
    /// Erases of them all; the same at every level.
    pub sum: u64,
    /// Erases of the unit with the fewest.
    pub min: u64,
    /// Mean over the units.
    pub mean: f64,
    /// Erases of the unit with the most.
    pub max: u64,
    /// Standard deviation over the units.
    pub stddev: f64,
}

/// How long a flash device will last if it goes on as after the warm-up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Lifetime {
    /// Erases its blocks have left in all.
    pub erases_left: f64,
    /// Erases per day.
    pub erases_per_day: f64,
    /// Bytes programmed for the host per day.
    pub host_bytes_per_day: f64,
    /// Bytes it can still take from the host if all blocks wear alike.
    pub host_bytes_left: f64,
    /// Days until the last erase if all blocks wear alike.
    pub days_even: f64,
    /// Days until the most worn block is worn out if it wears as fast as the fastest one does.
    pub days_first_block: Option<f64>,
}

/// How often the blocks of a device were erased.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct EraseCount {
    /// Blocks.
    pub blocks: u64,
    /// Least.
    pub min: u64,
    /// Mean.
    pub mean: f64,
    /// Greatest.
    pub max: u64,
    /// Standard deviation of the population.
    pub stddev: f64,
}

/// A cache's work.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Cache {
    /// Requests that asked it.
    pub lookups: u64,
    /// Pages found.
    pub hits: u64,
    /// Pages not found.
    pub misses: u64,
    /// `hits` over both.
    pub hit_ratio: Option<f64>,
    /// Pages found by reads.
    pub read_hits: u64,
    /// Pages not found by reads.
    pub read_misses: u64,
    /// Pages found by writes.
    pub write_hits: u64,
    /// Pages not found by writes.
    pub write_misses: u64,
    /// Requests that went round it.
    pub bypasses: u64,
    /// Bytes of these.
    pub bypassed_bytes: u64,
    /// Writes back to the slow medium.
    pub destages: u64,
    /// Bytes of these.
    pub destaged_bytes: u64,
    /// Cleanings begun.
    pub cleanups: u64,
    /// Pages made free by them.
    pub cleaned_pages: u64,
    /// Most dirty pages.
    pub dirty_pages_max: Option<u64>,
    /// Dirty pages at the end.
    pub dirty_pages_end: Option<u64>,
}

/// Returns to service after power failures.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Recovery {
    /// How many.
    pub recoveries: u64,
    /// Mean time from the return of the power to service.
    pub recovery_ns_mean: Option<f64>,
    /// Longest such time.
    pub recovery_ns_max: u64,
}

/// A queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Queue {
    /// Mean number waiting, over time.
    pub queue_depth_mean: Option<f64>,
    /// Most waiting.
    pub queue_depth_max: u64,
}

/// One of an extension's own numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CustomResult {
    /// How often it was told.
    pub count: u64,
    /// Mean of the values told.
    pub mean: Option<f64>,
    /// Least.
    pub min: u64,
    /// Greatest.
    pub max: u64,
    /// Last.
    pub last: u64,
}

/// `part / whole`, `None` where that is not a finite number.
pub fn ratio(part: f64, whole: f64) -> Option<f64> {
    Some(part / whole).filter(|ratio| ratio.is_finite())
}
