"""Policies written in Python.

A policy derives from `Ftl`, `VictimPolicy` (garbage collection), `Replacement`, `Admission`,
`Cleanup` or `Scheduler`. A scenario refers to a class in one of three ways:

- as a value: ``ComponentSpec("ssd", ftl=MyFtl)`` or ``overrides={"component.ssd.ftl": MyFtl}``;
- by name, after ``@hybridsim.ftl("my-ftl")``: ``ftl = "my-ftl"``;
- by its import path: ``ftl = { kind = "python", class = "module:MyFtl" }``, which also works on the
  command line; ``"folder/file.py:MyFtl"`` names a file, relative to that of the scenario. Loading
  it runs code, which `allow_code` or ``python -m hybridsim --allow-code`` permits.

Keyword-only arguments of ``__init__`` whose default is a boolean, number or string are parameters
of the policy: ``ftl = { kind = "my-ftl", threshold = 4 }``. By import path they are
given as JSON: ``options = '{"threshold": 4}'``.

An exception in a policy ends the run; `hybridsim.run` raises a `RunError` with it as the cause.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import itertools
import json
import os
import pathlib
import re
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from . import _core, _toml
from .errors import Error

if TYPE_CHECKING:
    from ._core import Device, Flash, Head, Request

__all__ = [
    "Admission",
    "Cleanup",
    "Ftl",
    "Plan",
    "Replacement",
    "Scheduler",
    "VictimPolicy",
    "allow_code",
    "ftl",
    "name_of",
    "register",
    "replacement",
    "resolve",
]

_C = TypeVar("_C", bound=type)


class Ftl:
    """A flash translation layer: maps logical to physical pages.

    It is untimed: it reads, writes or trims one logical page by calling methods of `flash`, and
    the device times these operations afterwards. Logical pages, physical pages and blocks are
    numbered from 0; `device` has the geometry.

    `flash` enforces the rules of NAND: pages are programmed once after their block was erased, in
    ascending order, and a block is erased only without valid pages. A violation raises
    `FlashRuleBroken` at that line.

    Reject an unsuitable device, such as one with too little over-provisioning, with a
    `ValueError` in ``__init__``.
    """

    device: Device
    """Geometry of the device, and number of logical pages."""

    def __init__(self, device: Device) -> None:
        self.device = device

    def prepare(self, flash: Flash) -> None:
        """Brings erased flash into the initial state; takes no simulated time."""

    def read(self, lpn: int, flash: Flash) -> None:
        """Reads `lpn`: one ``flash.host_read``, or none if it holds no data."""
        raise NotImplementedError

    def write(self, lpn: int, flash: Flash) -> None:
        """Writes `lpn`: exactly one ``flash.host_program``, after any garbage collection.

        ``flash.request_pages`` is the number of pages of the whole request. Raise `DeviceFull` or
        `DeviceWornOut` when no free page is left.
        """
        raise NotImplementedError

    def trim(self, lpn: int, flash: Flash) -> None:
        """Trims `lpn`: its data are no longer needed."""
        raise NotImplementedError

    def holds(self, lpn: int) -> bool:
        """Whether `lpn` holds data, which a partial write has to read first."""
        raise NotImplementedError

    def idle(self, flash: Flash) -> bool:
        """One step of background work; false when there is none."""
        return False

    def mapping_ram_bytes(self) -> int:
        """Size of the tables in controller memory; by default 4 bytes per logical page.

        A constant, which is read before `prepare` is called.
        """
        return 4 * self.device.exported_pages


class Replacement:
    """A replacement policy: determines the eviction order of cached pages.

    Pages are numbers. The cache keeps track of its contents; the policy only orders them.

    >>> class Lru(Replacement):
    ...     def __init__(self, pages):
    ...         super().__init__(pages)
    ...         self.order = {}
    ...     def update(self, page, access):
    ...         self.order.pop(page, None)
    ...         self.order[page] = None
    ...     def remove(self, page):
    ...         self.order.pop(page, None)
    ...     def victims(self):
    ...         return iter(self.order)
    """

    pages: int
    """Capacity of the cache in pages."""

    def __init__(self, pages: int) -> None:
        self.pages = pages

    def update(self, page: int, access: str) -> None:
        """`page` was accessed: ``"read"``, ``"write"``, or ``"add"`` when it entered the cache."""
        raise NotImplementedError

    def remove(self, page: int) -> None:
        """`page` left the cache, or was exempted from eviction."""
        raise NotImplementedError

    def victims(self) -> Iterable[int]:
        """Pages in eviction order; the cache consumes as many as it needs.

        They remain in the policy until `remove`.
        """
        raise NotImplementedError


class Admission:
    """An admission policy: determines which writes go to the cache.

    It cannot affect data: pages of a rejected write that are cached are written to the cache, the
    others bypass it.

    >>> class Small(Admission):
    ...     def __init__(self, *, sectors=64):
    ...         self.sectors = sectors
    ...     def admit(self, request, pages, cached):
    ...         return request.sectors <= self.sectors or cached > 0
    """

    def admit(self, request: Request, pages: int, cached: int) -> bool:
        """Whether `request` goes to the cache.

        It touches `pages` pages, of which `cached` are in the cache.
        """
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class Plan:
    """A cleanup: pages to destage, and how."""

    pages: int | None = None
    """Number of pages; `None` for all that are not pinned."""
    exclusive: bool = False
    """Whether requests wait until it has ended."""
    yields: bool = False
    """Whether it ends early when a request arrives."""


class Cleanup:
    """A cleanup policy: determines when dirty pages are destaged, and how many.

    It cannot affect data or progress: after a plan that frees too few pages the policy is called
    again, and a write for which no page can be freed bypasses the cache.
    """

    pages: int
    """Capacity of the cache in pages."""
    free_min: int = 0
    """Pages that a write has to leave free, or else `on_demand` is called first. Read once, after
    ``__init__``."""
    idle_after_ns: int | None = None
    """Idle time after which `idle` is called, in ns. Read once, after ``__init__``."""

    def __init__(self, pages: int) -> None:
        self.pages = pages

    def on_demand(self, free: int, needed: int) -> Plan:
        """A write needs `needed` free pages, and there are only `free`."""
        raise NotImplementedError

    def background(self, free: int) -> Plan | None:
        """Called after every event while no cleanup is in progress."""
        return None

    def idle(self, free: int) -> Plan | None:
        """The cache has been idle for `idle_after_ns` and has dirty pages."""
        return None


class VictimPolicy:
    """A garbage collection policy: selects the blocks to collect.

    A pool is a set of blocks collected separately, usually a plane. A block is a candidate from
    `closed` until `removed`.

    >>> class Fifo(VictimPolicy):
    ...     def __init__(self, blocks, pages_per_block, pools):
    ...         super().__init__(blocks, pages_per_block, pools)
    ...         self.order = [{} for _ in range(pools)]
    ...     def closed(self, pool, block, valid):
    ...         self.order[pool][block] = None
    ...     def removed(self, pool, block):
    ...         del self.order[pool][block]
    ...     def choose(self, pool):
    ...         return next(iter(self.order[pool]), None)
    """

    blocks: int
    """Blocks of the device."""
    pages_per_block: int
    """Pages of a block."""
    pools: int
    """Number of pools."""

    def __init__(self, blocks: int, pages_per_block: int, pools: int) -> None:
        self.blocks = blocks
        self.pages_per_block = pages_per_block
        self.pools = pools

    def closed(self, pool: int, block: int, valid: int) -> None:
        """`block` is full and holds `valid` valid pages: it becomes a candidate."""
        raise NotImplementedError

    def invalidated(self, pool: int, block: int, valid: int) -> None:
        """A page of the candidate `block` was invalidated, and `valid` are left."""

    def removed(self, pool: int, block: int) -> None:
        """`block` is no longer a candidate."""
        raise NotImplementedError

    def choose(self, pool: int) -> int | None:
        """The victim among the candidates of `pool`; it stays a candidate.

        `None` without a candidate, or when collecting would gain nothing.
        """
        raise NotImplementedError


class Scheduler:
    """An I/O scheduler: orders a queue of requests.

    >>> class Fcfs(Scheduler):
    ...     def __init__(self):
    ...         self.queue = []
    ...     def push(self, request):
    ...         self.queue.append(request)
    ...     def pop(self, head):
    ...         return self.queue.pop(0)
    """

    needs_positioning: bool = False
    """Whether `pop` uses ``head.positioning_ns``, which is estimated for every queued request at
    every decision."""

    def push(self, request: Request) -> None:
        """`request` enters the queue."""
        raise NotImplementedError

    def pop(self, head: Head) -> Request:
        """Removes and returns the next request; called only while requests are queued."""
        raise NotImplementedError


_BASES: dict[str, type] = {
    "ftl": Ftl,
    "replacement": Replacement,
    "admission": Admission,
    "cleanup": Cleanup,
    "gc-policy": VictimPolicy,
    "scheduler": Scheduler,
}
_TYPES: dict[type, str] = {bool: "bool", int: "int", float: "float", str: "str"}


_REGISTERED: dict[tuple[str, str], type] = {}
"""Registered classes by category and name."""


def ftl(name: str) -> Callable[[_C], _C]:
    """Registers a subclass of `Ftl` under `name`, for use in scenarios of this process."""
    return lambda cls: register(cls, name)


def replacement(name: str) -> Callable[[_C], _C]:
    """Registers a subclass of `Replacement` under `name`, for use in scenarios of this process."""
    return lambda cls: register(cls, name)


def register(cls: _C, name: str | None = None) -> _C:
    """Registers a policy under `name`, or under its class name: ``MyFtl`` becomes ``my-ftl``.

    Replaces a class registered under that name before, for instance by a notebook cell.
    """
    category = _category(cls)
    name = _default_name(cls) if name is None else name
    if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", name):
        raise Error(f"{name!r} is not a valid name of a policy; use lower case, digits and dashes")
    path = f"{cls.__module__}:{cls.__qualname__}"
    summary = (cls.__doc__ or "A Python class.").strip().partition("\n")[0]
    _core.register(category, name, path, cls, summary, list(_parameters(cls)))
    _REGISTERED[category, name] = cls
    return cls


def name_of(cls: type) -> str:
    """The name of `cls`; registers it under a free name where it has none."""
    category = _category(cls)
    for (known, name), registered in _REGISTERED.items():
        if registered is cls and known == category:
            return name
    first = _default_name(cls)
    taken = {entry["name"] for entry in json.loads(_core.listing())[category]}
    names = itertools.chain([first], (f"{first}-{number}" for number in itertools.count(2)))
    name = next(name for name in names if name not in taken)
    register(cls, name)
    return name


_ALLOW_CODE = "HYBRIDSIM_ALLOW_CODE"
"""Set to 1 with permission; the environment is that of processes started from here as well."""


def allow_code(allowed: bool = True) -> None:
    """Lets scenarios load classes by import path, here and in processes that are started later.

    Such a scenario runs code: allow only those that you trust. Classes that are passed or
    registered need no permission.
    """
    os.environ[_ALLOW_CODE] = "1" if allowed else "0"


def allows_code() -> bool:
    """Whether `allow_code` was called, here or in the process that started this one."""
    return os.environ.get(_ALLOW_CODE) == "1"


def _default_name(cls: type) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", cls.__name__).strip("_").lower()


def resolve(category: str, path: str) -> type:
    """The class `path` names, as ``module:Class`` or ``file.py:Class``."""
    # Also where a scenario gives a registered class, whose name needs no permission, another path.
    if not allows_code():
        raise ValueError("loading a class by its path needs hybridsim.allow_code()")
    module_name, _, class_name = path.rpartition(":")
    if not module_name or not class_name:
        raise ValueError('write it as "module:Class" or "file.py:Class"')
    found: Any = _load(module_name)
    for step in class_name.split("."):
        if not hasattr(found, step):
            raise ValueError(f"{module_name} has no class {class_name}")
        found = getattr(found, step)
    if not isinstance(found, type) or not issubclass(found, _BASES[category]):
        raise ValueError(f"it is not a subclass of hybridsim.{_BASES[category].__name__}")
    return found


def _load(name: str) -> Any:
    if not name.endswith(".py"):
        try:
            return importlib.import_module(name)
        except ModuleNotFoundError as error:
            if error.name is not None and name.startswith(error.name):
                raise ValueError(f"there is no module {name}; {_searched()}") from error
            raise
    path = pathlib.Path(name).resolve()
    known = f"hybridsim_file_{path}"
    if known not in sys.modules:
        spec = importlib.util.spec_from_file_location(known, path)
        if spec is None or spec.loader is None or not path.exists():
            raise ValueError(f"there is no file {path}")
        module = importlib.util.module_from_spec(spec)
        sys.modules[known] = module
        try:
            spec.loader.exec_module(module)
        except BaseException:
            del sys.modules[known]
            raise
    return sys.modules[known]


def _searched() -> str:
    return "modules are searched in the current folder and on Python's path"


def _category(cls: type) -> str:
    for category, base in _BASES.items():
        if isinstance(cls, type) and issubclass(cls, base):
            return category
    bases = ", ".join(f"hybridsim.{base.__name__}" for base in _BASES.values())
    raise Error(f"{cls!r} is not a policy: derive it from one of {bases}")


def _parameters(cls: type) -> Iterable[tuple[str, str, str | None]]:
    """Keyword-only arguments of the constructor: name, type, default as TOML."""
    for parameter in inspect.signature(cls).parameters.values():
        if parameter.kind is not inspect.Parameter.KEYWORD_ONLY:
            continue
        default = parameter.default
        kind = _TYPES.get(type(default))
        if kind == "int" and default < 0:
            kind = "float"
        if kind is None:
            raise Error(
                f"{cls.__name__}: argument {parameter.name} needs a default that is a boolean, "
                "a number or a string"
            )
        yield parameter.name, kind, _toml.inline(default)
