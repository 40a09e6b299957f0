"""The stream of events a run emits, as numpy records.

``hybridsim.run(..., observe=function)`` calls ``function`` with one structured array after the
other, of `DTYPE`, in order of time. The arrays may be kept; they are read-only. `of` selects one
kind of event and gives its fields their names:

>>> import numpy as np
>>> from hybridsim.events import CODES, DTYPE, NAMES, of
>>> batch = np.zeros(2, DTYPE)
>>> batch["event"] = CODES["seek"]
>>> of(batch, "seek").dtype.names
('time_ns', 'component', 'event', 'distance', 'duration_ns')

`FIELDS` lists the fields of every event, `DESCRIPTIONS` says what it states. A field in `NAMES`
holds an index into the names listed there:

>>> NAMES["flash_erase"]["cause"][:3]
('host', 'gc', 'wear')

``component`` numbers the components, the host being 0. The phases of a request's latency
(``phase_time``, and ``phase_times`` with up to four of them) precede its ``completed``; in the
same way ``state_time`` and ``state_times`` give the power states of a device, and ``access`` the
seek, rotation and transfer of a disk. ``die_busy`` and ``channel_busy`` are emitted only with
``detail="full"``; they, ``read_unwritten`` and ``failed`` are not part of the fingerprint.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from . import _core
from ._lazy import lazily

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

__all__ = [
    "CAUSES",
    "CODES",
    "DESCRIPTIONS",
    "DTYPE",
    "EVENTS",
    "FIELDS",
    "NAMES",
    "OPS",
    "OUTCOMES",
    "PHASES",
    "STATES",
    "batches",
    "of",
]

_KINDS = _core.event_kinds()

CODES: dict[str, int] = {name: code for code, name, _, _ in _KINDS}
"""The number in field ``event``, by the name of the event."""

EVENTS: dict[int, str] = {code: name for name, code in CODES.items()}
"""Names of the events, by number."""

DESCRIPTIONS: dict[str, str] = {name: doc for _, name, doc, _ in _KINDS}
"""What each event states."""

NAMES: dict[str, dict[str, tuple[str, ...]]] = {
    name: {field: tuple(names) for field, _, _, _, names in fields if names}
    for _, name, _, fields in _KINDS
}
"""For each event, the names of the numbers in its fields."""

_HEAD = [("time_ns", 0, "<u8"), ("component", 8, "<u2"), ("event", 10, "u1")]
_BYTES = 32


_LAYOUTS: dict[str, list[tuple[str, int, str]]] = {
    name: _HEAD
    + [
        (f"{field}_ns" if time else field, first, f"<u{length}")
        for field, first, length, time, _ in fields
    ]
    for _, name, _, fields in _KINDS
}

FIELDS: dict[str, tuple[str, ...]] = {
    name: tuple(field for field, _, _ in layout[len(_HEAD) :]) for name, layout in _LAYOUTS.items()
}
"""Names of the fields of each event; those in ns end in ``_ns``."""

OPS: tuple[str, ...] = NAMES["completed"]["op"]
"""Names of the operations: numbers in field ``op``."""

PHASES: tuple[str, ...] = NAMES["phase_time"]["phase"]
"""Names of the phases of a request's latency."""

STATES: tuple[str, ...] = NAMES["state_time"]["state"]
"""Names of the power states."""

CAUSES: tuple[str, ...] = NAMES["flash_program"]["cause"]
"""Names of the causes of flash operations."""

OUTCOMES: tuple[str, ...] = NAMES["disk_cache"]["outcome"]
"""Names of what a disk's buffer did for a request."""

DTYPE: np.dtype[Any]
"""Layout of a record of any event, 32 bytes: the form that fingerprints are computed from."""

_RECORD = [*_HEAD, ("a", 11, "u1"), ("b", 12, "<u4"), ("c", 16, "<u8"), ("d", 24, "<u8")]


@functools.cache
def _dtype(event: str | None = None) -> np.dtype[Any]:
    """The layout of records of `event`, or `DTYPE`; the package is imported without numpy."""
    import numpy as np

    names, offsets, formats = zip(*(_LAYOUTS[event] if event else _RECORD), strict=True)
    layout: Any = {
        "names": list(names),
        "offsets": list(offsets),
        "formats": list(formats),
        "itemsize": _BYTES,
    }
    made: np.dtype[Any] = np.dtype(layout)
    return made


if not TYPE_CHECKING:
    __getattr__, __dir__ = lazily(__name__, DTYPE=_dtype)


def of(batch: npt.NDArray[Any], event: str) -> npt.NDArray[Any]:
    """The records of `event` in `batch`, with named fields."""
    selected: npt.NDArray[Any] = batch[batch["event"] == CODES[event]].view(_dtype(event))
    return selected


def batches(function: Callable[[npt.NDArray[Any]], object]) -> Callable[[bytes], None]:
    """Wraps `function` to be called with raw batches."""
    import numpy as np

    dtype = _dtype()

    def call(raw: bytes) -> None:
        function(np.frombuffer(raw, dtype))

    return call
