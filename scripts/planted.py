"""Plants bugs and counts the random systems until one of them shows each.

    planted.py [WORD...]      only bugs whose names contain one of the words

Every bug of `tools/fuzz/planted.toml` is a mutation of one file. It is applied to a copy of the
last commit in `target/planted`, the fuzzer is built with it, and systems are drawn until one fails.
Fails if a bug is not found within the budget or by another check than expected, or if a system
fails without any. The copy and its builds stay: later runs build what has changed.
"""

import os
import subprocess
import sys
import time
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BUGS = ROOT / "tools/fuzz/planted.toml"
FOLDER = ROOT / "target/planted"
# Systems drawn until a bug counts as not found.
BUDGET = 2000


def last_commit(copy):
    """Checks out the last commit in the folder `copy`; unchanged files keep their times."""
    if not copy.exists():
        subprocess.run(["git", "clone", "--quiet", str(ROOT), str(copy)], check=True)
    for command in (["fetch", "--quiet", str(ROOT), "HEAD"],
                    ["checkout", "--quiet", "--force", "--detach", "FETCH_HEAD"]):
        subprocess.run(["git", *command], cwd=copy, check=True)


def build(copy):
    command = ["cargo", "build", "--quiet", "--locked", "--package", "hybridsim-fuzz",
               "--example", "search"]
    target = FOLDER / "build"
    environment = {**os.environ, "CARGO_TARGET_DIR": str(target), "CARGO_INCREMENTAL": "0",
                   "RUSTFLAGS": "-Awarnings"}
    subprocess.run(command, cwd=copy, env=environment, check=True)
    return target / "debug/examples/search"


def search(program, runs):
    """The first line printed: the system that failed and why; `None` if none did."""
    # Panics of planted bugs are printed as well.
    done = subprocess.run([program, str(runs)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                          text=True, check=False)
    return (done.stdout.splitlines() or ["aborted"])[0] if done.returncode else None


def plant(copy, bug):
    """Applies `bug`; returns the file and its text before."""
    path = copy / bug["file"]
    text = path.read_text()
    if text.count(bug["find"]) != 1:
        sys.exit(f"{bug['file']} does not have exactly one place for: {bug['name']}")
    path.write_text(text.replace(bug["find"], bug["replace"]))
    return path, text


def main():
    words = sys.argv[1:]
    bugs = tomllib.loads(BUGS.read_text())["bug"]
    bugs = [bug for bug in bugs if not words or any(word in bug["name"] for word in words)]
    missed = []
    copy = FOLDER / "copy"
    last_commit(copy)
    for bug in bugs:
        path, text = plant(copy, bug)
        began = time.monotonic()
        program = build(copy)
        built = time.monotonic()
        found = search(program, BUDGET)
        took = f"{time.monotonic() - built:.0f} s, built in {built - began:.0f} s"
        as_expected = found is not None and bug["found_by"] in found
        verdict = "found by" if as_expected else f"NOT FOUND by `{bug['found_by']}`:"
        print(f"{bug['name']}\n    {verdict} system {found} ({took})", flush=True)
        if not as_expected:
            missed.append(bug["name"])
        path.write_text(text)
    found = search(build(copy), 200)
    if found is not None:
        sys.exit(f"without a planted bug, system {found}")
    if missed:
        sys.exit(f"not found within {BUDGET} systems: {', '.join(missed)}")
    print(f"{len(bugs)} bugs found, none without them")


if __name__ == "__main__":
    main()
