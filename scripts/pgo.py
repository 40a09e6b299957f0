"""Builds the program optimised by a profile of its own runs, as releases contain it.

    pgo.py               prints where the program is
    pgo.py --profile     prints where the profile is, for RUSTFLAGS=-Cprofile-use=FILE

An instrumented program runs the cases of `make bench` and reads traces. Needs the toolchain's
`llvm-profdata`: rustup component add llvm-tools.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import bench
import mrc_peers

ROOT = Path(__file__).resolve().parent.parent
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")).resolve() / "pgo"
COUNTS = TARGET / "counts"
PROFILE = TARGET / "hybridsim.profdata"
REQUESTS = 100_000
# A skewed trace, and a cache of a fifteenth of its pages.
ACCESSES, PAGES, CACHE = 500_000, 100_000, "26MiB"


def output_of(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def host():
    lines = output_of("rustc", "-vV").splitlines()
    return next(line.removeprefix("host: ") for line in lines if line.startswith("host: "))


def build(flags):
    """With a target, so that build scripts and macros are not instrumented."""
    environment = {**os.environ, "RUSTFLAGS": flags, "CARGO_TARGET_DIR": str(TARGET)}
    command = ["cargo", "build", "--profile", "dist", "--locked", "--package", "hybridsim",
               "--target", host()]
    subprocess.run(command, check=True, cwd=ROOT, env=environment)
    return TARGET / host() / "dist" / "hybridsim"


def train(program, folder):
    def run(*command):
        subprocess.run([program, *command], check=True, stdout=subprocess.DEVNULL)

    for name, (_, small), generator, _, *given in bench.CASES:
        print(f"training: {name}", file=sys.stderr, flush=True)
        verb = bench.COUNT if bench.COUNT in given else "run"
        options = [str(folder / "out") if it == bench.FOLDER else it for it in given]
        options = [it for it in options if it != bench.COUNT]
        path = bench.scenario(folder, small, generator, REQUESTS)
        run(verb, *options, "--json", "--progress", "never", path)
    print("training: traces", file=sys.stderr, flush=True)
    for ending in ("hst", "csv.gz"):
        run("trace", "info", bench.trace(program, folder, ending, REQUESTS))
    skewed = folder / "zipf.oracleGeneral"
    mrc_peers.write_trace(skewed, ACCESSES, PAGES, 0.8)
    for policy in mrc_peers.POLICIES:
        run("trace", "mrc", "--policy", policy, "--sizes", CACHE, skewed)
    run("trace", "mrc", "--policy", "all", skewed)


def main():
    profdata = Path(output_of("rustc", "--print", "sysroot"), "lib", "rustlib", host(), "bin",
                    "llvm-profdata")
    if not profdata.exists():
        sys.exit(f"{profdata} is missing; add it: rustup component add llvm-tools")
    shutil.rmtree(COUNTS, ignore_errors=True)
    COUNTS.mkdir(parents=True)
    program = build(f"-Cprofile-generate={COUNTS}")
    with tempfile.TemporaryDirectory() as folder:
        os.environ["HYBRIDSIM_CACHE"] = str(Path(folder, "cache"))
        train(program, Path(folder))
    subprocess.run([profdata, "merge", "--output", PROFILE, COUNTS], check=True)
    shutil.rmtree(COUNTS)
    print(PROFILE if "--profile" in sys.argv else build(f"-Cprofile-use={PROFILE}"))


if __name__ == "__main__":
    main()
