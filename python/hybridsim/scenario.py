"""Scenarios written in Python instead of TOML.

The keys are those of scenario files; `hybridsim.explain` tells what each means. Quantities are
strings with their unit, such as ``"25us"`` or ``"4KiB"``; a `datetime.timedelta` is taken for a
time as well.

>>> disk = Part("constant-device", capacity="1GB", latency="5ms")
>>> workload = Workload(generator="uniform")
>>> print(Scenario(parts={"disk": disk}, workload=workload, title="a disk").to_toml())
title = "a disk"
<BLANKLINE>
[workload]
generator = "uniform"
<BLANKLINE>
[component.disk]
kind = "constant-device"
capacity = "1GB"
latency = "5ms"
<BLANKLINE>
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from . import _toml

__all__ = ["Host", "Part", "Policy", "Scenario", "Workload"]


class _Keys:
    """Keys and values of one table; what they may be is checked when the scenario is."""

    params: dict[str, Any]

    def __init__(self, /, **params: Any) -> None:
        self.params = params

    def to_dict(self) -> dict[str, Any]:
        """The table with plain values, as it would be read from a scenario file."""
        return _toml.plain(self.params)  # type: ignore[no-any-return]

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and vars(self) == vars(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        params = ", ".join(f"{key}={value!r}" for key, value in self.params.items())
        return f"{type(self).__name__}({params})"


class Host(_Keys):
    """The host: queue depth, scheduler, open or closed loop. Keys of the ``[host]`` table."""


class Workload(_Keys):
    """Where requests come from: a ``trace``, or a ``generator``. Keys of ``[workload]``."""


class Policy(_Keys):
    """A policy or generator with its parameters: what is written ``{ kind = "...", ... }``.

    >>> Policy("page", gc="fifo").to_dict()
    {'kind': 'page', 'gc': 'fifo'}
    """

    kind: str

    def __init__(self, kind: str, /, **params: Any) -> None:
        super().__init__(**params)
        self.kind = kind

    def to_dict(self) -> dict[str, Any]:
        """The table with plain values."""
        return {"kind": self.kind, **super().to_dict()}

    def __repr__(self) -> str:
        params = "".join(f", {key}={value!r}" for key, value in self.params.items())
        return f"{type(self).__name__}({self.kind!r}{params})"


class Part(_Keys):
    """A part of the system: a device, or a controller that combines others.

    Give its ``kind`` (``hybridsim.list("part")``), a ``preset`` (``hybridsim.list("preset")``), or
    both. Other parts are named by their key in `Scenario.parts`.
    """

    kind: str | None
    preset: str | None

    def __init__(
        self, kind: str | None = None, /, *, preset: str | None = None, **params: Any
    ) -> None:
        if kind is None and preset is None:
            raise TypeError("a part needs a kind, such as Part('ssd'), or a preset")
        super().__init__(**params)
        self.kind = kind
        self.preset = preset

    def to_dict(self) -> dict[str, Any]:
        """The table with plain values."""
        head = {"kind": self.kind, "preset": self.preset}
        return {key: value for key, value in head.items() if value} | super().to_dict()

    def __repr__(self) -> str:
        head = [repr(self.kind)] if self.kind else []
        head += [f"preset={self.preset!r}"] if self.preset else []
        params = [f"{key}={value!r}" for key, value in self.params.items()]
        return f"Part({', '.join(head + params)})"


@dataclass(kw_only=True)
class Scenario:
    """A system, its workload and the run."""

    parts: Mapping[str, Part | Mapping[str, Any]]
    """The parts by name."""
    workload: Workload | Mapping[str, Any] = field(default_factory=Workload)
    """Where requests come from."""
    host: Host | Mapping[str, Any] = field(default_factory=Host)
    """How they are submitted."""
    run: Mapping[str, Any] = field(default_factory=dict)
    """Seed, warm-up, verification: keys of the ``[run]`` table."""
    system: str | None = None
    """The top part; not needed where only one part has no parent."""
    title: str | None = None
    """What to call the run in results."""

    def to_dict(self) -> dict[str, Any]:
        """The scenario as it would be read from a file."""
        tables = {"run": self.run, "workload": self.workload, "host": self.host}
        document: dict[str, Any] = {"title": self.title, "system": self.system}
        document |= {name: _toml.plain(table) for name, table in tables.items()}
        document["part"] = _toml.plain(self.parts)
        return {key: value for key, value in document.items() if value}

    def to_toml(self) -> str:
        """The scenario as the text of a scenario file."""
        return _toml.document(self.to_dict())
