"""Studies on a Dask cluster.

``python -m hybridsim._cluster ADDRESS`` serves ``hybridsim sweep --dask``: it reads tasks from
standard input and writes outcomes to standard output, one JSON document a line.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import pathlib
import sys
import time
import uuid
from collections.abc import Iterator
from concurrent.futures import CancelledError
from typing import Any

from ._tasks import Future, Place, Task, run_all, sees, simulate
from .errors import Error, missing

SHIPPED_BYTES_MAX = 1 << 30
"""Larger traces are not sent to workers, which hold them in memory."""

_WAIT_S = 600.0
"""How long a cluster without scheduler or workers is waited for."""


def _work(task: Task, place: Place, data: bytes | None = None) -> str:
    """Simulates a task in a worker, within the worker's limit of memory."""
    from dataclasses import replace

    from distributed import get_worker

    limit = getattr(get_worker().memory_manager, "memory_limit", None)
    if place.memory is None and limit:
        place = replace(place, memory=int(limit))
    return simulate(task, place, data)


def is_client(executor: Any) -> bool:
    """Whether it is a client of Dask, without importing Dask."""
    return any(
        kind.__module__.startswith("distributed.") and kind.__name__ == "Client"
        for kind in type(executor).__mro__
    )


class DaskPool:
    """The workers of a Dask cluster.

    The key of a Dask task is that of the result: two studies that ask for the same point at the
    same time run it once. Futures that a lost scheduler has forgotten are submitted again, to the
    scheduler that answers at the same address.
    """

    def __init__(self, client: Any, place: Place) -> None:
        self._client = client
        self._place = place
        self._address = client.scheduler.address
        self._own: list[Any] = []
        self._shipped: dict[str, Any] = {}
        self._counted = (0.0, 0)
        self._alone_since: float | None = None

    def width(self) -> int:
        """Twice the threads of all workers: each finds its next task when it ends one."""
        if time.monotonic() - self._counted[0] > 1.0:
            self._counted = (time.monotonic(), self._threads())
        return 2 * max(self._counted[1], 1)

    def _threads(self) -> int:
        try:
            threads = sum(self._connected().nthreads().values())
        except (OSError, TimeoutError, RuntimeError):
            threads = 0
        now = time.monotonic()
        if threads:
            self._alone_since = None
        elif self._alone_since is None:
            self._alone_since = now
        elif now - self._alone_since > _WAIT_S:
            raise Error(
                f"the cluster at {self._address} has had no workers for {_WAIT_S:.0f} s; the same "
                "call resumes when it is back"
            )
        return int(threads)

    def workers(self) -> str:
        """How many threads there are, for the progress line."""
        return f", {self._counted[1]} threads"

    def _connected(self) -> Any:
        """The client, or a new one if it has given up."""
        if self._client.status in ("closed", "closing"):
            from distributed import Client

            self._shipped = {}
            self._client = Client(self._address, set_as_default=False, timeout=5)
            self._own.append(self._client)
        return self._client

    def submit(self, task: Task) -> Future:
        began = time.monotonic()
        while True:
            try:
                return self._submit(task)
            except (OSError, TimeoutError, RuntimeError) as error:
                if time.monotonic() - began > _WAIT_S:
                    message = f"the cluster at {self._address} does not answer: {error}"
                    raise Error(message) from error
                time.sleep(1.0)

    def _submit(self, task: Task) -> Future:
        client = self._connected()
        data = None if task.replayed is None else self._data(client, *task.replayed)
        future: Future = client.submit(
            _work, task, self._place, data, key=f"hybridsim-{task.key}", pure=False
        )
        return future

    def _data(self, client: Any, path: str, digest: str) -> Any:
        """The trace as a Dask future; `None` if all workers see the file."""
        if digest not in self._shipped:
            seen = client.run(sees, path, digest)
            if not seen:
                raise TimeoutError("it has no workers yet")
            self._shipped[digest] = None if all(seen.values()) else _ship(client, path)
        return self._shipped[digest]

    def is_lost(self, future: Any) -> bool:
        is_lost = future.status in ("lost", "cancelled")
        if is_lost:
            self._shipped = {}  # With the workers.
        return is_lost

    def outcome(self, future: Any) -> str | None:
        from distributed import KilledWorker

        if self.is_lost(future):
            return None
        try:
            return str(future.result())
        except KilledWorker as error:
            times = error.allowed_failures + 1
            return json.dumps({"failed": f"the workers that ran it were lost {times} times"})
        # The scheduler, or the worker that had the result, has gone.
        except (OSError, TimeoutError, CancelledError, asyncio.CancelledError):
            return None

    def close(self) -> None:
        """Ends the connections that are its own."""
        for client in self._own:
            client.close()


def _ship(client: Any, path: str) -> Any:
    size = os.path.getsize(path)
    if size > SHIPPED_BYTES_MAX:
        raise Error(
            f"{path} has {size >> 20}MiB and is not on every worker; put it on a shared file "
            f"system (at most {SHIPPED_BYTES_MAX >> 20}MiB are sent)"
        )
    return client.scatter(pathlib.Path(path).read_bytes(), broadcast=True)


@contextlib.contextmanager
def shared(store: str | os.PathLike[str] | None, **options: Any) -> Iterator[Place]:
    """A place whose store workers recognise if they see the same folder."""
    if store is None:
        yield Place(**options)
        return
    folder = os.path.abspath(store)
    os.makedirs(folder, exist_ok=True)
    token = f".{uuid.uuid4().hex}.driver"
    path = pathlib.Path(folder, token)
    path.touch()
    try:
        yield Place(store=folder, token=token, **options)
    finally:
        path.unlink(missing_ok=True)


def connect(address: str) -> Any:
    """A client of the scheduler at `address`."""
    try:
        from distributed import Client
    except ImportError:
        raise missing("dask", "dask.distributed") from None
    try:
        return Client(address, set_as_default=False, timeout=10)
    except (OSError, ValueError) as error:
        raise Error(f"no Dask scheduler answers at {address}: {error}") from None


def main() -> int:
    """Serves the command."""
    parser = argparse.ArgumentParser(prog="hybridsim._cluster")
    parser.add_argument("address")
    parser.add_argument("--store")
    parser.add_argument("--no-cache", action="store_true")
    options = parser.parse_args()
    try:
        client = connect(options.address)
        pool: DaskPool | None = None
        with shared(options.store, cache=not options.no_cache) as place:
            pool = DaskPool(client, place)
            tasks = (Task.read(line) for line in sys.stdin)
            for number, outcome in run_all(tasks, pool):
                answer = f'{{"finished": [{number}, {outcome}]}}'
                print(answer, flush=True)
            pool.close()
        client.close()
    except (Error, ImportError) as error:
        print(json.dumps({"refused": str(error)}), flush=True)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
