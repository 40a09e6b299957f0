"""Attributes of modules that are made when they are first asked for."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any


def lazily(
    module: str, **makers: Callable[[], Any]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """``__getattr__`` and ``__dir__`` of `module`, whose attributes `makers` make."""

    def get(name: str) -> Any:
        if name in makers:
            return makers[name]()
        raise AttributeError(f"module {module!r} has no attribute {name!r}")

    def names() -> list[str]:
        return sorted({*vars(sys.modules[module]), *makers})

    return get, names
