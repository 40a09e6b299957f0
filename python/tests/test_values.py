"""Values on their way between Python and scenarios."""

from __future__ import annotations

import datetime
import math
import pathlib
import tomllib

import hybridsim
import numpy as np
import pytest
from hybridsim import _toml, units
from hypothesis import given
from hypothesis import strategies as st

TEXT = st.text(st.characters(exclude_categories=["Cs"]))
SCALARS = st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False) | TEXT
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4)
)


@given(st.dictionaries(TEXT, VALUES, max_size=6))
def test_what_is_written_as_toml_reads_back(document):
    assert tomllib.loads(_toml.document(_toml.plain(document))) == document


@given(VALUES)
def test_a_value_on_one_line_reads_back(value):
    line = _toml.inline(value)
    assert "\n" not in line
    assert tomllib.loads(f"value = {line}") == {"value": value}


# The longest time a scenario may give is ten years.
TEN_YEARS_NS = 10 * 365 * 86_400 * 10**9


@given(st.integers(0, TEN_YEARS_NS))
def test_times_and_sizes_read_back(value):
    # A number is read as a double, so only what one can hold comes back to the last digit.
    exact = value < 2**53
    for write, read in [
        (units.format_ns, units.ns),
        (units.format_bytes, units.nbytes),
        (units.format_bytes_per_s, units.bytes_per_s),
    ]:
        back = read(write(value))
        assert back == value if exact else math.isclose(back, value, rel_tol=1e-15)


@given(TEXT)
def test_any_text_is_a_quantity_or_an_error(text):
    for read in (units.ns, units.nbytes, units.bytes_per_s):
        try:
            assert read(text) >= 0
        except hybridsim.UnitError as error:
            assert str(error)


def test_doubtful_units_are_refused():
    with pytest.raises(hybridsim.UnitError, match="4KiB"):
        units.nbytes("4k")
    with pytest.raises(ValueError, match="lacks a unit"):
        units.ns("5")


def test_python_values_become_plain():
    plain = _toml.plain(
        {
            "time": datetime.timedelta(microseconds=25),
            "path": pathlib.Path("a/b"),
            "count": np.int64(3),
            "share": np.float32(0.5),
            "absent": None,
            "pairs": [(1, "1ms")],
        }
    )
    assert plain == {
        "time": "25000ns",
        "path": "a/b",
        "count": 3,
        "share": 0.5,
        "pairs": [[1, "1ms"]],
    }
    assert units.ns(plain["time"]) == 25_000
    for wrong in ({1: 2}, {"a": b"bytes"}, {"a": {1, 2}}, {"a": [None]}):
        with pytest.raises(TypeError):
            _toml.plain(wrong)


@given(st.dictionaries(TEXT, VALUES, max_size=4), TEXT)
def test_no_scenario_makes_anything_but_an_error(document, text):
    for scenario in (document, text + "\n"):
        with pytest.raises((hybridsim.ScenarioError, ValueError)):
            hybridsim.check(scenario)


@given(st.dictionaries(st.text("abc.=\"'[]\n "), VALUES, max_size=3))
def test_no_override_makes_anything_but_an_error(overrides):
    scenario = {
        "workload": {"generator": {"kind": "uniform", "requests": 10}},
        "component": {"disk": {"kind": "constant-device", "capacity": "1GB"}},
    }
    try:
        hybridsim.check(scenario, overrides=overrides)
    except (hybridsim.ScenarioError, TypeError) as error:
        assert str(error)
