"""The ``hybridsim`` command of the wheel."""

from __future__ import annotations

import os
import signal
import sys

from . import _core


def main() -> int:
    """Runs the command line with `sys.argv` and returns its exit code."""
    # Policies are named as module:Class; search the current folder too, like `python -m`.
    sys.path.insert(0, os.getcwd())
    # For commands that need Python in a process of its own.
    os.environ.setdefault("HYBRIDSIM_PYTHON", sys.executable)
    # The command sets its own handler; Python's would run only between byte codes.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    return _core.cli(["hybridsim", *sys.argv[1:]])
