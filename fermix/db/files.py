"""The database's file and the two that SQLite keeps beside it."""

from __future__ import annotations

import errno
import logging
import os
import stat
from pathlib import Path

from fermix.db.failures import full
from fermix.errors import StoreError, StoreGone

log = logging.getLogger(__name__)


def wal_of(path: Path) -> Path:
    """The write-ahead log beside the database. Never removed by us: another process may use it."""
    return path.with_name(path.name + "-wal")


def size_of(path: Path) -> int:
    """Bytes in the file; 0 when there is none."""
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


class OpenFiles:
    """Which files are open, to notice when others, or none, lie under their names."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._wal_path = wal_of(path)
        self._database = _identity_of(path)
        self._wal: tuple[int, int] | None = None
        """None until the first commit has made it."""

    def check(self) -> None:
        """Raises: StoreGone when what is written now would be lost with the last connection."""
        wal = _identity_of(self._wal_path)
        if self._wal is None:
            self._wal = wal
        if self._wal != wal or self._database != _identity_of(self._path):
            raise StoreGone(
                f"The database '{self._path}' was removed or replaced while fermix had it open; "
                "nothing of this was kept.",
                hint=f"Look at it with: ls -l '{self._path}'*",
            )


def _identity_of(path: Path) -> tuple[int, int] | None:
    try:
        found = os.stat(path)  # noqa: PTH116 (twice per commit: no Path objects)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def prepare(path: Path) -> bool:
    """Make the file when it is missing, 0600 from its first byte, and close it to others if it is open.

    Returns whether the last process to use it did not close it: its log is still there.
    Raises: StoreFull, StoreError when the place cannot be used.
    """
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        _create(path)
        mode = stat.S_IMODE(path.stat().st_mode)
        if mode & 0o077:
            path.chmod(0o600)
            log.warning("The database '%s' had mode %04o; it is 0600 now", path, mode)
        return wal_of(path).exists()
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise full(path) from error
        raise StoreError(
            f"The database '{path}' cannot be opened: {error.strerror}.",
            hint=f"Check owner, mode and disk: ls -ld '{path.parent}' '{path}'; df -h '{path.parent}'",
        ) from error


def _create(path: Path) -> None:
    # Only ever opened when it was not there: closing any descriptor of a file drops the POSIX locks
    # of this process on it, SQLite's too. SQLite gives the side files this file's mode.
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, 0o600))
    except FileExistsError:
        return
