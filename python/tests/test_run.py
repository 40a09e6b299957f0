from __future__ import annotations

import json
import pathlib
import pickle
import signal
import subprocess
import sysconfig
import threading
import time

import hybridsim
import numpy as np
import pytest
from hybridsim import ComponentSpec, Host, Policy, Scenario, Workload, _toml

DETAILED = ("die_busy", "channel_busy", "read_unwritten", "failed", "redundancy")
COMMAND = pathlib.Path(sysconfig.get_path("scripts")) / "hybridsim"


def as_classes(document: dict) -> Scenario:
    generator = dict(document["workload"]["generator"])
    components = {}
    for name, table in document["component"].items():
        params = dict(table)
        components[name] = ComponentSpec(params.pop("kind"), **params)
    return Scenario(
        title=document["title"],
        run=document.get("run", {}),
        host=Host(**document["host"]),
        workload=Workload(generator=Policy(generator.pop("kind"), **generator)),
        components=components,
    )


def test_all_forms_of_a_scenario_give_the_same_run(ssd, tmp_path):
    path = tmp_path / "scenario.toml"
    path.write_text(_toml.document(ssd))
    command = [str(COMMAND), "run", str(path), "--json"]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    expected = json.loads(printed)
    ways = [path, str(path), path.read_text(), ssd, as_classes(ssd)]
    # Without --out the activity of dies and channels is not recorded.
    results = [hybridsim.run(way, detail="bare") for way in ways]
    assert {result.fingerprint for result in results} == {expected["fingerprint"]}
    assert results[0].requests == expected["requests"] == 3000
    changing = {"wall_s", "requests_per_wall_s", "peak_rss_bytes"}
    ours = results[0].to_dict()
    assert set(ours) == set(expected)
    for key in set(expected) - changing:
        assert ours[key] == expected[key], key


def test_a_run_can_be_repeated_from_its_result(ssd, tmp_path):
    first = hybridsim.run(ssd)
    first.save(tmp_path / "out")
    again = hybridsim.run(tmp_path / "out" / "scenario.toml")
    assert again.fingerprint == first.fingerprint
    assert hybridsim.run(first.resolved).fingerprint == first.fingerprint
    assert hybridsim.Result.load(tmp_path / "out") == first
    assert (tmp_path / "out" / "report.html").read_text().startswith("<!")
    assert pickle.loads(pickle.dumps(first)) == first


def test_files_for_other_tools_are_those_of_the_command(ssd, tmp_path):
    listed = tmp_path / "requests.csv"
    result = hybridsim.run(ssd, requests=listed)
    result.save(tmp_path / "ours")
    hybridsim.Result.load(tmp_path / "ours").save(tmp_path / "again")
    (tmp_path / "scenario.toml").write_text(_toml.document(ssd))
    arguments = ["run", "scenario.toml", "--out", "theirs", "--requests"]
    subprocess.run([COMMAND, *arguments], cwd=tmp_path, capture_output=True, check=True)
    names = {path.name for path in (tmp_path / "theirs").iterdir()}
    assert {"fio.json", "latency-all.hgrm", "latency-read.hgrm", "series.csv"} < names
    assert names - {"requests.csv"} <= {path.name for path in (tmp_path / "ours").iterdir()}
    for name in names - {"requests.csv", "results.json", "report.html", "scenario.toml"}:
        theirs = (tmp_path / "theirs" / name).read_text()
        assert (tmp_path / "ours" / name).read_text() == theirs, name
        assert (tmp_path / "again" / name).read_text() == theirs, name
    assert listed.read_text() == (tmp_path / "theirs" / "requests.csv").read_text()
    with pytest.raises(hybridsim.Error, match="cannot write"):
        hybridsim.run(ssd, requests=tmp_path / "nowhere" / "requests.csv")


def test_overrides_are_nested_or_dotted(ssd):
    plain = hybridsim.run(ssd)
    dotted = hybridsim.run(ssd, overrides={"component.ssd.over_provisioning": 1.0})
    nested = hybridsim.run(ssd, overrides={"component": {"ssd": {"over_provisioning": "100%"}}})
    assert dotted.fingerprint == nested.fingerprint != plain.fingerprint
    assert dotted.totals.write_amplification < plain.totals.write_amplification
    policy = {"component.ssd.ftl": Policy("page", gc="fifo")}
    assert 'kind = "fifo"' in hybridsim.check(ssd, overrides=policy)
    assert hybridsim.run(ssd, seed=8).fingerprint != plain.fingerprint
    assert hybridsim.run(ssd, seed=7).fingerprint == plain.fingerprint
    with pytest.raises(TypeError, match="None does not remove"):
        hybridsim.run(ssd, overrides={"component.ssd.ftl": None})


def test_observers_do_not_change_the_run(ssd):
    seen = []
    runs = [
        hybridsim.run(ssd),
        hybridsim.run(ssd, detail="bare"),
        hybridsim.run(ssd, observe=seen.append, progress=lambda progress: None),
        hybridsim.run(ssd, verify=True),
    ]
    assert len({run.fingerprint for run in runs}) == 1
    events = np.concatenate(seen)
    # Activity of dies and channels, and reads of unwritten pages, are not part of the fingerprint.
    detailed = [code for name, code in hybridsim.events.CODES.items() if name in DETAILED]
    assert len(events) - np.isin(events["event"], detailed).sum() == runs[0].event_records
    completed = hybridsim.events.of(events, "completed")
    assert len(completed) == 3000
    assert completed["latency_ns"].mean() == pytest.approx(runs[0].latency_ns.all.mean)
    programs = hybridsim.events.of(events, "flash_program")
    gc = programs["cause"] == hybridsim.events.CAUSES.index("gc")
    assert gc.sum() == runs[0].components["ssd"].gc_programs > 0
    assert len(programs) == runs[0].totals.programs
    assert (np.diff(events["time_ns"].astype(np.int64)) >= 0).all()
    busy = hybridsim.events.of(events, "die_busy")
    assert len(busy) > 0
    assert (busy["begin_ns"] < busy["end_ns"]).all()


def test_an_exception_in_a_callback_ends_the_run(ssd):
    def observe(events):
        raise KeyError("a mistake")

    with pytest.raises(hybridsim.RunError, match="a mistake") as caught:
        hybridsim.run(ssd, observe=observe)
    assert isinstance(caught.value.__cause__, KeyError)


def test_a_scenario_error_lists_all_problems(ssd, tmp_path):
    ssd["component"]["ssd"]["chanels"] = 2
    ssd["component"]["ssd"]["read_time"] = "25"
    path = tmp_path / "wrong.toml"
    path.write_text(_toml.document(ssd))
    with pytest.raises(hybridsim.ScenarioError) as caught:
        hybridsim.run(path)
    problems = {problem.key: problem for problem in caught.value.problems}
    assert set(problems) == {"component.ssd.chanels", "component.ssd.read_time"}
    unknown = problems["component.ssd.chanels"]
    assert unknown.help == "did you mean `channels`?"
    assert unknown.file == str(path)
    assert "chanels" in path.read_text().splitlines()[unknown.line - 1]
    copy = pickle.loads(pickle.dumps(caught.value))
    assert (copy.problems, str(copy)) == (caught.value.problems, str(caught.value))


@pytest.mark.parametrize(
    ("change", "error", "says"),
    [
        ({"component.ssd.blocks_per_plane": 10**30}, hybridsim.ScenarioError, "out of range"),
        ({"component.ssd.pages_per_block": 2.5}, hybridsim.ScenarioError, "whole number"),
        (
            {"component.ssd.over_provisioning": float("nan")},
            hybridsim.ScenarioError,
            "out of range",
        ),
        ({"component.ssd.over_provisioning": 0.0}, hybridsim.ScenarioError, "over_provisioning"),
        ({"component.ssd.ftl": "pages"}, hybridsim.ScenarioError, "did you mean `page`"),
        ({"component.ssd.endurance": 2}, hybridsim.RunError, "worn out"),
        ({"workload": {"generator": "uniform", "trace": "x"}}, hybridsim.ScenarioError, "either"),
    ],
)
def test_errors_are_reported(ssd, change, error, says):
    with pytest.raises(error, match=says):
        hybridsim.run(ssd, overrides=change)


def test_a_run_that_stopped_early_has_results(ssd):
    with pytest.raises(hybridsim.RunError) as caught:
        hybridsim.run(ssd, overrides={"component.ssd.endurance": 5})
    result = caught.value.result
    assert not result.complete
    assert 0 < result.requests < 3000
    assert result.components["ssd"].erases > 0


def test_missing_files_and_wrong_types(ssd, tmp_path):
    with pytest.raises(hybridsim.ScenarioError, match=r"nowhere\.toml"):
        hybridsim.run(tmp_path / "nowhere.toml")
    with pytest.raises(hybridsim.TraceError, match=r"nowhere\.csv"):
        hybridsim.run(ssd, tmp_path / "nowhere.csv")
    with pytest.raises(TypeError):
        hybridsim.run(17)
    with pytest.raises(TypeError, match="cannot hold"):
        hybridsim.run({"component": {"ssd": object()}})
    with pytest.raises(ValueError, match="detail"):
        hybridsim.run(ssd, detail="some")
    with pytest.raises(hybridsim.Error, match="did you mean"):
        hybridsim.explain("quue_depth")
    with pytest.raises(hybridsim.Error, match="there are"):
        hybridsim.list("nothing")


def long_run() -> dict:
    return {
        "host": {"mode": "closed", "queue_depth": 8},
        "workload": {"generator": {"kind": "uniform", "requests": 10**12}},
        "component": {"disk": {"kind": "constant-device", "capacity": "1GB", "latency": "5ms"}},
    }


def test_a_signal_interrupts_a_run():
    def interrupt(*_):
        raise KeyboardInterrupt

    old = signal.signal(signal.SIGALRM, interrupt)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.2)
        with pytest.raises(KeyboardInterrupt) as raised:
            hybridsim.run(long_run(), detail="bare")
        result = raised.value.result
        assert result.requests > 0
        assert not result.complete
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, old)


def test_progress_is_reported_and_other_threads_run():
    reports, turns, stop = [], [0], threading.Event()

    def spin():
        while not stop.is_set():
            turns[0] += 1
            time.sleep(0.001)

    def progress(report):
        reports.append((report, turns[0]))
        if len(reports) >= 3:
            raise StopIteration("seen enough")

    thread = threading.Thread(target=spin)
    thread.start()
    try:
        with pytest.raises(hybridsim.RunError, match="seen enough") as caught:
            hybridsim.run(long_run(), detail="bare", progress=progress)
    finally:
        stop.set()
        thread.join()
    first, last = reports[0], reports[2]
    assert 0 < first[0].requests < last[0].requests <= caught.value.result.requests + 8
    assert last[1] > first[1], "the other thread stood still"


def test_progress_on_a_terminal(capsys, ssd):
    hybridsim.run(ssd, progress=True)
    assert "100.0%  3,000 requests" in capsys.readouterr().err
