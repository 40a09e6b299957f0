"""Running and checking scenarios."""

from __future__ import annotations

import contextlib
import json
import os
import sys
import traceback
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TextIO

import numpy.typing as npt

from . import _core, _toml, events
from . import plugins as _plugins
from .errors import Error, RunError, TraceError, path_text
from .results import Result
from .scenario import Scenario

__all__ = ["Beat", "Entry", "ScenarioLike", "check", "explain", "list_", "run", "schema"]

ScenarioLike = str | os.PathLike[str] | Mapping[str, Any] | Scenario
"""A scenario file's path, its text (a string of several lines), a dict, or a `Scenario`."""


@dataclass(frozen=True, slots=True)
class Beat:
    """A moment of a run, for progress displays."""

    fraction: float | None
    """Share of the workload delivered, 0 to 1, where that is known."""
    requests: int
    """Requests delivered."""
    simulated_ns: int
    """Simulated time, in ns."""


@dataclass(frozen=True, slots=True)
class Entry:
    """Something that can be used in a scenario."""

    name: str
    """Its name in scenarios."""
    summary: str
    """One sentence."""
    origin: str
    """Where it comes from."""
    params: Mapping[str, str]
    """What each of its parameters takes."""


def run(
    scenario: ScenarioLike,
    trace: str | os.PathLike[str] | None = None,
    *,
    overrides: Mapping[str, Any] | None = None,
    seed: int | None = None,
    verify: bool = False,
    detail: Literal["bare", "full"] = "full",
    progress: bool | Callable[[Beat], object] = False,
    observe: Callable[[npt.NDArray[Any]], object] | None = None,
    requests: str | os.PathLike[str] | None = None,
    plugins: Iterable[type] = (),
) -> Result:
    """Simulates a scenario.

    `scenario` is a file's path, the text of one (a string of several lines), a dict, or a
    `Scenario`. A relative path in it starts from its file, or else from the current folder.

    `trace` replaces its workload. `overrides` sets keys, nested or dotted:
    ``{"component.ssd.over_provisioning": 0.28, "host": {"queue_depth": 8}}``. `seed` and `verify` (check
    that every read returns the last write) are short for keys of ``run``.

    With ``detail="bare"`` nothing is gathered but the figures: `Result.series` and the like are
    then missing, and the run is faster.

    `progress` shows progress on standard error, or calls a function now and then. `observe` is
    called with every event, in batches; `hybridsim.events` describes them. `requests` names a file
    that every request is written to, as `docs/results.md` describes ``requests.csv``. `plugins` are
    policies to register first.

    Raises a `ScenarioError`, a `TraceError`, or a `RunError` that has the figures of what came
    before it. Other threads run meanwhile; Ctrl-C interrupts.
    """
    for plugin in plugins:
        _plugins.register(plugin)
    if detail not in ("bare", "full"):
        raise ValueError(f'detail is "bare" or "full", not {detail!r}')
    sets = _sets(overrides, seed, verify)
    source = _source(scenario)
    told = None if observe is None else events.batches(observe)
    replaced = None if trace is None else path_text(trace)
    with _progress(progress) as watch:
        listed = None if requests is None else path_text(requests)
        done = _core.run(source, sets, replaced, detail == "full", watch, told, listed)
        parts = (done["json"], done["resolved"], done["pictures"], done["files"])
        result = Result.from_json(*parts)
        if watch is not None and result.complete:
            watch(1.0, result.requests, result.simulated_ns)
    _raise_fault(done, result)
    return result


def check(
    scenario: ScenarioLike,
    trace: str | os.PathLike[str] | None = None,
    *,
    overrides: Mapping[str, Any] | None = None,
    seed: int | None = None,
    verify: bool = False,
) -> str:
    """Checks a scenario without running it; returns it as TOML with every value spelt out.

    Raises a `ScenarioError` that tells everything that is wrong.
    """
    replaced = None if trace is None else path_text(trace)
    return _core.check(_source(scenario), _sets(overrides, seed, verify), replaced)


def list_(kind: str | None = None) -> dict[str, Any]:
    """What can be used in a scenario.

    Without `kind`: the names of everything, by kind of thing (part, ftl, scheduler, generator,
    trace-format, preset, ...). With it: its entries by name, each an `Entry`.
    """
    kinds = json.loads(_core.listing())
    if kind is None:
        return {name: tuple(entry["name"] for entry in kinds[name]) for name in kinds}
    if kind not in kinds:
        raise Error(f"there is no kind of thing called {kind!r}; there are: {', '.join(kinds)}")
    entries = {}
    for entry in kinds[kind]:
        entry["params"] = {param["name"]: param["takes"] for param in entry["params"]}
        entries[entry["name"]] = Entry(**entry)
    return entries


def explain(key: str) -> str:
    """Help, default and range of a key (``host.queue_depth``), a part, a policy or a kind."""
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


def _sets(overrides: Mapping[str, Any] | None, seed: int | None, verify: bool) -> list[str]:
    sets = _toml.sets(overrides or {})
    if seed is not None:
        sets.append(f"run.seed={_toml.inline(_toml.plain(seed))}")
    if verify:
        sets.append("run.verify=true")
    return sets


def _raise_fault(done: dict[str, Any], result: Result) -> None:
    error = done["error"]
    if error is not None:
        if not isinstance(error, Exception):
            raise error  # KeyboardInterrupt, SystemExit
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
def _progress(wanted: bool | Callable[[Beat], object]) -> Any:
    """What the simulator calls now and then; `None` for nobody."""
    if wanted is False:
        yield None
        return
    if callable(wanted):
        yield lambda *beat: wanted(Beat(*beat))
        return
    line = _Line(sys.stderr)
    try:
        yield line
    finally:
        line.end()


class _Line:
    """A line on a terminal that shows how far a run is."""

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
