"""Plants bugs and counts the random systems until one of them shows each.

    planted.py [WORD...]      only bugs whose names contain one of the words

Builds the fuzzer in `target/planted` with every bug of `tools/fuzz/planted.toml` behind a switch.
With one bug at a time, systems are drawn until one fails. Fails if a bug is not found within the
budget or by another check than expected, or if a system fails without any.
"""

import os
import subprocess
import sys
import time
import tomllib
from concurrent.futures import ThreadPoolExecutor

import switches

BUGS = switches.ROOT / "tools/fuzz/planted.toml"
# Systems drawn until a bug counts as not found, and without a bug.
BUDGET, WITHOUT = 2000, 200


def plant(copy, bug, number):
    path = copy.path / bug["file"]
    text = path.read_text()
    if text.count(bug["find"]) != 1:
        sys.exit(f"{bug['file']} does not have exactly one place for: {bug['name']}")
    planted = bug["replace"].replace("PLANTED", f"crate::changed({number})")
    path.write_text(text.replace(bug["find"], planted))


def search(program, number, runs):
    """The first line printed: the system that failed and why; `None` if none did."""
    # Panics of planted bugs are printed as well.
    done = subprocess.run([program, str(runs)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                          text=True, check=False,
                          env={**os.environ, "HYBRIDSIM_CHANGE": str(number)})
    return (done.stdout.splitlines() or ["aborted"])[0] if done.returncode else None


def main():
    words = sys.argv[1:]
    bugs = dict(enumerate(tomllib.loads(BUGS.read_text())["bug"], 1))
    copy = switches.Copy(switches.ROOT / "target/planted")
    for number, bug in bugs.items():
        plant(copy, bug, number)
    copy.add_switch(bug["file"] for bug in bugs.values())
    built = copy.cargo("build", "--package", "hybridsim-fuzz", "--example", "search")
    [program] = [it["executable"] for it in switches.executables(*built)]
    chosen = {number: bug for number, bug in bugs.items()
              if not words or any(word in bug["name"] for word in words)}

    def found(number):
        began = time.monotonic()
        first = search(program, number, BUDGET if number else WITHOUT)
        return first, f"{time.monotonic() - began:.0f} s"

    missed = []
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        results = pool.map(found, [0, *chosen])
        without, _ = next(results)
        for bug, (first, took) in zip(chosen.values(), results, strict=True):
            as_expected = first is not None and bug["found_by"] in first
            verdict = "found by" if as_expected else f"NOT FOUND by `{bug['found_by']}`:"
            print(f"{bug['name']}\n    {verdict} system {first} ({took})", flush=True)
            if not as_expected:
                missed.append(bug["name"])
    if without is not None:
        sys.exit(f"without a planted bug, system {without}")
    if missed:
        sys.exit(f"not found within {BUDGET} systems: {', '.join(missed)}")
    print(f"{len(chosen)} bugs found, none without them")


if __name__ == "__main__":
    main()
