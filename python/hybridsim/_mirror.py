"""JSON documents as dataclasses."""

from __future__ import annotations

import functools
import types
import typing
from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from typing import Any, TypeVar

_T = TypeVar("_T")


@functools.cache
def _makers(cls: Any) -> dict[str, tuple[Callable[[Any], Any], bool]]:
    """For every field of a dataclass: its conversion from JSON, and whether it may be absent."""
    hints = typing.get_type_hints(cls)
    makers = {}
    for known in fields(cls):
        absent = known.default is not MISSING or known.default_factory is not MISSING
        makers[known.name] = (_maker(hints[known.name]), absent)
    return makers


def _maker(hint: Any) -> Callable[[Any], Any]:
    if isinstance(hint, types.UnionType):
        inner = next(part for part in hint.__args__ if part is not types.NoneType)
        make = _maker(inner)
        return lambda value: None if value is None else make(value)
    if isinstance(hint, type) and is_dataclass(hint):
        return lambda value: build(hint, value)
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is tuple:
        return tuple
    if origin is not None and issubclass(origin, Mapping):
        make_item = _maker(arguments[1])
        return lambda value: {key: make_item(item) for key, item in value.items()}
    if hint is float:
        return float
    return lambda value: value


def build(cls: type[_T], document: Mapping[str, Any], **more: Any) -> _T:
    """A dataclass from a JSON object; unknown keys remain in `Result.to_dict`."""
    values = dict(more)
    for name, (make, may_be_absent) in _makers(typing.cast(Any, cls)).items():
        if name in document:
            values[name] = make(document[name])
        elif name not in values and not may_be_absent:
            raise KeyError(name)
    return cls(**values)
