"""Opens the home's database to look at it; nothing in it or beside it is changed."""

from __future__ import annotations

import errno
import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from fermix.paths import Home

BUSY_S = 2.0
_STEPS = 100_000
"""Steps of SQLite's machine between two signs of life."""


@contextmanager
def opened(
    home: Home, *, is_used: bool, tick: Callable[[], None] | None = None
) -> Iterator[sqlite3.Connection]:
    """A connection that cannot write.

    is_used: whether a daemon may have it open. A file that nobody uses and that was closed properly
    is opened as immutable, so that SQLite makes no files beside it.
    Raises: sqlite3.Error, here or while it is used; PermissionError for another user's file, beside
    which root would leave files that its owner cannot use.
    """
    if home.database.stat().st_uid != os.geteuid():
        raise PermissionError(errno.EPERM, os.strerror(errno.EPERM), str(home.database))
    is_whole = not is_used and not _wal_bytes(home.database)
    how = "mode=ro&immutable=1" if is_whole else "mode=ro"
    uri = f"{home.database.absolute().as_uri()}?{how}"
    with closing(sqlite3.connect(uri, uri=True, timeout=BUSY_S)) as connection:
        if tick is not None:
            connection.set_progress_handler(tick, _STEPS)
        connection.execute("PRAGMA query_only = 1")
        yield connection


def _wal_bytes(path: Path) -> int:
    try:
        return path.with_name(path.name + "-wal").stat().st_size
    except OSError:
        return 0
