"""``python -m hybridsim._optimize`` serves the command ``hybridsim optimize``."""

from __future__ import annotations

import json
import os
import pathlib
import sys
import tomllib
from typing import Any

from .errors import Error
from .search import Search, optimize
from .sweeps import Range


def _value(text: str) -> Any:
    """A value in TOML, or else text."""
    try:
        return tomllib.loads(f"v = {text}")["v"]
    except tomllib.TOMLDecodeError:
        return text


def _search(request: dict[str, Any]) -> Search:
    vary: dict[str, Any] = {}
    for key, *values in request["vary"]:
        if len(values) == 1:
            vary[key] = [_value(text) for text in values[0]]
        else:
            vary[key] = Range(_value(values[0]), _value(values[1]), values[2])
    pairs = (text.partition("=") for text in request["sets"])
    options = {
        "overrides": {key: _value(value) for key, _, value in pairs},
        "seeds": request["seeds"],
        "executor": request["dask"],
    }
    if request["out"] is not None:
        folder = pathlib.Path(request["out"])
        folder.mkdir(parents=True, exist_ok=True)
        options |= {"store": folder / "points", "storage": folder / "search.journal"}
    prices = dict(text.split("=", 1) for text in request["prices"] if "=" in text)
    if len(prices) < len(request["prices"]):
        raise Error("--price: write it as path=price")
    return optimize(
        request["scenario"],
        vary,
        request["objectives"],
        request["trace"],
        constraints=request["constraints"],
        prices=prices,
        trials=request["trials"],
        parts=request["parts"],
        **options,
    )


def _lines(search: Search) -> list[str]:
    """The front, or the best of one objective, for reading."""
    names = [objective.path for objective in search.objectives]
    keys = list(search.trials[0].values)
    rows = [[*(key.rsplit(".", 1)[-1] for key in keys), *names]]
    for trial in search.front:
        numbers = [f"{value:,.6g}" for value in trial.objectives or ()]
        rows.append([*(str(trial.values[key]) for key in keys), *numbers])
    widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]))]
    table = [
        "  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True))
        for row in rows
    ]
    feasible = sum(trial.feasible for trial in search.trials)
    what = "Pareto front" if len(names) > 1 else "best"
    return [*table, "", f"{what} of {len(search.trials)} trials, {feasible} satisfy all bounds"]


def main() -> int:
    """Reads the request from standard input and prints the search."""
    request = json.load(sys.stdin)
    # As the command, find policies in the current folder.
    sys.path.insert(0, os.getcwd())
    try:
        search = _search(request)
        if request["out"] is not None:
            folder = pathlib.Path(request["out"])
            search.table().to_csv(folder / "search.csv")
            if any(trial.objectives is not None for trial in search.trials):
                search.report(folder / "search.html", "Search")
        feasible = any(trial.feasible for trial in search.trials)
        if request["json"]:
            trials = [
                {
                    "values": dict(trial.values),
                    "objectives": trial.objectives,
                    "feasible": trial.feasible,
                    "front": trial in search.front,
                    "error": trial.error,
                }
                for trial in search.trials
            ]
            best = dict(search.best.values) if feasible else None
            print(json.dumps({"best": best, "trials": trials}, indent=2))
        else:
            print("\n".join(_lines(search)))
        if not feasible:
            _ = search.best  # Raises with the reason.
    except (Error, ImportError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
