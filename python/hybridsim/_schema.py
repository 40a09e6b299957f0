"""Classes for the results of a run.

Generated from crates/observe/src/results.rs by
``HYBRIDSIM_BLESS=1 cargo test -p hybridsim-observe --test schema``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Warmup:
    """The part of the run excluded from the statistics."""

    requests: int
    """Requests completed before the measured window."""
    ns: int
    """Simulated time before the measured window."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Latency:
    """Latency statistics in ns."""

    count: int
    """Number of requests."""
    mean: float | None = None
    """Exact mean."""
    stddev: float | None = None
    """Standard deviation of the population."""
    min: int | None = None
    """Minimum."""
    p50: int | None = None
    """Median; like all percentiles within 0.1 %, and of little meaning with fewer than 10
    requests beyond it.
    """
    p90: int | None = None
    """90th percentile."""
    p95: int | None = None
    """95th percentile."""
    p99: int | None = None
    """99th percentile."""
    p999: int | None = None
    """99.9th percentile."""
    p9999: int | None = None
    """99.99th percentile."""
    max: int | None = None
    """Maximum."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Latencies:
    """All requests, and each operation."""

    all: Latency
    """All requests; with many flushes their mean is neither that of reads nor that of writes."""
    read: Latency
    """Reads."""
    write: Latency
    """Writes."""
    trim: Latency
    """Trims."""
    flush: Latency
    """Flushes."""
    zone_reset: Latency
    """Resets of zones."""
    zone_finish: Latency
    """Finishes of zones."""
    zone_open: Latency
    """Explicit opens of zones."""
    zone_close: Latency
    """Closes of zones."""
    zone_commit: Latency
    """Commits of random write areas of zones."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Throughput:
    """Work completed in the measured window."""

    iops: float | None = None
    """Requests of every kind, flushes and trims included, per simulated second."""
    bytes_per_s: float | None = None
    """Bytes read and written per simulated second."""
    read_iops: float | None = None
    """Reads per simulated second."""
    write_iops: float | None = None
    """Writes per simulated second."""
    read_bytes: int
    """Bytes read."""
    write_bytes: int
    """Bytes written."""
    trim_bytes: int
    """Bytes trimmed; not part of `bytes_per_s`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """A mean with its confidence interval."""

    mean: float
    """Mean over the batches; for a rate, all requests divided by the time of all batches."""
    half_width: float
    """Half the width of the 95 % confidence interval."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SteadyState:
    """The measured window without its start, which MSER-5 chooses, in batches of requests."""

    warmup_requests: int
    """Requests at the start of the measured window that do not belong to the steady state."""
    warmup_ns: int
    """Their time."""
    batches: int
    """Batches of the confidence intervals."""
    batch_requests: int
    """Requests of a batch."""
    mean_ns: Interval
    """Mean latency."""
    iops: Interval
    """Requests per simulated second."""
    is_long_enough: bool
    """Whether the run has settled and the means of its batches are independent; if not, the
    intervals are too narrow.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class Slowest:
    """The slowest requests."""

    requests: int
    """Number of requests."""
    threshold_ns: int | None = None
    """Their minimum latency."""
    parts: Mapping[str, float]
    """Mean time per such request, by phase."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Breakdown:
    """Mean latency per request in ns, by phase; the phases sum to the mean latency."""

    all: Mapping[str, float]
    """All requests."""
    read: Mapping[str, float]
    """Reads."""
    write: Mapping[str, float]
    """Writes."""
    slowest: Slowest
    """About the slowest 1 % of all requests; more where many share a latency class of 12.5 %."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """Sums over all components."""

    energy_j: float | None = None
    """Energy of all components whose power is given; a warning names the others."""
    energy_j_per_request: float | None = None
    """`energy_j` per request."""
    host_bytes: int | None = None
    """Bytes that hosts and other components wrote to flash devices."""
    programmed_bytes: int | None = None
    """Bytes programmed in flash devices."""
    host_programs: int | None = None
    """Flash pages programmed for the host."""
    programs: int | None = None
    """Flash pages programmed for any cause."""
    erases: int | None = None
    """Flash blocks erased."""
    write_amplification: float | None = None
    """`programmed_bytes` divided by `host_bytes`."""
    page_write_amplification: float | None = None
    """`programs` divided by `host_programs`."""
    hit_ratio: float | None = None
    """Hit ratio of all caches together; ``None`` unless they lie side by side and are of one
    kind, as in an array of hybrid disks.
    """
    read_hit_ratio: float | None = None
    """Hit ratio of reads, under the same condition."""
    write_hit_ratio: float | None = None
    """Hit ratio of writes, under the same condition."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Buffer:
    """Requests by what a drive's buffer did."""

    miss: int
    """The medium was accessed."""
    hit: int
    """All data were in the buffer."""
    partial: int
    """Served by a read-ahead in progress."""
    buffered: int
    """A write acknowledged from the buffer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BitErrors:
    """Read retries and uncorrectable reads of pages, those of background work included."""

    retried_reads: int
    """Pages that were read more than once because they had too many bit errors."""
    retries: int
    """Retries of all reads."""
    retries_per_read: float | None = None
    """`retries` divided by all pages read."""
    reads_by_retries: Mapping[str, int]
    """`retried_reads` by the number of retries."""
    uncorrectable_reads: int
    """Reads that no retry corrected, and reads of pages whose data were lost by one before."""
    uncorrectable_host_reads: int
    """Those for the host, each of which fails its request."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EraseCount:
    """Erase counts of the blocks of a device."""

    blocks: int
    """Number of blocks."""
    min: int
    """Minimum."""
    mean: float
    """Mean."""
    max: int
    """Maximum."""
    stddev: float
    """Standard deviation of the population."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EraseSpread:
    """Distribution of erases over the units of a level."""

    units: int
    """Number of units."""
    sum: int
    """Erases of all units; equal at every level."""
    min: int
    """Minimum."""
    mean: float
    """Mean."""
    max: int
    """Maximum."""
    stddev: float
    """Standard deviation of the population."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lifetime:
    """Projected lifetime of a flash device at the rates of the measured window."""

    erases_left: float | None = None
    """Erases its blocks have left in all; like all below but the rates per day ``None`` with a
    static SLC cache of another endurance (`slc.endurance`).
    """
    erases_per_day: float
    """Erases per day."""
    host_bytes_per_day: float
    """Bytes programmed for the host per day."""
    host_bytes_left: float | None = None
    """Bytes the host can still write if all blocks wear evenly."""
    days_even: float | None = None
    """Days until the last erase if all blocks wear evenly."""
    days_first_block: float | None = None
    """Days until the most worn block wears out if it is erased as often as the fastest one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Custom:
    """A statistic that only this kind of component has."""

    count: int
    """Number of samples."""
    mean: float | None = None
    """Mean of the samples."""
    min: int
    """Minimum."""
    max: int
    """Maximum."""
    last: int
    """Last sample."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Component:
    """Metrics of one component; groups that do not apply are left out."""

    kind: str
    """Registered name of its kind."""
    constants: Mapping[str, float] = field(default_factory=dict)
    """Constants of its model, by name."""
    state_ns: Mapping[str, int] = field(default_factory=dict)
    """Power: time by power state; states never entered are left out. Sums to the measured
    window, unless the run ended early: then the last state of a device may be missing.
    """
    busy_fraction: float | None = None
    """Power: utilisation: share of the window neither idle nor in standby."""
    energy_j: float | None = None
    """Power: power of each state times its time, plus energy per flash operation and per
    spin-up.
    """
    energy_by_j: Mapping[str, float] = field(default_factory=dict)
    """Power: energy by state (`idle`, `active`, ...), by operation (`flash_reads` with their
    retries, `flash_programs`, `flash_erases`, `spin_ups`), of the mapping memory (`mapping_ram`)
    and of victim searches (`victim_search`).
    """
    temperature_celsius_max: float | None = None
    """Thermal: highest temperature in °C, to 0.1 K."""
    temperature_celsius_end: float | None = None
    """Thermal: temperature at the end in °C."""
    throttling_ns: Mapping[str, int] = field(default_factory=dict)
    """Thermal: time in each state of throttling."""
    throttlings: int | None = None
    """Thermal: number of times throttling began or became heavy."""
    seeks: int | None = None
    """Disk: seeks."""
    seek_ns: int | None = None
    """Disk: time spent seeking."""
    seek_ns_mean: float | None = None
    """Disk: mean seek time."""
    seek_cylinders_mean: float | None = None
    """Disk: mean seek distance in cylinders."""
    rotations: int | None = None
    """Disk: rotational delays."""
    rotation_ns: int | None = None
    """Disk: time spent in rotational delays."""
    rotation_ns_mean: float | None = None
    """Disk: mean rotational latency."""
    transfers: int | None = None
    """Disk: transfers between medium and buffer."""
    transfer_ns: int | None = None
    """Disk: time spent in transfers."""
    media_bytes: int | None = None
    """Disk: bytes transferred."""
    buffer_reads: Buffer | None = None
    """Disk: reads by what the drive's buffer did."""
    buffer_writes: Buffer | None = None
    """Disk: writes by what the drive's buffer did."""
    spin_ups: int | None = None
    """Disk: spin-ups."""
    host_bytes: int | None = None
    """Flash: bytes written by the host."""
    programmed_bytes: int | None = None
    """Flash: bytes programmed in all."""
    host_programs: int | None = None
    """Flash: pages programmed for the host."""
    gc_programs: int | None = None
    """Flash: pages programmed by garbage collection."""
    programs: int | None = None
    """Flash: pages programmed in all."""
    reads: int | None = None
    """Flash: pages read in all."""
    erases: int | None = None
    """Flash: blocks erased in all."""
    write_amplification: float | None = None
    """Flash: `programmed_bytes` divided by `host_bytes`, as the counters of drives have it."""
    page_write_amplification: float | None = None
    """Flash: `programs` divided by `host_programs`: what garbage collection and the mapping add,
    without the rest of partly written pages.
    """
    reads_by_cause: Mapping[str, int] = field(default_factory=dict)
    """Flash: pages read, by cause."""
    programs_by_cause: Mapping[str, int] = field(default_factory=dict)
    """Flash: pages programmed, by cause."""
    erases_by_cause: Mapping[str, int] = field(default_factory=dict)
    """Flash: blocks erased, by cause."""
    erase_count: EraseCount | None = None
    """Flash: erase counts of all blocks over the device's life, preconditioning included;
    ``None`` when the device does not report them.
    """
    erases_by_level: Mapping[str, EraseSpread] = field(default_factory=dict)
    """Flash: erases in the measured window per unit of each level: `device`, `package` (the dies
    of one channel), `die`, `plane`, `block`.
    """
    lifetime: Lifetime | None = None
    """Flash: projected lifetime at the rates of the measured window; ``None`` when nothing was
    erased.
    """
    utilisation: Mapping[str, Any] | None = None
    """Flash: utilisation of channels and dies; ``None`` without `--out` and with `timing =
    "none"`.
    """
    unwritten_reads: int | None = None
    """Flash: reads of pages never written, or trimmed, which take no flash operation; a warning
    names devices where they exceed a fifth of all pages read.
    """
    victim_searches: int | None = None
    """Flash: victim searches, by policies that search."""
    searched_blocks: int | None = None
    """Flash: blocks examined in victim searches."""
    bit_errors: BitErrors | None = None
    """Flash: reads that needed retries, or failed; ``None`` with `errors = "none"`."""
    search_energy_j: float | None = None
    """Flash: energy of victim searches; part of `energy_j`."""
    free_blocks_min: int | None = None
    """Flash: minimum number of free (erased) blocks."""
    free_blocks_end: int | None = None
    """Flash: free blocks at the end."""
    lookups: int | None = None
    """Cache: requests that looked up the cache."""
    hits: int | None = None
    """Cache: page hits: pages of host reads with all requested sectors in the cache, and pages
    of host writes that were in the cache before. Caches that manage sectors count these.
    """
    misses: int | None = None
    """Cache: page misses: all other pages of host reads and writes, those that bypass the cache
    included.
    """
    hit_ratio: float | None = None
    """Cache: `hits` divided by `hits` plus `misses`."""
    read_hit_ratio: float | None = None
    """Cache: `read_hits` divided by `read_hits` plus `read_misses`."""
    write_hit_ratio: float | None = None
    """Cache: `write_hits` divided by `write_hits` plus `write_misses`."""
    read_hits: int | None = None
    """Cache: page hits of reads."""
    read_misses: int | None = None
    """Cache: page misses of reads."""
    write_hits: int | None = None
    """Cache: page hits of writes."""
    write_misses: int | None = None
    """Cache: page misses of writes."""
    bypasses: int | None = None
    """Cache: requests that bypassed the cache."""
    bypassed_bytes: int | None = None
    """Cache: bytes of requests that bypassed the cache."""
    destages: int | None = None
    """Cache: writes of dirty pages to the slower medium."""
    destaged_bytes: int | None = None
    """Cache: bytes destaged."""
    cleanups: int | None = None
    """Cache: cleanups started."""
    cleaned_pages: int | None = None
    """Cache: pages freed by cleanups."""
    dirty_pages_max: int | None = None
    """Cache: maximum number of dirty pages."""
    dirty_pages_end: int | None = None
    """Cache: dirty pages at the end."""
    log_host_bytes: int | None = None
    """Log: bytes of the writes that the layer received."""
    log_bytes: int | None = None
    """Log: bytes that it appended to its log in all: the whole blocks of these writes, moved
    blocks and summaries.
    """
    moved_bytes: int | None = None
    """Log: bytes of valid blocks that cleaning moved."""
    summary_bytes: int | None = None
    """Log: bytes of segment summaries."""
    segments_cleaned: int | None = None
    """Log: segments cleaned."""
    segments_freed: int | None = None
    """Log: segments freed: zones reset, or segments discarded."""
    log_write_amplification: float | None = None
    """Log: `log_bytes` divided by `log_host_bytes`."""
    total_write_amplification: float | None = None
    """Log: bytes programmed in the flash devices below the layer, divided by `log_host_bytes`:
    the product of the write amplification of the layer, of all between, and of the devices.
    ``None`` without flash below it.
    """
    queue_depth_mean: float | None = None
    """Queue: mean number of queued requests, over time."""
    queue_depth_max: int | None = None
    """Queue: maximum number of queued requests."""
    recoveries: int | None = None
    """Recovery: number of recoveries."""
    recovery_ns_mean: float | None = None
    """Recovery: mean time from the return of power to service."""
    recovery_ns_max: int | None = None
    """Recovery: maximum time from the return of power to service."""
    member_failures: int | None = None
    """Redundancy: members and spares that failed."""
    degraded_ns: int | None = None
    """Redundancy: time during which at least one column (member of the layout) was failed or not
    rebuilt.
    """
    degraded_columns_max: int | None = None
    """Redundancy: maximum number of columns degraded at once."""
    rebuilds: int | None = None
    """Redundancy: rebuilds that ended."""
    rebuild_ns_mean: float | None = None
    """Redundancy: mean time of these rebuilds."""
    rebuild_ns_max: int | None = None
    """Redundancy: longest of these rebuilds."""
    custom: Mapping[str, Custom] = field(default_factory=dict)
    """Statistics that only this kind of component has, by name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Application:
    """Writes of an application to its store, such as a database; without warm-up requests."""

    bytes: int
    """Bytes that the application wrote."""
    write_amplification: float | None = None
    """Bytes that the store wrote to the system, divided by `bytes`."""
    total_write_amplification: float | None = None
    """`write_amplification` multiplied by that of the system, where that is one SSD, or a
    `log-structured` layer above flash; not after a `run.warmup_time`.
    """


@dataclass(frozen=True, kw_only=True)
class Document:
    """The results of a run."""

    schema_version: int
    """Version of this format; increases when a key changes its meaning or is removed."""
    title: str
    """Name of the run in tables and charts."""
    scenario: str
    """Scenario file or preset."""
    trace: str
    """Trace file or generator."""
    seed: int
    """Seed of all random streams."""
    versions: Mapping[str, str]
    """Version of the program (`hybridsim`) and a hash of the code it was built from (`sources`)."""
    complete: bool
    """`true` when the run ended as the scenario asks, `false` when it stopped early."""
    ended_by: str | None = None
    """Cause of the end of the run: the `completion` of all requests, the `last-arrival`
    (`host.end`), or an `interruption` by an error or the user.
    """
    requests: int
    """Requests completed in the whole run, warm-up included."""
    simulated_ns: int
    """Simulated time of the whole run."""
    events: int
    """Messages and timers the simulator processed."""
    event_records: int
    """Events emitted by all components."""
    wall_s: float
    """Elapsed real time in seconds, which other runs at the same time lengthen."""
    requests_per_wall_s: float | None = None
    """`requests` divided by `wall_s`."""
    peak_rss_bytes: int | None = None
    """Peak resident memory of the process, where the system reports it; in a sweep or a
    comparison, of all concurrent runs.
    """
    fingerprint: str
    """Hash of all events, 16 hexadecimal digits; equal runs have equal fingerprints on every
    platform and in every build mode, whatever else is observed.
    """
    power_cuts: int
    """Power failures (`[run] power_cut_every`)."""
    requests_lost: int
    """Requests in flight at a power failure, which never complete."""
    warmup: Warmup
    """The part of the run excluded from the statistics."""
    latency_ns: Latencies
    """Latency from arrival (`host.latency_from`) to completion, of requests completed in the
    measured window.
    """
    throughput: Throughput
    """Work completed per simulated second."""
    steady: SteadyState | None = None
    """Confidence intervals from this run alone; ``None`` with fewer than about 500 requests."""
    breakdown_ns: Breakdown
    """Mean latency by phase."""
    totals: Totals
    """Sums over all components; flash keys are ``None`` without flash."""
    application: Application | None = None
    """Writes of the application whose store the workload models; absent for other workloads."""
    tenants: Tenants | None = None
    """The workloads that share the system; absent with one `[workload]`."""
    components: Mapping[str, Component]
    """Metrics by component path, such as `hybrid/flash`."""
    warnings: tuple[str, ...]
    """Conditions that affect how the results should be read, in sentences."""
    violations: tuple[str, ...]
    """Violated invariants, in sentences; empty in a sound run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tenants:
    """Workloads that share the system."""

    fairness: float | None = None
    """Jain's index of the requests completed per weight: 1 when all tenants have what their
    weights say, 1/n when one of n has everything.
    """
    by_name: Mapping[str, Tenant]
    """Results by name of the workload."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tenant:
    """A workload of several, in the measured window."""

    weight: int
    """Weight of the workload."""
    requests: int
    """Requests completed."""
    share: float | None = None
    """Share of the requests of all tenants."""
    iops: float | None = None
    """Requests per simulated second of the whole window."""
    bytes_per_s: float | None = None
    """Bytes read and written per simulated second of the whole window."""
    read_bytes: int
    """Bytes read."""
    write_bytes: int
    """Bytes written."""
    last_completion_ns: int
    """Completion of its last request, from the start of the window. Earlier than the end of the
    run where others had more to do.
    """
    latency_ns: Latencies
    """Latency from arrival (`host.latency_from`) to completion."""
    slowdown: float | None = None
    """Mean latency divided by that of the same workload alone on the system (`run --slowdown`)."""
