#!/usr/bin/env python3
"""Measures what a sweep costs beyond its simulations, and what a second worker gains.

    scripts/sweep_speed.py --hybridsim target/release/hybridsim

Each round runs a sweep of 64 small points with one worker and with two, in alternating order, so
that other load on the machine meets both. Printed are medians over the rounds: the time of the
sweep by the sum of its simulations (target: at most 1.1), and the time of one worker by that of two
(target: at least 1.8). Run it on an idle machine.
"""

import argparse
import csv
import pathlib
import statistics
import subprocess
import tempfile
import time

SCENARIO = """
[workload]
generator = { kind = "zipf", requests = 50_000, read = 0.5, interarrival_ms = 1.0 }
[component.ssd]
preset = "sata-ssd"
blocks_per_plane = 32
"""
SEEDS = 64


def sweep(binary: str, folder: pathlib.Path, jobs: int) -> tuple[float, float]:
    """Seconds of a sweep with so many workers, and the sum of those of its simulations."""
    scenario = folder / "small.toml"
    scenario.write_text(SCENARIO)
    out = folder / "out"
    seeds = ",".join(str(seed) for seed in range(1, SEEDS + 1))
    command = [binary, "sweep", str(scenario), "--vary", f"run.seed={seeds}", "--jobs", str(jobs)]
    begin = time.monotonic()
    subprocess.run([*command, "--out", str(out)], check=True, capture_output=True)
    seconds = time.monotonic() - begin
    with open(out / "sweep.csv", newline="") as table:
        alone = [float(row["wall_s"]) for row in csv.DictReader(table)]
    if len(alone) != SEEDS:
        raise SystemExit(f"{len(alone)} of {SEEDS} points are in the table")
    return seconds, sum(alone)


def main() -> None:
    """Runs the rounds and prints the medians."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--hybridsim", default="target/release/hybridsim")
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    overhead, gain = [], []
    for at in range(options.rounds):
        times = {}
        for jobs in (1, 2) if at % 2 == 0 else (2, 1):
            with tempfile.TemporaryDirectory() as folder:
                times[jobs] = sweep(options.hybridsim, pathlib.Path(folder), jobs)
        overhead.append(times[1][0] / times[1][1])
        gain.append(times[1][0] / times[2][0])
        print(f"round {at + 1}: {overhead[-1]:.3f} of its simulations, {gain[-1]:.2f} by two")
    print(f"sweep by the sum of its simulations: {statistics.median(overhead):.3f} (target 1.1)")
    print(f"one worker by two: {statistics.median(gain):.2f} (target 1.8)")


if __name__ == "__main__":
    main()
