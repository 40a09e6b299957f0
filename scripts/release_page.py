"""Writes the page of errors and speed of a release, and the figures of the article in joss/.

    release_page.py PROGRAM FOLDER [SOURCE...]

Reproduces the sources (all without arguments, which takes hours), measures the speed as `make
bench` does, and writes FOLDER/benchmark.md, FOLDER/reproduction.json and, with the sources `disk`
and `ssd`, the figures. HYBRIDSIM_DATA names the folder of the measured data; --no-speed leaves the
speed out. Needs matplotlib.
"""

import argparse
import collections
import datetime
import json
import os
import platform
import re
import statistics
import subprocess
import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot

VERDICTS = ("reproduced", "differs", "undecided", "not-comparable", "given")
# The page of disks has the values of DiskSim beside what was published.
DEMERITS = re.compile(
    r"^\| ([A-Z][^|]+?) \| \**([\d.]+)\** \| ([\d.]+) \| ([\d.]+) \|", re.MULTILINE
)
# Fill levels that the drive was fitted to, in per cent (docs/models/measured-ssds.md).
FITTED = (50, 80, 100)
FILL = re.compile(r"^Micron 7450 MAX 800GB: uniform writes to (\d+) % of it, write amplification$")


def claims(rows):
    """The verdicts of each source, and of each figure or table its error where it has numbers."""
    lines = [f"| source | {' | '.join(VERDICTS)} |", "|---|" + "---:|" * len(VERDICTS)]
    sources = collections.defaultdict(collections.Counter)
    errors = collections.defaultdict(list)
    for row in rows:
        sources[row["experiment"].split("/")[0]][row["verdict"]] += 1
        published, ours = row["published"], row["ours"]
        is_value = row["verdict"] in ("reproduced", "differs") and row["tolerance"].startswith("±")
        if is_value and published and ours is not None:
            errors[row["experiment"]].append(abs(ours / published - 1))
    for source, counts in sources.items():
        lines.append(f"| {source} | {' | '.join(str(counts[it]) for it in VERDICTS)} |")
    lines += ["", "| figure or table | values | median error | largest |", "|---|---:|---:|---:|"]
    for experiment, found in errors.items():
        middle, most = statistics.median(found), max(found)
        lines.append(f"| `{experiment}` | {len(found)} | {middle:.1%} | {most:.1%} |")
    return lines


def demerits(rows, picture):
    """The demerit of each disk, beside DiskSim's and the floor."""
    ours = {
        row["claim"].split(":")[0]: row["ours"]
        for row in rows
        if row["experiment"] == "disk/drives" and ": rms demerit" in row["claim"]
    }
    if not ours:
        return
    page = (Path(__file__).parent.parent / "docs" / "models" / "disk.md").read_text()
    table = page.split("| drive | hybridsim | DiskSim | floor")[1].split("\n\n")[0]
    others = {it[0]: (float(it[2]), float(it[3])) for it in DEMERITS.findall(table)}
    figure, axes = pyplot.subplots(figsize=(6.4, 3), layout="constrained")
    places = range(len(ours))
    disksim, floor = ([others[name][at] for name in ours] for at in (0, 1))
    axes.plot(places, disksim, "s", color="#888888", label="DiskSim 4.0")
    axes.plot(places, list(ours.values()), "o", color="#1f6fb4", label="hybridsim")
    axes.plot(places, floor, "_", color="#333333", markersize=14, label="floor")
    axes.set_xticks(places, [name.replace(" ", "\n", 1) for name in ours], fontsize=7)
    axes.set_ylabel("rms demerit (ms)")
    axes.set_ylim(0)
    axes.legend(frameon=False)
    figure.savefig(picture, dpi=200)


def amplification(rows, picture):
    """Write amplification by fill level, measured and simulated."""
    found = [
        (int(match[1]), row["published"], row["ours"], int(match[1]) in FITTED)
        for row in rows
        if (match := FILL.match(row["claim"]))
    ]
    if not found:
        return
    fill, measured, ours, given = zip(*found, strict=True)
    figure, axes = pyplot.subplots(figsize=(4.8, 3), layout="constrained")
    axes.plot(fill, measured, "-", color="#888888", label="measured")
    for is_given, face in ((True, "#1f6fb4"), (False, "white")):
        points = [
            (x, y) for x, y, fitted in zip(fill, ours, given, strict=True) if fitted == is_given
        ]
        label = "simulated, fitted" if is_given else "simulated, predicted"
        axes.plot(
            *zip(*points, strict=True), "o", color="#1f6fb4", markerfacecolor=face, label=label
        )
    axes.set_xlabel("share of the capacity that is written (%)")
    axes.set_ylabel("write amplification")
    axes.legend(frameon=False)
    figure.savefig(picture, dpi=200)


def main():
    """Runs everything, then writes the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("sources", nargs="*")
    parser.add_argument("--no-speed", action="store_true")
    args = parser.parse_args()
    if not os.environ.get("HYBRIDSIM_DATA"):
        sys.exit("HYBRIDSIM_DATA has to name the folder of the measured data")
    args.folder.mkdir(parents=True, exist_ok=True)
    program = args.program.resolve()
    rows = []
    for source in args.sources or ["all"]:
        command = [program, "reproduce", source, "--json", "--progress", "never"]
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE)
        rows += json.loads(done.stdout)["rows"]
    (args.folder / "reproduction.json").write_text(json.dumps({"rows": rows}, indent=1) + "\n")
    version = subprocess.check_output([program, "--version"], text=True).strip()
    page = [f"# Errors and speed of {version}", ""]
    page += [
        f"Of {datetime.date.today()}, on {os.cpu_count()} processors ({platform.machine()}).",
        "",
    ]
    page += ["## Published figures and measured drives", "", *claims(rows), ""]
    if not args.no_speed:
        bench = [sys.executable, Path(__file__).parent / "bench.py", program]
        page += ["## Speed", "", subprocess.check_output(bench, text=True)]
    (args.folder / "benchmark.md").write_text("\n".join(page))
    demerits(rows, args.folder / "demerits.png")
    amplification(rows, args.folder / "amplification.png")


if __name__ == "__main__":
    main()
