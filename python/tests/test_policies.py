"""Policies in Python that do what a built-in one does have its fingerprint."""

from __future__ import annotations

import hybridsim
import pytest


class Threshold(hybridsim.Admission):
    def __init__(self, *, sectors=255):
        self.sectors = sectors

    def admit(self, request, pages, cached):
        assert request.op == "write"
        assert request.sectors > 0
        assert pages > 0
        return request.sectors <= self.sectors or cached > 0


class LowWatermark(hybridsim.Cleanup):
    def __init__(self, pages):
        super().__init__(pages)
        self.low, self.high = -(-pages // 10), -(-pages // 5)

    def on_demand(self, free, needed):
        return hybridsim.Plan(pages=max(max(needed, self.high) - free, 1))

    def background(self, free):
        pages = self.high - free
        return hybridsim.Plan(pages=pages) if free < self.low and pages > 0 else None


class Fifo(hybridsim.VictimPolicy):
    def __init__(self, blocks, pages_per_block, pools):
        super().__init__(blocks, pages_per_block, pools)
        self.order = [{} for _ in range(pools)]

    def closed(self, pool, block, valid):
        assert valid <= self.pages_per_block
        self.order[pool][block] = None

    def removed(self, pool, block):
        del self.order[pool][block]

    def choose(self, pool):
        return next(iter(self.order[pool]), None)


class Fcfs(hybridsim.Scheduler):
    def __init__(self):
        self.queue = []

    def push(self, request):
        self.queue.append(request)

    def pop(self, head):
        assert head.now_ns >= self.queue[0].since_ns
        assert head.positioning_ns(self.queue[0]) is None
        return self.queue.pop(0)


class Sptf(hybridsim.Scheduler):
    needs_positioning = True

    def __init__(self):
        self.queue = []

    def push(self, request):
        self.queue.append(request)

    def pop(self, head):
        first = min(self.queue, key=lambda request: (head.positioning_ns(request), request.key))
        self.queue.remove(first)
        return first


@pytest.fixture
def disk() -> dict:
    return {
        "host": {"mode": "closed", "queue_depth": 8, "scheduler": "fcfs"},
        "workload": {"generator": {"kind": "uniform", "requests": 300, "read": 0.5}},
        "component": {"disk": {"preset": "seagate-cheetah-9lp", "queue_depth": 8}},
    }


def same(scenario, key, built_in, ours):
    expected = hybridsim.run(scenario, overrides={key: built_in}, verify=True)
    found = hybridsim.run(scenario, overrides={key: ours}, verify=True)
    assert found.fingerprint == expected.fingerprint
    return found


def test_admission(hybrid):
    same(hybrid, "component.hybrid.admission", "threshold", Threshold)
    hybridsim.register(Threshold, "threshold-2")
    policy = hybridsim.Policy("threshold-2", sectors=1)
    other = hybridsim.run(hybrid, overrides={"component.hybrid.admission": policy})
    assert other.components["hybrid"].bypasses > 0, "its parameter is passed on"


def test_cleanup(hybrid):
    found = same(hybrid, "component.hybrid.cleanup", "low-watermark", LowWatermark)
    assert found.components["hybrid"].destages > 100


def test_garbage_collection(ssd):
    ssd["component"]["ssd"]["ftl"] = {"kind": "page"}
    found = same(ssd, "component.ssd.ftl.gc", "fifo", Fifo)
    assert found.components["ssd"].gc_programs > 0


def test_schedulers(disk):
    same(disk, "host.scheduler", "fcfs", Fcfs)
    key = "component.disk.scheduler"
    slow = same(disk, key, "fcfs", Fcfs).latency_ns.all.mean
    assert hybridsim.run(disk, overrides={key: Sptf}).latency_ns.all.mean < slow


def wrong(base, **methods):
    return type("Wrong" + base.__name__, (base,), methods)


@pytest.mark.parametrize(
    ("key", "policy", "words"),
    [
        ("component.hybrid.admission", wrong(Threshold, admit=lambda *_: "yes"), "admit returned"),
        ("component.hybrid.cleanup", wrong(LowWatermark, on_demand=lambda *_: 3), "hybridsim.Plan"),
        (
            "component.hybrid.cleanup",
            wrong(LowWatermark, background=lambda *_: hybridsim.Plan(pages=0)),
            "at least one page",
        ),
        ("host.scheduler", wrong(Fcfs, pop=lambda *_: 7), "pop returned 7"),
    ],
)
def test_wrong_answers_end_the_run(hybrid, key, policy, words):
    with pytest.raises(hybridsim.RunError, match=words):
        hybridsim.run(hybrid, overrides={key: policy})


def test_a_request_served_twice_ends_the_run(disk):
    class Twice(Fcfs):
        def pop(self, head):
            return self.queue[0]

    with pytest.raises(hybridsim.RunError, match="not in the queue"):
        hybridsim.run(disk, overrides={"host.scheduler": Twice})


def test_a_victim_that_is_no_candidate_ends_the_run(ssd):
    ssd["component"]["ssd"]["ftl"] = {"kind": "page", "gc": wrong(Fifo, choose=lambda *_: 10**6)}
    with pytest.raises(hybridsim.RunError, match="not a candidate"):
        hybridsim.run(ssd)
    ssd["component"]["ssd"]["ftl"]["gc"] = wrong(Fifo, choose=lambda *_: "block 3")
    with pytest.raises(hybridsim.RunError, match="choose returned 'block 3'"):
        hybridsim.run(ssd)
    ssd["component"]["ssd"]["ftl"]["gc"] = wrong(Fifo, closed=lambda *_: 1 / 0)
    with pytest.raises(hybridsim.RunError, match="ZeroDivisionError"):
        hybridsim.run(ssd)
