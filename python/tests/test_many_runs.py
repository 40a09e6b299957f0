from __future__ import annotations

import concurrent.futures
import subprocess
import sysconfig

import hybridsim
import pytest
from hybridsim import _toml

COMMAND = sysconfig.get_path("scripts") + "/hybridsim"


def test_a_sweep_shares_its_points_with_the_command(ssd, tmp_path):
    scenario = tmp_path / "scenario.toml"
    scenario.write_text(_toml.document(ssd))
    out = tmp_path / "out"
    key = "host.queue_depth"
    words = [COMMAND, "sweep", str(scenario), "--vary", f"{key}=1,4", "--out", str(out)]
    subprocess.run(words, check=True, capture_output=True)
    points = out / "points"
    before = {path.name: path.stat().st_mtime_ns for path in points.iterdir()}
    swept = hybridsim.sweep(scenario, {key: [1, 4, 8]}, store=points)
    after = {path.name: path.stat().st_mtime_ns for path in points.iterdir()}
    assert len(after) == 3
    assert before.items() <= after.items(), "two points were known"
    depths = [point.values[key] for point in swept.points]
    assert depths == [1, 4, 8]
    assert not any(point.error for point in swept.points)
    table = swept.table()
    assert list(table[key]) == [1, 4, 8]
    assert table["latency_ns.all.mean"][0] < table["latency_ns.all.mean"][2]
    assert "totals.hit_ratio" not in table, "it has no cache"
    direct = hybridsim.run(scenario, overrides={key: 4})
    assert swept.points[1].result.fingerprint == direct.fingerprint
    # The command takes the point of Python.
    words[4] = f"{key}=1,4,8"
    done = subprocess.run(words, check=True, capture_output=True, text=True)
    assert {path.name: path.stat().st_mtime_ns for path in points.iterdir()} == after, done.stderr


def test_a_sweep_runs_at_several_seeds_in_any_executor(ssd):
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        swept = hybridsim.sweep(ssd, {"host.queue_depth": [1, 0]}, seeds=[1, 2], executor=pool)
    assert [point.seed for point in swept.points] == [1, 2, 1, 2]
    assert swept.points[0].result.fingerprint != swept.points[1].result.fingerprint
    assert all("queue_depth" in point.error for point in swept.points[2:])
    assert repr(swept) == "Sweep(4 points, 2 failed)"
    assert "<td>" in swept._repr_html_()
    table = swept.table(["components.ssd.erases"])
    assert table["components.ssd.erases"][0] > 0
    with pytest.raises(hybridsim.Error, match="no result has"):
        swept.table(["components.ssd.eraces"])


def test_values_may_come_from_a_generator(ssd):
    swept = hybridsim.sweep(ssd, {"host.queue_depth": (depth for depth in (1, 2))})
    assert [point.values["host.queue_depth"] for point in swept.points] == [1, 2]
    with pytest.raises(hybridsim.ArgumentError, match="seeds"):
        hybridsim.sweep(ssd, {"host.queue_depth": [1]}, seeds=int)


def test_a_comparison(ssd, tmp_path):
    other = dict(ssd, title="<b>deep", host={"mode": "closed", "queue_depth": 16})
    both = hybridsim.compare([ssd, other], overrides={"run.seed": 3})
    assert [result.title for result in both] == ["small flash", "<b>deep"]
    table = both.table()
    assert list(table["title"]) == ["small flash", "<b>deep"]
    assert table["latency_ns.all.mean"][0] < table["latency_ns.all.mean"][1]
    assert "&lt;b&gt;deep" in both._repr_html_()
    assert "<b>" not in both._repr_html_()
    both.report(tmp_path / "report.html")
    assert (tmp_path / "report.html").stat().st_size > 10_000


def test_a_result_is_shown_in_short(ssd):
    result = hybridsim.run(ssd, overrides={"title": "<i>x"})
    text = repr(result)
    assert text.startswith("<Result of '<i>x': 3,000 requests, mean latency ")
    assert len(text) < 100
    page = result._repr_html_()
    assert "&lt;i&gt;x" in page
    assert "<i>" not in page
    assert "Write amplification" in page


def test_write_amplification_is_that_of_a_run(root):
    scenario = root / "examples" / "write-amplification.toml"
    overrides = {"workload.generator.bytes": "1GiB", "component.ssd.blocks_per_plane": 80}
    counted = hybridsim.write_amplification(scenario, overrides=overrides)
    run = hybridsim.run(scenario, overrides=overrides)
    assert counted["write_amplification"] == run.totals.write_amplification > 1.5
    assert counted["erases"] == run.components["ssd"].erases
    with pytest.raises(hybridsim.Error, match="verify"):
        hybridsim.write_amplification(scenario, overrides={"run.verify": True})


def test_miss_ratio_curves_and_reproductions(root):
    table = hybridsim.mrc(root / "workloads" / "browser.hst", ["lru", "fifo"], sizes=[0.1, "16MiB"])
    assert set(table["policy"]) == {"lru", "fifo"}
    assert table.rows == 4
    assert all(0 < ratio < 1 for ratio in table["miss_ratio"])
    with pytest.raises(hybridsim.Error, match="no-such"):
        hybridsim.mrc(root / "workloads" / "browser.hst", "no-such")
    sqlite = root / "workloads" / "sqlite.hst"
    modelled = hybridsim.mrc(sqlite, sizes=["16MiB"], method="aet")["miss_ratio"][0]
    exact = hybridsim.mrc(sqlite, sizes=["16MiB"])["miss_ratio"][0]
    assert exact < 0.8
    assert 0 < abs(modelled - exact) < 0.01
    with pytest.raises(hybridsim.Error, match="lru only"):
        hybridsim.mrc(sqlite, "sieve", method="aet")
    trace = root / "workloads" / "browser.hst"
    plan = hybridsim.plan(trace, duty=0.1, p99="1s", data=1 << 33, caches=["open-cas"])
    assert plan["demand"]["duty"] == 0.1
    assert plan["demand"]["data_bytes"] == 1 << 33
    assert {system["cache"] for system in plan["systems"]} == {None, "open-cas"}
    with pytest.raises(hybridsim.Error, match="no-such"):
        hybridsim.plan(trace, caches=["no-such"])
    study = hybridsim.reproduce("flashsim/table1")
    assert {row["experiment"] for row in study["rows"]} == {"flashsim/table1"}
    with pytest.raises(hybridsim.Error, match="flashsim"):
        hybridsim.reproduce("flashsim/no-such")


def test_calibration(tmp_path):
    rows = [f"read,{size},{25_000 + size * 10}" for size in (2048, 4096, 8192, 16384)]
    rows += [f"write,{size},{200_000 + size * 20}" for size in (2048, 4096, 8192, 16384)]
    (tmp_path / "measured.csv").write_text("\n".join(["op,bytes,latency_ns", *rows, ""]))
    found = hybridsim.calibrate(tmp_path / "measured.csv", out=tmp_path / "preset.toml")
    assert found
    assert (tmp_path / "preset.toml").exists()


@pytest.mark.parametrize(
    "wrong",
    [
        lambda ssd: hybridsim.run(17),
        lambda ssd: hybridsim.run(ssd, trace=3),
        lambda ssd: hybridsim.run(ssd, overrides=["host.queue_depth=1"]),
        lambda ssd: hybridsim.run(ssd, overrides={1: 2}),
        lambda ssd: hybridsim.run(ssd, seed="one"),
        lambda ssd: hybridsim.run(ssd, observe=3),
        lambda ssd: hybridsim.run(ssd, plugins=hybridsim.Ftl),
        lambda ssd: hybridsim.run(ssd, detail="some"),
        lambda ssd: hybridsim.run({"host": object()}),
        lambda ssd: hybridsim.check(None),
        lambda ssd: hybridsim.explain(3),
        lambda ssd: hybridsim.list(3),
        lambda ssd: hybridsim.register(3),
        lambda ssd: hybridsim.compare(ssd),
        lambda ssd: hybridsim.compare(3),
        lambda ssd: hybridsim.sweep(ssd, {}),
        lambda ssd: hybridsim.sweep(ssd, 3),
        lambda ssd: hybridsim.sweep(ssd, {"host.queue_depth": [1]}, seeds=-1),
        lambda ssd: hybridsim.sweep(ssd, {"host.queue_depth": [1]}, seeds=0),
        lambda ssd: hybridsim.sweep(ssd, {"host.queue_depth": [1]}, seeds=["a"]),
        lambda ssd: hybridsim.sweep(ssd, {"host.queue_depth": [1]}, sample=3),
        lambda ssd: hybridsim.sweep(ssd, {"host.queue_depth": [1]}, memory="1GiB"),
        lambda ssd: hybridsim.sweep(ssd, {"host.queue_depth": [1]}, executor=3),
        lambda ssd: hybridsim.sweep(ssd, {"host.queue_depth": [1]}, overrides=["a=1"]),
        lambda ssd: hybridsim.optimize(ssd, {"host.queue_depth": [1]}, "wall_s", batch=-1),
        lambda ssd: hybridsim.sweep(ssd, {"host.queue_depth": "1,2"}),
        lambda ssd: hybridsim.sweep(ssd, {"host.queue_depth": []}),
        lambda ssd: hybridsim.mrc(3),
        lambda ssd: hybridsim.mrc("x", sizes="64MiB"),
        lambda ssd: hybridsim.write_amplification(3),
        lambda ssd: hybridsim.plan(3),
        lambda ssd: hybridsim.plan("x", caches="bcache"),
        lambda ssd: hybridsim.reproduce(3),
        lambda ssd: hybridsim.calibrate(),
        lambda ssd: hybridsim.trace_info(3),
        lambda ssd: hybridsim.trace_info("x", format=3),
        lambda ssd: hybridsim.read_trace("x", chunk="many"),
        lambda ssd: hybridsim.convert("x", "y", to=3),
        lambda ssd: hybridsim.units.ns(25),
        lambda ssd: hybridsim.units.format_ns("25us"),
        lambda ssd: hybridsim.ComponentSpec(),
        lambda ssd: hybridsim.write_report("x", []),
        lambda ssd: hybridsim.Result.load(3),
    ],
)
def test_wrong_arguments_are_errors_of_the_package(ssd, wrong):
    with pytest.raises(hybridsim.Error) as caught:
        wrong(ssd)
    assert "simulator, please report" not in str(caught.value)
