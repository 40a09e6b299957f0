"""The stream of facts a run tells, as numpy records.

``hybridsim.run(..., observe=function)`` calls ``function`` with one structured array after the
other, of `DTYPE`, in order of time. The arrays may be kept; they are read-only.

===============  ==========  ========  =======================  ===================  ===========
fact             op          label     value                    extra                ns
===============  ==========  ========  =======================  ===================  ===========
arrived          operation             first sector             sectors
completed        operation             first sector             sectors              latency
spent            operation   PARTS                                                   time
queue_depth                            requests waiting
seek                                   cylinders crossed                             time
rotate                                                                               time
media_transfer                         sectors                                       time
disk_cache       operation   OUTCOMES
state_time                   STATES                                                  time
flash_read                   CAUSES
flash_program                CAUSES
flash_erase                  CAUSES    block                    its erases
free_blocks                            erased blocks
wear                                   blocks                   erases of each
cache_lookup     operation             pages found              pages not found
bypassed         operation             sectors
destaged                               sectors
cleanup_started
cleanup_ended                          pages made free
dirty_pages                            dirty pages
custom                       which     value
victim_search                          blocks looked at
power_cut                              requests lost
recovered                                                                            time
die_busy                     CAUSES    begin in ns              ACTS                 length
channel_busy                 CAUSES    begin in ns              ACTS                 length
read_unwritten                         pages that held nothing
===============  ==========  ========  =======================  ===================  ===========

Flash facts have the die in ``unit``, ``channel_busy`` the channel; both ``busy`` facts are told of
runs with pictures (``detail="full"``) alone. ``node`` numbers the components, the host being 0. A
spent fact belongs to the completed fact that follows.

>>> FACTS[CODES["completed"]]
'completed'
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from . import _core

__all__ = [
    "ACTS",
    "CAUSES",
    "CODES",
    "DTYPE",
    "FACTS",
    "OPS",
    "OUTCOMES",
    "PARTS",
    "STATES",
    "batches",
]

FACTS: tuple[str, ...] = (
    "arrived",
    "completed",
    "spent",
    "queue_depth",
    "seek",
    "rotate",
    "media_transfer",
    "disk_cache",
    "state_time",
    "flash_read",
    "flash_program",
    "flash_erase",
    "free_blocks",
    "wear",
    "cache_lookup",
    "bypassed",
    "destaged",
    "cleanup_started",
    "cleanup_ended",
    "dirty_pages",
    "custom",
    "victim_search",
    "power_cut",
    "recovered",
    "die_busy",
    "channel_busy",
    "read_unwritten",
)
"""Names of the codes in field ``fact``."""

CODES: dict[str, int] = {name: code for code, name in enumerate(FACTS)}
"""Codes of the facts, by name."""

_NAMES = _core.fact_names()

OPS: tuple[str, ...] = tuple(_NAMES["ops"])
"""Names of the codes in field ``op``."""

ACTS: tuple[str, ...] = tuple(_NAMES["acts"])
"""What dies and channels do: names of the codes in field ``extra`` of busy facts."""

CAUSES: tuple[str, ...] = tuple(_NAMES["causes"])
"""Why a flash operation happened: names of the codes in field ``label`` of flash facts."""

PARTS: tuple[str, ...] = tuple(_NAMES["parts"])
"""Where the time of a request went: names of the codes in field ``label`` of spent facts."""

STATES: tuple[str, ...] = tuple(_NAMES["states"])
"""Power states: names of the codes in field ``label`` of state_time facts."""

OUTCOMES: tuple[str, ...] = ("miss", "hit", "partial", "buffered")
"""What a disk's buffer did: names of the codes in field ``label`` of disk_cache facts."""

DTYPE: np.dtype[Any] = np.dtype(
    [
        ("time_ns", "<u8"),
        ("ns", "<u8"),
        ("value", "<u8"),
        ("extra", "<u4"),
        ("node", "<u2"),
        ("unit", "<u2"),
        ("fact", "u1"),
        ("op", "u1"),
        ("label", "u1"),
        ("pad", "u1"),
    ]
)
"""Layout of a fact; 36 bytes."""


def batches(function: Callable[[npt.NDArray[Any]], object]) -> Callable[[bytes], None]:
    """Wraps `function` to be called with raw batches."""

    def call(raw: bytes) -> None:
        function(np.frombuffer(raw, DTYPE))

    return call
