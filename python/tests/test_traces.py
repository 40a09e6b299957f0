from __future__ import annotations

import hybridsim
import numpy as np
import pyarrow as pa
import pytest

ROWS = 5000


@pytest.fixture
def msr(tmp_path):
    """A trace in MSR Cambridge's format: reads and writes of 4 KiB, one every 100 us."""
    path = tmp_path / "trace.csv"
    start = 128166372003061629
    lines = []
    for row in range(ROWS):
        op = "Read" if row % 3 else "Write"
        address = (row * 7919 % 1000) * 4096
        lines.append(f"{start + row * 1000},hm,0,{op},{address},4096,{1000 + row}")
    path.write_text("\n".join(lines) + "\n")
    return path


def test_a_trace_as_arrays(msr):
    reader = hybridsim.read_trace(msr, chunk=1024)
    chunks = list(reader)
    assert [len(chunk) for chunk in chunks] == [1024, 1024, 1024, 1024, 904]
    assert reader.format == "msr"
    assert reader.has_times
    assert len(reader.volumes) == 1
    trace = np.concatenate(chunks)
    assert trace["time_ns"].tolist() == [row * 100_000 for row in range(ROWS)]
    assert trace["lba"].tolist() == [(row * 7919 % 1000) * 8 for row in range(ROWS)]
    assert set(trace["sectors"]) == {8}
    assert trace["op"].tolist() == [0 if row % 3 else 1 for row in range(ROWS)]
    assert trace["response_ns"][0] == 100_000
    assert list(reader) == []
    assert np.array_equal(hybridsim.read_trace(msr).read_all(), trace)


def test_a_trace_as_arrow(msr):
    table = pa.table(hybridsim.read_trace(msr, chunk=512))
    assert table.num_rows == ROWS
    assert table.column("op").to_pylist()[:4] == [1, 0, 0, 1]
    assert hybridsim.read_trace(msr).to_arrow().read_all().num_rows == ROWS


def test_a_trace_is_profiled(msr):
    info = hybridsim.trace_info(msr)
    assert info.format == "msr"
    assert info.profile["requests"] == ROWS
    assert info.profile["reads"] == sum(1 for row in range(ROWS) if row % 3)
    assert info.profile["footprint_bytes"] == 1000 * 4096
    text = "5,000 requests, span 499.9 ms, reads 66.7%, footprint 3.906 MiB"
    assert repr(info) == f"<TraceInfo of format 'msr': {text}>"


def test_a_trace_is_converted(msr, tmp_path):
    done = hybridsim.convert(msr, tmp_path / "trace.out", to="native")
    assert (done.records, done.left_out, done.format) == (ROWS, 0, "native")
    before = hybridsim.read_trace(msr).read_all()
    after = hybridsim.read_trace(tmp_path / "trace.out").read_all()
    for field in ("time_ns", "lba", "sectors", "op", "volume"):
        assert np.array_equal(before[field], after[field]), field
    assert {path.name for path in tmp_path.iterdir()} == {"trace.csv", "trace.out"}


def test_mistakes_with_traces(msr, tmp_path):
    broken = tmp_path / "broken.csv"
    broken.write_text(msr.read_text() + "and then something else\n")
    with pytest.raises(hybridsim.TraceError, match="5001"):
        hybridsim.trace_info(broken)
    reader = hybridsim.read_trace(broken, chunk=4000)
    assert len(next(reader)) == 4000
    with pytest.raises(hybridsim.TraceError, match="5001"):
        next(reader)
    assert list(reader) == []
    with pytest.raises(hybridsim.TraceError, match="choose one"):
        hybridsim.convert(msr, tmp_path / "trace.doc")
    with pytest.raises(hybridsim.TraceError):
        hybridsim.convert(broken, tmp_path / "half.out", to="native")
    assert not (tmp_path / "half.out").exists()
    assert not list(tmp_path.glob("*.partial"))
    with pytest.raises(hybridsim.TraceError, match="nowhere"):
        hybridsim.read_trace(tmp_path / "nowhere")
    with pytest.raises(hybridsim.TraceError, match="no trace format"):
        hybridsim.read_trace(msr, format="nothing")
    with pytest.raises(ValueError, match="at least one"):
        hybridsim.read_trace(msr, chunk=0)


def test_a_trace_is_replayed(ssd, msr):
    fits = {"workload.address": "wrap", "component.ssd.blocks_per_plane": 160}
    result = hybridsim.run(ssd, msr, overrides=fits)
    assert result.requests == ROWS
    assert result.trace == "trace.csv"
    with pytest.raises(hybridsim.TraceError, match="lie beyond the device"):
        hybridsim.run(ssd, msr, overrides={"workload.address": "error"})
