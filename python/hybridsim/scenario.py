"""Scenarios written in Python instead of TOML.

The keys are those of scenario files; `hybridsim.explain` describes them. Quantities are strings
with a unit, such as ``"25us"`` or ``"4KiB"``; a time may be a `datetime.timedelta`.

>>> disk = ComponentSpec("constant-device", capacity="1GB", latency="5ms")
>>> workload = Workload(generator="uniform")
>>> print(Scenario(components={"disk": disk}, workload=workload, title="a disk").to_toml())
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
from .errors import ArgumentError

__all__ = ["ComponentSpec", "Host", "Policy", "Scenario", "Workload"]


class _Keys:
    """Keys and values of a table; checked with the scenario."""

    params: dict[str, Any]

    def __init__(self, /, **params: Any) -> None:
        self.params = params

    def to_dict(self) -> dict[str, Any]:
        """The table with plain values, as in a scenario file."""
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
    """The workload: a ``trace`` or a ``generator``. Keys of ``[workload]``."""


class Policy(_Keys):
    """A policy or generator with its parameters, ``{ kind = "...", ... }`` in TOML.

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


class ComponentSpec(_Keys):
    """A component of the system: a device, or a controller of other components.

    Give its ``kind`` (``hybridsim.list("component")``), a ``preset``
    (``hybridsim.list("preset")``), or both. Parameters refer to other components by their key in
    `Scenario.components`.
    """

    kind: str | None
    preset: str | None

    def __init__(
        self, kind: str | None = None, /, *, preset: str | None = None, **params: Any
    ) -> None:
        if kind is None and preset is None:
            raise ArgumentError(
                "a component needs a kind, such as ComponentSpec('ssd'), or a preset"
            )
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
        return f"ComponentSpec({', '.join(head + params)})"


@dataclass(kw_only=True)
class Scenario:
    """A system, its workload and the run."""

    components: Mapping[str, ComponentSpec | Mapping[str, Any]] = field(default_factory=dict)
    """The components by name."""
    workload: Workload | Mapping[str, Any] = field(default_factory=Workload)
    """The source of requests."""
    host: Host | Mapping[str, Any] = field(default_factory=Host)
    """How requests are issued."""
    run: Mapping[str, Any] = field(default_factory=dict)
    """Seed, warm-up, verification: keys of the ``[run]`` table."""
    system: str | None = None
    """The component below the host; optional where only one component has no parent."""
    title: str | None = None
    """Name of the run in results."""

    def to_dict(self) -> dict[str, Any]:
        """The scenario as in a file."""
        tables = {"run": self.run, "workload": self.workload, "host": self.host}
        document: dict[str, Any] = {"title": self.title, "system": self.system}
        document |= {name: _toml.plain(table) for name, table in tables.items()}
        document["component"] = _toml.plain(self.components)
        return {key: value for key, value in document.items() if value}

    def to_toml(self) -> str:
        """The scenario as the text of a scenario file."""
        return _toml.document(self.to_dict())
