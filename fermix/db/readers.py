"""A fixed few threads that read, each with a connection that cannot write."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar, cast

from gevent.queue import Empty, LifoQueue

from fermix.db.connection import Connection
from fermix.db.failures import translated
from fermix.db.lane import Lane, outcome_of
from fermix.errors import StoreError
from fermix.tasks import Deadline

Result = TypeVar("Result")


class Readers:
    """Hands each read to a free thread; the rest wait their turn."""

    def __init__(self, path: Path, connections: list[Connection]) -> None:
        self._path = path
        self._lanes = [Lane(connection) for connection in connections]
        # The lane used last has the warmest page cache.
        self._free: LifoQueue[Lane] = LifoQueue()
        for lane in self._lanes:
            self._free.put(lane)

    def run(self, work: Callable[[Connection], Result], *, timeout_s: float) -> Result:
        """What `work` returned, all of it from one snapshot.

        A read whose time is over, or whose greenlet is killed, is interrupted inside SQLite.
        Raises: StoreError when no thread was free or the read did not end in time.
        """
        deadline = Deadline.after(timeout_s)
        try:
            lane = self._free.get(timeout=timeout_s)
        except Empty:
            raise StoreError(
                f"A read of '{self._path}' waited {timeout_s:g} s for one of {len(self._lanes)} readers."
            ) from None
        result = lane.begin(lambda connection: _in_snapshot(connection, work))
        # Also when nobody waits any more: only the end of the job makes the lane free again.
        result.rawlink(lambda _: self._free.put_nowait(lane))
        try:
            if result.wait(deadline.remaining_s()) is None:
                raise StoreError(f"A read of '{self._path}' took longer than {timeout_s:g} s.")
        finally:
            if not result.ready():
                lane.interrupt()
        outcome = outcome_of(result)
        if outcome.error is not None:
            raise translated(outcome.error, self._path)
        return cast(Result, outcome.value)

    def close(self, deadline: Deadline) -> None:
        """Stop what runs and close every connection."""
        for lane in self._lanes:
            lane.interrupt()
        for lane in self._lanes:
            lane.close(deadline.remaining_s())


def _in_snapshot(connection: Connection, work: Callable[[Connection], Result]) -> Result:
    connection.native.execute("BEGIN")
    try:
        return work(connection)
    finally:
        if connection.native.in_transaction:
            connection.native.execute("ROLLBACK")
