"""Many runs: comparisons and parameter sweeps."""

from __future__ import annotations

import concurrent.futures
import contextlib
import html
import json
import operator
import os
import pathlib
import tomllib
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from . import _core, _toml
from ._cluster import DaskPool, connect, is_client, shared
from ._run import ScenarioLike, _reading, _sets, _source, run
from ._tasks import ExecutorPool, Progress, Task, cache_folder, keep, run_all
from .errors import ArgumentError, Error, missing, path_text
from .results import Result, write_report
from .table import Table

__all__ = ["Comparison", "Point", "Range", "Sweep", "compare", "sweep"]

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

COSTS = ("events_per_wall_s", "peak_rss_bytes", "requests_per_wall_s", "wall_s")
"""What a run cost and not what it found: different each time."""


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
    format: str | Mapping[str, Any] | None = None,
    fit: bool = False,
    skip_bad_lines: bool = False,
) -> Comparison:
    """Runs several scenarios, one after another; `trace` and the rest are as in `run`."""
    if isinstance(scenarios, (str, os.PathLike, Mapping)) or not isinstance(scenarios, Iterable):
        raise ArgumentError("compare takes a list of scenarios")
    options: dict[str, Any] = {"overrides": overrides, "seed": seed, "verify": verify}
    options |= _reading(format, fit, skip_bad_lines)
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
class Range:
    """Numbers between two ends, such as ``Range("16MiB", "1GiB", log=True)``."""

    start: float | str
    """The lower end."""
    stop: float | str
    """The upper end, in the same unit."""
    log: bool = False
    """Whether values are spread evenly by their logarithm."""


@dataclass(frozen=True, slots=True)
class Sweep:
    """The points of a sweep, the last key varying fastest."""

    points: tuple[Point, ...]
    _study: Any = field(default=None, repr=False, compare=False)

    def table(self, columns: Iterable[str] = COLUMNS) -> Table:
        """One row per point: its values, its seed, and numbers by their path in the results."""
        known = self._coordinates() | _columns([point.result for point in self.points], columns)
        return Table({name: values for name, values in known.items() if _has_values(values)})

    def figures(self) -> Table:
        """One row per point: its values and every number of its results by path.

        Also its seed, its fingerprint, and the error of a point that failed. What a run cost (wall
        time, memory) is left out: a sweep that was interrupted and resumed has the same table as
        one that was not.
        """
        documents = [
            {} if point.result is None else dict(_numbers(point.result.to_dict(), ""))
            for point in self.points
        ]
        paths = dict.fromkeys(path for document in documents for path in document)
        known = self._coordinates()
        known |= {path: [document.get(path) for document in documents] for path in sorted(paths)}
        results = [point.result for point in self.points]
        known["fingerprint"] = ["" if result is None else result.fingerprint for result in results]
        known["error"] = [point.error or "" for point in self.points]
        return Table(known)

    def to_parquet(self, folder: str | os.PathLike[str], by: Iterable[str] = ()) -> None:
        """Writes `figures` as a Parquet dataset, in folders by the values of the keys `by`."""
        try:
            import pyarrow.dataset as ds
        except ImportError:
            raise missing("arrow", "pyarrow") from None
        wanted = [by] if isinstance(by, str) else list(by)
        table = self.figures().to_arrow()
        unknown = [key for key in wanted if key not in table.column_names]
        if unknown:
            raise Error(f"the sweep does not vary {unknown[0]!r}")
        ds.write_dataset(
            table,
            path_text(folder),
            format="parquet",
            partitioning=wanted or None,
            partitioning_flavor="hive" if wanted else None,
            existing_data_behavior="delete_matching",
        )

    def csv(self, columns: Iterable[str] = ()) -> str:
        """The table of ``hybridsim sweep --out``, with means over seeds and their intervals."""
        text: str = self._planned().csv([columns] if isinstance(columns, str) else list(columns))
        return text

    def report(self, path: str | os.PathLike[str], title: str = "Sweep") -> None:
        """Writes the charts of ``hybridsim sweep --out``, one HTML file."""
        self._report(path, title)

    def _report(
        self,
        path: str | os.PathLike[str],
        title: str,
        notes: Iterable[str] = (),
        objectives: Iterable[tuple[str, bool]] = (),
        best: Iterable[int] = (),
    ) -> None:
        page = self._planned().html(title, list(notes), list(objectives), list(best))
        pathlib.Path(path_text(path)).write_text(page, "utf-8")

    def _planned(self) -> Any:
        if self._study is None:
            raise Error("only a sweep that `hybridsim.sweep` returned has this")
        return self._study

    def _coordinates(self) -> dict[str, Any]:
        keys = list(self.points[0].values) if self.points else []
        known: dict[str, Any] = {}
        for key in keys:
            known[key] = _alike([_cell(point.values[key]) for point in self.points])
        if any(point.seed is not None for point in self.points):
            known["seed"] = [point.seed for point in self.points]
        return known

    def __len__(self) -> int:
        return len(self.points)

    def __repr__(self) -> str:
        failed = sum(point.error is not None for point in self.points)
        return f"Sweep({len(self.points)} points{f', {failed} failed' if failed else ''})"

    def _repr_html_(self) -> str:
        return _html(self.table())


Vary = Mapping[str, Iterable[Any] | Range] | Iterable[Mapping[str, Any]]


def sweep(
    scenario: ScenarioLike,
    vary: Vary,
    trace: str | os.PathLike[str] | None = None,
    *,
    traces: Iterable[str | os.PathLike[str]] = (),
    overrides: Mapping[str, Any] | None = None,
    seeds: int | Iterable[int] | None = None,
    sample: str = "grid",
    verify: bool = False,
    format: str | Mapping[str, Any] | None = None,
    fit: bool = False,
    skip_bad_lines: bool = False,
    store: str | os.PathLike[str] | None = None,
    retry: bool = False,
    executor: Any = None,
    memory: int | None = None,
    progress: bool | Callable[[int, int], object] = False,
) -> Sweep:
    """Runs a scenario at many values of some keys.

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

    `vary` maps keys to lists of values, of which every combination is run, or is a list of
    combinations. With ``sample="latin-hypercube:50"`` or ``"random:50"`` so many combinations are
    drawn, and values may be a `Range`. Several `traces` are each replayed at every combination.
    `seeds` repeats every combination: a number of seeds, from the scenario's own on, or a list.

    `store` is a folder of finished points, which an interrupted or extended sweep does not run
    again: the ``points`` folder of ``hybridsim sweep --out``, in the same format. `retry` runs
    those again that failed. `progress` shows a line on standard error, or calls a function with
    the number of finished points and of all.

    Points run on all processors of this computer, as many at a time as fit into `memory` (bytes;
    by default what is available), or wherever `executor` runs them: any
    `concurrent.futures.Executor`, or a Dask client or the address of its scheduler. Policies
    written in Python have to be importable there.

    A point that fails is a `Point` with an `error`, like those of the command. If points
    cannot be stored, their results are returned and a `RuntimeWarning` is issued.
    """
    if not isinstance(sample, str):
        raise ArgumentError(f"sample must be text such as 'random:50', not {sample!r}")
    if memory is not None and not (_is_whole(memory) and 0 < memory < 1 << 64):
        raise ArgumentError(f"memory must be a number of bytes, not {memory!r}")
    if executor is not None and not isinstance(executor, str) and not hasattr(executor, "submit"):
        raise ArgumentError(f"executor must have a method submit, not {executor!r}")
    wanted = [path_text(path) for path in _several(traces, "traces")]
    if trace is not None:
        wanted.insert(0, path_text(trace))
    folder = None if store is None else path_text(store)
    sets = _sets(overrides, None, verify, **_reading(format, fit, skip_bad_lines))
    varied = _varied(vary)
    study = _study(scenario, sets, varied, wanted, seeds, sample=sample, store=(folder, retry))
    try:
        _complete(study, executor, memory, folder, progress)
    finally:
        if study.store_problem is not None:
            warnings.warn(study.store_problem, RuntimeWarning, stacklevel=2)
    return Sweep(tuple(_points(study, varied[2])), study)


def keys(
    scenario: ScenarioLike,
    vary: Vary,
    trace: str | os.PathLike[str] | None = None,
    *,
    overrides: Mapping[str, Any] | None = None,
    seeds: int | Iterable[int] | None = None,
    verify: bool = False,
    format: str | Mapping[str, Any] | None = None,
    fit: bool = False,
    skip_bad_lines: bool = False,
) -> list[str]:
    """The keys of the points of `sweep` in a store: equal keys mean equal results."""
    traces = [] if trace is None else [path_text(trace)]
    sets = _sets(overrides, None, verify, **_reading(format, fit, skip_bad_lines))
    study = _study(scenario, sets, _varied(vary), traces, seeds)
    return [Task.read(study.task(number)).key for number in study.missing()]


def _study(
    scenario: ScenarioLike,
    sets: list[str],
    varied: tuple[list[Any], Any, Any],
    traces: list[str],
    seeds: Any,
    *,
    sample: str = "grid",
    store: tuple[str | None, bool] = (None, False),
) -> _core.Study:
    places = [_local(path) for path in traces]
    given, listed, _ = varied
    return _core.Study(
        _source(scenario), sets, given, listed, sample, places, _seeds(seeds), *store
    )


def _complete(
    study: _core.Study,
    executor: Any,
    memory: int | None,
    folder: str | None,
    progress: bool | Callable[[int, int], object],
) -> None:
    """Runs what is missing."""
    total, missing_points = len(study.points()), study.missing()
    line = Progress(total, total - len(missing_points), progress is True)
    count = total - len(missing_points)

    def finished(failed: bool = False, where: str = "") -> None:
        nonlocal count
        count += 1
        line.finished(failed, where)
        if callable(progress):
            progress(count, total)

    try:
        if executor is None and not study.uses_python:
            study.run(None, memory, True, finished)
        elif executor is None and study.uses_registered:
            for number in missing_points:  # Only this process knows the class.
                study.put(number, _core.run_task(study.task(number), True))
                finished()
        else:
            if executor is not None and study.uses_registered:
                raise ArgumentError(
                    "other processes do not know a class that is registered in this one: put it "
                    'into a module, name it as {"kind": "python", "class": "module:Class"} and '
                    "call hybridsim.allow_code(), or leave out executor"
                )
            problem = None if executor is None else study.remote_problem()
            if problem is not None:
                raise ArgumentError(f"executor: {problem}; or leave out executor")
            _distribute(study, executor, memory, folder, finished)
    finally:
        line.end()


def _distribute(
    study: _core.Study,
    executor: Any,
    memory: int | None,
    folder: str | None,
    finished: Callable[[bool, str], None],
) -> None:
    tasks = (Task.read(study.task(number)) for number in study.missing())
    with contextlib.ExitStack() as stack:
        place = stack.enter_context(shared(folder, memory=memory))
        if isinstance(executor, str):
            executor = stack.enter_context(connect(executor))
        pool: Any
        if is_client(executor):
            pool = DaskPool(executor, place)
            stack.callback(pool.close)
        elif executor is None:
            workers = os.cpu_count() or 1
            threads = stack.enter_context(concurrent.futures.ThreadPoolExecutor(workers))
            pool = ExecutorPool(threads, place)
        elif hasattr(executor, "submit"):
            pool = ExecutorPool(executor, place)
        else:
            raise ArgumentError(f"executor must have a method submit, not {executor!r}")
        where = pool.workers if isinstance(pool, DaskPool) else str
        for number, outcome in stack.enter_context(contextlib.closing(run_all(tasks, pool))):
            study.put(number, outcome)
            finished(not outcome.startswith('{"done"'), where())


def _points(study: _core.Study, texts: Mapping[str, Mapping[str, Any]]) -> Iterator[Point]:
    for number, (values, seed, _) in enumerate(study.points()):
        pairs = zip(study.keys, values, strict=True)
        at = {key: _value(text, texts.get(key, {})) for key, text in pairs}
        outcome = json.loads(study.outcome(number) or '{"failed": "it was not run"}')
        if "done" not in outcome:
            yield Point(at, seed, None, str(outcome.get("failed") or outcome.get("refused")))
        else:
            yield Point(at, seed, Result.from_json(json.dumps(outcome["done"])), None)


def _varied(vary: Any) -> tuple[list[Any], Any, dict[str, dict[str, Any]]]:
    """Keys with their values, and listed combinations, as TOML; the values of a key by text."""
    if isinstance(vary, Mapping):
        if not vary:
            raise ArgumentError("vary must map at least one key to its values")
        given: list[Any] = []
        texts: dict[str, dict[str, Any]] = {}
        for key, values in vary.items():
            if isinstance(values, Range):
                ends = (_cell(values.start), _cell(values.stop))
                given.append((key, (str(ends[0]), str(ends[1]), values.log)))
                continue
            listed = [(_text(value), value) for value in _values(key, values)]
            texts[key] = dict(listed)
            given.append((key, [text for text, _ in listed]))
        return given, None, texts
    rows = _values("vary", vary)
    keys = list(rows[0]) if isinstance(rows[0], Mapping) else []
    if not keys or any(not isinstance(row, Mapping) or list(row) != keys for row in rows):
        raise ArgumentError("vary must be a mapping, or a list of mappings with the same keys")
    texts = {key: {_text(row[key]): row[key] for row in rows} for key in keys}
    return [], (keys, [[_text(row[key]) for key in keys] for row in rows]), texts


def _text(value: Any) -> str:
    return _toml.inline(_toml.plain(value))


def _value(text: str, known: Mapping[str, Any]) -> Any:
    """The value with this text in TOML: the caller's own object, where there is one."""
    return known[text] if text in known else tomllib.loads(f"v = {text}")["v"]


def _several(values: Any, name: str) -> list[Any]:
    if isinstance(values, (str, bytes, os.PathLike)) or not isinstance(values, Iterable):
        raise ArgumentError(f"{name} must be a list, not {values!r}")
    return list(values)


def _local(path: str) -> str:
    """The path of a trace; one with a scheme, such as ``s3://``, is downloaded once."""
    if "://" not in path:
        return path
    try:
        import fsspec
    except ImportError:
        raise missing("dask", "fsspec") from None
    with fsspec.open(path, "rb") as source:
        data: bytes = source.read()
    copy = cache_folder() / "downloaded" / path.replace("://", "/")
    keep(copy, data)
    return str(copy)


def _values(key: str, values: Any) -> list[Any]:
    if isinstance(values, (str, bytes, Mapping)) or not isinstance(values, Iterable):
        raise ArgumentError(f"{key}: expected a list of values, not {values!r}")
    known = list(values)
    if not known:
        raise ArgumentError(f"{key}: the list of values is empty")
    return known


def _is_whole(value: Any) -> bool:
    if isinstance(value, bool):
        return False
    try:
        operator.index(value)
    except TypeError:
        return False
    return True


def _seeds(seeds: Any) -> int | list[int] | None:
    if seeds is None:
        return None
    if _is_whole(seeds):
        if not 1 <= seeds < 1 << 64:
            raise ArgumentError(f"seeds must be at least 1, not {seeds!r}")
        return operator.index(seeds)
    known = _values("seeds", seeds)
    wrong = next((seed for seed in known if not (_is_whole(seed) and 0 <= seed < 1 << 64)), None)
    if wrong is not None:
        raise ArgumentError(f"seeds are whole numbers from 0 on, not {wrong!r}")
    return [operator.index(seed) for seed in known]


def _numbers(value: Any, path: str) -> Iterator[tuple[str, float]]:
    """The numbers in a document by their path, without costs."""
    if isinstance(value, dict):
        for key, inner in value.items():
            if path or key not in COSTS:
                yield from _numbers(inner, f"{path}.{key}" if path else key)
    elif isinstance(value, (bool, int, float)):
        yield path, value


def _alike(cells: list[Any]) -> list[Any]:
    """As they are if all are numbers, or else as text."""
    is_number = all(isinstance(cell, (int, float)) for cell in cells)
    return cells if is_number else [str(cell) for cell in cells]


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
