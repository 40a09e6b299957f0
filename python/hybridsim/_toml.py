"""Writes plain values as TOML; the simulator reads it."""

from __future__ import annotations

import datetime
import math
import os
import re
from collections.abc import Iterator, Mapping
from typing import Any

from .errors import ArgumentError

_BARE = re.compile(r"[A-Za-z0-9_-]+")
_ESCAPES = {"\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r"}
_ESCAPES |= {'"': '\\"', "\\": "\\\\"}


def plain(value: Any) -> Any:
    """Converts `value` to strings, numbers, booleans, lists and dicts.

    Keys whose value is ``None`` are omitted.
    """
    if hasattr(value, "to_dict"):
        return value.to_dict()
    if isinstance(value, Mapping):
        table = {}
        for key, item in value.items():
            if not isinstance(key, str):
                raise ArgumentError(f"keys of a scenario are strings, not {key!r}")
            if item is not None:
                table[key] = plain(item)
        return table
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, datetime.timedelta):
        return f"{(value // datetime.timedelta(microseconds=1)) * 1000}ns"
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, type):
        from .plugins import name_of

        return name_of(value)
    if not isinstance(value, (str, bool, int, float)) and hasattr(value, "item"):
        value = value.item()  # a numpy scalar
    if not isinstance(value, (str, bool, int, float)):
        raise ArgumentError(f"a scenario cannot hold {value!r}")
    return value


def inline(value: Any) -> str:
    """A plain value on one line."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return _string(value)
    if isinstance(value, float):
        if math.isnan(value):
            return "nan"
        return repr(value)
    if isinstance(value, int):
        return str(value)
    if isinstance(value, list):
        return f"[{', '.join(map(inline, value))}]"
    pairs = ", ".join(f"{_key(key)} = {inline(item)}" for key, item in value.items())
    return f"{{ {pairs} }}" if pairs else "{}"


def document(table: dict[str, Any]) -> str:
    """A plain table as the text of a TOML file."""
    return "\n".join(_sections(table, ())).lstrip("\n") + "\n"


def sets(overrides: Mapping[str, Any]) -> list[str]:
    """Overrides, nested or with dotted keys, as ``key.path=value`` options."""
    return [f"{path}={inline(value)}" for path, value in _leaves(overrides, "")]


def _leaves(table: Mapping[str, Any], prefix: str) -> Iterator[tuple[str, Any]]:
    for key, value in table.items():
        if not isinstance(key, str) or not key or "=" in key:
            raise ArgumentError(
                f"overrides have keys such as 'component.ssd.channels', not {key!r}"
            )
        path = f"{prefix}{key}"
        if value is None:
            raise ArgumentError(f"{path}: None does not remove a key; omit it instead")
        # A table with a kind is a policy with its parameters: one value.
        if isinstance(value, Mapping) and "kind" not in value:
            yield from _leaves(value, f"{path}.")
        else:
            yield path, plain(value)


def _sections(table: dict[str, Any], path: tuple[str, ...]) -> Iterator[str]:
    values = {key: item for key, item in table.items() if not isinstance(item, dict)}
    tables = {key: item for key, item in table.items() if isinstance(item, dict)}
    if path and (values or not tables):
        yield f"\n[{'.'.join(map(_key, path))}]"
    for key, item in values.items():
        yield f"{_key(key)} = {inline(item)}"
    for key, item in tables.items():
        yield from _sections(item, (*path, key))


def _key(key: str) -> str:
    return key if _BARE.fullmatch(key) else _string(key)


def _string(text: str) -> str:
    return '"' + "".join(_ESCAPES.get(char) or _visible(char) for char in text) + '"'


def _visible(char: str) -> str:
    code = ord(char)
    if 0xD800 <= code < 0xE000:
        raise ArgumentError("a scenario cannot hold half a surrogate pair")
    return f"\\u{code:04x}" if code < 0x20 or code == 0x7F else char
