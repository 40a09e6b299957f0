"""Exceptions.

All errors derive from `Error`: those of scenarios, traces and runs, and `ArgumentError` for an
argument of a wrong type or value. A `TypeError` that is no `Error` means that a function was called
with arguments it does not have.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from .results import Result

__all__ = [
    "ArgumentError",
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


_T = TypeVar("_T")


class Error(Exception):
    """Base class of all errors of this package."""


@dataclass(frozen=True, slots=True)
class Problem:
    """A problem of a scenario."""

    key: str
    """Key path, such as ``component.disk.rpm``; empty where there is none."""
    message: str
    """Description."""
    help: str | None = None
    """Remedy, where known."""
    file: str | None = None
    """File, preset or override that contains it."""
    line: int | None = None
    """Line in the file, counted from 1."""


class ScenarioError(Error, ValueError):
    """A scenario that cannot be run; lists all its problems."""

    problems: tuple[Problem, ...]
    """All problems, in order of discovery."""

    def __init__(self, message: str, problems: Iterable[Problem] = ()) -> None:
        super().__init__(message)
        self.problems = tuple(problems)

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (str(self), self.problems)


class TraceError(Error, ValueError):
    """A trace that cannot be read or written; the message has the position and a remedy."""


class RunError(Error, RuntimeError):
    """A run that stopped early: worn-out device, violated rule, exception in a policy.

    An exception in Python code is the ``__cause__``.
    """

    result: Result | None
    """The results so far."""

    def __init__(self, message: str, result: Result | None = None) -> None:
        super().__init__(message)
        self.result = result

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (str(self), self.result)


class DeviceFull(Error):
    """Raised by an FTL written in Python when no free page is left."""


class DeviceWornOut(Error):
    """Raised by an FTL written in Python when too many blocks are worn out."""


class FlashRuleBroken(Error):
    """An FTL violated a rule of NAND flash, such as programming a page twice.

    Raised at the violating call; the run ends even if the exception is caught.
    """


class ConformanceFailure(Error, AssertionError):
    """A policy failed the conformance suite; the message has the smallest failing case."""


class ArgumentError(Error, TypeError, ValueError):
    """An argument of a wrong type, or a value that a function does not take."""


class UnitError(Error, ValueError):
    """A quantity that cannot be read, such as ``"4k"``."""


def missing(extra: str, package: str) -> ImportError:
    """The error for an optional package that is not installed."""
    return ImportError(f"this needs {package}; install it with: pip install 'hybridsim[{extra}]'")


def path_text(path: str | os.PathLike[str]) -> str:
    """A path as text; an `ArgumentError` for anything else."""
    text = os.fspath(path) if isinstance(path, (str, os.PathLike)) else None
    if not isinstance(text, str):
        raise ArgumentError(f"expected a path, got {path!r}")
    return text


def call(function: Callable[..., _T], *arguments: object) -> _T:
    """Calls a function of the compiled half; an argument of a wrong type is an `ArgumentError`."""
    try:
        return function(*arguments)
    except (TypeError, OverflowError) as error:
        if isinstance(error, Error):
            raise
        raise ArgumentError(str(error)) from None
