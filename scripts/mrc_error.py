#!/usr/bin/env python3
"""Measure the error of sampled miss-ratio curves against exact ones.

    scripts/mrc_error.py workloads/*.hst
    scripts/mrc_error.py --policy lru --method auto --method aet workloads/*.hst

For each trace, method and number of sampled pages: the mean and the greatest difference over all
policies and the sizes of the default curve, the mean of the stated errors, the share of points
whose difference is within the stated error, and memory and processor time of the process.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile


def curves(options, trace, sample, sizes=None, method="auto"):
    """The curves, peak memory in MiB, and processor time in s."""
    command = [options.hybridsim, "trace", "mrc", str(trace), "--json",
               "--policy", options.policy, "--sample", str(sample), "--method", method]
    if options.format:
        command += ["--format", options.format]
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


def sampled_pages(found):
    """Whether the curves are those of a sample."""
    return any(curve["sampled_fraction"] < 1 for curve in found["curves"])


def compare(exact, sampled):
    """Differences and stated errors of the points that the sample has."""
    pairs = []
    for whole, part in zip(exact["curves"], sampled["curves"], strict=True):
        for one, other in zip(whole["points"], part["points"], strict=True):
            if other["miss_ratio"] is None or (other["error"] is None and sampled_pages(sampled)):
                continue
            pairs.append((abs(one["miss_ratio"] - other["miss_ratio"]), other["error"] or 0.0))
    return pairs


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("traces", nargs="+", type=pathlib.Path, metavar="TRACE")
    parser.add_argument("--hybridsim", default="target/release/hybridsim", metavar="FILE")
    parser.add_argument("--policy", default="all")
    parser.add_argument("--method", action="append", choices=["auto", "aet"],
                        help="aet goes with --policy lru; may be repeated")
    parser.add_argument("--format", help="of the traces; detected without it")
    parser.add_argument("--sample", type=int, action="append", metavar="PAGES")
    options = parser.parse_args()
    print("| trace | pages | method | sample | mean error | max error | mean stated "
          "| within stated | MiB | s |")
    print("|---|---:|---|" + "---:|" * 7)
    for trace in options.traces:
        found = curves(options, trace, 1 << 24)
        if found is None:
            print(f"skipped: {trace} cannot be read", file=sys.stderr)
            continue
        exact, memory, seconds = found
        pages = exact["pages"]
        name = f"| {trace.name.split('.')[0]} | {pages:,}"
        print(f"{name} | exact | all | | | | | {memory:.0f} | {seconds:.2f} |")
        sizes = sorted({p["cache_bytes"] for curve in exact["curves"] for p in curve["points"]})
        for method in options.method or ["auto"]:
            for sample in options.sample or [4096, 16384, 65536]:
                # A model has errors without a sample too.
                if sample >= pages and (method == "auto" or sample < 1 << 20):
                    continue
                sampled, memory, seconds = curves(options, trace, sample, sizes, method)
                pairs = compare(exact, sampled)
                if not pairs:
                    continue
                errors, stated = zip(*pairs, strict=True)
                mean, within = sum(errors) / len(pairs), sum(e <= s for e, s in pairs) / len(pairs)
                print(f"{name} | {method} | {sample:,} | {mean:.4f} | {max(errors):.4f} | "
                      f"{sum(stated) / len(pairs):.4f} | {within:.0%} | {memory:.0f} | "
                      f"{seconds:.2f} |", flush=True)


if __name__ == "__main__":
    main()
