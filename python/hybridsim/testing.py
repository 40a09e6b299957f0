"""Tests for policies written in Python."""

from __future__ import annotations

import json
from dataclasses import dataclass

from . import _core, plugins

__all__ = ["Coverage", "check_ftl"]


@dataclass(frozen=True, slots=True)
class Coverage:
    """What a conformance check covered."""

    ran: int
    """Random devices run through."""
    refused: int
    """Devices the layer refused by a `ValueError`."""
    worn_out: int
    """Devices worn out on the way."""
    writes: int
    """Pages written."""
    erases: int
    """Blocks erased."""


def check_ftl(layer: type[plugins.Ftl], *, cases: int = 100, seed: int = 1) -> Coverage:
    """Runs the conformance suite every built-in translation layer passes over `layer`.

    Random devices get random reads, writes and trims until they wear out. Each read must return
    the last write, no rule of flash may be broken, and what cannot be stored must be told.

    Raises a `ConformanceFailure` with the smallest failing case.
    """
    name = plugins.name_of(layer)
    path = f"{layer.__module__}:{layer.__qualname__}"
    return Coverage(**json.loads(_core.check_ftl(name, path, cases, seed)))
