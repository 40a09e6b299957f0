from __future__ import annotations

import dataclasses
import re

import hybridsim
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hybridsim import results


def documented(root) -> set[str]:
    """Keys of the document named in the tables of docs/reference/results.md."""
    text = (root / "docs" / "reference" / "results.md").read_text()
    text, _, series = text.partition("## The run over time")
    assert series
    rows = re.findall(r"^\| (`.*?`) \|", text, re.MULTILINE)
    return {key for row in rows for key in re.findall(r"`(\w+)`", row)}


def fields(cls) -> set[str]:
    return {field.name for field in dataclasses.fields(cls) if not field.name.startswith("_")}


def test_every_documented_key_is_an_attribute(root):
    attributes = set()
    for cls in vars(results).values():
        if dataclasses.is_dataclass(cls):
            attributes |= fields(cls)
    # The utilisation of channels and dies is a mapping.
    keys = documented(root) - {"channels", "dies", "busy_by_cause"}
    missing = keys - attributes
    assert not missing
    assert len(keys) > 60


@pytest.mark.parametrize("name", ["ssd", "hybrid"])
def test_every_key_of_the_document_is_an_attribute(name, request):
    result = hybridsim.run(request.getfixturevalue(name))
    document = result.to_dict()

    def same(value, expected, path):
        if dataclasses.is_dataclass(value):
            for key, item in expected.items():
                assert hasattr(value, key), f"{path}.{key}"
                same(getattr(value, key), item, f"{path}.{key}")
        elif isinstance(expected, dict):
            assert value.keys() == expected.keys(), path
            for key, item in expected.items():
                same(value[key], item, f"{path}[{key}]")
        elif isinstance(expected, list):
            assert list(value) == expected, path
        else:
            assert value == expected, path

    same(result, document, "result")
    assert hybridsim.Result.from_json(result.to_json(), result.resolved) == result


def test_results_are_immutable(ssd):
    result = hybridsim.run(ssd)
    with pytest.raises(dataclasses.FrozenInstanceError):
        result.requests = 1
    with pytest.raises(hybridsim.Error, match="not the result of a run"):
        hybridsim.Result.from_json('{"requests": 1}')


def test_series_sum_to_the_totals(ssd):
    result = hybridsim.run(ssd)
    series = result.series()
    assert series["reads"].sum() == result.latency_ns.read.count
    assert series["writes"].sum() == result.latency_ns.write.count
    assert series["programs"].sum() == result.totals.programs
    assert series["latency_ns_max"].max() == result.latency_ns.all.max
    assert {len(column) for column in series.values()} == {series.rows}
    assert "free_blocks_mean[ssd]" in series
    assert list(series.units) == list(series)
    assert (series.units["iops"], series.units["free_blocks_mean[ssd]"]) == ("requests/s", "blocks")
    points = result.latency_distribution("read")
    assert points["requests"][-1] == result.latency_ns.read.count
    assert (np.diff(points["latency_ns"].astype(np.int64)) > 0).all()
    wear = result.wear()
    assert wear["blocks"].sum() == 32
    heat = result.heat_map("latency")
    assert heat.counts.sum() == result.requests
    assert heat.counts.shape == (len(heat.bounds) - 1, len(heat.time_ns) - 1)
    energy = hybridsim.run(ssd, overrides={"component.ssd.energy.active_power": "1W"}).energy()
    assert energy["energy_j"].sum() > 0


def test_tables_convert_to_pandas_arrow_and_numpy(ssd):
    series = hybridsim.run(ssd).series()
    frame = series.to_pandas()
    assert list(frame.columns) == list(series)
    pd.testing.assert_frame_equal(pd.DataFrame(series), frame)
    table = pa.RecordBatchReader.from_stream(series).read_all()  # by the Arrow interface
    assert table.num_rows == series.rows == len(frame)
    assert table.column("reads").to_pylist() == series["reads"].tolist()
    nulls = np.isnan(series["latency_ns_mean"]).sum()
    assert table.column("latency_ns_mean").null_count == nulls
    assert series.to_numpy()["writes"].sum() == series["writes"].sum()


def test_charts_need_full_detail(ssd, tmp_path):
    bare = hybridsim.run(ssd, detail="bare")
    with pytest.raises(hybridsim.Error, match='detail="full"'):
        bare.series()
    with pytest.raises(hybridsim.Error, match="heat map"):
        hybridsim.run(ssd).heat_map("nothing")
    bare.report(tmp_path / "bare.html")
    assert bare.fingerprint in (tmp_path / "bare.html").read_text()


def test_reports_and_plots(ssd, hybrid, tmp_path):
    runs = [hybridsim.run(ssd), hybridsim.run(hybrid)]
    hybridsim.write_report(tmp_path / "both.html", runs)
    page = (tmp_path / "both.html").read_text()
    assert "small flash" in page
    assert "small hybrid" in page
    hybridsim.plot(runs, tmp_path / "both.png")
    assert (tmp_path / "both.png").read_bytes().startswith(b"\x89PNG")
    assert runs[0].plot() is not None
    with pytest.raises(hybridsim.Error):
        hybridsim.write_report(tmp_path / "none.html", [])
