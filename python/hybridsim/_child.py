"""The process that simulates tasks for another, one after another.

Reads requests as lines of JSON and answers each with a line. It ends when its input does, in the
middle of a simulation as well: the process that asked has ended.
"""

from __future__ import annotations

import json
import os
import queue
import signal
import sys
import threading

from . import _core, plugins


def main() -> None:
    """Serves the process at the other end of standard input and output."""
    # Ctrl-C reaches every process of a terminal; the parent decides what it means.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    answers = os.fdopen(os.dup(1), "w")
    # What policies print is no answer.
    os.dup2(2, 1)
    requests: queue.SimpleQueue[str] = queue.SimpleQueue()

    def read() -> None:
        for line in sys.stdin:
            requests.put(line)
        os._exit(0)

    threading.Thread(target=read, daemon=True).start()
    while True:
        request = json.loads(requests.get())
        answer = {}
        plugins.allow_code(request["allow_code"])
        try:
            outcome = _core.run_task(request["task"], request["cache"], request["trace"])
            answer["outcome"] = outcome
        except Exception as error:
            answer["error"] = str(error)
        answers.write(json.dumps(answer) + "\n")
        answers.flush()
