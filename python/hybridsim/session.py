"""A system that is run step by step."""

from __future__ import annotations

import itertools
import json
import operator
import threading
from collections import deque
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

from . import _core, _run
from ._run import ScenarioLike
from .errors import ArgumentError, Error
from .results import Result

Operation = Literal[
    "read",
    "write",
    "trim",
    "flush",
    "zone_reset",
    "zone_finish",
    "zone_open",
    "zone_close",
    "zone_commit",
]
"""What a request does. The last five manage the zone that the request covers."""


class Submitted(NamedTuple):
    """A request that was submitted."""

    number: int
    """Counted from 0 in order of submission."""
    at_ns: int
    """When it arrives."""


class Completion(NamedTuple):
    """The end of a request."""

    number: int
    """As in `Submitted`."""
    at_ns: int
    """When it ended."""
    outcome: Literal["done", "failed", "lost"]
    """Lost requests were outstanding when the power failed."""
    versions: tuple[int, ...]
    """Of a read, with ``versions=True``: for each sector the number of the write whose data it
    returned, plus 1; 0 where nothing was written."""


class _Open(threading.local):
    """The open sessions of this thread, which alone may use and drop them."""

    def __init__(self) -> None:
        self.by_number: dict[int, _core.Session] = {}
        # Numbers of sessions without a reference in any thread.
        self.abandoned: deque[int] = deque()

    def drop_abandoned(self) -> None:
        while self.abandoned:
            self.by_number.pop(self.abandoned.popleft(), None)


_open = _Open()
_numbers = itertools.count()


class Session:
    """A simulated system that takes requests one by one, with simulated time between them.

    `scenario` is what `hybridsim.run` takes; its workload is ignored and may be missing. The
    results are those of a run that reads the same requests at the same times from a trace.

    `power_may_fail` is needed for `cut_power`. Only the thread that created a session can use it;
    in any other thread its methods raise `Error`.
    """

    def __init__(
        self,
        scenario: ScenarioLike,
        *,
        overrides: Mapping[str, Any] | None = None,
        seed: int | None = None,
        detail: Literal["bare", "full"] = "bare",
        versions: bool = False,
        power_may_fail: bool = False,
    ) -> None:
        if detail not in ("bare", "full"):
            raise ArgumentError(f'detail is "bare" or "full", not {detail!r}')
        sets = _run._sets(overrides, seed, False)
        source = _run._source(scenario)
        full = detail == "full"
        _open.drop_abandoned()
        core = _core.Session(source, sets, full, versions, power_may_fail)
        self._number = next(_numbers)
        self._abandoned = _open.abandoned
        _open.by_number[self._number] = core

    def __del__(self) -> None:
        # A session that was refused has no number.
        if hasattr(self, "_number"):
            self._abandoned.append(self._number)
            if self._abandoned is _open.abandoned:
                _open.drop_abandoned()

    @property
    def _own(self) -> _core.Session:
        core = _open.by_number.get(self._number)
        if core is None:
            raise Error("a session can be used only by the thread that created it")
        return core

    @property
    def capacity_bytes(self) -> int:
        """Capacity of the system."""
        return self._own.capacity_bytes()

    @property
    def now_ns(self) -> int:
        """Simulated time since the start of the session."""
        return self._own.now_ns()

    @property
    def outstanding(self) -> int:
        """Requests submitted that have not ended."""
        return self._own.outstanding()

    def submit(
        self,
        op: Operation,
        offset: int = 0,
        length: int = 0,
        *,
        at_ns: int | None = None,
        fua: bool = False,
        append: bool = False,
        zrwa: bool = False,
        handle: int = 0,
    ) -> Submitted:
        """Submits a request (in bytes, multiples of 512) that arrives at `at_ns`, or now.

        Where that time has been simulated, it arrives as soon after as is possible. Zone management
        names a whole zone; a write with `append` is a zone append. Devices without zones fail both.
        A `zone_open` with `zrwa` gives the zone a random write area; a `zone_commit` moves its
        write pointer to the end of the range.
        `handle` is the placement handle of a write (0 to 255), for SSDs that place data by it.
        """
        at_ns = None if at_ns is None else _time("at_ns", at_ns)
        offset, length = _whole("offset", offset), _whole("length", length)
        flags = (fua, append, zrwa, _whole("handle", handle, 8))
        return Submitted(*self._own.submit(op, (offset, length), at_ns, flags))

    def advance_to(self, time_ns: int) -> list[Completion]:
        """Simulates up to `time_ns`; returns the requests that ended."""
        return _completions(self._own.advance_to(_time("time_ns", time_ns)))

    def next_completion(self) -> Completion | None:
        """Simulates until a request ends; `None` when none is outstanding."""
        return next(iter(_completions(self._own.next_completion())), None)

    def next_event(self) -> int | None:
        """The time by which to advance for something to happen; `None` without a request.

        An event queue that also has other events advances the session to this time and no further.
        It may be earlier than the last arrival: advance at once then.
        """
        return self._own.next_event()

    def cut_power(self, at_ns: int | None = None) -> list[Completion]:
        """The power fails just after `at_ns`, or now, and comes back.

        Returns the requests that ended; those that had arrived are lost.
        """
        at_ns = None if at_ns is None else _time("at_ns", at_ns)
        return _completions(self._own.cut_power(at_ns))

    def inject(
        self,
        do: Literal["fail", "slow", "wear", "fill"],
        component: str | None = None,
        *,
        at_ns: int | None = None,
        **keys: float,
    ) -> int:
        """Lets a fault occur at `at_ns`, or now; returns its time.

        `do` and `keys` are those of `run.faults` in a scenario:
        ``inject("fail", "raid", member=1)``, ``inject("slow", "ssd", die=3, factor=10)``,
        ``inject("wear", "ssd", fraction=0.99)``, ``inject("fill", "ssd")``.
        `component` is a name or a path; it is not needed if only one component takes the fault.
        Requests submitted later arrive after the fault.

        Raises `ArgumentError`, which lists the components that take the fault, if it cannot occur.
        """
        at_ns = None if at_ns is None else _time("at_ns", at_ns)
        fault: dict[str, Any] = {"do": do, **{name: _plain(it) for name, it in keys.items()}}
        if component is not None:
            fault["component"] = component
        try:
            text = json.dumps(fault, allow_nan=False)
        except (TypeError, ValueError) as error:
            raise ArgumentError(f"a fault takes numbers and names: {error}") from error
        return self._own.inject(text, at_ns)

    def finish(self) -> Result:
        """Serves what is outstanding and returns the results."""
        done = self._own.finish()
        result = Result.from_json(done["json"], done["resolved"], done["pictures"], done["files"])
        _run._raise_fault(done, result)
        return result


def _completions(ended: list[tuple[int, int, Any, list[int]]]) -> list[Completion]:
    return [Completion(number, at, how, tuple(seen)) for number, at, how, seen in ended]


def _whole(name: str, value: Any, bits: int = 64) -> int:
    """A whole number of at most so many bits."""
    if not isinstance(value, bool):
        try:
            number = operator.index(value)
        except TypeError:
            number = -1
        if 0 <= number < 1 << bits:
            return number
    raise ArgumentError(
        f"{name} must be a whole number of at least 0 and below 2**{bits}, not {value!r}"
    )


def _plain(value: Any) -> Any:
    """The Python number of a number of numpy, say."""
    for convert in (operator.index, float):
        try:
            return value if isinstance(value, bool | str) else convert(value)
        except (TypeError, ValueError):
            continue
    return value


def _time(name: str, value: Any) -> int:
    """A time that leaves room for what the simulation adds to it."""
    return _whole(name, value, 63)
