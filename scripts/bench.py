"""Speed of whole runs: requests per second of one core and instructions per request.

Every scenario in benches/ is run several times on one processor; the median is shown, with the
range, because machines are noisy. Preconditioning is not part of the time. Instructions come from
valgrind, where it is installed, as the difference of two short runs, so start-up cancels out.
"""

import json
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import sys

PROGRAM = "target/release/hybridsim"
ROUNDS = 3
# Small devices and few requests: valgrind is some fifty times slower than the processor.
SHORT, LONG = 20_000, 60_000
SMALL_SSD = ["--set", "part.ssd.blocks_per_plane=64"]


def run(scenario: pathlib.Path, *options: str) -> dict:
    command = [PROGRAM, "run", str(scenario), "--json", "--progress", "never", *options]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return json.loads(done.stdout)


def instructions(scenario: pathlib.Path) -> str:
    if shutil.which("valgrind") is None:
        return "-"
    counts = []
    for requests in (SHORT, LONG):
        command = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", PROGRAM]
        command += ["run", str(scenario), "--json", "--progress", "never"]
        command += ["--set", f"workload.generator.requests={requests}"]
        command += SMALL_SSD if scenario.stem.startswith("ssd") else []
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        found = re.search(r"Collected : (\d+)", done.stderr)
        assert found, done.stderr
        counts.append(int(found.group(1)))
    return f"{(counts[1] - counts[0]) / (LONG - SHORT):,.0f}"


def main() -> None:
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    wanted = sys.argv[1:]
    print(
        f"{'case':<28} {'requests/s':>11} {'least':>11} {'most':>11} {'instructions':>13} "
        f"{'WA':>6} {'MiB':>6}"
    )
    for scenario in sorted(pathlib.Path("benches").glob("*.toml")):
        if wanted and scenario.stem not in wanted:
            continue
        runs = [run(scenario) for _ in range(ROUNDS)]
        speeds = [result["requests_per_wall_s"] for result in runs]
        amplification = runs[0]["totals"]["write_amplification"]
        memory = max(result["peak_rss_bytes"] or 0 for result in runs) / 2**20
        print(
            f"{runs[0]['title']:<28} {statistics.median(speeds):>11,.0f} {min(speeds):>11,.0f} "
            f"{max(speeds):>11,.0f} {instructions(scenario):>13} "
            f"{'-' if amplification is None else f'{amplification:.2f}':>6} {memory:>6.0f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
