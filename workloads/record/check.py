"""Say whether a recording looks like what it should be, and keep the measured latencies.

    check.py PREFIX ...             summary of each recording; exit status 1 if one is implausible
    check.py --markdown PREFIX ...  the table rows of workloads/README.md

Reads PREFIX.blktrace.N and PREFIX.meta; writes PREFIX.latency.csv, one line per queued request:
arrival (ns), operation, first sector, sectors, ns from queue to issue, ns from issue to completion.
"""

import glob
import heapq
import os
import sys
from collections import Counter, defaultdict
from dataclasses import dataclass
from itertools import pairwise
from statistics import median, quantiles

from finish import NOTIFY, records

QUEUE, ISSUE, COMPLETE = 1, 7, 8
CATEGORY_SHIFT = 16  # the upper half of `action` says what kind of request it is
WRITE, FLUSH, DISCARD = 1 << 1, 1 << 2, 1 << 13
MIN_REQUESTS = 10_000


def events(prefix):
    """All events of a recording in time order; each CPU's file is in order by itself."""
    streams = []
    for path in sorted(glob.glob(prefix + ".blktrace.[0-9]*")):
        with open(path, "rb") as file:
            data = file.read()
        stream = [f[2:8] for f, _ in records(data) if not f[5] & NOTIFY]
        if any(a[0] > b[0] for a, b in pairwise(stream)):
            raise ValueError(f"{path}: time goes back")
        streams.append(stream)
    return heapq.merge(*streams)


def operation(category):
    if category & DISCARD:
        return "D"
    return "W" if category & WRITE else "R"


@dataclass(slots=True)
class Request:
    queued: int
    op: str
    sector: int
    sectors: int
    waiting: set[int]  # units not yet completed
    issued: int | None = None
    completed: int | None = None


def units(sector, size):
    """The 4 KiB units of a request; ext4 with 4 KiB blocks queues nothing smaller or unaligned."""
    return range(sector // 8, (sector + size // 512 - 1) // 8 + 1)


class Requests:
    """Joins the queue, issue and completion events of each request.

    A request may be split after it was queued, or merged with others, so events are joined by
    place: whatever is issued or completed answers the oldest open request of each unit it covers,
    and a request is complete when its last unit is.
    """

    def __init__(self):
        self.done = []
        self.flushes = 0
        self.open = defaultdict(list)

    def queue(self, time, sector, size, op):
        request = Request(time, op, sector, size // 512, set(units(sector, size)))
        self.done.append(request)
        for unit in request.waiting:
            self.open[op, unit].append(request)

    def issue(self, time, sector, size, op):
        for unit in units(sector, size):
            for request in self.open.get((op, unit), []):
                request.issued = request.issued or time

    def complete(self, time, sector, size, op):
        for unit in units(sector, size):
            requests = self.open.get((op, unit))
            if not requests:
                continue
            request = requests.pop(0)
            request.waiting.discard(unit)
            if not request.waiting:
                request.completed = time


def join(prefix):
    requests = Requests()
    steps = {QUEUE: requests.queue, ISSUE: requests.issue, COMPLETE: requests.complete}
    for time, sector, size, action, _, _ in events(prefix):
        category, kind = action >> CATEGORY_SHIFT, action & 0xFFFF
        if size and kind in steps:
            steps[kind](time, sector, size, operation(category))
        elif kind == QUEUE and category & FLUSH:
            requests.flushes += 1
    return requests


def sequential(done):
    """Share of requests that start where one of the last 32 ended: one stream or a few."""
    recent, hits = [], 0
    for request in done:
        if request.sector in recent:
            recent.remove(request.sector)
            hits += 1
        recent = [*recent[-31:], request.sector + request.sectors]
    return hits / len(done)


def summary(prefix):
    with open(prefix + ".meta", encoding="utf-8") as lines:
        facts = dict(line.rstrip("\n").split("=", 1) for line in lines)
    requests = join(prefix)
    done = requests.done
    if not done:
        raise SystemExit(f"{prefix}: nothing was recorded")
    write_latencies(prefix + ".latency.csv", done)
    sectors, latency = Counter(), defaultdict(list)
    for r in done:
        sectors[r.op] += r.sectors
        if r.completed:
            latency[r.op].append(r.completed - r.queued)
    count = Counter(r.op for r in done)
    facts.update(
        name=os.path.basename(prefix),
        seconds=(done[-1].queued - done[0].queued) / 1e9,
        requests=len(done),
        reads=count["R"] / len(done),
        discards=count["D"],
        flushes=requests.flushes,
        bytes_read=sectors["R"] * 512,
        bytes_written=sectors["W"] * 512,
        sequential=sequential(done),
        sizes=Counter(r.sectors for r in done),
        largest=max(r.sectors for r in done) * 512,
        last=max(r.sector + r.sectors for r in done) * 512,
        unfinished=sum(r.completed is None for r in done),
        latency={op: percentiles(values) for op, values in latency.items()},
    )
    return facts


def write_latencies(path, done):
    with open(path, "w", encoding="utf-8") as out:
        out.write("arrival_ns,op,sector,sectors,queue_to_issue_ns,issue_to_complete_ns\n")
        for r in done:
            waited = r.issued - r.queued if r.issued else ""
            served = r.completed - r.issued if r.issued and r.completed else ""
            arrival = r.queued - done[0].queued
            out.write(f"{arrival},{r.op},{r.sector},{r.sectors},{waited},{served}\n")


def percentiles(values):
    cut = quantiles(values, n=100) if len(values) > 1 else [values[0]] * 99
    return {"p50": median(values) / 1e3, "p99": cut[98] / 1e3, "max": max(values) / 1e3}


def faults(facts):
    if facts["requests"] < MIN_REQUESTS and facts["name"] != "browser":
        yield f"fewer than {MIN_REQUESTS} requests"
    if int(facts["lost_events"]):
        yield f"{facts['lost_events']} events lost"
    if facts["unfinished"]:
        yield f"{facts['unfinished']} requests without completion"
    if facts["last"] > int(facts["image_bytes"]):
        yield "requests beyond the end of the device"


def show(facts):
    print(
        f"{facts['name']}: {facts['requests']} requests in {facts['seconds']:.1f} s,"
        f" {100 * facts['reads']:.1f} % reads, {facts['bytes_read'] / 1e6:.0f} MB read,"
        f" {facts['bytes_written'] / 1e6:.0f} MB written, {facts['discards']} discards,"
        f" {facts['flushes']} flushes without data, {facts['lost_events']} events lost"
    )
    common = ", ".join(
        f"{sectors / 2:g} KiB {100 * n / facts['requests']:.0f} %"
        for sectors, n in facts["sizes"].most_common(5)
    )
    print(
        f"  sizes: {common}; largest {facts['largest'] >> 10} KiB;"
        f" {100 * facts['sequential']:.0f} % sequential"
    )
    for op, p in facts["latency"].items():
        print(f"  {op} queue to completion, us: " + ", ".join(f"{k} {v:.0f}" for k, v in p.items()))


def markdown(facts):
    cells = (
        facts["name"],
        f"`{facts['command']}`",
        facts["kernel"],
        facts["filesystem"],
        f"{int(facts['image_bytes']) >> 30} GiB",
        facts["memory_max"],
        f"{facts['seconds']:.1f}",
        f"{facts['requests']:,}",
        f"{100 * facts['reads']:.1f}",
        f"{facts['bytes_read'] + facts['bytes_written']:,}",
        f"{facts['flushes']:,}",
        f"{100 * facts['sequential']:.0f}",
    )
    print("| " + " | ".join(cells) + " |")


def main(arguments):
    as_markdown = arguments[:1] == ["--markdown"]
    report = markdown if as_markdown else show
    failed = False
    for prefix in arguments[as_markdown:]:
        facts = summary(prefix)
        report(facts)
        for fault in faults(facts):
            print(f"{facts['name']}: implausible: {fault}", file=sys.stderr)
            failed = True
    return failed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
