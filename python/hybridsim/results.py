"""What came of a run.

The attributes have the names of the JSON document (``docs/results.md`` describes every key):
``result.latency_ns.read.p99`` is ``["latency_ns"]["read"]["p99"]``. Times are in nanoseconds of
simulated time, sizes in bytes, energy in joules, unless the name says otherwise. A figure that
does not exist, such as the mean of nothing, is ``None``.
"""

from __future__ import annotations

import functools
import json
import os
import pathlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from . import _core
from ._mirror import build
from .errors import Error, path_text
from .table import HeatMap, Table

__all__ = [
    "Breakdown",
    "Buffer",
    "Component",
    "Custom",
    "EraseCount",
    "EraseSpread",
    "Latencies",
    "Latency",
    "Lifetime",
    "Result",
    "Slowest",
    "Throughput",
    "Totals",
    "Warmup",
]


_TOOL_FILES = ("fio.json", "latency-all.hgrm", "latency-read.hgrm", "latency-write.hgrm")


@dataclass(frozen=True, slots=True)
class Warmup:
    """What the statistics leave out."""

    requests: int
    """Requests completed before the measured window."""
    ns: int
    """Simulated time before it."""


@dataclass(frozen=True, slots=True)
class Latency:
    """Latencies in ns, from arrival to completion. Percentiles are within 0.1 %."""

    count: int
    """Requests."""
    mean: float | None
    """Exact mean."""
    stddev: float | None
    """Standard deviation of the population."""
    min: int | None
    """Shortest."""
    p50: int | None
    """Median."""
    p90: int | None
    """90th percentile."""
    p95: int | None
    """95th percentile."""
    p99: int | None
    """99th percentile."""
    p999: int | None
    """99.9th percentile."""
    p9999: int | None
    """99.99th percentile."""
    max: int | None
    """Longest."""


@dataclass(frozen=True, slots=True)
class Latencies:
    """Latencies of all requests, and by operation."""

    all: Latency
    """All requests."""
    read: Latency
    """Reads."""
    write: Latency
    """Writes."""
    trim: Latency
    """Trims."""
    flush: Latency = Latency(0, *[None] * 10)
    """Flushes; results of older versions do not tell them."""


@dataclass(frozen=True, slots=True)
class Throughput:
    """Work done in the measured window."""

    iops: float | None
    """Requests per simulated second."""
    bytes_per_s: float | None
    """Bytes read and written per simulated second."""
    read_iops: float | None
    """Reads per simulated second."""
    write_iops: float | None
    """Writes per simulated second."""
    read_bytes: int
    """Bytes read."""
    write_bytes: int
    """Bytes written."""
    trim_bytes: int = 0
    """Bytes trimmed, which are not in `bytes_per_s`."""


@dataclass(frozen=True, slots=True)
class Slowest:
    """About the slowest 1 % of all requests."""

    requests: int
    """How many."""
    threshold_ns: int | None
    """They took at least this long."""
    parts: Mapping[str, float]
    """Mean time per such request by part, in ns."""


@dataclass(frozen=True, slots=True)
class Breakdown:
    """Where the time went: mean ns per request, by part."""

    all: Mapping[str, float]
    """All requests."""
    read: Mapping[str, float]
    """Reads."""
    write: Mapping[str, float]
    """Writes."""
    slowest: Slowest
    """The slowest requests."""


@dataclass(frozen=True, slots=True)
class Totals:
    """Sums over all components; ``None`` where no component has the figure."""

    energy_j: float | None
    """Energy of all components that draw power."""
    energy_j_per_request: float | None
    """The same per request."""
    host_programs: int | None
    """Flash pages programmed for the host."""
    programs: int | None
    """Flash pages programmed for any cause."""
    erases: int | None
    """Flash blocks erased."""
    write_amplification: float | None
    """`programs` over `host_programs`."""
    hit_ratio: float | None
    """Share of cache pages found; ``None`` where caches lie above one another."""


@dataclass(frozen=True, slots=True)
class Buffer:
    """Requests by what a drive's buffer did."""

    medium: int
    """The medium had to be used."""
    full: int
    """Everything was there."""
    ahead: int
    """Served by a read-ahead still running."""
    taken: int
    """Taken into the buffer."""


@dataclass(frozen=True, slots=True)
class EraseCount:
    """How often the blocks of a device were erased over its life, preconditioning included."""

    blocks: int
    """Blocks."""
    min: int
    """Least."""
    mean: float
    """Mean."""
    max: int
    """Greatest."""
    stddev: float
    """Standard deviation of the population."""


@dataclass(frozen=True, slots=True)
class EraseSpread:
    """How the erases after the warm-up spread over the units of a level."""

    units: int
    """Units."""
    sum: int
    """Erases of them all; the same at every level."""
    min: int
    """Least."""
    mean: float
    """Mean."""
    max: int
    """Greatest."""
    stddev: float
    """Standard deviation over the units."""


@dataclass(frozen=True, slots=True)
class Lifetime:
    """How long a flash device lasts if it goes on as after the warm-up."""

    erases_left: float
    """Erases its blocks have left in all."""
    erases_per_day: float
    """Erases per day."""
    host_bytes_per_day: float
    """Bytes programmed for the host per day."""
    host_bytes_left: float
    """Bytes it can still take from the host if all blocks wear alike."""
    days_even: float
    """Days until the last erase if all blocks wear alike."""
    days_first_block: float | None
    """Days until the most worn block is worn out, if it wears as fast as the fastest."""


@dataclass(frozen=True, slots=True)
class Custom:
    """A number an extension tells of itself."""

    count: int
    """How often it was told."""
    mean: float | None
    """Mean of the values told."""
    min: int
    """Least."""
    max: int
    """Greatest."""
    last: int
    """Last."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Component:
    """Metrics of one component. What does not apply to its kind is ``None`` or empty."""

    kind: str
    """Registered name of its kind."""
    constants: Mapping[str, float] = field(default_factory=dict)
    """Constants of its model."""
    custom: Mapping[str, Custom] = field(default_factory=dict)
    """Numbers an extension tells of itself."""

    state_ns: Mapping[str, int] = field(default_factory=dict)
    """Time by power state, in ns."""
    busy_fraction: float | None = None
    """Share of the time neither idle nor in standby."""
    energy_j: float | None = None
    """Energy of states, operations and spin-ups, in joules."""
    energy_by_j: Mapping[str, float] = field(default_factory=dict)
    """The same by state, by kind of operation, and by what draws power all the time."""

    seeks: int | None = None
    """Disk: arm movements."""
    seek_ns: int | None = None
    """Disk: time spent in them."""
    seek_ns_mean: float | None = None
    """Disk: mean of one."""
    seek_cylinders_mean: float | None = None
    """Disk: mean distance in cylinders."""
    rotations: int | None = None
    """Disk: waits for a sector."""
    rotation_ns: int | None = None
    """Disk: time spent in them."""
    rotation_ns_mean: float | None = None
    """Disk: mean of one."""
    transfers: int | None = None
    """Disk: transfers between medium and buffer."""
    transfer_ns: int | None = None
    """Disk: time spent in them."""
    media_bytes: int | None = None
    """Disk: bytes moved by them."""
    buffer_reads: Buffer | None = None
    """Disk: reads by what the buffer did."""
    buffer_writes: Buffer | None = None
    """Disk: writes by what the buffer did."""
    spin_ups: int | None = None
    """Disk: spin-ups."""

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
    """Flash: `programs` over `host_programs`."""
    reads_by_cause: Mapping[str, int] = field(default_factory=dict)
    """Flash: pages read, by cause."""
    programs_by_cause: Mapping[str, int] = field(default_factory=dict)
    """Flash: pages programmed, by cause."""
    erases_by_cause: Mapping[str, int] = field(default_factory=dict)
    """Flash: blocks erased, by cause."""
    erase_count: EraseCount | None = None
    """Flash: how often the blocks were erased."""
    erases_by_level: Mapping[str, EraseSpread] = field(default_factory=dict)
    """Flash: erases after the warm-up by level, from `device` down to `block`."""
    lifetime: Lifetime | None = None
    """Flash: how long it lasts at this pace."""
    utilisation: Mapping[str, Any] | None = None
    """Flash: how busy its channels and dies were; ``None`` when nobody looked."""
    unwritten_reads: int | None = None
    """Flash: pages asked for that held nothing."""
    victim_searches: int | None = None
    """Flash: searches for a block to collect."""
    searched_blocks: int | None = None
    """Flash: blocks looked at in them."""
    search_energy_j: float | None = None
    """Flash: joules spent on them."""
    free_blocks_min: int | None = None
    """Flash: fewest erased blocks ready for use."""
    free_blocks_end: int | None = None
    """Flash: the same at the end."""

    lookups: int | None = None
    """Cache: requests that asked it."""
    hits: int | None = None
    """Cache: pages found."""
    misses: int | None = None
    """Cache: pages not found."""
    hit_ratio: float | None = None
    """Cache: `hits` over both."""
    read_hits: int | None = None
    """Cache: pages found by reads."""
    read_misses: int | None = None
    """Cache: pages not found by reads."""
    write_hits: int | None = None
    """Cache: pages found by writes."""
    write_misses: int | None = None
    """Cache: pages not found by writes."""
    bypasses: int | None = None
    """Cache: requests that went round it."""
    bypassed_bytes: int | None = None
    """Cache: bytes of these."""
    destages: int | None = None
    """Cache: writes back to the slow medium."""
    destaged_bytes: int | None = None
    """Cache: bytes of these."""
    cleanups: int | None = None
    """Cache: cleanings begun."""
    cleaned_pages: int | None = None
    """Cache: pages made free by them."""
    dirty_pages_max: int | None = None
    """Cache: most dirty pages."""
    dirty_pages_end: int | None = None
    """Cache: dirty pages at the end."""

    queue_depth_mean: float | None = None
    """Queue: mean number of requests waiting, over time."""
    queue_depth_max: int | None = None
    """Queue: most requests waiting."""

    recoveries: int | None = None
    """Power failures: returns to service after them."""
    recovery_ns_mean: float | None = None
    """Power failures: mean time from the return of the power to service."""
    recovery_ns_max: int | None = None
    """Power failures: the longest such time."""


@dataclass(frozen=True, kw_only=True)
class Result:
    """The figures of a run; `Result.series` and its like hold what pictures are drawn from."""

    schema_version: int
    """Version of the document's format."""
    title: str
    """Name shown beside the figures."""
    scenario: str
    """Scenario file or preset."""
    trace: str
    """Trace file or generator."""
    seed: int
    """Seed of all random streams."""
    versions: Mapping[str, str]
    """Versions of the program and what it was built from."""
    complete: bool
    """Whether the run reached its end."""
    requests: int
    """Requests completed in the whole run."""
    simulated_ns: int
    """Length of the whole run, in simulated ns."""
    events: int
    """Events the machine handled."""
    facts: int
    """Facts told by all layers."""
    wall_s: float
    """Seconds the run took on the clock."""
    requests_per_wall_s: float | None
    """`requests` over `wall_s`."""
    peak_rss_bytes: int | None
    """Greatest memory in use by the process."""
    fingerprint: str
    """16 hexadecimal digits; equal runs have equal ones."""
    power_cuts: int
    """Power failures."""
    requests_lost: int
    """Requests they took away; none of these completed."""
    warmup: Warmup
    """What the statistics leave out."""
    latency_ns: Latencies
    """Latencies, in ns."""
    throughput: Throughput
    """Work done per simulated second."""
    breakdown_ns: Breakdown
    """Where the time went, in ns."""
    totals: Totals
    """Sums over all components."""
    components: Mapping[str, Component]
    """Metrics by component path, such as ``hybrid/flash``."""
    warnings: tuple[str, ...]
    """What a reader of the figures should know."""
    violations: tuple[str, ...]
    """Broken invariants; empty in a sound run."""

    resolved: str = field(repr=False)
    """The scenario with every value spelt out, as TOML. It runs again as it is."""
    _json: str = field(repr=False, compare=False)
    _pictures: str | None = field(repr=False, compare=False)
    _files: Mapping[str, str] = field(repr=False, compare=False)

    @classmethod
    def from_json(
        cls,
        text: str,
        resolved: str = "",
        pictures: str | None = None,
        files: Mapping[str, str] | None = None,
    ) -> Result:
        """The result that `to_json` wrote, such as a ``results.json``."""
        hidden = {"_json": text, "_pictures": pictures, "_files": dict(files or {})}
        try:
            document = json.loads(text)
            known = build(cls, document, resolved=resolved, **hidden)
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise Error(f"this is not the result of a run: {error}") from error
        return known

    @classmethod
    def load(cls, folder: str | os.PathLike[str]) -> Result:
        """The result stored in a run's folder by `save` or ``hybridsim run --out``."""
        base = pathlib.Path(path_text(folder))
        try:
            text = (base / "results.json").read_text("utf-8")
            resolved = (base / "scenario.toml").read_text("utf-8")
        except OSError as error:
            raise Error(f"cannot read the results in {base}: {error}") from error
        pictures = base / "pictures.json"
        drawn = pictures.read_text("utf-8") if pictures.exists() else None
        found = (base / name for name in _TOOL_FILES)
        files = {path.name: path.read_text("utf-8") for path in found if path.exists()}
        return cls.from_json(text, resolved, drawn, files)

    def to_json(self) -> str:
        """The JSON document, as ``hybridsim run --json`` prints it."""
        return self._json

    def to_dict(self) -> dict[str, Any]:
        """The JSON document as plain values; keys that do not apply are absent."""
        document: dict[str, Any] = json.loads(self._json)
        return document

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Writes what ``hybridsim run --out`` writes, the report only with full detail.

        That is ``results.json``, ``scenario.toml``, ``report.html``, and for other tools
        ``fio.json`` and ``latency-*.hgrm``. `Result.load` reads them back.
        """
        base = pathlib.Path(path_text(folder))
        base.mkdir(parents=True, exist_ok=True)
        _write(base / "results.json", self._json)
        _write(base / "scenario.toml", self.resolved)
        for name in _TOOL_FILES:
            (base / name).unlink(missing_ok=True)
        for name, text in self._files.items():
            _write(base / name, text)
        if self._pictures is not None:
            _write(base / "pictures.json", self._pictures)
            self.report(base / "report.html")

    def report(self, path: str | os.PathLike[str]) -> None:
        """Writes the report: one HTML file that needs nothing else."""
        write_report(path, [self])

    @functools.cached_property
    def _drawn(self) -> dict[str, Any]:
        if self._pictures is None:
            raise Error('the run was not observed in full; run it with detail="full"')
        drawn: dict[str, Any] = json.loads(self._pictures)
        return drawn

    def series(self) -> Table:
        """The run over time, one row per time bucket, warm-up included.

        ``time_ns`` is where a bucket begins; sums (``reads``, ``read_bytes``, ``programs``) are of
        the bucket; levels have a mean, least and greatest value, such as
        ``free_blocks_mean[hybrid/flash]``. What a system does not have is left out.
        """
        series = self._drawn["series"]
        columns: dict[str, Any] = {
            "time_ns": [row * series["bucket_ns"] for row in range(len(series["reads"]))]
        }
        for name, value in series.items():
            if isinstance(value, dict) and "mean" in value:
                columns |= _levels(name, value)
            elif isinstance(value, list) and value and isinstance(value[0], dict):
                for one in value:
                    if "mean" in one:
                        columns |= _levels(f"{name}[{one['path']}]", one)
                    else:
                        columns |= {
                            f"{key}[{one['path']}]": sums
                            for key, sums in one.items()
                            if key != "path"
                        }
            elif isinstance(value, list) and value and name != "seek_distances":
                columns[name] = value
        return Table(columns)

    def latency_distribution(self, of: str = "all") -> Table:
        """How many requests (``of`` all, read or write) took at most ``latency_ns``."""
        points = self._drawn["latency_points"]
        if of not in points:
            raise Error(f"there are no latencies of {of!r}; there are: {', '.join(points)}")
        rows = points[of]
        return Table({"latency_ns": [row[0] for row in rows], "requests": [row[1] for row in rows]})

    def wear(self) -> Table:
        """Blocks by erase count, of every flash component."""
        rows = [(path, *row) for path, rows in self._drawn["wear"].items() for row in rows]
        names = ("component", "erases", "blocks")
        return Table({name: [row[at] for row in rows] for at, name in enumerate(names)})

    def energy(self) -> Table:
        """Energy in joules by component and power state."""
        energy = self._drawn["energy_j"]
        rows = [(path, state, j) for path, states in energy.items() for state, j in states.items()]
        names = ("component", "state", "energy_j")
        return Table({name: [row[at] for row in rows] for at, name in enumerate(names)})

    def heat_map(self, of: str = "latency") -> HeatMap:
        """Requests by time and latency (``of="latency"``), or by time and byte address.

        ``"read"`` and ``"write"`` are by arrival time and address.
        """
        series = self._drawn["series"]
        if f"{of}_map" not in series:
            raise Error(f"there is no heat map of {of!r}; there are: latency, read, write")
        return HeatMap.unpack(series[f"{of}_map"], series["bucket_ns"])

    def plot(self, path: str | os.PathLike[str] | None = None) -> Any:
        """Draws latency and throughput with matplotlib; returns the figure, saves it to `path`."""
        from ._plot import plot

        return plot([self], path)


def write_report(path: str | os.PathLike[str], results: list[Result]) -> None:
    """Writes one report of several runs, side by side."""
    if not results:
        raise Error("a report needs at least one result")
    runs = [(result._json, result._pictures, result.resolved) for result in results]
    title = " / ".join(dict.fromkeys(result.title for result in results))
    page = _core.report_html(title, runs)
    _write(pathlib.Path(path_text(path)), page)


def _write(path: pathlib.Path, text: str) -> None:
    """Writes a file so that it is either whole or absent."""
    partial = path.with_name(f".{path.name}.partial")
    partial.write_text(text, "utf-8")
    partial.replace(path)


def _levels(name: str, gauge: Mapping[str, Any]) -> dict[str, Any]:
    head, bracket, path = name.partition("[")
    kinds = ("mean", "min", "max")
    return {f"{head}_{kind}{bracket}{path}": gauge[kind] for kind in kinds if gauge[kind]}
