"""A simulator for storage that mixes media: hard disks, NAND flash, and hybrids of them.

    import hybridsim

    result = hybridsim.run("scenario.toml", "trace.csv")
    print(result.latency_ns.read.p99, result.totals.write_amplification)
    result.report("report.html")

Scenarios are files, dicts or classes (`Scenario`, `ComponentSpec`, `Workload`, `Host`, `Policy`);
`list`, `explain` and `schema` describe them. Policies can be written in Python: derive from `Ftl`,
`VictimPolicy`, `Replacement`, `Admission`, `Cleanup` or `Scheduler`.
"""

from __future__ import annotations

from . import events, testing, units
from ._core import VERSION as __version__
from ._core import Device, Flash, Head, Request
from ._plot import plot
from ._run import Entry, RunProgress, check, explain, run, schema
from ._run import list_ as list
from .errors import (
    ArgumentError,
    ConformanceFailure,
    DeviceFull,
    DeviceWornOut,
    Error,
    FlashRuleBroken,
    Problem,
    RunError,
    ScenarioError,
    TraceError,
    UnitError,
)
from .plugins import (
    Admission,
    Cleanup,
    Ftl,
    Plan,
    Replacement,
    Scheduler,
    VictimPolicy,
    allow_code,
    ftl,
    register,
    replacement,
)
from .results import Component, Latency, Result, write_report
from .scenario import ComponentSpec, Host, Policy, Scenario, Workload
from .search import Objective, Search, Trial, optimize
from .session import Completion, Session, Submitted
from .sweeps import Comparison, Point, Range, Sweep, compare, sweep
from .table import HeatMap, Table
from .tools import calibrate, mrc, plan, reproduce, write_amplification
from .traces import Converted, TraceInfo, TraceReader, convert, read_trace, trace_info

__all__ = [
    "Admission",
    "ArgumentError",
    "Cleanup",
    "Comparison",
    "Completion",
    "Component",
    "ComponentSpec",
    "ConformanceFailure",
    "Converted",
    "Device",
    "DeviceFull",
    "DeviceWornOut",
    "Entry",
    "Error",
    "Flash",
    "FlashRuleBroken",
    "Ftl",
    "Head",
    "HeatMap",
    "Host",
    "Latency",
    "Objective",
    "Plan",
    "Point",
    "Policy",
    "Problem",
    "Range",
    "Replacement",
    "Request",
    "Result",
    "RunError",
    "RunProgress",
    "Scenario",
    "ScenarioError",
    "Scheduler",
    "Search",
    "Session",
    "Submitted",
    "Sweep",
    "Table",
    "TraceError",
    "TraceInfo",
    "TraceReader",
    "Trial",
    "UnitError",
    "VictimPolicy",
    "Workload",
    "__version__",
    "allow_code",
    "calibrate",
    "check",
    "compare",
    "convert",
    "events",
    "explain",
    "ftl",
    "list",
    "mrc",
    "optimize",
    "plan",
    "plot",
    "read_trace",
    "register",
    "replacement",
    "reproduce",
    "run",
    "schema",
    "sweep",
    "testing",
    "trace_info",
    "units",
    "write_amplification",
    "write_report",
]
