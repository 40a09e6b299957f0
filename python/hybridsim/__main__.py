"""The ``hybridsim`` command in Python: ``python -m hybridsim``.

Unlike the program, which the wheel installs as ``hybridsim``, it can run scenarios that name
classes in Python by their path: with ``--allow-code``, as that runs the code of the class.
"""

from __future__ import annotations

import os
import signal
import sys

from . import _core, plugins


def main() -> int:
    """Runs the command line with `sys.argv` and returns its exit code."""
    # For commands that need Python in a process of its own.
    os.environ.setdefault("HYBRIDSIM_PYTHON", sys.executable)
    # The command sets its own handler; Python's would run only between byte codes.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    words = sys.argv[1:]
    if "--allow-code" in words:
        words = [word for word in words if word != "--allow-code"]
        plugins.allow_code()
        # Classes are named as module:Class; search the current folder too, like `python -m`.
        sys.path.insert(0, os.getcwd())
    return _core.cli(["hybridsim", *words])


if __name__ == "__main__":
    sys.exit(main())
