"""Quantities of scenarios: a number and a unit in one string.

>>> ns("25us"), nbytes("4KiB"), bytes_per_s("100MB/s")
(25000, 4096, 100000000)
>>> format_ns(1_500_000), format_bytes(4096)
('1500us', '4KiB')
"""

from __future__ import annotations

from . import _core
from .errors import call

__all__ = ["bytes_per_s", "format_bytes", "format_bytes_per_s", "format_ns", "nbytes", "ns"]


def ns(text: str) -> int:
    """A time such as ``"0.5ms"`` in nanoseconds, to the nearest."""
    return call(_core.parse_quantity, "time", text)


def nbytes(text: str) -> int:
    """A size such as ``"4KiB"`` or ``"1GB"`` in bytes."""
    return call(_core.parse_quantity, "size", text)


def bytes_per_s(text: str) -> int:
    """A rate such as ``"100MB/s"`` in bytes per second."""
    return call(_core.parse_quantity, "rate", text)


def format_ns(value: int) -> str:
    """Nanoseconds as the shortest exact quantity; `ns` reads it back."""
    return call(_core.write_quantity, "time", value)


def format_bytes(value: int) -> str:
    """Bytes as the shortest exact quantity; `nbytes` reads it back."""
    return call(_core.write_quantity, "size", value)


def format_bytes_per_s(value: int) -> str:
    """Bytes per second as the shortest exact quantity; `bytes_per_s` reads it back."""
    return call(_core.write_quantity, "rate", value)
