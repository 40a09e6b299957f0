"""Inspecting, converting and reading traces."""

from __future__ import annotations

import functools
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from . import _core
from ._lazy import lazily
from .errors import ArgumentError, call, missing, path_text
from .results import _duration, _size

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

__all__ = ["DTYPE", "Converted", "TraceInfo", "TraceReader", "convert", "read_trace", "trace_info"]

_FIELDS = [
    ("time_ns", "<u8"),
    ("lba", "<u8"),
    ("response_ns", "<i8"),
    ("sectors", "<u4"),
    ("volume", "<u2"),
    ("flags", "<u2"),
    ("op", "u1"),
]

DTYPE: np.dtype[Any]
"""Layout of a request: arrival since the first in ns, first sector (512 bytes), the response time
that was measured when the trace was taken in ns (-1 where the trace has none), length in sectors,
volume, flags (bits: 1 synchronous, 2 metadata, 4 read-ahead, 8 force unit access, 16 pinned, 32
background, 128 zone append; and 256 times the placement handle), operation (an index into
`hybridsim.events.OPS`)."""


@functools.cache
def _dtype() -> np.dtype[Any]:
    """`DTYPE`; the package is imported without numpy."""
    import numpy as np

    return np.dtype(_FIELDS)


if not TYPE_CHECKING:
    __getattr__, __dir__ = lazily(__name__, DTYPE=_dtype)


@dataclass(frozen=True, slots=True)
class TraceInfo:
    """Format and profile of a trace."""

    format: str
    """Format, recognised by content."""
    packing: str | None
    """Compression, such as ``gzip``."""
    also: tuple[str, ...]
    """Other formats that could read it."""
    warnings: tuple[dict[str, Any], ...]
    """Warnings: ``place`` of the first (line or record), ``count`` and ``message``."""
    profile: dict[str, Any]
    """The profile of ``hybridsim trace info --json``: counts, sizes, footprint, locality."""

    def __repr__(self) -> str:
        profile = self.profile
        parts = [f"{profile['requests']:,} requests"]
        if profile["has_times"]:
            parts.append(f"span {_duration(profile['span_ns'])}")
        if profile["requests"]:
            parts.append(f"reads {profile['read_fraction']:.1%}")
        parts.append(f"footprint {_size(profile['footprint_bytes'])}")
        return f"<TraceInfo of format {self.format!r}: {', '.join(parts)}>"


@dataclass(frozen=True, slots=True)
class Converted:
    """Result of a conversion."""

    format: str
    """The format written."""
    records: int
    """Requests written."""
    left_out: int
    """Requests the format cannot represent."""
    loses: tuple[str, ...]
    """Attributes of requests that the format does not store."""
    warnings: tuple[dict[str, Any], ...]
    """Warnings about the source, as in `TraceInfo`."""


class TraceReader(Iterator["npt.NDArray[Any]"]):
    """Reads a trace in chunks: structured arrays of `DTYPE`.

    Memory does not grow with the trace. pandas, polars and others read it as a stream through the
    Arrow interface (needs pyarrow).
    """

    def __init__(
        self, path: str | os.PathLike[str], format: str | None = None, chunk: int = 65_536
    ) -> None:
        if not isinstance(chunk, int) or chunk < 1:
            raise ArgumentError(f"a chunk has at least one request, not {chunk!r}")
        self._core = call(_core.TraceReader, path_text(path), format)
        self._chunk = chunk

    def __iter__(self) -> TraceReader:
        return self

    def __next__(self) -> npt.NDArray[Any]:
        raw = self._core.next_chunk(self._chunk)
        if not raw:
            raise StopIteration
        import numpy as np

        return np.frombuffer(raw, _dtype())

    @property
    def format(self) -> str:
        """The format, recognised by content unless given."""
        return self._core.format

    @property
    def packing(self) -> str | None:
        """Compression, such as ``gzip``."""
        return self._core.packing

    @property
    def has_times(self) -> bool:
        """Whether its requests carry arrival times."""
        return self._core.has_times

    @property
    def volumes(self) -> list[str]:
        """Names of the volumes read so far, by number."""
        return self._core.volumes

    @property
    def progress(self) -> float | None:
        """Share of the file read, 0 to 1, where that is known."""
        return self._core.progress

    @property
    def warnings(self) -> list[str]:
        """Warnings so far."""
        return self._core.warnings

    def read_all(self) -> npt.NDArray[Any]:
        """The rest of the trace in one array."""
        import numpy as np

        chunks = list(self)
        return np.concatenate(chunks) if chunks else np.empty(0, _dtype())

    def to_arrow(self) -> Any:
        """The rest of the trace as a `pyarrow.RecordBatchReader`, read on demand."""
        try:
            import pyarrow as pa
        except ImportError:
            raise missing("arrow", "pyarrow") from None
        import numpy as np

        dtype = _dtype()
        names = list(dtype.names or ())
        types = {name: pa.from_numpy_dtype(dtype[name]) for name in names}

        def batch(chunk: npt.NDArray[Any]) -> Any:
            columns = {name: pa.array(np.ascontiguousarray(chunk[name])) for name in names}
            absent = chunk["response_ns"] < 0
            columns["response_ns"] = pa.array(chunk["response_ns"].copy(), mask=absent)
            return pa.RecordBatch.from_pydict(columns)

        schema = pa.schema(list(types.items()))
        return pa.RecordBatchReader.from_batches(schema, map(batch, self))

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.to_arrow().__arrow_c_stream__(requested_schema)


def read_trace(
    path: str | os.PathLike[str], *, format: str | None = None, chunk: int = 65_536
) -> TraceReader:
    """Reads a trace in chunks of `chunk` requests.

    The format is recognised by content unless `format` names one
    (``hybridsim.list("trace-format")``).
    """
    return TraceReader(path, format, chunk)


def trace_info(path: str | os.PathLike[str], *, format: str | None = None) -> TraceInfo:
    """Reads a trace to its end and returns its profile."""
    info = json.loads(call(_core.trace_info, path_text(path), format))
    info["also"], info["warnings"] = tuple(info["also"]), tuple(info["warnings"])
    return TraceInfo(**info)


def convert(
    source: str | os.PathLike[str],
    target: str | os.PathLike[str],
    *,
    to: str | None = None,
    format: str | None = None,
) -> Converted:
    """Converts the trace `source` to the file `target`.

    The format written is `to` (``hybridsim.list("trace-writer")``), or follows from the suffix of
    `target`. `format` is the format of the source, where its content is ambiguous.
    """
    done = json.loads(call(_core.convert, path_text(source), path_text(target), to, format))
    done["loses"], done["warnings"] = tuple(done["loses"]), tuple(done["warnings"])
    return Converted(**done)
