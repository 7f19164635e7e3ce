"""What SQLite's errors mean to the owner: one translation, at the edge of the database."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import peewee

from fermix.errors import StoreBusy, StoreCorrupt, StoreError, StoreFailing, StoreFull


def translated(error: BaseException, path: Path) -> BaseException:
    """A fresh error of `errors.py`, caused by `error`, for a failing disk or file; else `error` itself.

    A constraint that refused a row or a wrong statement stays what it is: its caller must know.
    """
    native = _native(error)
    name = getattr(native, "sqlite_errorname", None)
    if native is None or not isinstance(name, str):
        return error
    meaning = _meaning(native, name, path)
    if meaning is None:
        return error
    meaning.__cause__ = error
    return meaning


def _meaning(native: sqlite3.Error, name: str, path: Path) -> StoreError | None:
    primary = name.split("_")[1]
    if primary == "FULL":
        return full(path)
    if primary in ("CORRUPT", "NOTADB"):
        return damaged(path, str(native))
    if primary == "ERROR" and str(native).startswith(("no such table", "no such column")):
        return damaged(path, str(native))  # the schema is checked by tests: someone took a part of it away
    if primary in ("BUSY", "LOCKED"):
        return StoreBusy(
            f"The database '{path}' is held by another process ({native}).",
            hint=f"See which one: fuser '{path}'",
        )
    if primary in ("IOERR", "READONLY", "CANTOPEN", "PERM", "AUTH", "NOLFS", "PROTOCOL", "NOMEM"):
        return StoreFailing(
            f"The database '{path}' cannot be used ({native}; {name}).",
            hint=f"Check owner, mode and disk: ls -l '{path}'; df -h '{path.parent}'",
        )
    if primary == "INTERRUPT":
        return StoreError(f"A query of the database '{path}' was stopped before it ended.")
    return None


def full(path: Path) -> StoreFull:
    """What is said when the disk has no room."""
    return StoreFull(
        f"No room left on the disk of the database '{path}'; nothing of this was kept.",
        hint=f"Free some space: df -h '{path.parent}'",
    )


def damaged(path: Path, detail: str) -> StoreCorrupt:
    """The one thing said about a damaged file, with the way out."""
    return StoreCorrupt(
        f"The database '{path}' is damaged ({detail}); expected an intact SQLite file.",
        hint=(
            "Stop fermix and keep the damaged files: "
            f"cd '{path.parent}' && mkdir damaged && mv {path.name}* damaged/ ; then put a backup "
            "in their place, or start fermix to begin with an empty one."
        ),
    )


def _native(error: BaseException) -> sqlite3.Error | None:
    """The driver's own error: `error`, or the one peewee wrapped into it."""
    if isinstance(error, sqlite3.Error):
        return error
    wrapped = getattr(error, "orig", None) if isinstance(error, peewee.PeeweeException) else None
    return wrapped if isinstance(wrapped, sqlite3.Error) else None
