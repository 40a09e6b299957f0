"""A session gives the results of a run, and power failures on request."""

import gc
import sys
import threading

import hybridsim
import pytest

SSD = """
[component.ssd]
kind = "ssd"
channels = 2
dies_per_channel = 2
blocks_per_plane = 12
pages_per_block = 32
over_provisioning = 0.5
read_time = "25us"
program_time = "200us"
erase_time = "1.5ms"
channel_rate = "100MB/s"
program_order = "any"
"""
DISK = '[component.disk]\npreset = "seagate-cheetah-9lp"\n'


def test_a_session_gives_the_results_of_a_run(tmp_path):
    requests = [(at * 150_000, at * 7919 % 500 * 4096, at % 3 == 0) for at in range(300)]
    session = hybridsim.Session(SSD)
    ended = []
    for at, offset, read in requests:
        ended += session.advance_to(at)
        submitted = session.submit("read" if read else "write", offset, 4096, at_ns=at)
        assert submitted.at_ns == at
    while (completion := session.next_completion()) is not None:
        ended.append(completion)
    assert sorted(it.number for it in ended) == list(range(300))
    assert {it.outcome for it in ended} == {"done"}
    lines = [f"{at / 1e6:.6f} 0 {offset // 512} 8 {int(read)}\n" for at, offset, read in requests]
    trace = tmp_path / "trace.txt"
    trace.write_text("".join(lines))
    overrides = {"workload.format": "disksim"}
    whole = hybridsim.run(SSD, trace, overrides=overrides)
    result = session.finish()
    assert result.fingerprint == whole.fingerprint
    assert result.latency_ns.all.mean == whole.latency_ns.all.mean
    with pytest.raises(hybridsim.Error, match="finished"):
        session.submit("flush")


def test_a_power_failure_loses_what_a_volatile_buffer_holds():
    def survives(flush, write_cache):
        session = hybridsim.Session(
            DISK,
            overrides={"component.disk.write_cache": write_cache},
            versions=True,
            power_may_fail=True,
        )
        number = session.submit("write", 0, 4096).number
        session.next_completion()
        if flush:
            session.submit("flush")
            session.next_completion()
        session.submit("write", 1 << 20, 4096)
        lost = session.cut_power()
        assert [it.outcome for it in lost] == ["lost"]
        session.submit("read", 0, 4096)
        read = session.next_completion()
        assert len(read.versions) == 8
        return all(version == number + 1 for version in read.versions)

    assert survives(flush=True, write_cache=True)
    assert survives(flush=False, write_cache=False)
    assert not survives(flush=False, write_cache=True)


def test_without_power_failures_the_power_cannot_be_cut():
    session = hybridsim.Session(SSD)
    with pytest.raises(hybridsim.ArgumentError, match="power_may_fail"):
        session.cut_power()
    session.submit("read", 0, 4096)
    assert session.next_completion().outcome == "done"
    with pytest.raises(hybridsim.ArgumentError, match="ful"):
        hybridsim.Session(SSD, detail="ful")


def test_wrong_requests_are_refused():
    session = hybridsim.Session(SSD)
    for request in [("read", 1, 512), ("read", 0, 0), ("erase", 0, 512), ("read", 1 << 50, 512)]:
        with pytest.raises(hybridsim.ArgumentError):
            session.submit(*request)
    for numbers in [(-512, 512), (0.5, 512), (0, True), (0, 1 << 64)]:
        with pytest.raises(hybridsim.ArgumentError):
            session.submit("read", *numbers)
    for time in [-1, 0.5, None]:
        with pytest.raises(hybridsim.ArgumentError):
            session.advance_to(time)
    assert session.outstanding == 0
    assert session.next_completion() is None
    with pytest.raises(hybridsim.ScenarioError):
        hybridsim.Session("[component.x]\nkind = 'nothing'\n")


RAID = """
system = "raid"
[component.raid]
kind = "raid5"
members = ["d0", "d1", "d2"]
"""
MEMBER = '[component.d%d]\nkind = "constant-device"\ncapacity = "2MiB"\nlatency = "100us"\n'


def test_faults_on_demand_have_their_effect():
    def read(session):
        number, at, *_ = session.submit("read", 0, 4096)
        completion = session.next_completion()
        assert completion.number == number
        return completion.outcome, completion.at_ns - at

    session = hybridsim.Session(SSD)
    session.submit("write", 0, 4096)
    session.next_completion()
    usual = read(session)
    now = session.now_ns
    assert session.inject("slow", "ssd", factor=10) > now
    outcome, latency = read(session)
    assert outcome == "done"
    assert latency > 5 * usual[1] / 2
    session.inject("slow", factor=1)
    assert read(session) == usual
    session.inject("fill")
    session.inject("wear", "ssd", fraction=1)
    outcomes = []
    for at in range(2000):
        session.submit("write", at * 7919 % 300 * 4096, 4096)
        outcomes.append(session.next_completion().outcome)
    assert (outcomes[0], outcomes[-1]) == ("done", "failed")
    # Its die may still be busy.
    assert read(session)[0] == "done"

    session = hybridsim.Session(RAID + "".join(MEMBER % at for at in range(3)))
    session.inject("fail", "raid", member=0)
    assert read(session)[0] == "done"
    session.inject("fail", "raid", member=1, at_ns=session.now_ns + 1_000_000)
    assert read(session)[0] == "failed"
    assert session.finish().components["raid"]


def test_faults_that_cannot_occur_are_refused():
    session = hybridsim.Session(SSD)
    for do, component, keys, message in [
        ("melt", None, {}, "fail"),
        ("fail", None, {"member": 0}, "no component of this system supports `fail`"),
        ("slow", "disk", {"factor": 2}, "components that support `slow`: ssd"),
        ("slow", "ssd", {"factor": 2, "die": 4}, "dies are 0 to 3"),
        ("slow", "ssd", {"factor": float("nan")}, "numbers and names"),
        ("slow", "ssd", {"factor": "2"}, "`factor`"),
        ("wear", "ssd", {"fraction": 2}, "`fraction`"),
        ("fill", "ssd", {"fraction": None}, "null"),
        ("fill", "ssd", {"fraction": object()}, "numbers and names"),
    ]:
        with pytest.raises(hybridsim.ArgumentError, match=message):
            session.inject(do, component, **keys)
    session.finish()
    with pytest.raises(hybridsim.Error, match="finished"):
        session.inject("fill")


def test_only_the_thread_that_created_a_session_uses_it():
    session = hybridsim.Session(SSD)
    raised, warned = [], []

    def elsewhere(session):
        for call in (session.next_completion, session.finish, lambda: session.now_ns):
            try:
                call()
            except hybridsim.Error as error:
                raised.append(str(error))

    def drop(held):
        held.pop()
        gc.collect()

    hook, sys.unraisablehook = sys.unraisablehook, warned.append
    try:
        for act, argument in ((elsewhere, session), (drop, [hybridsim.Session(SSD)])):
            thread = threading.Thread(target=act, args=(argument,))
            thread.start()
            thread.join()
    finally:
        sys.unraisablehook = hook
    assert len(raised) == 3
    assert all("only by the thread" in text for text in raised)
    assert warned == []
    session.submit("read", 0, 4096)
    assert session.next_completion().outcome == "done"
    session.finish()
