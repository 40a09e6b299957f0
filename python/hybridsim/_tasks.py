"""Tasks of a study in other processes.

A task is a point of a sweep as text (``Task`` in the crate ``hybridsim-sweep``), its outcome the
text that the store holds. A task is simulated in a process of its own, a `_Child`, so that a crash
or a lack of memory ends this task and nothing else.
"""

from __future__ import annotations

import collections
import contextlib
import json
import os
import pathlib
import queue
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import weakref
from collections.abc import Generator, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol

from . import _core, plugins
from .errors import Error

_POLL_S = 0.2
"""Between two looks at the memory of a child."""


@dataclass(frozen=True, slots=True)
class Task:
    """A point for another process."""

    number: int
    key: str
    memory: int
    replayed: tuple[str, str] | None
    """Path and hash of its trace."""
    text: str

    @classmethod
    def read(cls, text: str) -> Task:
        """The task in `text`."""
        known = json.loads(text)
        replayed = known["replayed"] and (known["replayed"][0], known["replayed"][1])
        return cls(known["number"], known["key"], known["memory"], replayed, text)


@dataclass(frozen=True, slots=True)
class Place:
    """How tasks are simulated."""

    cache: bool = True
    """Whether preconditioned devices are kept between runs."""
    store: str | None = None
    """The folder of finished points."""
    token: str | None = None
    """Name of a file in the store: where it is seen, outcomes are written at once."""
    memory: int | None = None
    """Bytes for all tasks of a worker; what the computer has available by default."""
    allow_code: bool = field(default_factory=plugins.allows_code)
    """Whether tasks may name classes by import path: as where the study was started."""


class Future(Protocol):
    """The result of a submitted task."""

    def add_done_callback(self, function: Any, /) -> Any: ...
    def result(self) -> Any: ...
    def cancel(self) -> Any: ...


class Pool(Protocol):
    """What runs tasks."""

    def width(self) -> int:
        """The number of tasks to submit ahead."""
        ...

    def submit(self, task: Task) -> Future: ...

    def is_lost(self, future: Any) -> bool:
        """Whether the pool has forgotten the task, which is to be submitted again."""
        ...

    def outcome(self, future: Any) -> str | None:
        """The outcome of a finished task; `None` if the pool has lost it."""
        ...


def run_all(tasks: Iterable[Task], pool: Pool) -> Generator[tuple[int, str], None, None]:
    """Number and outcome of each task as they finish.

    Only `Pool.width` of them are submitted at a time: a scheduler's work grows with its tasks.
    """
    waiting = iter(tasks)
    finished: queue.SimpleQueue[tuple[int, Future]] = queue.SimpleQueue()
    pending: dict[int, tuple[Future, Task]] = {}
    again: collections.deque[Task] = collections.deque()

    def submit(task: Task) -> None:
        future = pool.submit(task)
        pending[task.number] = (future, task)
        future.add_done_callback(lambda done: finished.put((task.number, done)))

    try:
        while True:
            while len(pending) < pool.width():
                task = again.popleft() if again else next(waiting, None)
                if task is None:
                    break
                submit(task)
            if not pending:
                return
            try:
                number, future = finished.get(timeout=1.0)
            except queue.Empty:
                lost = [number for number, (future, _) in pending.items() if pool.is_lost(future)]
                again.extend(pending.pop(number)[1] for number in lost)
                continue
            if number not in pending or pending[number][0] is not future:
                continue
            _, task = pending.pop(number)
            outcome = pool.outcome(future)
            if outcome is None:
                again.append(task)
            else:
                yield number, outcome
    finally:
        for future, _ in pending.values():
            future.cancel()


class ExecutorPool:
    """Any `concurrent.futures.Executor`."""

    def __init__(self, executor: Any, place: Place, width: int | None = None) -> None:
        self._executor = executor
        self._place = place
        workers = width or getattr(executor, "_max_workers", None) or os.cpu_count() or 1
        self._width = 2 * int(workers)

    def width(self) -> int:
        return self._width

    def submit(self, task: Task) -> Future:
        future: Future = self._executor.submit(simulate, task, self._place)
        return future

    def is_lost(self, future: Any) -> bool:
        return False

    def outcome(self, future: Any) -> str | None:
        return str(future.result())


def simulate(task: Task, place: Place, data: bytes | None = None) -> str:
    """Simulates a task in a child of this process; runs wherever an executor runs it.

    `data` is the trace, where the task's path may lead nowhere.
    """
    store = place.store if _is_shared(place) else None
    if store is not None:
        known = _core.completed_outcome(store, task.key)
        if known is not None:
            return known  # It was finished by a worker that has been lost since.
    trace = None if task.replayed is None else _locate(*task.replayed, data)
    with _memory(place.memory).share(task.memory) as limit:
        if limit is None:
            return json.dumps({"refused": _memory(place.memory).refusal(task.memory)})
        outcome = _child().run(task, trace, place, limit)
    if store is not None:
        _core.save_outcome(store, task.key, outcome)
    return outcome


def _is_shared(place: Place) -> bool:
    """Whether the store is the driver's, on a shared file system."""
    if place.store is None or place.token is None:
        return False
    return os.path.exists(os.path.join(place.store, place.token))


_hashes: dict[tuple[str, int, int], str] = {}


def sees(path: str, digest: str) -> bool:
    """Whether the file is here and has these contents."""
    try:
        about = os.stat(path)
    except OSError:
        return False
    if not os.path.isfile(path):
        return True  # A folder is not compared.
    known = (path, about.st_size, about.st_mtime_ns)
    if known not in _hashes:
        _hashes[known] = _core.contents(path)
    return _hashes[known] == digest


def cache_folder() -> pathlib.Path:
    """Where copies of traces are kept, by the hash of their contents."""
    named = os.environ.get("HYBRIDSIM_CACHE")
    base = pathlib.Path(named) if named else pathlib.Path.home() / ".cache" / "hybridsim"
    return base / "traces"


def _locate(path: str, digest: str, data: bytes | None) -> str | None:
    """The trace on this computer; `None` if it is where the task says."""
    if sees(path, digest):
        return None
    copy = cache_folder() / digest / os.path.basename(path)
    if not copy.exists():
        if data is None:
            raise Error(f"{path} is not on this computer; put it on a shared file system")
        keep(copy, data)
    if not sees(str(copy), digest):
        shutil.rmtree(copy.parent, ignore_errors=True)
        raise Error(f"the copy of {path} in {copy.parent} was damaged; it has been deleted")
    return str(copy)


def keep(path: pathlib.Path, data: bytes) -> None:
    """Writes a file whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
        file.write(data)
    os.replace(file.name, path)


class _Memory:
    """As many tasks at once as fit."""

    def __init__(self, limit: int | None) -> None:
        self._limit = limit or _core.available_memory()
        self._used = 0
        self._freed = threading.Condition()

    def refusal(self, needed: int) -> str:
        mib = 1 << 20
        return (
            f"needs about {needed // mib}MiB of memory, of which {(self._limit or 0) // mib}MiB "
            "can be used; make the device smaller or run it on a larger computer"
        )

    @contextlib.contextmanager
    def share(self, needed: int) -> Iterator[int | None]:
        """Waits for the memory; the limit of the task is yielded, or `None` if it never fits."""
        if self._limit is not None and needed > self._limit:
            yield None
            return
        with self._freed:
            while self._limit is not None and self._used + needed > self._limit and self._used:
                self._freed.wait()
            self._used += needed
        try:
            yield self._limit or sys.maxsize
        finally:
            with self._freed:
                self._used -= needed
                self._freed.notify_all()


_memories: dict[int | None, _Memory] = {}
_guard = threading.Lock()


def _memory(limit: int | None) -> _Memory:
    with _guard:
        return _memories.setdefault(limit, _Memory(limit))


_local = threading.local()


def _child() -> _Child:
    """The child of this thread."""
    if not hasattr(_local, "child"):
        _local.child = _Child()
    child: _Child = _local.child
    return child


class _Child:
    """A process that simulates one task after another; replaced when it dies."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._lines: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self._end: weakref.finalize[Any, Any] | None = None

    def run(self, task: Task, trace: str | None, place: Place, limit: int) -> str:
        """The outcome of a task that may use `limit` bytes of memory."""
        process = self._running()
        options = {"cache": place.cache, "allow_code": place.allow_code}
        request = json.dumps({"task": task.text, "trace": trace, **options})
        assert process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            process.stdin.write(request.encode() + b"\n")
            process.stdin.flush()
        while True:
            try:
                line = self._lines.get(timeout=_POLL_S)
            except queue.Empty:
                used = _resident(process.pid)
                if used is None or used <= limit:
                    continue
                self.stop()
                text = f"used {used >> 20}MiB of memory, more than the {limit >> 20}MiB it may use"
                return json.dumps({"refused": text})
            except BaseException:
                self.stop()
                raise
            break
        if not line:
            code = process.wait()
            self.stop()
            return json.dumps({"failed": _death(code)})
        answer = json.loads(line)
        if "error" in answer:
            raise Error(answer["error"])
        return str(answer["outcome"])

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is not None and self._process.poll() is None:
            return self._process
        self.stop()
        command = [sys.executable, "-c", "from hybridsim._child import main; main()"]
        # Policies are imported by name, as in this process.
        paths = os.pathsep.join(path for path in sys.path if path)
        environment = os.environ | {"PYTHONPATH": paths}
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment
        )
        lines: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        threading.Thread(target=_read, args=(process, lines), daemon=True).start()
        self._process, self._lines = process, lines
        self._end = weakref.finalize(self, _kill, process)
        return process

    def stop(self) -> None:
        """Ends the process; the next task starts another."""
        if self._end is not None:
            self._end()
        self._process = self._end = None


def _read(process: subprocess.Popen[bytes], lines: queue.SimpleQueue[bytes]) -> None:
    assert process.stdout is not None
    with process.stdout:
        for line in process.stdout:
            lines.put(line)
    lines.put(b"")


def _kill(process: subprocess.Popen[bytes]) -> None:
    if process.stdin is not None:
        with contextlib.suppress(OSError):
            process.stdin.close()
    process.kill()
    process.wait()


def _death(code: int) -> str:
    if code >= 0:
        return f"its process ended with exit code {code}"
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = f"signal {-code}"
    hint = "; it may have run out of memory" if name in ("SIGKILL", "SIGABRT") else ""
    return f"its process was killed by {name}{hint}"


def _resident(pid: int) -> int | None:
    """Resident memory of a process; Linux only."""
    try:
        pages = pathlib.Path(f"/proc/{pid}/statm").read_text().split()[1]
    except (OSError, IndexError):
        return None
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


class Progress:
    """A line on standard error with what is done, in the place where the study was started."""

    def __init__(self, total: int, done: int, is_shown: bool) -> None:
        self._total, self._done, self._failed = total, done, 0
        self._is_shown = is_shown
        self._began, self._first = time.monotonic(), done
        self._last = 0.0

    def finished(self, is_failed: bool = False, where: str = "") -> None:
        """One more is done."""
        self._done += 1
        self._failed += is_failed
        now = time.monotonic()
        if not self._is_shown or (now - self._last < 0.1 and self._done < self._total):
            return
        self._last = now
        rate = (self._done - self._first) / max(now - self._began, 1e-3)
        left = (self._total - self._done) / rate
        failed = f", {self._failed} failed" if self._failed else ""
        text = f"{self._done}/{self._total} points{failed}, {rate:.3g}/s, {left:.0f} s left{where}"
        print(f"\r{text:<78}", end="", file=sys.stderr, flush=True)

    def end(self) -> None:
        """Removes the line."""
        if self._is_shown:
            print(f"\r{'':78}\r", end="", file=sys.stderr, flush=True)
