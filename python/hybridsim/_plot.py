"""Charts with matplotlib. `Result.report` has more charts and does not need it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .errors import Error, missing, path_text

if TYPE_CHECKING:
    from .results import Result

__all__ = ["plot"]


def plot(results: Sequence[Result], path: str | os.PathLike[str] | None = None) -> Any:
    """Draws latency distribution, latency and throughput over time of one or more runs.

    Returns the `matplotlib.figure.Figure`; saves it to `path` when one is given.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise missing("plot", "matplotlib") from None
    if not results:
        raise Error("a plot needs at least one result")
    figure = Figure(figsize=(9, 9), layout="constrained")
    spread, over_time, work = figure.subplots(3)
    for result in results:
        points = result.latency_distribution()
        total = max(int(points["requests"].max(initial=0)), 1)
        latency_ms = points["latency_ns"] / 1e6
        spread.step(latency_ms, points["requests"] / total, where="post", label=result.title)
        series = result.series()
        time_s = series["time_ns"] / 1e9
        over_time.plot(time_s, series["latency_ns_p99"] / 1e6, label=f"{result.title}: p99")
        moved = series["read_bytes"] + series["write_bytes"]
        bucket_s = float(time_s[1]) if len(time_s) > 1 else 1.0
        work.plot(time_s, moved / bucket_s / 1e6, label=result.title)
    spread.set(xscale="log", xlabel="latency in ms", ylabel="share of requests", ylim=(0, 1))
    over_time.set(xlabel="simulated time in s", ylabel="latency in ms", yscale="log")
    work.set(xlabel="simulated time in s", ylabel="MB/s")
    for axes in (spread, over_time, work):
        axes.grid(alpha=0.3)
        axes.legend()
    if path is not None:
        figure.savefig(path_text(path))
    return figure
