//! The summary of a run, as stored and printed. `docs/reference/results.md` documents every key.
//!
//! Ratios are computed here, from sums; one without a denominator is `null`, never NaN.

pub use crate::metrics::{
    BitErrors, BufferResult, Busy, Cache, Component, CustomResult, Disk, EraseCount, EraseSpread,
    Flash, Lifetime, Log, Power, Queue, Recovery, Redundancy, Thermal, Utilisation, ratio,
};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Raised when a key changes its meaning or goes away; new keys do not raise it.
pub const SCHEMA_VERSION: u32 = 4;

/// Identification of the run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Label {
    /// Name of the run in tables and charts.
    pub title: String,
    /// Scenario file or preset.
    pub scenario: String,
    /// Trace file or generator.
    pub trace: String,
    /// Seed of all random streams.
    pub seed: u64,
    /// Version of the program (`hybridsim`) and a hash of the code it was built from (`sources`).
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

/// The results of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunResults {
    /// Version of this format; increases when a key changes its meaning or is removed.
    pub schema_version: u32,
    /// Name, scenario, trace, seed, versions.
    #[serde(flatten)]
    pub label: Label,
    /// `true` when the run ended as the scenario asks, `false` when it stopped early.
    pub complete: bool,
    /// Cause of the end of the run: the `completion` of all requests, the `last-arrival`
    /// (`host.end`), or an `interruption` by an error or the user.
    pub ended_by: Option<String>,
    /// Requests completed in the whole run, warm-up included.
    pub requests: u64,
    /// Simulated time of the whole run.
    pub simulated_ns: u64,
    /// Messages and timers the simulator processed.
    pub events: u64,
    /// Events emitted by all components.
    pub event_records: u64,
    /// Elapsed real time in seconds, which other runs at the same time lengthen.
    pub wall_s: f64,
    /// `requests` divided by `wall_s`.
    pub requests_per_wall_s: Option<f64>,
    /// Peak resident memory of the process, where the system reports it; in a sweep or a
    /// comparison, of all concurrent runs.
    pub peak_rss_bytes: Option<u64>,
    /// Hash of all events, 16 hexadecimal digits; equal runs have equal fingerprints on every
    /// platform and in every build mode, whatever else is observed.
    pub fingerprint: String,
    /// Power failures (`[run] power_cut_every`).
    pub power_cuts: u64,
    /// Requests in flight at a power failure, which never complete.
    pub requests_lost: u64,
    /// The part of the run excluded from the statistics.
    pub warmup: WarmupResult,
    /// Latency from arrival (`host.latency_from`) to completion, of requests completed in the
    /// measured window.
    pub latency_ns: ByKind<LatencyResult>,
    /// Work completed per simulated second.
    pub throughput: Throughput,
    /// Confidence intervals from this run alone; `null` with fewer than about 500 requests.
    pub steady: Option<SteadyState>,
    /// Mean latency by phase.
    pub breakdown_ns: BreakdownResult,
    /// Sums over all components; flash keys are `null` without flash.
    pub totals: Totals,
    /// Writes of the application whose store the workload models; absent for other workloads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub application: Option<Application>,
    /// The workloads that share the system; absent with one `[workload]`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenants: Option<Tenants>,
    /// Metrics by component path, such as `hybrid/flash`.
    pub components: BTreeMap<String, Component>,
    /// Conditions that affect how the results should be read, in sentences.
    pub warnings: Vec<String>,
    /// Violated invariants, in sentences; empty in a sound run.
    pub violations: Vec<String>,
}

/// Writes of an application to its store, such as a database; without warm-up requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Application {
    /// Bytes that the application wrote.
    pub bytes: u64,
    /// Bytes that the store wrote to the system, divided by `bytes`.
    pub write_amplification: Option<f64>,
    /// `write_amplification` multiplied by that of the system, where that is one SSD, or a
    /// `log-structured` layer above flash; not after a `run.warmup_time`.
    pub total_write_amplification: Option<f64>,
}

impl Application {
    /// The writes of an application whose store wrote `store_bytes` to a system with this write
    /// amplification.
    pub fn new(bytes: u64, store_bytes: u64, of_system: Option<f64>) -> Self {
        let write_amplification = ratio(store_bytes as f64, bytes as f64);
        let both = write_amplification.zip(of_system);
        let total_write_amplification = both.map(|(store, system)| store * system);
        Self { bytes, write_amplification, total_write_amplification }
    }
}

/// The measured window without its start, which MSER-5 chooses, in batches of requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SteadyState {
    /// Requests at the start of the measured window that do not belong to the steady state.
    pub warmup_requests: u64,
    /// Their time.
    pub warmup_ns: u64,
    /// Batches of the confidence intervals.
    pub batches: u64,
    /// Requests of a batch.
    pub batch_requests: u64,
    /// Mean latency.
    pub mean_ns: Interval,
    /// Requests per simulated second.
    pub iops: Interval,
    /// Whether the run has settled and the means of its batches are independent; if not, the
    /// intervals are too narrow.
    pub is_long_enough: bool,
}

/// A mean with its confidence interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// Mean over the batches; for a rate, all requests divided by the time of all batches.
    pub mean: f64,
    /// Half the width of the 95 % confidence interval.
    pub half_width: f64,
}

/// Workloads that share the system.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Tenants {
    /// Jain's index of the requests completed per weight: 1 when all tenants have what their
    /// weights say, 1/n when one of n has everything.
    pub fairness: Option<f64>,
    /// Results by name of the workload.
    pub by_name: BTreeMap<String, TenantResult>,
}

/// A workload of several, in the measured window.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TenantResult {
    /// Weight of the workload.
    pub weight: u32,
    /// Requests completed.
    pub requests: u64,
    /// Share of the requests of all tenants.
    pub share: Option<f64>,
    /// Requests per simulated second of the whole window.
    pub iops: Option<f64>,
    /// Bytes read and written per simulated second of the whole window.
    pub bytes_per_s: Option<f64>,
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub write_bytes: u64,
    /// Completion of its last request, from the start of the window. Earlier than the end of the
    /// run where others had more to do.
    pub last_completion_ns: u64,
    /// Latency from arrival (`host.latency_from`) to completion.
    pub latency_ns: ByKind<LatencyResult>,
    /// Mean latency divided by that of the same workload alone on the system (`run --slowdown`).
    pub slowdown: Option<f64>,
}

/// The part of the run excluded from the statistics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct WarmupResult {
    /// Requests completed before the measured window.
    pub requests: u64,
    /// Simulated time before the measured window.
    pub ns: u64,
}

/// All requests, and each operation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ByKind<T> {
    /// All requests; with many flushes their mean is neither that of reads nor that of writes.
    pub all: T,
    /// Reads.
    pub read: T,
    /// Writes.
    pub write: T,
    /// Trims.
    pub trim: T,
    /// Flushes.
    pub flush: T,
    /// Resets of zones.
    pub zone_reset: T,
    /// Finishes of zones.
    pub zone_finish: T,
    /// Explicit opens of zones.
    pub zone_open: T,
    /// Closes of zones.
    pub zone_close: T,
    /// Commits of random write areas of zones.
    pub zone_commit: T,
}

/// Latency statistics in ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LatencyResult {
    /// Number of requests.
    pub count: u64,
    /// Exact mean.
    pub mean: Option<f64>,
    /// Standard deviation of the population.
    pub stddev: Option<f64>,
    /// Minimum.
    pub min: Option<u64>,
    /// Median; like all percentiles within 0.1 %, and of little meaning with fewer than 10 requests
    /// beyond it.
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
    /// Maximum.
    pub max: Option<u64>,
}

/// Work completed in the measured window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Throughput {
    /// Requests of every kind, flushes and trims included, per simulated second.
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
    /// Bytes trimmed; not part of `bytes_per_s`.
    pub trim_bytes: u64,
}

/// Mean time per request in ns, by phase.
pub type PartTimes = BTreeMap<String, f64>;

/// Mean latency per request in ns, by phase; the phases sum to the mean latency.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct BreakdownResult {
    /// All requests.
    pub all: PartTimes,
    /// Reads.
    pub read: PartTimes,
    /// Writes.
    pub write: PartTimes,
    /// About the slowest 1 % of all requests; more where many share a latency class of 12.5 %.
    pub slowest: SlowestResult,
}

/// The slowest requests.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SlowestResult {
    /// Number of requests.
    pub requests: u64,
    /// Their minimum latency.
    pub threshold_ns: Option<u64>,
    /// Mean time per such request, by phase.
    pub parts: PartTimes,
}

/// Sums over all components.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Totals {
    /// Energy of all components whose power is given; a warning names the others.
    pub energy_j: Option<f64>,
    /// `energy_j` per request.
    pub energy_j_per_request: Option<f64>,
    /// Bytes that hosts and other components wrote to flash devices.
    pub host_bytes: Option<u64>,
    /// Bytes programmed in flash devices.
    pub programmed_bytes: Option<u64>,
    /// Flash pages programmed for the host.
    pub host_programs: Option<u64>,
    /// Flash pages programmed for any cause.
    pub programs: Option<u64>,
    /// Flash blocks erased.
    pub erases: Option<u64>,
    /// `programmed_bytes` divided by `host_bytes`.
    pub write_amplification: Option<f64>,
    /// `programs` divided by `host_programs`.
    pub page_write_amplification: Option<f64>,
    /// Hit ratio of all caches together; `null` unless they lie side by side and are of one kind,
    /// as in an array of hybrid disks.
    pub hit_ratio: Option<f64>,
    /// Hit ratio of reads, under the same condition.
    pub read_hit_ratio: Option<f64>,
    /// Hit ratio of writes, under the same condition.
    pub write_hit_ratio: Option<f64>,
}
