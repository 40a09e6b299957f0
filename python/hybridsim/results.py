"""The results of a run.

Attributes have the names of the JSON document (``docs/reference/results.md`` defines every key):
``result.latency_ns.read.p99`` is ``["latency_ns"]["read"]["p99"]``. Times are in nanoseconds of
simulated time, sizes in bytes, energy in joules, unless the name says otherwise. A value that does
not exist, such as the mean of nothing, is ``None``.
"""

from __future__ import annotations

import functools
import html
import json
import os
import pathlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from . import _core
from ._mirror import build
from ._schema import (
    Application,
    BitErrors,
    Breakdown,
    Buffer,
    Component,
    Custom,
    Document,
    EraseCount,
    EraseSpread,
    Interval,
    Latencies,
    Latency,
    Lifetime,
    Slowest,
    SteadyState,
    Tenant,
    Tenants,
    Throughput,
    Totals,
    Warmup,
)
from .errors import Error, path_text
from .table import HeatMap, Table

__all__ = [
    "Application",
    "BitErrors",
    "Breakdown",
    "Buffer",
    "Component",
    "Custom",
    "EraseCount",
    "EraseSpread",
    "Interval",
    "Latencies",
    "Latency",
    "Lifetime",
    "Result",
    "Slowest",
    "SteadyState",
    "Tenant",
    "Tenants",
    "Throughput",
    "Totals",
    "Warmup",
]


_NOT_DRAWN = 'the run has no data for charts; run it with detail="full"'
_TOOL_FILES = (
    "fio.json",
    "latency-all.hgrm",
    "latency-read.hgrm",
    "latency-write.hgrm",
    "series.csv",
    "series.json",
)


@dataclass(frozen=True, kw_only=True, repr=False)
class Result(Document):
    """The results of a run; `series` and similar methods return the data of charts."""

    resolved: str = field(repr=False)
    """The scenario with every value spelt out, as TOML. It runs again as it is."""
    _json: str = field(repr=False, compare=False)
    _pictures: str | None = field(repr=False, compare=False)
    _files: Mapping[str, str] = field(repr=False, compare=False)

    def __repr__(self) -> str:
        requests, mean = self.latency_ns.all.count, self.latency_ns.all.mean
        latency = "" if mean is None else f", mean latency {_duration(mean)}"
        stopped = "" if self.complete else ", stopped early"
        return f"<Result of {self.title!r}: {requests:,} requests{latency}{stopped}>"

    def _repr_html_(self) -> str:
        """A summary for notebooks."""
        rows = "".join(
            f"<tr><th>{html.escape(name)}</th><td>{html.escape(value)}</td></tr>"
            for name, value in self._summary()
        )
        notes = "".join(f"<p>{html.escape(note)}</p>" for note in self.warnings + self.violations)
        title = html.escape(self.title or self.scenario)
        return f"<table><caption>{title}</caption><tbody>{rows}</tbody></table>{notes}"

    def _summary(self) -> Iterator[tuple[str, str]]:
        latency, totals = self.latency_ns.all, self.totals
        yield "Requests", f"{latency.count:,}"
        yield "Simulated time", _duration(self.simulated_ns)
        if self.throughput.iops is not None:
            yield "Throughput", f"{self.throughput.iops:,.4g} /s"
        for name, value in (("Mean", latency.mean), ("Median", latency.p50), ("p99", latency.p99)):
            if value is not None and (name != "p99" or latency.count >= 1000):
                yield f"{name} latency", _duration(value)
        if totals.write_amplification is not None:
            yield "Write amplification", f"{totals.write_amplification:.3g}"
        if totals.hit_ratio is not None:
            yield "Hit ratio", f"{totals.hit_ratio:.1%}"
        if totals.energy_j is not None:
            yield "Energy", f"{totals.energy_j:,.4g} J"

    @classmethod
    def from_json(
        cls,
        text: str,
        resolved: str = "",
        pictures: str | None = None,
        files: Mapping[str, str] | None = None,
    ) -> Result:
        """Reads what `to_json` returned, such as a ``results.json``."""
        hidden = {"_json": text, "_pictures": pictures, "_files": dict(files or {})}
        try:
            document = json.loads(text)
            known = build(cls, document, resolved=resolved, **hidden)
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise Error(f"this is not the result of a run: {error}") from error
        return known

    @classmethod
    def load(cls, folder: str | os.PathLike[str]) -> Result:
        """Reads the folder written by `save` or ``hybridsim run --out``."""
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
        """Writes the files of ``hybridsim run --out``, the report only with full detail.

        These are ``results.json``, ``scenario.toml``, ``report.html``, and for other tools
        ``fio.json``, ``latency-*.hgrm``, ``series.csv`` and ``series.json``. `Result.load` reads
        them.
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
        """Writes the report, one self-contained HTML file."""
        write_report(path, [self])

    @functools.cached_property
    def _drawn(self) -> dict[str, Any]:
        if self._pictures is None:
            raise Error(_NOT_DRAWN)
        drawn: dict[str, Any] = json.loads(self._pictures)
        return drawn

    def series(self) -> Table:
        """The run over time, one row per interval, warm-up included.

        ``time_ns`` is the start of an interval; ``reads``, ``read_bytes``, ``programs`` and similar
        columns are sums over it, ``iops`` and ``read_bytes_per_s`` rates; levels have a mean,
        minimum and maximum, such as ``free_blocks_mean[hybrid/flash]``. Columns that do not apply
        to the system are left out. The table's ``units`` has the unit of each.
        """
        text = self._files.get("series.json")
        if text is None:
            raise Error(_NOT_DRAWN)
        columns = {_title(column): column for column in json.loads(text)["columns"]}
        return Table(
            {title: column["values"] for title, column in columns.items()},
            {title: column["unit"] for title, column in columns.items()},
        )

    def latency_distribution(self, of: str = "all") -> Table:
        """Number of requests (``of`` all, read or write) with at most ``latency_ns``."""
        points = self._drawn["latency_points"]
        if of not in points:
            raise Error(f"no latencies of {of!r}; available: {', '.join(points)}")
        rows = points[of]
        return Table({"latency_ns": [row[0] for row in rows], "requests": [row[1] for row in rows]})

    def wear(self) -> Table:
        """Number of blocks by erase count, for every flash component."""
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
            raise Error(f"no heat map of {of!r}; available: latency, read, write")
        return HeatMap.unpack(series[f"{of}_map"], series["bucket_ns"])

    def plot(self, path: str | os.PathLike[str] | None = None) -> Any:
        """Draws latency and throughput with matplotlib; returns the figure, saves it to `path`."""
        from ._plot import plot

        return plot([self], path)


def write_report(path: str | os.PathLike[str], results: list[Result]) -> None:
    """Writes one report that compares several runs."""
    if not results:
        raise Error("a report needs at least one result")
    runs = [(result._json, result._pictures, result.resolved) for result in results]
    title = " / ".join(dict.fromkeys(result.title for result in results))
    page = _core.report_html(title, runs)
    _write(pathlib.Path(path_text(path)), page)


def _duration(ns: float) -> str:
    return _scaled(ns, ((1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1.0, "ns")))


def _size(size: float) -> str:
    kib = 1024.0
    return _scaled(
        size, ((kib**4, "TiB"), (kib**3, "GiB"), (kib**2, "MiB"), (kib, "KiB"), (1, "B"))
    )


def _scaled(value: float, units: tuple[tuple[float, str], ...]) -> str:
    scale, unit = next((unit for unit in units if value >= unit[0]), units[-1])
    return f"{value / scale:.4g} {unit}"


def _write(path: pathlib.Path, text: str) -> None:
    """Writes a file atomically."""
    partial = path.with_name(f".{path.name}.partial")
    partial.write_text(text, "utf-8")
    partial.replace(path)


def _title(column: Mapping[str, Any]) -> str:
    """The name of a column of ``series.json``, as ``series.csv`` has it."""
    name: str = column["name"]
    return f"{name}[{column['component']}]" if "component" in column else name
