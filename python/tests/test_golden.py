"""The release build gives the fingerprints that the Rust tests give in a debug build."""

import pathlib

import hybridsim
import pytest

GOLDEN = pathlib.Path(__file__).parents[2] / "tests" / "golden"
LIST = GOLDEN / "fingerprints.txt"


@pytest.mark.parametrize("line", LIST.read_text().splitlines())
def test_release_and_debug_agree(line: str) -> None:
    name, fingerprint = line.split()
    assert hybridsim.run(GOLDEN / f"{name}.toml").fingerprint == fingerprint
