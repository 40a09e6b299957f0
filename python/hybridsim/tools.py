"""The tools of the command: miss-ratio curves, write amplification, calibration, reproduction.

Each runs the command of that name in a process of its own, so Ctrl-C ends it and its memory is
returned. Policies written in Python are named by import path there (``"module:Class"``), after
`hybridsim.allow_code`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable, Mapping
from typing import Any, Literal

from . import _toml
from .errors import Error, TraceError, path_text
from .table import Table

__all__ = ["calibrate", "mrc", "plan", "reproduce", "write_amplification"]

Path = str | os.PathLike[str]


def mrc(
    trace: Path,
    policies: str | Mapping[str, Any] | Iterable[str | Mapping[str, Any]] = "lru",
    *,
    sizes: Iterable[str | float] = (),
    page: str | int = "4KiB",
    format: str | None = None,
    method: Literal["auto", "aet"] = "auto",
    belady: bool = False,
) -> Table:
    """Miss-ratio curves of a trace: the miss ratio by replacement policy and cache size.

    `policies` are names or tables (``{"kind": "slru", ...}``). `sizes` are bytes (``"64MiB"``) or
    shares of the footprint (0.1); by default some are chosen. `method` ``"aet"`` models ``lru`` by
    average eviction time; `belady` adds the optimum, which no policy goes below. Columns:
    ``policy``, ``cache_bytes``, ``miss_ratio``.
    """
    options = [f"--page={page}"]
    options += [f"--policy={_policy(policy)}" for policy in _several(policies)]
    listed = [str(size) for size in _iterable("sizes", sizes)]
    options += [f"--sizes={','.join(listed)}"] if listed else []
    options += [] if format is None else [f"--format={format}"]
    options += [] if method == "auto" else [f"--method={method}"]
    options += ["--belady"] if belady else []
    document = _command("trace", "mrc", *options, path_text(trace))
    rows = [
        (curve["policy"], point["cache_bytes"], point["miss_ratio"])
        for curve in document["mrc"]["curves"]
        for point in curve["points"]
    ]
    names = ("policy", "cache_bytes", "miss_ratio")
    return Table({name: [row[at] for row in rows] for at, name in enumerate(names)})


def write_amplification(
    scenario: Path,
    *,
    trace: Path | None = None,
    format: str | None = None,
    fit: bool = False,
    overrides: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Counts the flash operations of an SSD without simulating time: write amplification and wear.

    `scenario` is a file; `trace` takes the place of its workload, and `overrides` sets keys.
    Returns the document of ``hybridsim write-amplification --json``
    (``docs/how-to/write-amplification.md``).
    """
    options = [f"--set={option}" for option in _toml.sets(overrides or {})]
    options += [] if trace is None else [f"--trace={path_text(trace)}"]
    options += [] if format is None else [f"--format={format}"]
    options += ["--fit"] if fit else []
    words = ["write-amplification", *options, path_text(scenario)]
    return _command(*words)  # type: ignore[no-any-return]


def calibrate(
    *files: Path,
    disk: Path | None = None,
    out: Path | None = None,
    page: str = "2KiB",
    erase_time: str = "1.5ms",
    capacity: str | None = None,
) -> dict[str, Any]:
    """Fits the parameters of a flash device to measured latencies, or of a disk to request logs.

    `files` are measurements (``docs/how-to/calibrate.md``); with `disk`, a scenario or preset to
    start from, they are request logs with response times. `out` names the file of the fitted
    preset. Returns the JSON document of ``hybridsim calibrate --json``.
    """
    if not files:
        raise Error("calibrate needs at least one file of measurements")
    options = [] if disk is None else [f"--disk={path_text(disk)}"]
    if disk is None:
        options += [f"--page={page}", f"--erase-time={erase_time}"]
        options += [] if capacity is None else [f"--capacity={capacity}"]
    options += [] if out is None else [f"--out={path_text(out)}", "--force"]
    return _command("calibrate", *options, *map(path_text, files))  # type: ignore[no-any-return]


def plan(
    trace: Path,
    *,
    prices: Path | None = None,
    budget: float | None = None,
    p99: str | None = None,
    life: float | None = None,
    duty: float = 1.0,
    data: str | int | None = None,
    caches: Iterable[str] = (),
    overrides: Mapping[str, Any] | None = None,
    format: str | None = None,
    out: Path | None = None,
) -> dict[str, Any]:
    """Plans which devices and cache serve a trace, and at what cost per year.

    `prices` is a price table (``docs/how-to/plan.md``). `budget` (per year), `p99` (``"5ms"``) and
    `life` (years of flash) are bounds; `duty` is the share of the year with the load of the trace,
    `data` the capacity needed. `caches` are presets to try, `overrides` keys of all scenarios.
    `out` is a folder for the page. Returns the document of ``hybridsim plan --json``: its
    ``systems`` are ranked, and ``unmet`` of each is empty if it meets all bounds.
    """
    size = f"{data}B" if isinstance(data, int) else data
    given = {"budget": budget, "p99": p99, "life": life, "data": size, "format": format}
    options = [f"--{name}={value}" for name, value in given.items() if value is not None]
    options += [f"--duty={duty}"]
    options += [] if prices is None else [f"--prices={path_text(prices)}"]
    listed = [_text(cache) for cache in _iterable("caches", caches)]
    options += [f"--caches={','.join(listed)}"] if listed else []
    options += [f"--set={option}" for option in _toml.sets(overrides or {})]
    options += [] if out is None else [f"--out={path_text(out)}", "--force"]
    return _command("plan", *options, path_text(trace))  # type: ignore[no-any-return]


def reproduce(*ids: str) -> dict[str, Any]:
    """Reproduces published figures: a source (``"flashsim"``) or one figure (``"flashsim/fig6"``).

    Returns the document of ``hybridsim reproduce --json``; its ``rows`` have the claims.
    """
    if not ids:
        raise Error('reproduce needs at least one id, such as "flashsim/fig6"; all take hours')
    return _command("reproduce", *map(_text, ids))  # type: ignore[no-any-return]


def _command(*arguments: str) -> Any:
    """The JSON document that the command prints."""
    words = [sys.executable, "-m", "hybridsim", *arguments, "--json"]
    done = subprocess.run(words, capture_output=True, text=True)
    try:
        document = json.loads(done.stdout)
    except ValueError:
        document = None
    if done.returncode == 0 and document is not None:
        return document
    failed = document.get("error", {}) if isinstance(document, dict) else {}
    message = failed.get("message") or done.stderr.strip() or f"exit code {done.returncode}"
    raise (TraceError if done.returncode == 3 else Error)(message)


def _policy(policy: Any) -> str:
    plain = _toml.plain(policy)
    return plain if isinstance(plain, str) else _toml.inline(plain)


def _several(policies: Any) -> list[Any]:
    is_one = isinstance(policies, (str, Mapping)) or hasattr(policies, "to_dict")
    return [policies] if is_one else list(_iterable("policies", policies))


def _iterable(name: str, values: Any) -> Iterable[Any]:
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise Error(f"{name} must be a list, not {values!r}")
    return values


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise Error(f"an id is a string such as 'flashsim/fig6', not {value!r}")
    return value
