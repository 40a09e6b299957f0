"""Policies written in Python.

A translation layer derives from `Ftl`, a cache replacement policy from `Replacement`. A class is
used in a scenario in one of three ways:

- as a value: ``Part("ssd", ftl=MyFtl)`` or ``overrides={"component.ssd.ftl": MyFtl}``;
- by a name of its own, after ``@hybridsim.ftl("my-ftl")``: ``ftl = "my-ftl"``;
- by its import path: ``ftl = { kind = "python", class = "module:MyFtl" }``, which also works on the
  command line; ``"folder/file.py:MyFtl"`` names a file.

Keyword-only arguments of ``__init__`` with a default that is a truth value, number or string are
parameters of the policy: ``ftl = { kind = "my-ftl", threshold = 4 }``. By import path they are
given as JSON: ``options = '{"threshold": 4}'``.

An exception in a policy ends the run; `hybridsim.run` raises a `RunError` with it as the cause.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import itertools
import json
import pathlib
import re
import sys
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, TypeVar

from . import _core, _toml
from .errors import Error

if TYPE_CHECKING:
    from ._core import Device, Flash

__all__ = ["Ftl", "Replacement", "ftl", "name_of", "register", "replacement", "resolve"]

_C = TypeVar("_C", bound=type)


class Ftl:
    """A translation layer: decides where logical pages go.

    It knows no time. It is asked to read, write or trim one logical page and calls the methods of
    `flash` for everything it does; the device times the operations afterwards. Logical pages,
    physical pages and blocks are numbers counted from 0; `device` knows how they belong together.

    `flash` keeps the rules of NAND: a page is programmed once after its block was erased, in
    ascending order, and a block is erased when nothing in it is valid. Who breaks a rule gets a
    `FlashRuleBroken` at that line.

    Refuse a device that cannot work, such as one with too little spare space, by a `ValueError` in
    ``__init__``.
    """

    device: Device
    """The shape of the device, and the logical pages it offers."""

    def __init__(self, device: Device) -> None:
        self.device = device

    def prepare(self, flash: Flash) -> None:
        """Brings fresh flash into the state the layer starts from; takes no time."""

    def read(self, lpn: int, flash: Flash) -> None:
        """Reads `lpn`: one ``flash.host_read``, or none when it holds no data."""
        raise NotImplementedError

    def write(self, lpn: int, flash: Flash) -> None:
        """Writes `lpn`: exactly one ``flash.host_program``, and what it takes to make room.

        ``flash.request_pages`` is how many pages the whole request touches. Raise `DeviceFull` or
        `DeviceWornOut` when there is no room.
        """
        raise NotImplementedError

    def trim(self, lpn: int, flash: Flash) -> None:
        """`lpn` is no longer needed and may read as never written."""
        raise NotImplementedError

    def holds(self, lpn: int) -> bool:
        """Whether `lpn` holds data, so that a partial write has to read it first."""
        raise NotImplementedError

    def idle(self, flash: Flash) -> bool:
        """One small step of background work; false when there is none."""
        return False

    def mapping_ram_bytes(self) -> int:
        """Bytes of controller memory the tables need; 4 per logical page unless overridden."""
        return 4 * self.device.exported_pages


class Replacement:
    """A cache replacement policy: which cached pages go first.

    Pages are numbers. The cache itself knows what is in it; the policy only orders.

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
    """Pages the cache has room for."""

    def __init__(self, pages: int) -> None:
        self.pages = pages

    def update(self, page: int, access: str) -> None:
        """`page` was used: ``"read"``, ``"write"``, or ``"add"`` when it came into the cache."""
        raise NotImplementedError

    def remove(self, page: int) -> None:
        """`page` left the cache, or may not leave it any more."""
        raise NotImplementedError

    def victims(self) -> Iterable[int]:
        """The pages in the order they should go; as many are taken as are needed.

        They stay known until `remove`.
        """
        raise NotImplementedError


_BASES: dict[str, type] = {"ftl": Ftl, "replacement": Replacement}
_TYPES: dict[type, str] = {bool: "bool", int: "int", float: "float", str: "str"}


_HOLDERS: dict[tuple[str, str], type] = {}
"""Registered classes by slot and name."""


def ftl(name: str) -> Callable[[_C], _C]:
    """Registers a subclass of `Ftl` under `name`, for use in scenarios of this process."""
    return lambda cls: register(cls, name)


def replacement(name: str) -> Callable[[_C], _C]:
    """Registers a subclass of `Replacement` under `name`, for use in scenarios of this process."""
    return lambda cls: register(cls, name)


def register(cls: _C, name: str | None = None) -> _C:
    """Registers a policy under `name`, or under its class name: ``MyFtl`` becomes ``my-ftl``.

    A class registered before under that name gives way, as when a notebook's cell runs again.
    """
    slot = _slot(cls)
    name = _default_name(cls) if name is None else name
    if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", name):
        raise Error(f"{name!r} is no name for a policy; use lower case, digits and dashes")
    path = f"{cls.__module__}:{cls.__qualname__}"
    summary = (cls.__doc__ or "A Python class.").strip().partition("\n")[0]
    _core.register(slot, name, path, cls, summary, list(_parameters(cls)))
    _HOLDERS[slot, name] = cls
    return cls


def name_of(cls: type) -> str:
    """The name `cls` is registered under; registers it under a free one where it is not."""
    slot = _slot(cls)
    for (held_slot, name), holder in _HOLDERS.items():
        if holder is cls and held_slot == slot:
            return name
    first = _default_name(cls)
    taken = {entry["name"] for entry in json.loads(_core.listing())[slot]}
    names = itertools.chain([first], (f"{first}-{number}" for number in itertools.count(2)))
    name = next(name for name in names if name not in taken)
    register(cls, name)
    return name


def _default_name(cls: type) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", cls.__name__).strip("_").lower()


def resolve(slot: str, path: str) -> type:
    """The class `path` names, as ``module:Class`` or ``file.py:Class``."""
    module_name, _, class_name = path.rpartition(":")
    if not module_name or not class_name:
        raise ValueError('write it as "module:Class" or "file.py:Class"')
    found: Any = _load(module_name)
    for step in class_name.split("."):
        if not hasattr(found, step):
            raise ValueError(f"{module_name} has no class {class_name}")
        found = getattr(found, step)
    if not isinstance(found, type) or not issubclass(found, _BASES[slot]):
        raise ValueError(f"it is not a subclass of hybridsim.{_BASES[slot].__name__}")
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
    return "modules are found in the current folder and where Python finds them"


def _slot(cls: type) -> str:
    for slot, base in _BASES.items():
        if isinstance(cls, type) and issubclass(cls, base):
            return slot
    raise Error(f"{cls!r} is no policy: derive it from hybridsim.Ftl or hybridsim.Replacement")


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
                f"{cls.__name__}: argument {parameter.name} needs a default that is a truth value, "
                "a number or a string"
            )
        yield parameter.name, kind, _toml.inline(default)
