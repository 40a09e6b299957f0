"""Tests for policies written in Python."""

from __future__ import annotations

import json
from dataclasses import dataclass

from . import _core, plugins

__all__ = ["Coverage", "ReplacementCoverage", "check_ftl", "check_replacement"]


@dataclass(frozen=True, slots=True)
class Coverage:
    """Coverage of a conformance check."""

    ran: int
    """Random devices tested."""
    refused: int
    """Devices the FTL rejected with a `ValueError`."""
    worn_out: int
    """Devices worn out during the test."""
    writes: int
    """Pages written."""
    erases: int
    """Blocks erased."""


def check_ftl(layer: type[plugins.Ftl], *, cases: int = 100, seed: int = 1) -> Coverage:
    """Runs the conformance suite of the built-in FTLs on `layer`.

    Random devices execute random reads, writes and trims until they wear out. Each read must
    return the last write, no rule of NAND may be violated, and failed writes must be reported.

    Raises a `ConformanceFailure` with the smallest failing case.
    """
    name = plugins.name_of(layer)
    return Coverage(**json.loads(_core.check_ftl(name, cases, seed)))


@dataclass(frozen=True, slots=True)
class ReplacementCoverage:
    """Coverage of a conformance check of a replacement policy."""

    ran: int
    """Random sequences of operations."""
    accesses: int
    """Pages read, written or added."""
    victims: int
    """Victims returned."""


def check_replacement(
    policy: type[plugins.Replacement], *, cases: int = 100, seed: int = 1
) -> ReplacementCoverage:
    """Runs the conformance suite of the built-in replacement policies on `policy`.

    Caches of up to 24 pages execute random reads, writes, trims and evictions. `victims` must
    return every cached page once, no other page, and go on until as many as needed are eligible.

    Raises a `ConformanceFailure` with a short failing sequence; an exception of the policy is its
    ``__cause__``.
    """
    name = plugins.name_of(policy)
    return ReplacementCoverage(**json.loads(_core.check_replacement(name, cases, seed)))
