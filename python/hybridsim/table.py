"""Tables of columns, for numpy, pandas and Arrow."""

from __future__ import annotations

import csv
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .errors import missing, path_text

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

__all__ = ["HeatMap", "Table"]


class Table(dict[str, "npt.NDArray[Any]"]):
    """Named columns of equal length, as numpy arrays.

    A dict, which the constructors of pandas, polars and Arrow tables take. Missing values are NaN,
    and null in `to_arrow` and for whatever uses the Arrow interface, such as DuckDB. ``units``
    has the units of columns, where they are known.

    >>> table = Table({"time_ns": [0, 1024], "reads": [3, None]})
    >>> table["reads"]
    array([ 3., nan])
    >>> len(table), table.rows
    (2, 2)
    """

    units: Mapping[str, str]

    def __init__(self, columns: Mapping[str, Any], units: Mapping[str, str] | None = None) -> None:
        self.units = dict(units or {})
        super().__init__({name: _array(values) for name, values in columns.items()})
        if len({len(values) for values in self.values()}) > 1:
            raise ValueError("the columns of a table have equal length")

    @property
    def rows(self) -> int:
        """Number of rows."""
        return next((len(values) for values in self.values()), 0)

    def __repr__(self) -> str:
        return f"Table({self.rows} rows: {', '.join(self)})"

    def to_numpy(self) -> npt.NDArray[Any]:
        """One structured array."""
        import numpy as np

        dtype = [(name, values.dtype) for name, values in self.items()]
        array = np.empty(self.rows, dtype)
        for name, values in self.items():
            array[name] = values
        return array

    def to_csv(self, path: str | os.PathLike[str]) -> None:
        """Writes comma-separated values, missing ones empty."""
        with open(path_text(path), "w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(self)
            for row in zip(*(values.tolist() for values in self.values()), strict=True):
                writer.writerow("" if cell != cell else cell for cell in row)

    def to_pandas(self) -> Any:
        """A `pandas.DataFrame`."""
        try:
            import pandas as pd
        except ImportError:
            raise missing("pandas", "pandas") from None
        return pd.DataFrame(self)

    def to_arrow(self) -> Any:
        """A `pyarrow.Table`."""
        try:
            import pyarrow as pa
        except ImportError:
            raise missing("arrow", "pyarrow") from None
        columns = {
            name: pa.array(values, from_pandas=values.dtype.kind == "f")
            for name, values in self.items()
        }
        return pa.table(columns)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.to_arrow().__arrow_c_stream__(requested_schema)


@dataclass(frozen=True, eq=False)
class HeatMap:
    """Counts by time and by latency or address."""

    time_ns: npt.NDArray[np.uint64]
    """Edges of the columns, one more than columns."""
    bounds: npt.NDArray[np.uint64]
    """Edges of the rows, one more than rows: ns, or bytes."""
    counts: npt.NDArray[np.int64]
    """Requests, by row and column."""

    @classmethod
    def unpack(cls, packed: Mapping[str, Any], bucket_ns: int) -> HeatMap:
        """Decodes a report's data, where a negative number -n stands for n zeros."""
        import numpy as np

        entries = np.asarray(packed["counts"], np.int64)
        zeros = entries < 0
        counts = np.repeat(np.where(zeros, 0, entries), np.where(zeros, -entries, 1))
        rows = max(len(packed["bounds"]) - 1, 1)
        by_row = counts.reshape(-1, rows).T
        width = bucket_ns * packed["buckets_per_column"]
        edges = np.arange(by_row.shape[1] + 1, dtype=np.uint64) * np.uint64(width)
        return cls(edges, np.asarray(packed["bounds"], np.uint64), by_row)


def _array(values: Any) -> npt.NDArray[Any]:
    import numpy as np

    if isinstance(values, np.ndarray):
        return values
    if any(value is None for value in values):
        return np.array([np.nan if value is None else value for value in values], np.float64)
    if values and isinstance(values[0], str):
        return np.array(values, object)
    if all(isinstance(value, int) for value in values):
        return np.array(values, np.uint64)
    return np.array(values, np.float64)
