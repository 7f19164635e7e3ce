"""A real thread and its connection: nothing else ever touches that connection."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import suppress
from contextvars import copy_context
from dataclasses import dataclass
from typing import Generic, TypeVar, cast

import gevent.threadpool
from gevent.event import AsyncResult

from fermix.db.connection import Connection, within
from fermix.tasks import at_most

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Outcome(Generic[Result]):
    """How a job on a lane ended: a value, or an error with no value."""

    value: Result | None
    error: BaseException | None


class Lane:
    """Runs one job at a time on its own thread, with its own connection, opened at the first job."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        # A pool of one: gevent knows how to wake the hub from its threads, and the thread lives
        # as long as the pool. Made on the hub's thread, after any fork.
        self._pool = gevent.threadpool.ThreadPool(1)

    def begin(self, job: Callable[[Connection], Result]) -> AsyncResult[Outcome[Result]]:
        """Start `job` and return at once; the outcome arrives on the hub and is never an exception."""
        context = copy_context()
        return cast(
            "AsyncResult[Outcome[Result]]",
            self._pool.spawn(lambda: context.run(self._run, job)),
        )

    def _run(self, job: Callable[[Connection], Result]) -> Outcome[Result]:
        try:
            if self._connection.is_closed():
                self._connection.open()
            return Outcome(within(self._connection, job), None)
        # The thread's boundary: whatever the job raised, exits too, belongs to who asked for it.
        except BaseException as error:
            return Outcome(None, error)

    def interrupt(self) -> None:
        """Make the query that runs now, if any, end with an error. Safe from any thread."""
        # Its thread may be opening or closing it this very moment; then there is nothing to end.
        with suppress(sqlite3.ProgrammingError):
            if not self._connection.is_closed():
                self._connection.native.interrupt()

    def close(self, timeout_s: float) -> bool:
        """Close the connection, end the thread; whether both were gone within `timeout_s`."""
        with at_most(timeout_s) as limit:
            self._pool.spawn(self._connection.shut).get()
            self._pool.kill()
        return not limit.is_over


def outcome_of(result: AsyncResult[Outcome[Result]]) -> Outcome[Result]:
    """What a finished job came to."""
    return cast("Outcome[Result]", result.get(block=False))
