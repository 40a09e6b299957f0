//! The summary of a run, as it is stored and printed. `docs/results.md` documents every key.
//!
//! Ratios are computed here, from sums; one without a denominator is `null`, never NaN.

pub use crate::metrics::{
    BufferResult, Busy, Cache, CustomResult, Disk, EraseCount, EraseSpread, Flash, Lifetime, Power,
    Queue, Recovery, Utilisation,
};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Raised when a key changes its meaning or goes away; new keys do not raise it.
pub const SCHEMA_VERSION: u32 = 3;

/// What the caller knows of a run beyond its events.
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

/// Resources the run used on its computer.
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
    /// Requests in flight at a power failure, which never complete.
    #[serde(default)]
    pub requests_lost: u64,
    /// The warm-up, excluded from the statistics below.
    pub warmup: WarmupResult,
    /// Latencies of requests completed after the warm-up.
    pub latency_ns: ByKind<LatencyResult>,
    /// Work done per simulated second after the warm-up.
    pub throughput: Throughput,
    /// Mean time per request by phase.
    pub breakdown_ns: BreakdownResult,
    /// Sums over all components.
    pub totals: Totals,
    /// Metrics by component path.
    pub components: BTreeMap<String, Component>,
    /// Remarks on the validity of the figures.
    pub warnings: Vec<String>,
    /// Violated invariants; empty in a correct run.
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

/// Mean time per request in ns, by phase.
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

/// Metrics of one component. Groups that do not apply are absent.
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
    /// What a disk did.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub disk: Option<Disk>,
    /// Flash operations.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub flash: Option<Flash>,
    /// What a cache did.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub cache: Option<Cache>,
    /// A queue.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub queue: Option<Queue>,
    /// Recoveries after power failures.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub recovery: Option<Recovery>,
    /// Custom numbers of the component.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub custom: BTreeMap<String, CustomResult>,
}

/// `part / whole`, `None` where that is not a finite number.
pub fn ratio(part: f64, whole: f64) -> Option<f64> {
    Some(part / whole).filter(|ratio| ratio.is_finite())
}
