from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import sys
import sysconfig
import time

import hybridsim
import pytest
from hybridsim import _toml

pytest.importorskip("optuna")

SHARE = "component.ssd.over_provisioning"
AMPLIFICATION = "totals.write_amplification"


@pytest.fixture
def fifo(ssd) -> dict:
    """Random writes to a full device that is cleaned in FIFO order."""
    ssd["workload"]["generator"] = {"kind": "uniform", "requests": 40_000, "read": 0.0}
    ssd["component"]["ssd"] |= {
        "blocks_per_plane": 128,
        "pages_per_block": 16,
        "ftl": {"kind": "page", "gc": "fifo"},
        "precondition": "steady",
        "timing": "none",
    }
    ssd["host"] = {"mode": "closed", "queue_depth": 1}
    return ssd


def fifo_share(amplification: float) -> float:
    """The over-provisioning with this write amplification, under FIFO cleaning.

    A page of a block that is cleaned is still valid with probability v = exp(-(1 - v) * a), where a
    is the physical by the exported capacity: between two cleanings of a block the device programs
    all of its pages, (1 - v) of them for the host. The write amplification is 1 / (1 - v).
    """
    valid = 1 - 1 / amplification
    return -math.log(valid) / (1 - valid) - 1


def test_the_smallest_over_provisioning_for_a_write_amplification(fifo, tmp_path):
    def search_on(**options):
        return hybridsim.optimize(
            fifo,
            {SHARE: hybridsim.Range(0.1, 1.5)},
            "cost",
            constraints=[f"{AMPLIFICATION}<=1.5"],
            prices={SHARE: 1.0},
            trials=40,
            storage=tmp_path / "search.journal",
            store=tmp_path / "points",
            **options,
        )

    search = search_on(batch=4)
    assert len(search.trials) == 40
    known = fifo_share(1.5)
    assert known == pytest.approx(0.6479, abs=1e-4)
    found = search.best.values[SHARE]
    # The device keeps some blocks free, which are over-provisioning without effect.
    assert found == pytest.approx(known, rel=0.06), search.table()[SHARE]
    assert search.best.objectives == (found,)
    search.report(tmp_path / "search.html")
    page = (tmp_path / "search.html").read_text()
    assert "Pareto" in page
    assert "Objective: cost, less is better." in page
    assert f"Best of 40 trials: {SHARE} {found}; cost is " in page
    assert page.count('"best":true') == 1
    # The same call has nothing left to do.
    before = len(list((tmp_path / "points").iterdir()))
    again = search_on()
    assert again.trials == search.trials
    assert len(list((tmp_path / "points").iterdir())) == before


def test_the_over_provisioning_for_a_write_amplification_to_come_close_to(fifo):
    search = hybridsim.optimize(
        fifo,
        {SHARE: [0.3, 0.45, 0.65, 0.9, 1.3]},
        f"{AMPLIFICATION}:1.5",
        trials=12,
    )
    assert search.best.values[SHARE] == 0.65
    (amplification,) = search.best.objectives
    assert amplification == pytest.approx(1.5, abs=0.05)
    with pytest.raises(hybridsim.Error, match="path:number"):
        hybridsim.optimize(fifo, {SHARE: [0.3]}, f"{AMPLIFICATION}:near")


def test_a_front_of_two_objectives(fifo):
    fifo["workload"]["generator"]["requests"] = 5_000
    search = hybridsim.optimize(
        fifo,
        {SHARE: [0.2, 0.4, 0.8], "component.ssd.ftl.gc": ["fifo", "greedy"]},
        [AMPLIFICATION, "components.ssd.constants.over_provisioning"],
        trials=24,
        batch=6,
    )
    front = search.front
    shares = [trial.values[SHARE] for trial in front]
    assert shares == sorted(shares, reverse=True), "less amplification takes more space"
    assert {trial.values["component.ssd.ftl.gc"] for trial in front} == {"greedy"}
    table = search.table()
    assert table["front"].sum() == len(front)
    assert "24 trials" in repr(search)


def test_bad_trials_are_stopped_on_a_part_of_the_workload(fifo, tmp_path):
    search = hybridsim.optimize(
        fifo,
        {SHARE: hybridsim.Range(0.2, 1.2)},
        AMPLIFICATION,
        trials=12,
        parts=[2_000],
        batch=4,
        store=tmp_path / "points",
    )
    stopped = [trial for trial in search.trials if trial.objectives is None]
    assert stopped
    assert all("after 2000 requests" in trial.error for trial in stopped)
    assert search.best.values[SHARE] > 0.9
    points = len(list((tmp_path / "points").iterdir()))
    assert points == 12 + 12 - len(stopped)


@pytest.mark.skipif(os.name != "posix", reason="signals")
def test_a_search_that_is_killed_resumes(fifo, tmp_path):
    scenario = tmp_path / "scenario.toml"
    scenario.write_text(_toml.document(fifo))
    program = (
        "import hybridsim, sys;"
        f"s = hybridsim.optimize(sys.argv[1], {{'{SHARE}': hybridsim.Range(0.2, 1.2)}},"
        f" '{AMPLIFICATION}', trials=14, batch=2, storage=sys.argv[2], store=sys.argv[3]);"
        "print(len(s.trials))"
    )
    points = tmp_path / "points"
    words = [sys.executable, "-c", program, scenario, tmp_path / "journal", points]
    driver = subprocess.Popen(words)
    end = time.monotonic() + 60
    while not points.exists() or len(list(points.glob("*.json"))) < 3:
        assert time.monotonic() < end
        time.sleep(0.02)
    driver.send_signal(signal.SIGKILL)
    driver.wait()
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["14"]
    assert len(list(points.glob("*.json"))) <= 14


def test_the_command_searches(fifo, tmp_path):
    fifo["workload"]["generator"]["requests"] = 5_000
    scenario = tmp_path / "scenario.toml"
    scenario.write_text(_toml.document(fifo))
    command = sysconfig.get_path("scripts") + "/hybridsim"
    words = [command, "optimize", scenario, "--vary", f"{SHARE}=0.3..1.2", "--trials", "6"]
    words += ["--vary", "component.ssd.ftl.gc=fifo,greedy", "--out", tmp_path / "out"]
    words += ["--objective", AMPLIFICATION, "--objective", "cost", "--price", f"{SHARE}=2"]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    assert "Pareto front of 6 trials, 6 satisfy all bounds" in done.stdout
    page = (tmp_path / "out" / "search.html").read_text()
    assert f"Objectives: {AMPLIFICATION}, less is better; cost, less is better." in page
    assert page.count('"is_objective":true') == 1, "the cost is no column"
    rows = (tmp_path / "out" / "search.csv").read_text().splitlines()
    assert page.count('"best":true') == sum(float(row.split(",")[6]) for row in rows[1:])
    rows = (tmp_path / "out" / "search.csv").read_text().splitlines()
    assert rows[0].startswith(f"trial,{SHARE},component.ssd.ftl.gc,{AMPLIFICATION},cost,")
    assert len(rows) == 7
    words[words.index("6")] = "8"
    done = subprocess.run([*words, "--json"], capture_output=True, text=True, check=True)
    trials = json.loads(done.stdout)["trials"]
    assert len(trials) == 8, "it resumes"
    assert trials[0]["objectives"][1] == 2 * trials[0]["values"][SHARE]
    wrong = [*words, "--constraint", "cost<much"]
    done = subprocess.run(wrong, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "path<=number" in done.stderr


def test_what_a_search_refuses(ssd):
    vary = {SHARE: [0.5]}
    with pytest.raises(hybridsim.Error, match="path:min"):
        hybridsim.optimize(ssd, vary, "totals.erases:least")
    with pytest.raises(hybridsim.Error, match="path:number"):
        hybridsim.optimize(ssd, vary, "totals.erases=5")
    with pytest.raises(hybridsim.Error, match="path<=number"):
        hybridsim.optimize(ssd, vary, "totals.erases", constraints="totals.erases<many")
    with pytest.raises(hybridsim.Error, match="prices"):
        hybridsim.optimize(ssd, vary, "cost")
    with pytest.raises(hybridsim.Error, match="no result has a number"):
        hybridsim.optimize(ssd, vary, "totals.eraces", trials=1)
    with pytest.raises(hybridsim.Error, match="single objective"):
        hybridsim.optimize(ssd, vary, ["totals.erases", "simulated_ns"], parts=[100])


def test_a_storage_of_another_search_is_refused(fifo, tmp_path):
    def optimize(constraint, **options):
        vary = {SHARE: [0.3, 0.6]}
        kept = {"storage": tmp_path / "search.journal", "store": tmp_path / "points"}
        bounds = [constraint]
        return hybridsim.optimize(
            fifo, vary, AMPLIFICATION, constraints=bounds, trials=2, batch=2, **kept, **options
        )

    assert len(optimize("requests>=1").trials) == 2
    assert len(optimize("requests>=1").trials) == 2
    with pytest.raises(hybridsim.Error, match="other constraints"):
        optimize("requests>=2")
    with pytest.raises(hybridsim.Error, match="other scenario, options"):
        optimize("requests>=1", overrides={"host.queue_depth": 2}, seeds=2)


CONSTANT = {
    "host": {"mode": "closed", "queue_depth": 4},
    "workload": {"generator": {"kind": "uniform", "requests": 400}},
    "component": {"d": {"kind": "constant-device", "capacity": "1MB", "latency": "1ms"}},
}
DEPTH = "host.queue_depth"
IOPS = "throughput.iops"


def test_parts_go_on_with_what_satisfies_the_constraints():
    # The cheapest depths are too slow.
    search = hybridsim.optimize(
        CONSTANT,
        {DEPTH: hybridsim.Range(1, 64)},
        "cost",
        constraints=[f"{IOPS}>=30000"],
        prices={DEPTH: 1.0},
        trials=40,
        parts=[200],
        batch=2,
    )
    complete = [trial for trial in search.trials if trial.objectives is not None]
    assert 0 < len(complete) < 40
    assert sum(trial.feasible for trial in complete) > len(complete) / 2
    assert 30 <= search.best.values[DEPTH] <= 34


def test_a_search_does_not_resume_on_another_trace(tmp_path):
    trace = tmp_path / "trace.txt"
    scenario = {"host": CONSTANT["host"], "component": CONSTANT["component"]}

    def search(**options):
        return hybridsim.optimize(
            scenario,
            {"component.d.latency": ["1ms", "2ms"]},
            "latency_ns.all.mean",
            trace,
            trials=2,
            format="disksim",
            storage=tmp_path / "search.journal",
            **options,
        )

    trace.write_text("0.0 0 0 8 1\n1.0 0 8 8 1\n")
    assert len(search().trials) == 2
    with pytest.raises(hybridsim.Error, match="other scenario, options, trace or program"):
        search(fit=True)
    trace.write_text("0.0 0 0 16 1\n1.0 0 8 8 1\n")
    with pytest.raises(hybridsim.Error, match="other scenario, options, trace or program"):
        search()


def test_parts_of_a_scenario_that_lacks_keys():
    component = {"d": {"kind": "constant-device", "latency": "1ms"}}
    search = hybridsim.optimize(
        CONSTANT | {"component": component},
        {"component.d.latency": ["1ms", "2ms"]},
        "latency_ns.all.mean",
        overrides={"component.d.capacity": "1MB"},
        parts=[100],
        trials=8,
    )
    assert search.best.values["component.d.latency"] == "1ms"
    generator = CONSTANT["workload"]["generator"]
    with pytest.raises(hybridsim.Error, match="a single workload"):
        hybridsim.optimize(
            CONSTANT | {"workload": {"a": {"generator": generator}, "b": {"generator": generator}}},
            {DEPTH: [1, 2]},
            "latency_ns.all.mean",
            parts=[100],
            trials=2,
        )


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (hybridsim.Range("2ms", "1ms"), "ascending order"),
        (hybridsim.Range("0ms", "1ms", log=True), "above 0"),
        (hybridsim.Range("1us", "1ms"), "one unit"),
        (hybridsim.Range("fast", "slow"), "no number"),
        ([], "empty"),
    ],
)
def test_values_that_cannot_vary_are_refused(values, words):
    with pytest.raises(hybridsim.ArgumentError, match=words):
        hybridsim.optimize(CONSTANT, {"component.d.latency": values}, IOPS)


def test_other_values_need_another_file(tmp_path):
    storage = tmp_path / "search.journal"
    hybridsim.optimize(CONSTANT, {DEPTH: [1, 2]}, IOPS, trials=1, storage=storage)
    with pytest.raises(hybridsim.Error, match="other vary"):
        hybridsim.optimize(CONSTANT, {DEPTH: [1, 2, 3]}, IOPS, trials=2, storage=storage)
    with pytest.raises(hybridsim.ArgumentError, match="at least 1"):
        hybridsim.optimize(CONSTANT, {DEPTH: [1, 2]}, IOPS, trials=0)


def test_an_invalid_first_value_does_not_hide_another_scenario(tmp_path):
    storage = tmp_path / "search.journal"
    depths = {DEPTH: [0, 1, 2]}
    hybridsim.optimize(CONSTANT, depths, IOPS, trials=1, storage=storage)
    other = {"component.d.latency": "7ms"}
    with pytest.raises(hybridsim.Error, match="other scenario"):
        hybridsim.optimize(CONSTANT, depths, IOPS, trials=2, storage=storage, overrides=other)
