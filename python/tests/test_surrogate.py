"""A loop in SimPy gives the same with a drive as a table as with the drive itself."""

from __future__ import annotations

import json
import pathlib
import re
import subprocess
import sys
import sysconfig

import pytest

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "examples" / "surrogate"
PROGRAM = pathlib.Path(sysconfig.get_path("scripts")) / "hybridsim"
# The state `fresh`, and small, so that opening it takes no time.
DRIVE = (
    (FOLDER / "drive.toml").read_text().replace("blocks_per_plane = 1024", "blocks_per_plane = 32")
)


def test_a_loop_by_table_agrees_with_the_drive(tmp_path):
    pytest.importorskip("simpy", reason="simpy is not installed")
    scenario, tables = tmp_path / "drive.toml", tmp_path / "drive.json"
    scenario.write_text(DRIVE)
    ranges = ["--sizes", "64KiB", "--read-shares", "1", "--depths", "1,16"]
    fast = ["--requests", "3000", "--validation", "8", "--utilizations", "0.5"]
    command = [PROGRAM, "surrogate", scenario, "--states", "fresh", "--out", tables]
    subprocess.run([*command, *ranges, *fast], check=True, capture_output=True)
    validation = json.loads(tables.read_text())["states"]["fresh"]["validation"]
    assert validation["mean"]["mean"] < 0.05
    loop = [sys.executable, "-B", FOLDER / "loop.py", tables, "fresh", scenario]
    printed = subprocess.run(loop, check=True, capture_output=True, text=True).stdout
    difference = re.search(r"difference ([+-][\d.]+) %", printed)
    assert difference is not None, printed
    assert abs(float(difference[1])) < 5, printed


def test_the_next_event_of_a_session_is_where_it_has_something_to_do():
    import hybridsim

    session = hybridsim.Session(DRIVE)
    assert session.next_event() is None
    session.submit("read", 0, 4096, at_ns=1000)
    ended = []
    while (at := session.next_event()) is not None:
        ended += session.advance_to(at)
    assert [completion.number for completion in ended] == [0]
    assert session.now_ns == ended[0].at_ns + 1
