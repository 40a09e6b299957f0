#!/usr/bin/env python3
"""Prints the share of branches that random systems and the fuzzing corpora reach, by crate.

    scripts/branches.py [SYSTEMS]      2,000 by default

Needs a nightly compiler with its tools (rustup toolchain install nightly --component llvm-tools);
stable ones do not count branches. Code that is not linked, and tests, are not counted.
"""

import collections
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TARGET = ROOT / "target/branches"
# With a target of its own, build scripts and macros are not instrumented.
TRIPLE = "x86_64-unknown-linux-gnu"
FLAGS = "-Cinstrument-coverage -Zcoverage-options=branch"


def output(*command):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.strip()


def build():
    # Optimised with counters, the folds of hybridsim-observe take over ten minutes to compile.
    command = ["cargo", "+nightly", "build", "--quiet", "--locked", "--target", TRIPLE,
               "--config", "profile.dev.package.hybridsim-observe.opt-level=0",
               "--package", "hybridsim-fuzz", "--example", "search", "--example", "corpora"]
    environment = {**os.environ, "CARGO_TARGET_DIR": str(TARGET), "RUSTFLAGS": FLAGS}
    subprocess.run(command, cwd=ROOT, env=environment, check=True)
    return [TARGET / TRIPLE / "debug/examples" / name for name in ("search", "corpora")]


def run(number, command):
    """Runs a program; returns its counts."""
    counts = TARGET / f"run-{number}.profraw"
    environment = {**os.environ, "LLVM_PROFILE_FILE": str(counts)}
    subprocess.run(command, cwd=ROOT, env=environment, check=True, stdout=subprocess.DEVNULL)
    return counts


def reached(tools, programs, runs):
    """Branches by crate, reached in any of the runs and in all."""
    merged = TARGET / "runs.profdata"
    output(tools / "llvm-profdata", "merge", "--sparse", *runs, "-o", merged)
    others = [word for program in programs[1:] for word in ("--object", program)]
    export = output(tools / "llvm-cov", "export", "--summary-only", programs[0], *others,
                    f"--instr-profile={merged}")
    crates = collections.defaultdict(lambda: [0, 0])
    for file in json.loads(export)["data"][0]["files"]:
        path = Path(file["filename"])
        if not path.is_relative_to(ROOT):
            continue
        branches = file["summary"]["branches"]
        crate = crates["/".join(path.relative_to(ROOT).parts[:2])]
        crate[0] += branches["covered"]
        crate[1] += branches["count"]
    return crates


def corpora():
    """The unpacked inputs that fuzzing found."""
    folder = TARGET / "corpora"
    shutil.rmtree(folder, ignore_errors=True)
    for archive in (ROOT / "tools/fuzz/corpus").iterdir():
        target = folder / archive.name.split(".")[0]
        target.mkdir(parents=True, exist_ok=True)
        output("tar", "--zstd", "-xf", archive, "-C", target)
    return folder


def main():
    systems = int(sys.argv[1]) if len(sys.argv) > 1 else 2000
    libraries = output("rustc", "+nightly", "--print", "target-libdir", "--target", TRIPLE)
    tools = Path(libraries).parent / "bin"
    programs = build()
    commands = [[programs[0], str(systems)], [programs[1], corpora()]]
    runs = [run(number, command) for number, command in enumerate(commands)]
    alone = reached(tools, programs, runs[:1])
    together = reached(tools, programs, runs)
    for crates in (alone, together):
        crates["all"] = [sum(column) for column in zip(*crates.values(), strict=True)]
    print(f"| crate | branches | {systems:,} systems | and corpora |")
    print("|---|---:|---:|---:|")
    for crate, (by_systems, count) in sorted(alone.items()):
        if count:
            shares = (100 * by_systems / count, 100 * together[crate][0] / count)
            print(f"| {crate} | {count:,} | {shares[0]:.0f} % | {shares[1]:.0f} % |")


if __name__ == "__main__":
    main()
