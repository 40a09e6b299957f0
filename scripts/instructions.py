#!/usr/bin/env python3
"""Shows where the instructions of a request go, by crate.

    scripts/instructions.py PROGRAM [WORD...]      only cases whose names contain one of the words

Cases are those of bench.py that simulate. Each runs a short and a long workload under callgrind,
and the difference is divided by the requests. Inlined code counts where it was written, that of
the standard library where it was called. The program needs line tables, as `--profile dist` has.
"""

import re
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

import bench

FEW = 20_000
LINE = re.compile(r"\s*([\d,]+) \([ \d.]+%\)\s+(\S+?):(.*)")
CRATE = re.compile(r"/(?:crates|tools)/([\w-]+)/src/")
SYMBOL = re.compile(r"hybridsim_(\w+)::")


def crate_of(file, function):
    if found := CRATE.search(file):
        return found[1]
    if found := SYMBOL.search(function):
        return found[1].replace("_", "-")
    return "libraries"


def by_crate(command, folder):
    counts = folder / "callgrind"
    tool = ["valgrind", "--quiet", "--tool=callgrind", f"--callgrind-out-file={counts}"]
    bench.run([*tool, *command])
    annotate = ["callgrind_annotate", "--threshold=100", "--auto=no", counts]
    text = subprocess.run(annotate, check=True, capture_output=True, text=True).stdout
    crates = Counter()
    for line in text.splitlines():
        if found := LINE.match(line):
            crates[crate_of(found[2], found[3])] += int(found[1].replace(",", ""))
    if not crates:
        sys.exit("callgrind_annotate reported no functions")
    return crates


def profile(program, folder, case):
    name, (_, text), generator, _, *given = case
    verb = bench.COUNT if bench.COUNT in given else "run"
    options = [it for it in given if it != bench.COUNT]

    def command(count):
        path = bench.scenario(folder, text, generator, count)
        return [program, verb, *options, "--no-cache", "--json", "--progress", "never", path]
    crates = by_crate(command(3 * FEW), folder)
    crates.subtract(by_crate(command(FEW), folder))
    each = [(count / (2 * FEW), crate) for crate, count in crates.items()]
    parts = [f"{crate} {count:,.0f}" for count, crate in sorted(each, reverse=True) if count >= 5]
    print(f"| {name} | {sum(count for count, _ in each):,.0f} | {', '.join(parts)} |", flush=True)


def main():
    program = Path(sys.argv[1]).resolve()
    print("| case | instructions | of these |\n|---|---:|---|")
    with tempfile.TemporaryDirectory() as folder:
        for case in bench.CASES:
            if bench.wanted(case[0]) and bench.FOLDER not in case[4:]:
                profile(program, Path(folder), case)


if __name__ == "__main__":
    main()
