"""Many runs: comparisons and parameter sweeps."""

from __future__ import annotations

import concurrent.futures
import html
import itertools
import json
import multiprocessing
import os
import pathlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from . import _core, _toml
from ._run import ScenarioLike, _sets, _source, run
from .errors import Error, path_text
from .results import Result, write_report
from .table import Table

__all__ = ["Comparison", "Point", "Sweep", "compare", "sweep"]

COLUMNS = (
    "latency_ns.all.mean",
    "latency_ns.all.p99",
    "throughput.iops",
    "totals.energy_j",
    "totals.erases",
    "totals.write_amplification",
    "totals.hit_ratio",
)
"""The default columns of tables, as paths in the results."""


class Comparison(list[Result]):
    """Results of several scenarios, in order; a list with a table and a report."""

    def table(self, columns: Iterable[str] = COLUMNS) -> Table:
        """One row per result: ``title`` and numbers by their path in the results."""
        titles = [result.title or result.scenario for result in self]
        return Table({"title": titles} | _columns(list(self), columns))

    def report(self, path: str | os.PathLike[str]) -> None:
        """Writes one report of all runs, a self-contained HTML file."""
        write_report(path, list(self))

    def _repr_html_(self) -> str:
        return _html(self.table())


def compare(
    scenarios: Iterable[ScenarioLike],
    trace: str | os.PathLike[str] | None = None,
    *,
    overrides: Mapping[str, Any] | None = None,
    seed: int | None = None,
    verify: bool = False,
) -> Comparison:
    """Runs several scenarios, one after another; `trace` and the rest are as in `run`."""
    if isinstance(scenarios, (str, os.PathLike, Mapping)):
        raise Error("compare takes a list of scenarios")
    options: dict[str, Any] = {"overrides": overrides, "seed": seed, "verify": verify}
    return Comparison(run(scenario, trace, **options) for scenario in scenarios)


@dataclass(frozen=True, slots=True)
class Point:
    """A point of a sweep."""

    values: Mapping[str, Any]
    """The varied keys and their values."""
    seed: int | None
    """The seed, where several were run."""
    result: Result | None
    """The results, without the data of charts; `None` if the run failed."""
    error: str | None
    """Why it failed."""


@dataclass(frozen=True, slots=True)
class Sweep:
    """The points of a sweep, the last key varying fastest."""

    points: tuple[Point, ...]

    def table(self, columns: Iterable[str] = COLUMNS) -> Table:
        """One row per point: its values, its seed, and numbers by their path in the results."""
        keys = list(self.points[0].values) if self.points else []
        known: dict[str, Any] = {}
        for key in keys:
            known[key] = [_cell(point.values[key]) for point in self.points]
        if any(point.seed is not None for point in self.points):
            known["seed"] = [point.seed for point in self.points]
        known |= _columns([point.result for point in self.points], columns)
        return Table({name: values for name, values in known.items() if _has_values(values)})

    def __len__(self) -> int:
        return len(self.points)

    def __repr__(self) -> str:
        failed = sum(point.error is not None for point in self.points)
        return f"Sweep({len(self.points)} points{f', {failed} failed' if failed else ''})"

    def _repr_html_(self) -> str:
        return _html(self.table())


def sweep(
    scenario: ScenarioLike,
    vary: Mapping[str, Iterable[Any]],
    trace: str | os.PathLike[str] | None = None,
    *,
    overrides: Mapping[str, Any] | None = None,
    seeds: Iterable[int] | None = None,
    verify: bool = False,
    store: str | os.PathLike[str] | None = None,
    executor: concurrent.futures.Executor | None = None,
) -> Sweep:
    """Runs a scenario at every combination of the values of some keys.

    >>> sweep(
    ...     {
    ...         "workload": {"generator": {"kind": "uniform", "requests": 100}},
    ...         "component": {
    ...             "d": {"kind": "constant-device", "capacity": "1MB", "latency": "1ms"}
    ...         },
    ...     },
    ...     {"component.d.latency": ["1ms", "2ms"]},
    ... ).table(["latency_ns.all.min"])["latency_ns.all.min"]
    array([1000000, 2000000], dtype=uint64)

    `seeds` runs every combination at each of them. `store` is a folder of finished points, which
    an interrupted or extended sweep does not run again: the ``points`` folder of ``hybridsim sweep
    --out``, in the same format. Points run in processes of this computer, as many as it has
    processors, or wherever `executor` runs them: any `concurrent.futures.Executor`, such as those
    of dask, ray or MPI. Policies written in Python have to be importable there.

    A point that fails is a `Point` with an `error`, like those of the command.
    """
    if not isinstance(vary, Mapping) or not vary:
        raise Error("vary must map at least one key to its values")
    choices = {key: _values(key, values) for key, values in vary.items()}
    wanted: list[int | None] = [None] if seeds is None else _values("seeds", seeds)
    source, folder = _source(scenario), None if store is None else pathlib.Path(path_text(store))
    replaced = None if trace is None else path_text(trace)
    jobs: list[tuple[dict[str, Any], int | None, _Job]] = []
    for values in itertools.product(*choices.values()):
        at = dict(zip(choices, values, strict=True))
        for seed in wanted:
            sets = _sets({**(overrides or {}), **at}, seed, verify)
            jobs.append((at, seed, (source, sets, replaced, folder)))
    if executor is not None:
        return Sweep(tuple(_collect(executor, jobs)))
    # Forking a process whose threads hold locks may deadlock; spawning does not.
    context = multiprocessing.get_context("forkserver" if os.name == "posix" else "spawn")
    workers = min(len(jobs), os.cpu_count() or 1)
    # Classes are registered in this process only.
    if workers <= 1 or any(isinstance(value, type) for at, *_ in jobs for value in at.values()):
        return Sweep(tuple(_point(at, seed, _simulate(job)) for at, seed, job in jobs))
    with concurrent.futures.ProcessPoolExecutor(workers, mp_context=context) as pool:
        return Sweep(tuple(_collect(pool, jobs)))


_Job = tuple[Any, list[str], str | None, pathlib.Path | None]
"""Source, settings, trace and folder of finished points."""


def _collect(
    executor: concurrent.futures.Executor, jobs: list[tuple[dict[str, Any], int | None, _Job]]
) -> list[Point]:
    futures = [executor.submit(_simulate, job) for _, _, job in jobs]
    try:
        results = [future.result() for future in futures]
    except BaseException:
        for future in futures:
            future.cancel()
        raise
    return [_point(at, seed, done) for (at, seed, _), done in zip(jobs, results, strict=True)]


def _simulate(job: _Job) -> dict[str, Any]:
    """The outcome of a point, as the command stores it; runs in another process."""
    source, sets, trace, folder = job
    try:
        key = _core.point_key(source, sets, trace)
    except Error as error:
        return {"failed": str(error)}
    path = None if folder is None else folder / f"{key}.json"
    if path is not None and path.exists():
        try:
            known: dict[str, Any] = json.loads(path.read_text("utf-8"))
        except (OSError, ValueError):
            pass  # Unreadable points are run again, as the command does.
        else:
            return known
    outcome = _outcome(source, sets, trace)
    if path is not None and folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
        partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
        partial.write_text(json.dumps(outcome), "utf-8")
        partial.replace(path)
    return outcome


def _outcome(source: Any, sets: list[str], trace: str | None) -> dict[str, Any]:
    try:
        done = _core.run(source, sets, trace, False, None, None, None)
    except Error as error:
        return {"failed": str(error)}
    if isinstance(done["error"], BaseException) and not isinstance(done["error"], Exception):
        raise done["error"]  # KeyboardInterrupt
    document = json.loads(done["json"])
    if done["error"] is not None:
        return {"failed": f"Python code ended the run: {done['error']}"}
    if done["fault"] is not None:
        return {"failed": done["fault"][1]}
    if document["violations"]:
        return {"failed": f"a check failed: {document['violations'][0]}"}
    return {"done": document}


def _point(values: Mapping[str, Any], seed: int | None, outcome: Mapping[str, Any]) -> Point:
    if "done" not in outcome:
        return Point(values, seed, None, str(outcome.get("failed", "the stored point is damaged")))
    result = Result.from_json(json.dumps(outcome["done"]))
    return Point(values, seed, result, None)


def _values(key: str, values: Any) -> list[Any]:
    if isinstance(values, (str, bytes, Mapping)) or not isinstance(values, Iterable):
        raise Error(f"{key}: expected a list of values, not {values!r}")
    known = list(values)
    if not known:
        raise Error(f"{key}: the list of values is empty")
    return known


def _columns(results: list[Result | None], paths: Iterable[str]) -> dict[str, list[Any]]:
    documents = [None if result is None else result.to_dict() for result in results]
    known: dict[str, list[Any]] = {}
    for path in [paths] if isinstance(paths, str) else paths:
        found = [None if document is None else _find(document, path) for document in documents]
        if _MISSING in found and all(value is _MISSING or value is None for value in found):
            raise Error(f"no result has {path!r}; docs/reference/results.md lists the keys")
        known[path] = [None if value is _MISSING else value for value in found]
    return known


_MISSING: Any = object()


def _find(value: Any, path: str) -> Any:
    """The value at a dotted path; keys may contain dots."""
    if not isinstance(value, dict):
        return _MISSING
    for key, inner in value.items():
        if path == key:
            return inner
        if path.startswith(f"{key}."):
            found = _find(inner, path[len(key) + 1 :])
            if found is not _MISSING:
                return found
    return _MISSING


def _cell(value: Any) -> Any:
    plain = _toml.plain(value)
    return plain if isinstance(plain, (str, int, float)) else _toml.inline(plain)


def _has_values(values: list[Any]) -> bool:
    return any(value is not None for value in values)


def _html(table: Table) -> str:
    head = "".join(f"<th>{html.escape(name)}</th>" for name in table)
    rows = "".join(
        "<tr>" + "".join(f"<td>{html.escape(_short(cell))}</td>" for cell in row) + "</tr>"
        for row in zip(*table.values(), strict=True)
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"


def _short(cell: Any) -> str:
    if isinstance(cell, str):
        return cell
    return "-" if cell != cell else f"{float(cell):,.6g}"  # NaN is not equal to itself
