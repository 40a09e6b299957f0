"""What can go wrong, as exceptions.

Everything raised on purpose is an `Error`. An exception that is none of these, such as
`TypeError`, means that a function was called in a way it does not take.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .results import Result

__all__ = [
    "ConformanceFailure",
    "DeviceFull",
    "DeviceWornOut",
    "Error",
    "FlashRuleBroken",
    "Problem",
    "RunError",
    "ScenarioError",
    "TraceError",
    "UnitError",
]


class Error(Exception):
    """Base class of everything this package raises on purpose."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong with a scenario."""

    key: str
    """The key path, such as ``component.disk.rpm``; empty where there is none."""
    message: str
    """What is wrong."""
    help: str | None = None
    """What to do, where that is known."""
    file: str | None = None
    """The file, preset or override it is written in."""
    line: int | None = None
    """The line in it, counted from 1."""


class ScenarioError(Error, ValueError):
    """A scenario that cannot be run. It tells everything that is wrong with it at once."""

    problems: tuple[Problem, ...]
    """All problems, in order of discovery."""

    def __init__(self, message: str, problems: Iterable[Problem] = ()) -> None:
        super().__init__(message)
        self.problems = tuple(problems)

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (str(self), self.problems)


class TraceError(Error, ValueError):
    """A trace that cannot be read or written. The message names the place and the remedy."""


class RunError(Error, RuntimeError):
    """A run that ended early: a worn-out device, a broken rule, an exception in a policy.

    When Python code ended it, the exception is the ``__cause__``.
    """

    result: Result | None
    """The figures up to that point."""

    def __init__(self, message: str, result: Result | None = None) -> None:
        super().__init__(message)
        self.result = result

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (str(self), self.result)


class DeviceFull(Error):
    """Raised by a translation layer written in Python when there is no room for a page."""


class DeviceWornOut(Error):
    """Raised by a translation layer written in Python when too many blocks are worn out."""


class FlashRuleBroken(Error):
    """A translation layer broke a rule of flash, such as programming a page twice.

    It is raised where it happened, inside of the layer, and ends the run even when it is caught.
    """


class ConformanceFailure(Error, AssertionError):
    """A policy did what no policy may do; the message has the smallest case found."""


class UnitError(Error, ValueError):
    """A quantity that cannot be read, such as ``"4k"``."""


def missing(extra: str, package: str) -> ImportError:
    """The error for an optional package that is not installed."""
    return ImportError(f"this needs {package}; install it with: pip install 'hybridsim[{extra}]'")


def path_text(path: str | os.PathLike[str]) -> str:
    """A path as text; `TypeError` for anything else."""
    text = os.fspath(path)
    if not isinstance(text, str):
        raise TypeError(f"expected a path, got {path!r}")
    return text
