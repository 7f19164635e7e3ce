"""The database: whole, of a schema this fermix knows, with a log of writes that is kept short."""

from __future__ import annotations

import shlex
import sqlite3
from contextlib import closing
from pathlib import Path

from fermix.db import migrate
from fermix.setup.doctor.finding import Finding, Topic, quoted
from fermix.setup.doctor.scene import Scene, Wanted
from fermix.setup.doctor.store import opened

TOPIC = Topic("database")
CHECKED_BYTES = 32_000_000
"""A file up to this size is checked page by page without --full: it takes a blink."""
_MAGIC = b"SQLite format 3\0"


def look(scene: Scene) -> list[Finding]:
    """Reads only; a daemon that has it open is not disturbed."""
    path = scene.home.database
    if not path.exists():
        return _missing(path)
    if not path.is_file():
        return [TOPIC.fail(f"'{path}' is not a file.", f"mv {quoted(path)} {quoted(path)}.aside")]
    try:
        size_bytes = path.stat().st_size
        with path.open("rb") as file:
            magic = file.read(len(_MAGIC))
        if size_bytes and magic != _MAGIC:
            return [_damaged(path, "it does not begin as an SQLite file does")]
        return _inside(scene, size_bytes)
    except sqlite3.Error as error:
        return [_refused(path, error)]
    except PermissionError:
        raise  # the run tells whose it is not
    except OSError as error:
        return [TOPIC.fail(f"'{path}' cannot be read: {error.strerror}.", f"ls -l {quoted(path)}")]


def _missing(path: Path) -> list[Finding]:
    if (wal := path.with_name(path.name + "-wal")).exists():
        return [
            TOPIC.fail(
                f"'{wal}' is there, but not the database '{path}' it belongs to.",
                f"find / -xdev -name {shlex.quote(path.name)} 2>/dev/null",
            )
        ]
    return [TOPIC.skipped(f"There is no database '{path}' yet; the first start makes it.")]


def _inside(scene: Scene, size_bytes: int) -> list[Finding]:
    path, is_checked = scene.home.database, scene.is_full or size_bytes <= CHECKED_BYTES
    migrations = migrate.find()
    known = len(migrations)
    with opened(scene.home, is_used=scene.status is not None) as connection:
        version = migrate.version_of(connection)
        if version > known:
            return [
                TOPIC.fail(
                    f"'{path}' has schema {version}, written by a newer fermix; "
                    f"this one ({scene.version}) knows up to {known}.",
                    "type -a fermix  # run the newer one again, or put back a backup from before it",
                )
            ]
        lost = _tables_of(migrations[:version]) - _tables_in(connection)
        if lost:
            return [_damaged(path, f"its table '{min(lost)}' is gone")]
        said = "ok" if not is_checked else str(connection.execute("PRAGMA quick_check(1)").fetchone()[0])
    if said != "ok":
        return [_damaged(path, said.replace("\n", " "))]
    whole = "intact" if is_checked else "not checked page by page (fermix doctor --full does)"
    older = "" if version == known else f" of {known}, brought up to date at the next start"
    told = TOPIC.ok(f"'{path}': schema {version}{older}, {size_bytes // 1000} kB, {whole}.")
    return [told, *_log(scene)]


def _tables_of(migrations: list[migrate.Migration]) -> set[str]:
    """The tables these migrations make."""
    with closing(sqlite3.connect(":memory:")) as fresh:
        for migration in migrations:
            fresh.executescript(migration.sql)
        return _tables_in(fresh)


def _tables_in(connection: sqlite3.Connection) -> set[str]:
    return {row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}


def _log(scene: Scene) -> list[Finding]:
    """The write-ahead log grows without bound when nobody copies it back."""
    limit_bytes = (scene.wanted() or Wanted()).wal_limit_bytes
    wal = scene.home.database.with_name(scene.home.database.name + "-wal")
    try:
        size_bytes = wal.stat().st_size
    except OSError:
        return []
    if size_bytes <= 2 * limit_bytes:
        return []
    return [
        TOPIC.warn(
            f"The write-ahead log '{wal}' has grown to {size_bytes / 1e6:.0f} MB; "
            f"its limit is {limit_bytes / 1e6:.0f} MB.",
            "fermix restart" if scene.status is not None else "fermix start",
        )
    ]


def _refused(path: Path, error: sqlite3.Error) -> Finding:
    name = str(getattr(error, "sqlite_errorname", ""))
    if name.startswith(("SQLITE_CORRUPT", "SQLITE_NOTADB", "SQLITE_ERROR")):
        return _damaged(path, str(error))
    if name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
        return TOPIC.warn(f"'{path}' is held by another process ({error}).", f"fuser -v {quoted(path)}")
    return TOPIC.fail(f"'{path}' cannot be opened ({error}; {name}).", f"ls -l {quoted(path)}*")


def _damaged(path: Path, detail: str) -> Finding:
    """Moving the files aside is the owner's decision: a backup may be at hand."""
    return TOPIC.fail(
        f"'{path}' is damaged ({detail}); expected an intact SQLite file.",
        f"fermix stop; cd {quoted(path.parent)} && mkdir -p damaged && mv {path.name}* damaged/"
        "  # then put a backup in its place, or start with an empty one",
    )
