"""Running and checking scenarios."""

from __future__ import annotations

import contextlib
import json
import os
import sys
import traceback
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TextIO

from . import _core, _toml, events
from . import plugins as _plugins
from .errors import ArgumentError, Error, RunError, TraceError, path_text
from .results import Result
from .scenario import Scenario

if TYPE_CHECKING:
    import numpy.typing as npt

__all__ = ["Entry", "RunProgress", "ScenarioLike", "check", "explain", "list_", "run", "schema"]

ScenarioLike = str | os.PathLike[str] | Mapping[str, Any] | Scenario
"""A scenario file's path, its text (a string of several lines), a dict, or a `Scenario`."""


@dataclass(frozen=True, slots=True)
class RunProgress:
    """The progress of a run."""

    fraction: float | None
    """Share of the workload issued, 0 to 1, where its length is known."""
    requests: int
    """Requests issued."""
    simulated_ns: int
    """Simulated time, in ns."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A registered implementation that scenarios can name."""

    name: str
    """Name in scenarios."""
    summary: str
    """Description in one sentence."""
    origin: str
    """Paper, standard or product it models."""
    params: Mapping[str, str]
    """The accepted values of each parameter."""


def run(
    scenario: ScenarioLike,
    trace: str | os.PathLike[str] | None = None,
    *,
    overrides: Mapping[str, Any] | None = None,
    seed: int | None = None,
    verify: bool = False,
    format: str | Mapping[str, Any] | None = None,
    fit: bool = False,
    skip_bad_lines: bool = False,
    detail: Literal["bare", "full"] = "full",
    progress: bool | Callable[[RunProgress], object] = False,
    observe: Callable[[npt.NDArray[Any]], object] | None = None,
    requests: str | os.PathLike[str] | None = None,
    plugins: Iterable[type] = (),
) -> Result:
    """Simulates a scenario.

    `scenario` is a path, the text of a scenario (a string of several lines), a dict, or a
    `Scenario`. Relative paths in it are resolved from its file, or else from the current folder.

    `trace` replaces the workload. `overrides` sets keys, nested or dotted:
    ``{"component.ssd.over_provisioning": 0.28, "host": {"queue_depth": 8}}``. `seed` and
    `verify` (check the data of every read) set keys of ``run``.

    `format` names the trace's format where its content is ambiguous (``"blkparse"``, or a table
    with options); `fit` maps its addresses onto the device, and replays it in a closed loop of one
    request if it has no times; `skip_bad_lines` leaves out records that cannot be read.

    ``detail="bare"`` omits the data of charts, such as `Result.series`, and is faster.

    `progress` shows progress on standard error, or calls a function repeatedly. `observe` is
    called with every event, in batches; `hybridsim.events` describes them. `requests` names a file
    for the list of all requests (``requests.csv`` in `docs/reference/results.md`). `plugins` are
    policies to register first.

    Raises a `ScenarioError`, a `TraceError`, or a `RunError` with the results so far. Other
    threads continue to run; Ctrl-C interrupts, and the `KeyboardInterrupt` has the results so far
    as `result`, too.
    """
    if isinstance(plugins, type) or not isinstance(plugins, Iterable):
        raise ArgumentError(f"plugins must be a list of classes, not {plugins!r}")
    for plugin in plugins:
        _plugins.register(plugin)
    for name, function in (("observe", observe), ("progress", progress)):
        if function is not None and not isinstance(function, bool) and not callable(function):
            raise ArgumentError(f"{name} must be a function, not {function!r}")
    if detail not in ("bare", "full"):
        raise ArgumentError(f'detail is "bare" or "full", not {detail!r}')
    sets = _sets(overrides, seed, verify, **_reading(format, fit, skip_bad_lines))
    source = _source(scenario)
    observer = None if observe is None else events.batches(observe)
    replaced = None if trace is None else path_text(trace)
    with _progress(progress) as report:
        listed = None if requests is None else path_text(requests)
        done = _core.run(source, sets, replaced, detail == "full", report, observer, listed)
        result = Result.from_json(done["json"], done["resolved"], done["pictures"], done["files"])
        if report is not None and result.complete:
            report(1.0, result.requests, result.simulated_ns)
    _raise_fault(done, result)
    return result


def check(
    scenario: ScenarioLike,
    trace: str | os.PathLike[str] | None = None,
    *,
    overrides: Mapping[str, Any] | None = None,
    seed: int | None = None,
    verify: bool = False,
    format: str | Mapping[str, Any] | None = None,
    fit: bool = False,
    skip_bad_lines: bool = False,
) -> str:
    """Checks a scenario without running it; returns it as TOML with every value resolved.

    Raises a `ScenarioError` that lists all problems.
    """
    replaced = None if trace is None else path_text(trace)
    sets = _sets(overrides, seed, verify, **_reading(format, fit, skip_bad_lines))
    return _core.check(_source(scenario), sets, replaced)


def list_(kind: str | None = None) -> dict[str, Any]:
    """Lists registered entries.

    Without `kind`: the names of all entries, by category (component, ftl, scheduler, generator,
    trace-format, preset, ...). With it: the entries of that category by name, each an `Entry`.
    """
    kinds = json.loads(_core.listing())
    if kind is None:
        return {name: tuple(entry["name"] for entry in kinds[name]) for name in kinds}
    if kind not in kinds:
        raise Error(f"there is no category {kind!r}; there are: {', '.join(kinds)}")
    entries = {}
    for entry in kinds[kind]:
        entry["params"] = {param["name"]: param["takes"] for param in entry["params"]}
        entries[entry["name"]] = Entry(**entry)
    return entries


def explain(key: str) -> str:
    """Help on a key (``host.queue_depth``), a policy, a preset, a result or a term."""
    if not isinstance(key, str):
        raise ArgumentError(f"explain takes a key or a name, not {key!r}")
    return _core.explain(key)


def schema() -> dict[str, Any]:
    """The scenario format as JSON Schema."""
    document: dict[str, Any] = json.loads(_core.schema())
    return document


def _source(scenario: ScenarioLike) -> str | tuple[str, str]:
    if isinstance(scenario, Scenario):
        return scenario.title or "scenario", scenario.to_toml()
    if isinstance(scenario, Mapping):
        return "scenario", _toml.document(_toml.plain(scenario))
    if isinstance(scenario, str) and "\n" in scenario:
        return "scenario", scenario
    return path_text(scenario)


def _reading(
    format: str | Mapping[str, Any] | None, fit: bool, skip_bad_lines: bool
) -> dict[str, Any]:
    """How a trace is read and replayed, for `_sets`."""
    if format is not None and not isinstance(format, (str, Mapping)):
        raise ArgumentError(f"format is a name or a table, not {format!r}")
    return {"format": format, "fit": fit, "skip_bad_lines": skip_bad_lines}


def _sets(
    overrides: Mapping[str, Any] | None,
    seed: int | None,
    verify: bool,
    format: str | Mapping[str, Any] | None = None,
    fit: bool = False,
    skip_bad_lines: bool = False,
) -> list[str]:
    if overrides is not None and not isinstance(overrides, Mapping):
        raise ArgumentError(f"overrides must map keys to values, not {overrides!r}")
    if seed is not None and (isinstance(seed, bool) or not hasattr(seed, "__index__")):
        raise ArgumentError(f"seed must be a whole number, not {seed!r}")
    sets = _toml.sets(overrides or {})
    if seed is not None:
        sets.append(f"run.seed={_toml.inline(_toml.plain(seed))}")
    if verify:
        sets.append("run.verify=true")
    if format is not None:
        sets.append(f"workload.format={_toml.inline(_toml.plain(format))}")
    if fit:
        sets.append("workload.fit=true")
    if skip_bad_lines:
        sets.append("workload.skip_bad_lines=true")
    return sets


def _raise_fault(done: dict[str, Any], result: Result) -> None:
    error = done["error"]
    if error is not None:
        if not isinstance(error, Exception):
            error.result = result  # KeyboardInterrupt, SystemExit
            raise error
        where = traceback.extract_tb(error.__traceback__)
        place = f" ({where[-1].filename}:{where[-1].lineno})" if where else ""
        kind = type(error).__name__
        raise RunError(f"Python code ended the run: {kind}: {error}{place}", result) from error
    if done["fault"] is not None:
        kind, message = done["fault"]
        if kind == "workload":
            raise TraceError(message)
        raise RunError(message, result)
    if result.violations:
        raise RunError("a check failed: " + "; ".join(result.violations), result)


@contextlib.contextmanager
def _progress(wanted: bool | Callable[[RunProgress], object]) -> Any:
    """The progress callback of the simulator; `None` without one."""
    if wanted is False:
        yield None
        return
    if callable(wanted):
        yield lambda *values: wanted(RunProgress(*values))
        return
    line = _Line(sys.stderr)
    try:
        yield line
    finally:
        line.end()


class _Line:
    """A progress line on a terminal."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._shown = False

    def __call__(self, fraction: float | None, requests: int, simulated_ns: int) -> None:
        share = "" if fraction is None else f"{fraction:6.1%}  "
        text = f"{share}{requests:,} requests, {simulated_ns / 1e9:,.1f} s simulated"
        print(f"\r{text:<78}", end="", file=self._out, flush=True)
        self._shown = True

    def end(self) -> None:
        if self._shown:
            print(f"\r{'':78}\r", end="", file=self._out, flush=True)
