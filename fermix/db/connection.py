"""A native connection to the database file, used by exactly one real thread."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import suppress
from contextvars import ContextVar
from pathlib import Path
from typing import Any, TypeVar, cast

import peewee

from fermix.db.settings import DatabaseSettings
from fermix.errors import StoreError

Result = TypeVar("Result")

READER_CACHE_KIB = 512
"""Of each reader; with SQLite's own 2 MB each, memory would grow with the database."""
WRITER_CACHE_KIB = 2048


class Connection(peewee.SqliteDatabase):
    """What `work` is handed: peewee queries and plain SQL run on it, inside a transaction.

    `connection.execute_sql(sql, parameters)` returns a cursor; `with connection.atomic():` makes a
    savepoint. The driver refuses every other thread than the one that called `connect`.
    """

    def __init__(self, path: Path, settings: DatabaseSettings, *, is_reader: bool) -> None:
        pragmas = {
            "busy_timeout": settings.busy_timeout_ms,
            "foreign_keys": 1,
            "query_only": int(is_reader),
            "cache_size": -(READER_CACHE_KIB if is_reader else WRITER_CACHE_KIB),
            # What is deleted or replaced is overwritten in the file: somebody's words are gone then.
            "secure_delete": 1,
            # The writer copies the log back itself, after it has answered.
            "wal_autocheckpoint": 0,
            "journal_size_limit": settings.checkpoint_bytes,
        }
        # mode=rw: never creates the file, so that nobody makes one with a loose mode.
        super().__init__(
            f"{path.absolute().as_uri()}?mode=rw",
            pragmas,
            uri=True,
            thread_safe=False,
            autoconnect=False,
            timeout=settings.busy_timeout_ms / 1000,
        )

    def open(self) -> None:
        """Connect from the thread that will use it."""
        self.connect()
        # peewee now believes a transaction is open, which is true whenever work runs: its
        # `atomic` makes savepoints instead of a BEGIN inside our own.
        self.push_transaction(self)

    def shut(self) -> None:
        """Close, from the same thread."""
        if self.is_closed():
            return
        self.bookkeeping().transactions.clear()
        # The commits are in the file already; whoever opens it next recovers.
        with suppress(peewee.PeeweeException):
            self.close()

    @property
    def native(self) -> sqlite3.Connection:
        """The driver's connection, once it is open."""
        return cast(sqlite3.Connection, self.bookkeeping().conn)

    def bookkeeping(self) -> Any:
        """peewee's record of connection and transactions; Any: it has no public type."""
        return vars(self)["_state"]

    def _log_query(self, sql: str, parameters: object) -> None:
        """Nothing: peewee would log the parameters at debug level, and they are what people said."""

    def pragma_text(self, pragma: str) -> str:
        """What `PRAGMA pragma` answers, as text."""
        row = self.native.execute(f"PRAGMA {pragma}").fetchone()
        return "" if row is None else str(row[0])


_current: ContextVar[Connection] = ContextVar("fermix.db.connection")


def within(connection: Connection, work: Callable[[Connection], Result]) -> Result:
    """Run `work` with every Row bound to `connection`."""
    token = _current.set(connection)
    try:
        return work(connection)
    finally:
        _current.reset(token)


def is_inside_work() -> bool:
    """Whether the caller is itself work of `db.read` or `db.write`."""
    return _current.get(None) is not None


def current() -> Connection:
    """The connection of the work that is running.

    Raises: StoreError outside of `db.read` and `db.write`.
    """
    connection = _current.get(None)
    if connection is None:
        raise StoreError("A row was used outside of db.read(work) and db.write(work).")
    return connection
