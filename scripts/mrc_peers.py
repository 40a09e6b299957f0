#!/usr/bin/env python3
"""Compare `hybridsim trace mrc` for one cache size with libCacheSim, on a generated Zipf trace.

    scripts/mrc_peers.py --libcachesim VENV/bin/python

Runs alternate, and the table has medians of processor time. That of libCacheSim excludes the start
of Python, that of hybridsim is of the whole process. Without a Python that has the package
`libcachesim`, its columns are skipped.
"""

import argparse
import json
import os
import pathlib
import random
import shutil
import statistics
import struct
import subprocess
import sys
import tempfile

# The policies both have: name here, class there.
POLICIES = {
    "fifo": "FIFO",
    "clock": "Clock",
    "lru": "LRU",
    "sieve": "Sieve",
    "2q": "TwoQ",
    "s3-fifo": "S3FIFO",
    "arc": "ARC",
    "lirs": "LIRS",
    "w-tinylfu": "WTinyLFU",
}
PAGE = 4096
# What libCacheSim's process runs; without a policy, only the start of Python.
PEER = """
import sys, time
import libcachesim as peer
policy, file, size, hashpower = sys.argv[1:5]
if policy:
    start = time.process_time()
    reader = peer.TraceReader(file, peer.TraceType.ORACLE_GENERAL_TRACE)
    options = {"hashpower": int(hashpower)} if hashpower else {}
    miss_ratio = getattr(peer, policy)(int(size), **options).process_trace(reader)[0]
    print(time.process_time() - start, miss_ratio)
"""


def write_trace(path, requests, pages, skew):
    """Independent Zipf accesses as oracleGeneral: seconds, object, bytes, next access."""
    draw = random.Random(1)
    weights = [1 / rank**skew for rank in range(1, pages + 1)]
    numbers = list(range(pages))
    draw.shuffle(numbers)
    accesses = draw.choices(numbers, weights, k=requests)
    following, upcoming = [-1] * requests, {}
    for at in range(requests - 1, -1, -1):
        following[at] = upcoming.get(accesses[at], -1)
        upcoming[accesses[at]] = at + 1
    record = struct.Struct("<IQIq")
    sectors = PAGE // 512
    with open(path, "wb") as file:
        for at in range(requests):
            page = accesses[at] * sectors
            file.write(record.pack(at // 1000, page, PAGE, following[at]))


def run(command):
    """Standard output and processor time of a process."""
    with tempfile.TemporaryFile("w+") as out:
        process = subprocess.Popen(command, stdout=out, stderr=subprocess.DEVNULL)
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode != 0:
            sys.exit(f"failed: {' '.join(command)}")
        out.seek(0)
        return out.read(), used.ru_utime + used.ru_stime


def instructions(command):
    """Instructions in user mode, by perf; None where it does not count them."""
    if shutil.which("perf") is None:
        return None
    counted = ["perf", "stat", "-x,", "-e", "instructions:u", "--", *command]
    result = subprocess.run(counted, capture_output=True, text=True, check=False)
    for line in result.stderr.splitlines():
        fields = line.split(",")
        if len(fields) > 2 and "instructions" in fields[2] and fields[0].isdigit():
            return int(fields[0])
    return None


def ours(binary, policy, trace, size):
    return [binary, "trace", "mrc", str(trace), "--format", "oracle-general", "--json",
            "--policy", policy, "--sizes", f"{size}B"]


def compare(options, trace, policy):
    size = options.cache_pages * PAGE
    mine = ours(options.hybridsim, policy, trace, size)
    peer = [options.libcachesim or "", "-c", PEER, POLICIES[policy], str(trace), str(size),
            options.hashpower]
    my_times, peer_times, miss, peer_miss = [], [], None, None
    for _ in range(options.repeat):
        text, seconds = run(mine)
        my_times.append(seconds)
        miss = json.loads(text)["mrc"]["curves"][0]["points"][0]["miss_ratio"]
        if options.libcachesim:
            fields = run(peer)[0].split()
            peer_times.append(float(fields[0]))
            peer_miss = float(fields[1])
    per = 1e9 / options.requests
    mean = statistics.median(my_times)
    row = [policy, f"{mean * per:.0f}", f"{miss:.4f}"]
    count = instructions(mine)
    row.append(f"{count / options.requests:.0f}" if count else "-")
    if peer_times:
        other = statistics.median(peer_times)
        start = instructions([*peer[:3], "", "", "", ""])
        count = instructions(peer)
        each = f"{(count - start) / options.requests:.0f}" if count and start else "-"
        row += [f"{other * per:.0f}", f"{peer_miss:.4f}", each, f"{other / mean:.2f}"]
    else:
        row += ["-"] * 4
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--hybridsim", default="target/release/hybridsim", metavar="FILE")
    parser.add_argument("--libcachesim", metavar="PYTHON",
                        help="a Python interpreter with the package libcachesim")
    parser.add_argument("--hashpower", default="", help="of libCacheSim's hash table; its default")
    parser.add_argument("--requests", type=int, default=5_000_000)
    parser.add_argument("--pages", type=int, default=1_000_000)
    parser.add_argument("--cache-pages", type=int, default=60_000)
    parser.add_argument("--skew", type=float, default=0.8)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--policy", action="append", choices=list(POLICIES))
    parser.add_argument("--trace", type=pathlib.Path,
                        help="keep the trace here, or use this one as it is")
    options = parser.parse_args()
    if shutil.which(options.hybridsim) is None:
        print(f"skipped: no {options.hybridsim}; build it with cargo build --release")
        return
    has = "import libcachesim"
    if not options.libcachesim or subprocess.run(
        [options.libcachesim, "-c", has], capture_output=True, check=False
    ).returncode:
        print("libCacheSim skipped: give --libcachesim a Python that has the package libcachesim")
        options.libcachesim = None
    with tempfile.TemporaryDirectory() as folder:
        trace = options.trace or pathlib.Path(folder) / "zipf.oracleGeneral"
        kind = f"Zipf {options.skew}"
        if trace.exists():
            kind = f"as in {trace}"
        else:
            partial = trace.with_name(f".{trace.name}.partial")
            write_trace(partial, options.requests, options.pages, options.skew)
            partial.rename(trace)
        options.requests = trace.stat().st_size // 24
        print(f"{options.requests:,} accesses, {kind}, "
              f"a cache of {options.cache_pages:,} pages; per access\n")
        header = ["policy", "hybridsim ns", "miss ratio", "instructions",
                  "libCacheSim ns", "miss ratio", "instructions", "times as fast"]
        print("| " + " | ".join(header) + " |")
        print("|---|" + "---:|" * 7)
        for policy in options.policy or POLICIES:
            print("| " + " | ".join(compare(options, trace, policy)) + " |", flush=True)


if __name__ == "__main__":
    main()
