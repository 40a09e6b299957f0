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
    search = hybridsim.optimize(
        fifo,
        {SHARE: hybridsim.Range(0.1, 1.5)},
        "cost",
        constraints=[f"{AMPLIFICATION}<=1.5"],
        prices={SHARE: 1.0},
        trials=40,
        storage=tmp_path / "search.journal",
        store=tmp_path / "points",
        batch=4,
    )
    assert len(search.trials) == 40
    known = fifo_share(1.5)
    assert known == pytest.approx(0.6479, abs=1e-4)
    found = search.best.values[SHARE]
    # The device keeps some blocks free, which are over-provisioning without effect.
    assert found == pytest.approx(known, rel=0.06), search.table()[SHARE]
    assert search.best.objectives == (found,)
    search.report(tmp_path / "search.html")
    assert "Pareto" in (tmp_path / "search.html").read_text()
    # The same call has nothing left to do.
    before = len(list((tmp_path / "points").iterdir()))
    again = hybridsim.optimize(
        fifo,
        {SHARE: hybridsim.Range(0.1, 1.5)},
        "cost",
        constraints=[f"{AMPLIFICATION}<=1.5"],
        prices={SHARE: 1.0},
        trials=40,
        storage=tmp_path / "search.journal",
        store=tmp_path / "points",
    )
    assert again.trials == search.trials
    assert len(list((tmp_path / "points").iterdir())) == before


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
    with pytest.raises(hybridsim.Error, match="other overrides, seeds"):
        optimize("requests>=1", overrides={"host.queue_depth": 2}, seeds=2)
