"""The ``hybridsim`` command in Python: ``python -m hybridsim``.

Unlike the program, which the wheel installs as ``hybridsim``, it runs scenarios that name classes
in Python.
"""

from __future__ import annotations

import os
import signal
import sys

from . import _core


def main(*, classes: bool = False) -> int:
    """Runs the command line with `sys.argv` and returns its exit code."""
    # Classes are named as module:Class; search the current folder too, like `python -m`.
    sys.path.insert(0, os.getcwd())
    # For commands that need Python in a process of its own.
    os.environ.setdefault("HYBRIDSIM_PYTHON", sys.executable)
    # The command sets its own handler; Python's would run only between byte codes.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    return _core.cli(["hybridsim", *sys.argv[1:]], classes)


if __name__ == "__main__":
    sys.exit(main(classes=True))
