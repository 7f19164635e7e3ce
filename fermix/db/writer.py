"""The only thread that writes: works that wait together share one commit."""

from __future__ import annotations

import logging
import sqlite3
import time
from collections import deque
from collections.abc import Callable
from contextvars import copy_context
from pathlib import Path
from typing import Any, Generic, TypeVar, cast

import gevent
from gevent.event import AsyncResult, Event

from fermix.db.checkpoint import Checkpoints
from fermix.db.connection import Connection, within
from fermix.db.failures import translated
from fermix.db.files import OpenFiles
from fermix.db.lane import Lane, Outcome, outcome_of
from fermix.db.settings import DatabaseSettings
from fermix.errors import StoreError

log = logging.getLogger(__name__)

Result = TypeVar("Result")


class _Write(Generic[Result]):
    """One work on its way to the writer thread and back."""

    __slots__ = ("context", "error", "has_ended", "is_abandoned", "is_durable", "value", "work")

    def __init__(self, work: Callable[[Connection], Result], is_durable: bool) -> None:
        self.work = work
        self.is_durable = is_durable
        self.context = copy_context()
        self.has_ended = Event()
        self.is_abandoned = False
        """Whether nobody waits any more; then it is not begun."""
        self.value: Result | None = None
        self.error: BaseException | None = None


class _TransactionLost(Exception):
    """The open transaction is gone: SQLite rolled it back, or a work ended it."""


class Writer:
    """Collects works on the hub and commits them in batches on its lane's thread."""

    def __init__(
        self,
        lane: Lane,
        path: Path,
        *,
        settings: DatabaseSettings,
        is_wal: bool,
    ) -> None:
        self._lane = lane
        self._path = path
        self._settings = settings
        self._is_wal = is_wal
        self._checkpoints = Checkpoints(path, settings)
        self._files = OpenFiles(path)
        self._notices: deque[str] = deque()
        """What the thread has to say: it does not log itself, the log's lock belongs to greenlets."""
        self._waiting: deque[_Write[Any]] = deque()  # Any: each work has a result type of its own
        self._loop = gevent.get_hub().loop
        self._is_draining = False
        self._is_idle = Event()
        self._is_idle.set()
        self._synchronous = ""

    def run(self, work: Callable[[Connection], Result], *, durable: bool, timeout_s: float) -> Result:
        """What `work` returned, after the commit it was part of.

        A greenlet killed while it waits takes back a work that was not begun; one that was begun is
        committed all the same.
        Raises: what `work` raised, after its own changes were undone; StoreError, and then it may
        still be committed, when `timeout_s` is over.
        """
        write = _Write(work, durable)
        self._waiting.append(write)
        self._drain_soon()
        try:
            has_ended = write.has_ended.wait(timeout_s)
        finally:
            write.is_abandoned = True
        while self._notices:
            log.warning(self._notices.popleft())
        if not has_ended:
            raise StoreError(f"A write to '{self._path}' waited {timeout_s:g} s for its commit.")
        if write.error is not None:
            raise write.error
        return cast(Result, write.value)

    def flush(self, timeout_s: float) -> bool:
        """Commit all that waits; whether it was done in time."""
        return bool(self._is_idle.wait(timeout_s))

    def begin_wipe(self) -> AsyncResult[Outcome[bool]]:
        """Rewrite the file after the batch that runs and empty the log; False while a reader keeps it."""

        def job(connection: Connection) -> bool:
            # `secure_delete` misses copies that moving rows between pages left in their unused parts.
            connection.native.execute("VACUUM")
            return not self._is_wal or self._checkpoints.truncate(connection)

        return self._lane.begin(job)

    def close(self, timeout_s: float) -> bool:
        """Close the connection and end the thread; whether both were gone in time."""
        return self._lane.close(timeout_s)

    # Everything from here to `_ended` runs on the hub's thread.

    def _drain_soon(self) -> None:
        if not self._is_draining:
            self._is_draining = True
            self._is_idle.clear()
            self._lane.begin(self._drain).rawlink(self._ended)

    def _ended(self, result: AsyncResult[Outcome[None]]) -> None:
        self._is_draining = False
        error = outcome_of(result).error
        if error is not None:
            # The connection could not be opened again, or a bug in this file: all who wait hear it.
            lost, self._waiting = list(self._waiting), deque()
            for write in lost:
                write.error = translated(error, self._path)
            self._deliver(lost)
        if self._waiting:
            self._drain_soon()
        else:
            self._is_idle.set()

    def _deliver(self, batch: list[_Write[Any]]) -> None:
        for write in batch:
            write.has_ended.set()

    # Everything below runs on the lane's thread.

    def _drain(self, connection: Connection) -> None:
        """Commit batches until nothing waits, or the connection had to be given up."""
        while self._waiting and not connection.is_closed():
            batch = self._next_batch()
            try:
                if batch:
                    self._commit(connection, batch)
            # The thread's boundary: what goes wrong here belongs to those who wait for the batch.
            except Exception as error:
                self._fail(connection, batch, error)
            # One callback per batch: waking the hub costs more than the rows.
            self._loop.run_callback_threadsafe(self._deliver, batch)
            if self._is_wal and not connection.is_closed():
                notice = self._checkpoints.after_commit(connection)
                if notice is not None:
                    self._notices.append(notice)

    def _next_batch(self) -> list[_Write[Any]]:
        batch: list[_Write[Any]] = []
        while self._waiting and len(batch) < self._settings.batch_limit:
            write = self._waiting.popleft()
            if not write.is_abandoned:
                batch.append(write)
        return batch

    def _commit(self, connection: Connection, batch: list[_Write[Any]]) -> None:
        """Run and commit the works of `batch`; what did not fit its time goes back and leaves the list."""
        native = connection.native
        self._files.check()
        self._set_synchronous(native, any(write.is_durable for write in batch))
        native.execute("BEGIN IMMEDIATE")
        end_s = time.monotonic() + self._settings.batch_time_ms / 1000
        for number, write in enumerate(batch):
            if number and time.monotonic() >= end_s:
                self._waiting.extendleft(reversed(batch[number:]))
                del batch[number:]
                break
            _run_in_savepoint(connection, write, self._path)
        native.execute("COMMIT")

    def _set_synchronous(self, native: sqlite3.Connection, is_durable: bool) -> None:
        # Without a write-ahead log NORMAL can corrupt the file at a power cut.
        level = "FULL" if is_durable or not self._is_wal else "NORMAL"
        if level != self._synchronous:
            native.execute(f"PRAGMA synchronous = {level}")
            self._synchronous = level

    def _fail(self, connection: Connection, batch: list[_Write[Any]], error: BaseException) -> None:
        reason = error.__cause__ if isinstance(error, _TransactionLost) else error
        for write in batch:
            if write.error is None:
                write.error = translated(reason or error, self._path)
        try:
            if connection.native.in_transaction:
                connection.native.execute("ROLLBACK")
        except sqlite3.Error:
            # A connection that cannot even undo is of no more use; the next drain opens another.
            self._notices.append(f"The connection to '{self._path}' is given up and opened again")
            connection.shut()
            self._synchronous = ""


def _run_in_savepoint(connection: Connection, write: _Write[Any], path: Path) -> None:
    native = connection.native
    native.execute("SAVEPOINT work")
    try:
        write.value = write.context.run(within, connection, write.work)
    # The thread's boundary: whatever the work raised belongs to the greenlet that waits for it.
    except BaseException as error:
        if not native.in_transaction:
            # A full disk or failing I/O makes SQLite undo the whole transaction, not the statement.
            raise _TransactionLost from error
        native.execute("ROLLBACK TO work")
        write.error = translated(error, path)
    if not native.in_transaction:
        raise _TransactionLost from StoreError(
            "A work ended the transaction itself; db.write does the COMMIT and ROLLBACK."
        )
    native.execute("RELEASE work")
