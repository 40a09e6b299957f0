from __future__ import annotations

import pathlib
import sys

import pytest

# The policies are imported by name, as those of a user are.
sys.path.insert(0, str(pathlib.Path(__file__).parent))

ROOT = pathlib.Path(__file__).resolve().parents[2]

SSD = {
    "kind": "ssd",
    "channels": 2,
    "dies_per_channel": 1,
    "planes_per_die": 1,
    "blocks_per_plane": 16,
    "pages_per_block": 8,
    "over_provisioning": 0.5,
    "read_time": "25us",
    "program_time": "200us",
    "erase_time": "1.5ms",
}


@pytest.fixture
def root() -> pathlib.Path:
    """The repository's folder."""
    return ROOT


@pytest.fixture
def ssd() -> dict:
    """A small flash device that collects garbage from the start."""
    return {
        "title": "small flash",
        "run": {"seed": 7},
        "host": {"mode": "closed", "queue_depth": 4},
        "workload": {"generator": {"kind": "uniform", "requests": 3000, "read": 0.4}},
        "component": {"ssd": dict(SSD)},
    }


@pytest.fixture
def hybrid() -> dict:
    """A cache that is cleaned page by page, so that its replacement policy matters."""
    return {
        "title": "small hybrid",
        "host": {"mode": "closed", "queue_depth": 4},
        "workload": {"generator": {"kind": "uniform", "requests": 4000, "read": 0.5}},
        "component": {
            "hybrid": {
                "kind": "hybrid-disk",
                "flash": "flash",
                "disk": "disk",
                "replacement": "lru",
                "cleanup": "low-watermark",
            },
            "flash": {"kind": "constant-device", "capacity": "256KiB", "latency": "100us"},
            "disk": {
                "kind": "constant-device",
                "capacity": "2MiB",
                "latency": "5ms",
                "queue_depth": 1,
            },
        },
    }
