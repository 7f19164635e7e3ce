"""Copying the write-ahead log into the database, so that it never grows without bound.

SQLite would do it inside the COMMIT that crosses a limit; here it happens after the writers were
answered, on the writer's thread.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path

from fermix.db.connection import Connection
from fermix.db.files import size_of, wal_of
from fermix.db.settings import DatabaseSettings

_COMMITS_BETWEEN = 256


class Checkpoints:
    """Decides after each commit whether the log is copied back, and whether to wait for readers."""

    def __init__(self, path: Path, settings: DatabaseSettings) -> None:
        self._wal = wal_of(path)
        self._settings = settings
        self._commits = 0
        self._size_bytes = 0
        """Of the log after the last checkpoint; the file is reused, so it need not shrink."""

    def after_commit(self, connection: Connection) -> str | None:
        """Checkpoint when it is due. Returns what the log should say when it did not get far."""
        self._commits += 1
        size_bytes = size_of(self._wal)
        is_over = size_bytes >= self._settings.wal_limit_bytes
        grown_bytes = size_bytes - self._size_bytes
        if self._commits < _COMMITS_BETWEEN and grown_bytes < self._settings.checkpoint_bytes:
            return None
        notice = None
        try:
            if is_over:
                notice = self._truncate(connection)
            else:
                connection.native.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
        except sqlite3.Error as error:
            # Nothing is lost: the log still holds every commit. A full disk is the usual reason.
            notice = f"The write-ahead log could not be copied into the database: {error}"
        self._commits = 0
        self._size_bytes = size_of(self._wal)
        return notice

    def truncate(self, connection: Connection) -> bool:
        """Copy the whole log back and cut it to nothing; False while a reader keeps it."""
        notice = self._truncate(connection)
        self._commits = 0
        self._size_bytes = size_of(self._wal)
        return notice is None

    def _truncate(self, connection: Connection) -> str | None:
        """Wait a little for readers to let go of the log, then cut it to nothing."""
        wait_ms = min(200, self._settings.busy_timeout_ms)
        connection.native.execute(f"PRAGMA busy_timeout = {wait_ms}")
        try:
            is_busy, *_ = connection.native.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        finally:
            connection.native.execute(f"PRAGMA busy_timeout = {self._settings.busy_timeout_ms}")
        if is_busy:
            return f"A long read keeps the write-ahead log at {size_of(self._wal)} bytes"
        return None
