"""Studies that lose what they run on: points, processes, workers, the scheduler, the driver."""

from __future__ import annotations

import concurrent.futures
import contextlib
import json
import operator
import os
import pathlib
import signal
import socket
import subprocess
import sys
import sysconfig
import time

import hybridsim
import policies
import pytest
from hybridsim import _toml

SCRIPTS = pathlib.Path(sysconfig.get_path("scripts"))

VARY = {
    "component.ssd.over_provisioning": [0.3, 0.4, 0.5, 0.6, 0.8],
    "host.queue_depth": [1, 2, 4, 8],
}

# Ends its process when it is built.
CRASHING = """
import os, signal
import hybridsim

class Crash(hybridsim.VictimPolicy):
    def __init__(self, *_):
        os.kill(os.getpid(), signal.SIGSEGV)
"""


def columns(swept: hybridsim.Sweep) -> dict[str, list]:
    return {name: [str(value) for value in values] for name, values in swept.figures().items()}


def stored(folder: pathlib.Path) -> int:
    return len(list(folder.glob("*.json"))) if folder.exists() else 0


def wait_for(condition, what: str, seconds: float = 60.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"waited {seconds} s for {what}"
        time.sleep(0.02)


@pytest.fixture
def scenario(ssd, tmp_path) -> pathlib.Path:
    """A simulation of some 50 ms."""
    ssd["workload"]["generator"]["requests"] = 20_000
    path = tmp_path / "scenario.toml"
    path.write_text(_toml.document(ssd))
    return path


def test_samples_lists_and_ranges(ssd, tmp_path):
    ranged = hybridsim.Range(0.3, 1.0)
    vary = {"component.ssd.over_provisioning": ranged, "host.queue_depth": [1, 4]}
    swept = hybridsim.sweep(ssd, vary, sample="latin-hypercube:8", seeds=2)
    values = [point.values for point in swept.points]
    assert len(swept) == 16
    shares = [at["component.ssd.over_provisioning"] for at in values[::2]]
    slices = sorted(int((share - 0.3) / 0.7 * 8) for share in shares)
    assert slices == list(range(8)), "one in each slice"
    assert [at["host.queue_depth"] for at in values[::2]].count(1) == 4
    assert [point.seed for point in swept.points[:2]] == [7, 8]
    figures = swept.figures()
    assert figures["components.ssd.erases"][0] == swept.points[0].result.components["ssd"].erases
    assert "wall_s" not in figures
    swept.to_parquet(tmp_path / "set", by="host.queue_depth")
    import pyarrow.dataset as ds

    read = ds.dataset(tmp_path / "set", partitioning="hive").to_table()
    assert read.num_rows == 16
    assert "latency_ns.all.p99" in read.column_names
    listed = hybridsim.sweep(ssd, [{"host.queue_depth": 1, "run.seed": 3}])
    assert listed.points[0].values == {"host.queue_depth": 1, "run.seed": 3}
    with pytest.raises(hybridsim.Error, match="same keys"):
        hybridsim.sweep(ssd, [{"host.queue_depth": 1}, {"run.seed": 3}])
    with pytest.raises(hybridsim.Error, match="is a range"):
        hybridsim.sweep(ssd, {"component.ssd.over_provisioning": ranged})
    wrong = {"component.ssd.read_time": hybridsim.Range("1us", "2ms")}
    with pytest.raises(hybridsim.Error, match="one unit"):
        hybridsim.sweep(ssd, wrong, sample="random:2")


def test_several_traces_are_known_by_their_contents(ssd, tmp_path, root):
    browser = root / "workloads" / "browser.hst"
    copy = tmp_path / "copy.hst"
    copy.write_bytes(browser.read_bytes())
    mail = root / "workloads" / "mail.hst"
    store = tmp_path / "points"
    overrides = {"workload.count": 200}
    del ssd["workload"]
    ssd["component"] = {"ssd": {"kind": "constant-device", "capacity": "1GiB"}}
    swept = hybridsim.sweep(
        ssd,
        {"host.queue_depth": [1, 2]},
        traces=[browser, copy, mail],
        overrides=overrides,
        fit=True,
        store=store,
    )
    assert not any(point.error for point in swept.points), swept.points[0].error
    assert [pathlib.Path(point.values["trace"]).stem for point in swept.points][::2] == [
        "browser",
        "copy",
        "mail",
    ]
    assert stored(store) == 4, "a copy of a trace is the same trace"


def test_results_that_cannot_be_stored_are_returned_with_a_warning(ssd, tmp_path):
    store, vary = tmp_path / "points", {"host.queue_depth": [1, 2]}
    wanted = hybridsim.sweep(ssd, vary, store=store)
    for path in store.iterdir():
        path.unlink()
        path.mkdir()
    with (
        concurrent.futures.ThreadPoolExecutor(1) as pool,
        pytest.warns(RuntimeWarning, match="cannot write to"),
    ):
        swept = hybridsim.sweep(ssd, vary, store=store, executor=pool)
    assert columns(swept) == columns(wanted)
    with pytest.warns(RuntimeWarning, match="cannot write to"):
        swept = hybridsim.sweep(ssd, vary, store=store)
    assert columns(swept) == columns(wanted)


@pytest.mark.skipif(os.name != "posix", reason="signals")
def test_a_point_that_kills_its_process_fails_alone(ssd, tmp_path, monkeypatch):
    monkeypatch.setenv("HYBRIDSIM_ALLOW_CODE", "1")
    (tmp_path / "crashing.py").write_text(CRASHING)
    crash = {"kind": "python", "class": f"{tmp_path / 'crashing.py'}:Crash"}
    gc = [{"kind": "greedy"}, crash, {"kind": "fifo"}]
    store = tmp_path / "points"
    vary = {"component.ssd.ftl": [{"kind": "page", "gc": policy} for policy in gc]}
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        swept = hybridsim.sweep(ssd, vary, store=store, executor=pool)
        errors = [point.error for point in swept.points]
        assert errors[0] is errors[2] is None, errors
        assert "SIGSEGV" in errors[1]
        assert stored(store) == 3, "a failure is known"
        again = hybridsim.sweep(ssd, vary, store=store, executor=pool)
        assert columns(again) == columns(swept)


def test_sizes_beyond_the_memory_are_refused_with_the_figure(ssd, tmp_path):
    vary = {"component.ssd.blocks_per_plane": [16, 1_000_000]}
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        for name, executor in (("threads", None), ("pool", pool)):
            store = tmp_path / name
            options = {"executor": executor, "memory": 64 << 20, "store": store}
            swept = hybridsim.sweep(ssd, vary, **options)
            assert swept.points[0].error is None
            assert "needs about" in swept.points[1].error
            assert "64MiB" in swept.points[1].error
            assert stored(store) == 1, "another computer may have more memory"


def test_classes_registered_in_this_process_run_in_it(ssd):
    class LocalFtl(policies.PageFtl):
        pass

    vary = {"host.queue_depth": [1, 2]}
    overrides = {"component.ssd.ftl": LocalFtl}
    swept = hybridsim.sweep(ssd, vary, overrides=overrides)
    assert [point.error for point in swept.points] == [None, None]
    with (
        concurrent.futures.ThreadPoolExecutor(1) as pool,
        pytest.raises(hybridsim.errors.ArgumentError, match="module:Class"),
    ):
        hybridsim.sweep(ssd, vary, overrides=overrides, executor=pool)


@pytest.mark.skipif(os.name != "posix", reason="signals")
def test_a_study_interrupted_twice_has_the_results_of_one_that_was_not(scenario, tmp_path):
    seeds = range(10)
    whole = hybridsim.sweep(scenario, VARY, seeds=seeds, store=tmp_path / "whole")
    assert len(whole) == 200
    store = tmp_path / "points"
    program = (
        "import hybridsim, json, sys;"
        "hybridsim.sweep(sys.argv[1], json.loads(sys.argv[2]), seeds=range(10), store=sys.argv[3])"
    )
    words = [sys.executable, "-c", program, str(scenario), json.dumps(VARY), str(store)]
    for sent in (signal.SIGINT, signal.SIGKILL):
        before = stored(store)
        driver = subprocess.Popen(words, stderr=subprocess.DEVNULL)
        wait_for(lambda: stored(store) >= before + 40, "forty points")  # noqa: B023
        driver.send_signal(sent)
        assert driver.wait() != 0
        assert stored(store) < 200
    resumed = hybridsim.sweep(scenario, VARY, seeds=seeds, store=store)
    assert stored(store) == 200
    assert columns(resumed) == columns(whole)
    for folder, swept in (("a", whole), ("b", resumed)):
        swept.to_parquet(tmp_path / folder)
    first, second = ((tmp_path / name / "part-0.parquet").read_bytes() for name in "ab")
    assert first == second, "byte by byte"


class Cluster:
    """A scheduler and workers of Dask, each a process, over TCP."""

    def __init__(self, folder: pathlib.Path) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.address = f"tcp://127.0.0.1:{self.port}"
        self.folder = folder
        self.processes: list[subprocess.Popen] = []
        self.scheduler = self.start_scheduler()
        self.workers = [self.start_worker(), self.start_worker()]

    def start(self, *words: str) -> subprocess.Popen:
        command = [SCRIPTS / "dask", *words, "--no-dashboard"]
        with (self.folder / f"dask-{len(self.processes)}.log").open("w") as log:
            environment = os.environ | {"HYBRIDSIM_CACHE": str(self.folder / "cache")}
            process = subprocess.Popen(command, stdout=log, stderr=log, env=environment)
        self.processes.append(process)
        return process

    def start_scheduler(self) -> subprocess.Popen:
        return self.start("scheduler", "--host", "127.0.0.1", "--port", str(self.port))

    def start_worker(self) -> subprocess.Popen:
        # Without a nanny: a worker that is killed stays away.
        return self.start("worker", self.address, "--no-nanny", "--nthreads", "1")

    def end(self) -> None:
        for process in self.processes:
            process.kill()
            process.wait()


@pytest.fixture
def cluster(tmp_path):
    pytest.importorskip("distributed")
    made = Cluster(tmp_path)
    yield made
    made.end()


@pytest.mark.skipif(os.name != "posix", reason="signals")
def test_a_study_on_dask_survives_the_loss_of_worker_scheduler_and_driver(
    scenario, tmp_path, cluster
):
    whole = hybridsim.sweep(scenario, VARY, seeds=range(10))
    out = tmp_path / "out"
    store = out / "points"
    vary = [f"--vary={key}={','.join(map(str, values))}" for key, values in VARY.items()]
    # `run.seed` as a key: seeds of the command are those after the scenario's.
    vary.append(f"--vary=run.seed={','.join(map(str, range(10)))}")
    words = [SCRIPTS / "hybridsim", "sweep", scenario, *vary, "--out", out]
    words += ["--dask", cluster.address]

    def start() -> subprocess.Popen:
        with (tmp_path / "driver.log").open("w") as log:
            return subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=log)

    driver = start()
    wait_for(lambda: stored(store) >= 20, "the first points")
    cluster.workers[0].kill()
    reached = stored(store)
    wait_for(lambda: stored(store) >= reached + 20, "the other worker")
    driver.kill()
    driver.wait()
    driver = start()
    reached = stored(store)
    assert reached < 120
    wait_for(lambda: stored(store) >= reached + 20, "the second driver")
    cluster.scheduler.kill()
    cluster.scheduler.wait()
    cluster.workers[1].wait(60)  # A worker ends with its scheduler.
    reached = stored(store)
    assert reached < 190
    time.sleep(1)
    assert driver.poll() is None, "the driver waits for the scheduler"
    cluster.start_scheduler()
    cluster.start_worker()
    cluster.start_worker()
    assert driver.wait(120) == 0, (tmp_path / "driver.log").read_text()
    assert stored(store) == 200
    resumed = hybridsim.sweep(scenario, VARY, seeds=range(10), store=store)
    assert stored(store) == 200, "nothing was missing"
    assert columns(resumed) == columns(whole)


def test_traces_are_sent_to_workers_that_do_not_see_them(ssd, tmp_path, cluster, monkeypatch, root):
    from distributed import Client
    from hybridsim import _cluster

    trace = tmp_path / "there" / "mail.hst"
    trace.parent.mkdir()
    trace.write_bytes((root / "workloads" / "mail.hst").read_bytes())
    del ssd["workload"]
    ssd["component"] = {"ssd": {"kind": "constant-device", "capacity": "1GiB"}}
    options = {"overrides": {"workload.count": 200}, "fit": True}
    here = hybridsim.sweep(ssd, {"host.queue_depth": [1, 2]}, trace, **options)

    def ship_and_hide(client, path):
        sent = _ship(client, path)
        pathlib.Path(path).unlink()
        return sent

    _ship = _cluster._ship
    monkeypatch.setattr(_cluster, "_ship", ship_and_hide)
    # Workers of this computer do see it: ask them a question of the same form instead.
    monkeypatch.setattr(_cluster, "sees", operator.eq)
    with Client(cluster.address, set_as_default=False) as client:
        client.wait_for_workers(2)
        there = hybridsim.sweep(
            ssd, {"host.queue_depth": [1, 2]}, trace, executor=client, **options
        )
    assert columns(there) == columns(here)
    copies = list((tmp_path / "cache" / "traces").glob("*/mail.hst"))
    assert len(copies) == 1, "the workers of a computer share it"


def test_a_cluster_that_is_not_there_is_an_error(ssd):
    pytest.importorskip("distributed")
    with contextlib.closing(socket.socket()) as free:
        free.bind(("127.0.0.1", 0))
        address = f"tcp://127.0.0.1:{free.getsockname()[1]}"
        with pytest.raises(hybridsim.Error, match="no Dask scheduler answers"):
            hybridsim.sweep(ssd, {"host.queue_depth": [1]}, executor=address)
    with pytest.raises(hybridsim.Error, match="executor"):
        hybridsim.sweep(ssd, {"host.queue_depth": [1]}, executor=3)
