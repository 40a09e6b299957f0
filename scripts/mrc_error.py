#!/usr/bin/env python3
"""Measure the error of sampled miss-ratio curves against exact ones.

    scripts/mrc_error.py workloads/*.hst

For each trace and number of sampled pages: the mean and the greatest difference over all policies
and the sizes of the default curve, the mean of the stated errors, the share of points whose
difference is within the stated error, and memory and processor time of the process.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile


def curves(options, trace, sample, sizes=None):
    """The curves, peak memory in MiB, and processor time in s."""
    command = [options.hybridsim, "trace", "mrc", str(trace), "--json",
               "--policy", options.policy, "--sample", str(sample)]
    if sizes:
        command += ["--sizes", ",".join(f"{size}B" for size in sizes)]
    with tempfile.TemporaryFile("w+") as out:
        process = subprocess.Popen(command, stdout=out, stderr=subprocess.DEVNULL)
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode != 0:
            return None
        out.seek(0)
        return json.load(out)["mrc"], used.ru_maxrss / 1024, used.ru_utime + used.ru_stime


def compare(exact, sampled):
    """Differences and stated errors of the points that the sample has."""
    pairs = []
    for whole, part in zip(exact["curves"], sampled["curves"], strict=True):
        for one, other in zip(whole["points"], part["points"], strict=True):
            if other["miss_ratio"] is not None and other["error"] is not None:
                pairs.append((abs(one["miss_ratio"] - other["miss_ratio"]), other["error"]))
    return pairs


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("traces", nargs="+", type=pathlib.Path, metavar="TRACE")
    parser.add_argument("--hybridsim", default="target/release/hybridsim", metavar="FILE")
    parser.add_argument("--policy", default="all")
    parser.add_argument("--sample", type=int, action="append", metavar="PAGES")
    options = parser.parse_args()
    print("| trace | pages | sample | mean error | max error | mean stated | within stated "
          "| MiB | s |")
    print("|---|" + "---:|" * 8)
    for trace in options.traces:
        found = curves(options, trace, 1 << 24)
        if found is None:
            print(f"skipped: {trace} cannot be read", file=sys.stderr)
            continue
        exact, memory, seconds = found
        pages = exact["pages"]
        print(f"| {trace.stem} | {pages:,} | all | | | | | {memory:.0f} | {seconds:.2f} |")
        sizes = sorted({p["cache_bytes"] for curve in exact["curves"] for p in curve["points"]})
        for sample in options.sample or [4096, 16384, 65536]:
            if sample >= pages:
                continue
            sampled, memory, seconds = curves(options, trace, sample, sizes)
            pairs = compare(exact, sampled)
            if not pairs:
                continue
            errors, stated = zip(*pairs, strict=True)
            mean, within = sum(errors) / len(pairs), sum(e <= s for e, s in pairs) / len(pairs)
            print(f"| {trace.stem} | {pages:,} | {sample:,} | {mean:.4f} | {max(errors):.4f} | "
                  f"{sum(stated) / len(pairs):.4f} | {within:.0%} | {memory:.0f} | {seconds:.2f} |",
                  flush=True)


if __name__ == "__main__":
    main()
