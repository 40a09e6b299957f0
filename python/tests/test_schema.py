from __future__ import annotations

import pathlib
import tomllib

import hybridsim
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCENARIOS = sorted((ROOT / "examples").rglob("*.toml"))


@pytest.fixture(scope="module")
def validator():
    jsonschema = pytest.importorskip("jsonschema", reason="jsonschema is not installed")
    schema = hybridsim.schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
def test_examples_are_valid(validator, path):
    errors = [error.message for error in validator.iter_errors(tomllib.loads(path.read_text()))]
    assert not errors


@pytest.mark.parametrize(
    "component",
    [
        {"kind": "ssd", "chanels": 2},
        {"preset": "sata-ssd", "over_provisoning": 0.28},
        {"preset": "sata-sdd"},
        {"preset": "sata-ssd", "channels": "many"},
        {"preset": "sata-ssd", "ftl": {"kind": "dftl", "cache_entrys": 4}, "rpm": "7200rpm"},
    ],
)
def test_wrong_components_are_found(validator, component):
    assert list(validator.iter_errors({"component": {"ssd": component}}))


def test_parts_of_a_preset_can_be_changed(validator):
    ssd = {"preset": "sata-ssd", "over_provisioning": 0.28, "ftl": {"gc": "fifo"}}
    assert not list(validator.iter_errors({"component": {"ssd": ssd}}))
    hybridsim.check({"workload": {"generator": "uniform"}, "component": {"ssd": ssd}})
