"""Search for the best values of some keys, by Optuna (extra ``hybridsim[optimize]``)."""

from __future__ import annotations

import dataclasses
import itertools
import json
import math
import operator
import os
import re
import statistics
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from . import units
from ._run import ScenarioLike, check
from .errors import ArgumentError, Error, ScenarioError, missing, path_text
from .results import Result
from .sweeps import _MISSING, Point, Range, Sweep, _find, _is_whole, _values, keys, sweep
from .table import Table

__all__ = ["Objective", "Search", "Trial", "optimize"]

COST = "cost"
"""The objective or constraint of `prices`."""

_COMBINATIONS_MAX = 100
"""Combinations among which a valid one is looked for."""

_RELATIONS: dict[str, Callable[[float, float], float]] = {
    "<=": operator.sub,
    ">=": lambda value, bound: bound - value,
}
"""By how much a bound is violated; up to 0 it is not."""


@dataclass(frozen=True, slots=True)
class Objective:
    """What is to become small, large, or a value."""

    path: str
    """A number of the results by its path, or ``cost``."""
    maximize: bool = False
    """Whether more is better."""
    target: float | None = None
    """The value that is best."""

    @classmethod
    def read(cls, text: str) -> Objective:
        """Reads ``totals.hit_ratio:max`` or ``:0.9``; without an ending less is better."""
        path, _, direction = text.partition(":")
        if "=" in path:  # The form of a bound.
            path = ""
        if path and direction in ("", "min", "max"):
            return cls(path, direction == "max")
        try:
            target = float(direction)
        except ValueError:
            target = math.nan
        if not path or not math.isfinite(target):
            raise Error(f"{text!r}: write an objective as path, path:min, path:max or path:number")
        return cls(path, target=target)

    def __str__(self) -> str:
        if self.target is not None:
            return f"{self.path}, closest to {self.target:g}"
        return f"{self.path}, {'more' if self.maximize else 'less'} is better"

    def loss(self, value: float) -> float:
        """What is minimised: the value, its negative, or its distance from the target."""
        if self.target is not None:
            return abs(value - self.target)
        return -value if self.maximize else value


@dataclass(frozen=True, slots=True)
class _Bound:
    """A limit on a number of the results."""

    path: str
    relation: str
    value: float

    @classmethod
    def read(cls, text: str) -> _Bound:
        found = re.fullmatch(r"\s*(\S+?)\s*(<=|>=)\s*(\S+)\s*", text)
        try:
            if found is not None:
                return cls(found[1], found[2], float(found[3]))
        except ValueError:
            pass
        raise Error(f"{text!r}: write a constraint as path<=number or path>=number")

    def violation(self, value: float) -> float:
        return _RELATIONS[self.relation](value, self.value)


@dataclass(frozen=True, slots=True)
class Trial:
    """One combination that was tried."""

    number: int
    """Its number, from 0."""
    values: Mapping[str, Any]
    """The varied keys and their values."""
    objectives: tuple[float, ...] | None
    """Means over the seeds; `None` if it failed or was stopped early."""
    violations: tuple[float, ...]
    """By how much each constraint is violated; up to 0 it is not."""
    error: str | None
    """Why it failed, or that it was stopped early."""

    @property
    def feasible(self) -> bool:
        """Whether it satisfies all constraints."""
        return self.objectives is not None and all(value <= 0 for value in self.violations)


@dataclass(frozen=True, slots=True)
class Search:
    """The trials of a search."""

    objectives: tuple[Objective, ...]
    """What was searched for."""
    trials: tuple[Trial, ...]
    """All trials, those of earlier calls included."""
    _again: Callable[[], Sweep] = dataclasses.field(repr=False, compare=False)

    @property
    def best(self) -> Trial:
        """The best feasible trial; of several objectives, the best by the first."""
        front = self.front
        if not front:
            raise Error(self._no_front())
        return min(front, key=lambda trial: self._losses(trial)[0])

    def _no_front(self) -> str:
        """Why there is no best trial."""
        failed = next((trial.error for trial in self.trials if trial.error), None)
        reason = f"; the first that failed: {failed}" if failed else ""
        return f"no trial satisfies the constraints: widen the ranges, or try more{reason}"

    @property
    def front(self) -> tuple[Trial, ...]:
        """The Pareto front: feasible trials that no other dominates."""
        feasible = [trial for trial in self.trials if trial.feasible]
        losses = [self._losses(trial) for trial in feasible]

        def dominates(one: tuple[float, ...], other: tuple[float, ...]) -> bool:
            return one != other and all(a <= b for a, b in zip(one, other, strict=True))

        kept: dict[tuple[float, ...], Trial] = {}
        for trial, loss in zip(feasible, losses, strict=True):
            if not any(dominates(other, loss) for other in losses):
                kept.setdefault(loss, trial)
        return tuple(kept[loss] for loss in sorted(kept))

    def _losses(self, trial: Trial) -> tuple[float, ...]:
        pairs = zip(trial.objectives or (), self.objectives, strict=True)
        return tuple(objective.loss(value) for value, objective in pairs)

    def table(self) -> Table:
        """One row per trial: values, objectives, whether it is feasible and on the front."""
        front = {trial.number for trial in self.front}
        known: dict[str, list[Any]] = {"trial": [trial.number for trial in self.trials]}
        for key in self.trials[0].values if self.trials else ():
            cells = [trial.values[key] for trial in self.trials]
            is_number = all(isinstance(cell, (int, float)) for cell in cells)
            known[key] = cells if is_number else [str(cell) for cell in cells]
        for at, objective in enumerate(self.objectives):
            found = [trial.objectives for trial in self.trials]
            known[objective.path] = [None if values is None else values[at] for values in found]
        known["feasible"] = [int(trial.feasible) for trial in self.trials]
        known["front"] = [int(trial.number in front) for trial in self.trials]
        known["error"] = [trial.error or "" for trial in self.trials]
        return Table(known)

    def report(self, path: str | os.PathLike[str], title: str = "Search") -> None:
        """Writes all complete trials as the page of a sweep, with Pareto fronts drawn.

        The page states the objectives and marks the best trial, or the front of several objectives.
        """
        complete = [trial.number for trial in self.trials if trial.objectives is not None]
        front = self.front
        paths = [(it.path, it.maximize) for it in self.objectives if it.path != COST]
        best = [complete.index(trial.number) for trial in front]
        self._again()._report(path, title, self._notes(front), paths, best)

    def _notes(self, front: tuple[Trial, ...]) -> list[str]:
        """The objectives and the answer, in sentences."""
        several = len(self.objectives) > 1
        wanted = "; ".join(str(objective) for objective in self.objectives)
        notes = [f"{'Objectives' if several else 'Objective'}: {wanted}."]
        if not front:
            return [*notes, f"There is no best: {self._no_front()}."]
        if several:
            return [*notes, f"Pareto front: {len(front)} of {len(self.trials)} trials."]
        (best,) = front
        values = ", ".join(f"{key} {value}" for key, value in best.values.items())
        (found,) = best.objectives or ()
        path = self.objectives[0].path
        return [*notes, f"Best of {len(self.trials)} trials: {values}; {path} is {found:.6g}."]

    def __repr__(self) -> str:
        feasible = sum(trial.feasible for trial in self.trials)
        return f"Search({len(self.trials)} trials, {feasible} feasible, {len(self.front)} best)"


def optimize(
    scenario: ScenarioLike,
    vary: Mapping[str, Iterable[Any] | Range],
    objectives: str | Iterable[str],
    trace: str | os.PathLike[str] | None = None,
    *,
    constraints: Iterable[str] = (),
    prices: Mapping[str, float | str] | None = None,
    trials: int = 50,
    parts: Iterable[int] = (),
    storage: str | os.PathLike[str] | None = None,
    batch: int | None = None,
    seed: int = 1,
    **options: Any,
) -> Search:
    """Searches for the values of some keys that are best by one or several objectives.

    `vary` maps keys to lists of values or a `Range`. `objectives` are numbers of the results by
    their path, such as ``latency_ns.all.p99`` or ``totals.hit_ratio:max``; several give a Pareto
    front. `constraints` are bounds such as ``"totals.write_amplification<=1.5"``. `prices` make
    the figure ``cost``: the sum of varied values or results by path, each times its price, a
    number or ``"0.08/GiB"``.

    Combinations are proposed by Optuna, by TPE for one objective and NSGA-II for several.
    With `parts`, numbers of requests in ascending order, each is first simulated on as many
    requests from the start of the workload, and only the better half (rounded up) goes on; one
    objective only.
    Constraints are judged on the part, too: those that violate them least are better.

    `storage` is a file in which trials are kept: the same call resumes there, until there are
    `trials` in all. `batch` combinations are proposed and run at a time. `options` are those of
    `sweep`: with ``store`` no combination is simulated twice, and ``executor`` may be a cluster.
    """
    if batch is not None and not (_is_whole(batch) and batch >= 1):
        raise ArgumentError(f"batch must be at least 1, not {batch!r}")
    if not (_is_whole(trials) and trials >= 1):
        raise ArgumentError(f"trials must be at least 1, not {trials!r}")
    search = _Searcher(scenario, vary, objectives, trace, constraints, prices, options)
    rungs = list(parts)
    if rungs and len(search.objectives) > 1:
        raise Error("parts need a single objective: several have no order")
    if any(later <= sooner for sooner, later in itertools.pairwise(rungs)):
        raise Error("parts have to be in ascending order")
    if rungs:
        search.parts = [{search.length_key(): count} for count in rungs]
    study = _study(search, storage, seed)
    size = (os.cpu_count() or 1) if batch is None else batch
    while (left := trials - len(study.trials_that_count())) > 0:
        study.run_batch(min(size, left))
    return Search(search.objectives, tuple(study.known()), study.again)


class _Searcher:
    """What is searched, and how a combination is judged."""

    def __init__(
        self,
        scenario: ScenarioLike,
        vary: Mapping[str, Iterable[Any] | Range],
        objectives: str | Iterable[str],
        trace: str | os.PathLike[str] | None,
        constraints: Iterable[str],
        prices: Mapping[str, float | str] | None,
        options: dict[str, Any],
    ) -> None:
        if not isinstance(vary, Mapping) or not vary:
            raise ArgumentError("vary must map at least one key to its values")
        refused = {"sample", "traces"} & options.keys()
        if refused:
            raise ArgumentError(f"a search has no option {refused.pop()!r}")
        overrides = options.get("overrides")
        if overrides is not None and not isinstance(overrides, Mapping):
            raise ArgumentError(f"overrides must map keys to values, not {overrides!r}")
        self.scenario, self.trace, self.options = scenario, trace, options
        self.vary: dict[str, Any] = {
            key: _Span.read(key, values) if isinstance(values, Range) else _values(key, values)
            for key, values in vary.items()
        }
        wanted = [objectives] if isinstance(objectives, str) else list(objectives)
        self.objectives = tuple(Objective.read(text) for text in wanted)
        if not self.objectives:
            raise ArgumentError("a search needs an objective")
        bounds = [constraints] if isinstance(constraints, str) else list(constraints)
        self.bounds = [_Bound.read(text) for text in bounds]
        self.prices = {path: _price(price) for path, price in (prices or {}).items()}
        paths = [objective.path for objective in self.objectives]
        if COST in [*paths, *(bound.path for bound in self.bounds)] and not self.prices:
            raise ArgumentError("cost needs prices")
        self.parts: list[dict[str, int]] = []

    def identity(self) -> str:
        """What the values of a trial depend on, besides the combination."""
        ours = ("overrides", "seeds", "verify", "format", "fit", "skip_bad_lines")
        options = {name: self.options[name] for name in ours if name in self.options}
        known = {
            "objectives": [dataclasses.astuple(objective) for objective in self.objectives],
            "constraints": [dataclasses.astuple(bound) for bound in self.bounds],
            "prices": self.prices,
            "vary": {
                key: dataclasses.astuple(it) if isinstance(it, _Span) else it
                for key, it in self.vary.items()
            },
            "parts": self.parts,
            # That of one combination depends on the contents of a trace, and on the program.
            "scenario, options, trace or program": self._key(options),
        }
        return json.dumps(known, sort_keys=True, default=str)

    def _key(self, options: dict[str, Any]) -> list[str]:
        """The keys of the first combination that is valid; each seed has one."""
        rows = self._combinations()
        found = (keys(self.scenario, [row], self.trace, **options) for row in rows)
        return next(filter(None, found), [])

    def _combinations(self) -> Iterator[dict[str, Any]]:
        """The first combinations of the values, of a range its ends.

        First so many that every value is in one of them.
        """
        lists = [
            [it.value(it.low), it.value(it.high)] if isinstance(it, _Span) else it
            for it in self.vary.values()
        ]
        diagonal = zip(*(itertools.cycle(values) for values in lists), strict=True)
        first = itertools.islice(diagonal, max(map(len, lists)))
        rows = itertools.chain(first, itertools.product(*lists))
        few = itertools.islice(rows, _COMBINATIONS_MAX)
        return (dict(zip(self.vary, row, strict=True)) for row in few)

    def length_key(self) -> str:
        """The key of the number of requests."""
        reading = ("format", "fit", "skip_bad_lines")
        options = {name: self.options[name] for name in reading if name in self.options}
        workload, first = None, None
        for row in self._combinations():
            overrides = {**(self.options.get("overrides") or {}), **row}
            try:
                resolved = check(self.scenario, self.trace, overrides=overrides, **options)
            except ScenarioError as error:
                first = first or error
                continue
            workload = tomllib.loads(resolved)["workload"]
            break
        if workload is None:
            assert first is not None
            raise first
        if "generator" in workload:
            return "workload.generator.requests"
        tables = [table for table in workload.values() if isinstance(table, dict)]
        if any("trace" in table or "generator" in table for table in tables):
            raise Error("parts need a single workload: each of several has a length of its own")
        return "workload.count"

    def run(self, rows: list[dict[str, Any]], part: Mapping[str, int] | None = None) -> Sweep:
        """Runs combinations, optionally on a part of the workload."""
        options = dict(self.options)
        if part:
            options["overrides"] = {**(options.get("overrides") or {}), **part}
        return sweep(self.scenario, rows, self.trace, **options)

    def figure(self, path: str, point: Point) -> float:
        """A number of a point."""
        if path == COST:
            return sum(price * self.amount(key, point) for key, price in self.prices.items())
        assert point.result is not None
        return _number(path, point.result)

    def amount(self, key: str, point: Point) -> float:
        """What a price is multiplied by: a varied value or a number of the results."""
        value = point.values.get(key, _MISSING)
        if value is _MISSING:
            assert point.result is not None
            return _number(key, point.result)
        return float(units.nbytes(value)) if isinstance(value, str) else float(value)

    def judge(self, points: list[Point]) -> tuple[list[float], list[float]]:
        """Objectives and violations of a combination, as means over its seeds."""

        def mean(path: str) -> float:
            return statistics.fmean(self.figure(path, point) for point in points)

        values = [mean(objective.path) for objective in self.objectives]
        return values, [bound.violation(mean(bound.path)) for bound in self.bounds]


def _number(path: str, result: Result) -> float:
    value = _find(result.to_dict(), path)
    if value is _MISSING or isinstance(value, (dict, list, str)):
        raise Error(f"no result has a number {path!r}; docs/reference/results.md lists the keys")
    return math.nan if value is None else float(value)


def _price(price: float | str) -> float:
    if not isinstance(price, str):
        return float(price)
    amount, _, unit = price.partition("/")
    try:
        return float(amount) / (units.nbytes(f"1{unit.strip()}") if unit else 1)
    except ValueError:
        raise Error(f"{price!r}: write a price as a number, or with a unit as 0.08/GiB") from None


@dataclass(frozen=True, slots=True)
class _Span:
    """Numbers of one unit between two ends."""

    low: float
    high: float
    unit: str
    log: bool

    @classmethod
    def read(cls, key: str, given: Range) -> _Span:
        ends = []
        for end in (given.start, given.stop):
            found = re.fullmatch(r"\s*(\S*[\d.])\s*(\D*)", str(end))
            try:
                assert found is not None
                is_whole = re.fullmatch(r"[+-]?\d+", found[1])
                ends.append((int(found[1]) if is_whole else float(found[1]), found[2]))
            except (AssertionError, ValueError):
                raise ArgumentError(f"{key}: {end!r} is no number with or without a unit") from None
        (low, unit), (high, other) = ends
        if unit != other:
            raise ArgumentError(f"{key}: the ends of a range are numbers of one unit")
        if not low < high or (given.log and low <= 0):
            order = "from a number above 0 to a larger one" if given.log else "in ascending order"
            both = f"{given.start!r}, {given.stop!r}"
            raise ArgumentError(f"{key}: write a range {order}, not {both}")
        return cls(low, high, unit, given.log)

    def value(self, number: float) -> Any:
        return f"{number}{self.unit}" if self.unit else number

    def suggest(self, trial: Any, key: str) -> Any:
        is_whole = isinstance(self.low, int) and isinstance(self.high, int)
        draw = trial.suggest_int if is_whole else trial.suggest_float
        return self.value(draw(key, self.low, self.high, log=self.log))


class _Study:
    """A study of Optuna."""

    def __init__(self, search: _Searcher, study: Any, optuna: Any) -> None:
        self._search, self._study, self._optuna = search, study, optuna
        states = optuna.trial.TrialState
        self._counted = (states.COMPLETE, states.PRUNED, states.FAIL)
        # A driver that was killed left trials behind: they are tried again.
        for trial in study.get_trials(states=(states.RUNNING,)):
            study._storage.set_trial_user_attr(trial._trial_id, "lost", True)
            study.tell(trial.number, state=states.FAIL)
            study.enqueue_trial(trial.params)

    def trials_that_count(self) -> list[Any]:
        """Trials that have ended with an answer."""
        ended = self._study.get_trials(states=self._counted)
        return [trial for trial in ended if not trial.user_attrs.get("lost")]

    def run_batch(self, count: int) -> None:
        """Proposes, runs and judges combinations."""
        asked = [self._study.ask() for _ in range(count)]
        rows = []
        for trial in asked:
            rows.append({key: _suggest(trial, key, it) for key, it in self._search.vary.items()})
            trial.set_user_attr("values", json.dumps(rows[-1], default=str))
        pending = list(zip(asked, rows, strict=True))
        for part in self._search.parts:
            pending = self._better_half(pending, part)
        for trial, points in self._points(pending):
            self._tell(trial, points)

    def _points(self, pending: list[Any], part: Any = None) -> list[tuple[Any, list[Point]]]:
        if not pending:
            return []
        swept = self._search.run([row for _, row in pending], part)
        seeds = len(swept) // len(pending)
        groups = [list(swept.points[at : at + seeds]) for at in range(0, len(swept), seeds)]
        return [(trial, group) for (trial, _), group in zip(pending, groups, strict=True)]

    def _better_half(self, pending: list[Any], part: Mapping[str, int]) -> list[Any]:
        """Those that are among the better half of all trials on this part of the workload."""
        requests = str(next(iter(part.values())))
        attribute = f"part {requests}"
        kept = []
        for (trial, points), entry in zip(self._points(pending, part), pending, strict=True):
            error = _failure(points)
            if error is not None:
                self._fail(trial, error)
                continue
            values, violations = self._search.judge(points)
            if any(math.isnan(value) for value in values + violations):
                self._fail(trial, _NO_VALUE)
                continue
            loss = self._search.objectives[0].loss(values[0])
            rank = [sum(max(value, 0.0) for value in violations), loss]
            trial.set_user_attr(attribute, rank)
            kept.append((rank, entry))
        others = [
            trial.user_attrs[attribute]
            for trial in self._study.get_trials()
            if attribute in trial.user_attrs
        ]
        middle = statistics.median_high(others) if others else []
        going_on = []
        for rank, (trial, row) in kept:
            if rank > middle:
                trial.set_user_attr("error", f"stopped early, after {requests} requests")
                self._study.tell(trial, state=self._optuna.trial.TrialState.PRUNED)
            else:
                going_on.append((trial, row))
        return going_on

    def _tell(self, trial: Any, points: list[Point]) -> None:
        error = _failure(points)
        if error is not None:
            self._fail(trial, error)
            return
        values, violations = self._search.judge(points)
        if any(math.isnan(value) for value in values + violations):
            self._fail(trial, _NO_VALUE)
            return
        for bound, violation in zip(self._search.bounds, violations, strict=True):
            trial.set_constraint(bound.path + bound.relation, violation)
        trial.set_user_attr("violations", violations)
        trial.set_user_attr("objectives", values)
        pairs = zip(self._search.objectives, values, strict=True)
        self._study.tell(trial, [objective.loss(value) for objective, value in pairs])

    def _fail(self, trial: Any, error: str) -> None:
        trial.set_user_attr("error", error)
        self._study.tell(trial, state=self._optuna.trial.TrialState.FAIL)

    def known(self) -> list[Trial]:
        """All trials that count."""
        complete = self._optuna.trial.TrialState.COMPLETE
        return [
            Trial(
                trial.number,
                json.loads(trial.user_attrs["values"]),
                tuple(trial.user_attrs["objectives"]) if trial.state == complete else None,
                tuple(trial.user_attrs.get("violations", ())),
                trial.user_attrs.get("error"),
            )
            for trial in self.trials_that_count()
        ]

    def again(self) -> Sweep:
        """The sweep of all complete trials; with a store nothing is simulated."""
        rows = [dict(trial.values) for trial in self.known() if trial.objectives is not None]
        if not rows:
            raise Error("no trial is complete")
        return self._search.run(rows)


_NO_VALUE = "an objective or a constraint has no value in the results of this run"


def _failure(points: list[Point]) -> str | None:
    return next((point.error for point in points if point.error is not None), None)


def _study(search: _Searcher, storage: str | os.PathLike[str] | None, seed: int) -> _Study:
    try:
        import optuna
    except ImportError:
        raise missing("optimize", "optuna") from None
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    kept = None
    if storage is not None:
        backend = optuna.storages.journal.JournalFileBackend(path_text(storage))
        kept = optuna.storages.JournalStorage(backend)
    directions = ["minimize"] * len(search.objectives)
    study = optuna.create_study(
        storage=kept, study_name="hybridsim", directions=directions, load_if_exists=True
    )
    if storage is not None:
        _claim(study, search.identity(), path_text(storage))
    # A resumed search draws other numbers than it drew before.
    start = seed + len(study.get_trials())

    if len(directions) > 1:
        study.sampler = optuna.samplers.NSGAIISampler(seed=start)
    else:
        study.sampler = optuna.samplers.TPESampler(seed=start, constant_liar=True)
    return _Study(search, study, optuna)


def _claim(study: Any, identity: str, storage: str) -> None:
    """Keeps what is searched with the study; one that was kept must be the same."""
    kept = study.user_attrs.get("search")
    if kept is None:
        study.set_user_attr("search", identity)
    elif kept != identity:
        before, now = json.loads(kept), json.loads(identity)
        different = ", ".join(name for name in now if before.get(name) != now[name])
        raise Error(f"{storage} holds a search with other {different}; choose another file")


def _suggest(trial: Any, key: str, values: Any) -> Any:
    """A value of a key."""
    if isinstance(values, _Span):
        return values.suggest(trial, key)
    texts = [json.dumps(value, default=str) for value in values]
    return values[texts.index(trial.suggest_categorical(key, texts))]
