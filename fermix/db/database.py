"""The database of the home: opened, recovered and migrated, then read and written through threads."""

from __future__ import annotations

import logging
import sqlite3
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from math import inf
from pathlib import Path
from typing import TypeVar, cast

from gevent.event import Event

from fermix.db import files, migrate
from fermix.db.connection import Connection, is_inside_work
from fermix.db.failures import damaged, translated
from fermix.db.lane import Lane, outcome_of
from fermix.db.readers import Readers
from fermix.db.settings import DatabaseSettings
from fermix.db.writer import Writer
from fermix.errors import StoreClosed, StoreCorrupt, StoreError, StoreGone
from fermix.tasks import Deadline, TaskGroup

log = logging.getLogger(__name__)

Result = TypeVar("Result")

_CHECK_TIMEOUT_S = 3600.0
_CLOSE_TIMEOUT_S = 10.0
_QUIET_S = 60.0


class Integrity(StrEnum):
    """What is known about the file after the last stop."""

    CLEAN = "clean"
    """It was closed properly; nothing to check."""
    CHECKING = "checking"
    INTACT = "intact"
    DAMAGED = "damaged"
    UNKNOWN = "unknown"
    """The check could not be finished."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreHealth:
    """What a health report says about the database."""

    path: str
    is_open: bool
    journal_mode: str
    schema: int
    """How many migrations the file has seen."""
    wal_bytes: int
    integrity: Integrity
    last_error: str | None
    """The last failure of disk or file; None when a write has gone well since, damage excepted."""


class Database:
    """SQLite for the whole worker: `write` commits in batches on one thread, `read` on a few others."""

    def __init__(
        self, path: Path, settings: DatabaseSettings, *, migrations: Path = migrate.MIGRATIONS
    ) -> None:
        self._path = path
        self._settings = settings
        self._migrations = migrations
        self._writer: Writer | None = None
        self._readers: Readers | None = None
        self._tasks = TaskGroup("db")
        self._farewell = TaskGroup("db/gone")
        self._ended = Event()
        self._gone: StoreGone | None = None
        self._journal_mode = ""
        self._schema = 0
        self._integrity = Integrity.CLEAN
        self._last_error: str | None = None
        self._quiet_until_s: dict[str, float] = {}

    def start(self) -> None:
        """Open the file, let SQLite recover it, migrate it; then reads and writes work.

        After a stop that was not clean a check of the whole file runs beside them.
        Raises: StoreCorrupt, SchemaNewer, StoreFull, StoreError; nothing is left open then.
        """
        migrations = migrate.find(self._migrations)
        is_unclean = files.prepare(self._path)
        lane = Lane(Connection(self._path, self._settings, is_reader=False))
        try:
            applied = self._call(lane, lambda connection: self._open(connection, migrations, is_unclean))
        except BaseException:
            lane.close(_CLOSE_TIMEOUT_S)
            raise
        self._say(applied)
        self._ended.clear()
        self._gone = None
        self._last_error = None
        self._quiet_until_s.clear()
        is_wal = self._journal_mode == "wal"
        self._writer = Writer(lane, self._path, settings=self._settings, is_wal=is_wal)
        self._readers = Readers(
            self._path,
            [Connection(self._path, self._settings, is_reader=True) for _ in range(self._settings.readers)],
        )
        self._integrity = Integrity.CLEAN
        if is_unclean:
            self._integrity = Integrity.CHECKING
            self._tasks.start(self._check, name="check")

    def stop(self, timeout_s: float = _CLOSE_TIMEOUT_S) -> None:
        """Commit what waits, close every connection; later reads and writes raise StoreClosed."""
        deadline = Deadline.after(timeout_s)
        readers, self._readers = self._readers, None
        writer, self._writer = self._writer, None
        if writer is not None and not writer.flush(deadline.remaining_s()):
            log.error("The database '%s' was stopped before its writes were committed", self._path)
        self._tasks.stop(deadline.remaining_s())
        if readers is not None:
            readers.close(deadline)
        # Last, since the last connection to close copies the log into the database.
        if writer is not None:
            writer.close(deadline.remaining_s())
        self._ended.set()

    def wait(self, timeout_s: float) -> bool:
        """Whether it was stopped within `timeout_s`. A failing disk fails its callers, not the database.

        Raises: StoreGone once the open file is not the one under its name any more; it is closed then.
        """
        has_ended = bool(self._ended.wait(timeout_s))
        if has_ended and self._gone is not None:
            raise self._gone
        return has_ended

    def write(self, work: Callable[[Connection], Result], *, durable: bool = False) -> Result:
        """Run `work` on the writer thread, in a savepoint of its own; its value, after the commit.

        `durable`: the commit survives a power cut, else it survives the end of the process only.
        `work` runs off the hub: no greenlet calls in it, and it must not call `write` or `read`.
        Raises: what `work` raised, after its own changes were undone; StoreFull, StoreCorrupt or
        StoreError when the batch could not be committed, and then nothing of it was kept.
        """
        _refuse_inside_work("db.write")
        if self._writer is None:
            raise self._closed()
        try:
            value = self._writer.run(work, durable=durable, timeout_s=self._settings.write_timeout_s)
        except StoreError as error:
            self._failed(error)
            raise
        if self._integrity is not Integrity.DAMAGED:
            self._last_error = None
        return value

    def read(self, work: Callable[[Connection], Result]) -> Result:
        """Run `work` on a reader thread, on one snapshot; its value must not be a lazy query.

        Raises: what `work` raised; StoreCorrupt or StoreError when the file or time fails it.
        """
        return self._read(work, self._settings.read_timeout_s)

    def wipe(self) -> bool:
        """Leave nothing of what was deleted in any file of the database; writes wait meanwhile.

        Rewrites the whole file: about a second for 100 MB.
        False, for the caller to try again, while a reader keeps the log or the disk refuses.
        Raises: StoreClosed.
        """
        if self._writer is None:
            raise self._closed()
        result = self._writer.begin_wipe()
        if result.wait(self._settings.start_timeout_s) is None:
            return False
        outcome = outcome_of(result)
        if outcome.error is not None:
            log.warning("Deleted words are not wiped from '%s' yet: %s", self._path, outcome.error)
        return outcome.value is True

    def health(self) -> StoreHealth:
        """How it is now; safe to ask at any time."""
        return StoreHealth(
            path=str(self._path),
            is_open=self._writer is not None,
            journal_mode=self._journal_mode,
            schema=self._schema,
            wal_bytes=files.size_of(files.wal_of(self._path)),
            integrity=self._integrity,
            last_error=self._last_error,
        )

    def _read(self, work: Callable[[Connection], Result], timeout_s: float) -> Result:
        _refuse_inside_work("db.read")
        if self._readers is None:
            raise self._closed()
        try:
            return self._readers.run(work, timeout_s=timeout_s)
        except StoreError as error:
            self._failed(error)
            raise

    def _call(self, lane: Lane, job: Callable[[Connection], Result]) -> Result:
        result = lane.begin(job)
        if result.wait(self._settings.start_timeout_s) is None:
            lane.interrupt()
            raise StoreError(
                f"The database '{self._path}' was not ready after {self._settings.start_timeout_s:g} s."
            )
        outcome = outcome_of(result)
        if outcome.error is not None:
            raise translated(outcome.error, self._path)
        return cast(Result, outcome.value)

    def _open(
        self, connection: Connection, migrations: list[migrate.Migration], is_unclean: bool
    ) -> list[migrate.Migration]:
        """On the writer's thread, before anybody else has a connection; what was migrated."""
        migrate.refuse_newer(connection.native, migrations, self._path)
        self._journal_mode = _set_journal_mode(connection, self._settings.journal_mode)
        applied = migrate.migrate(connection.native, migrations)
        self._schema = len(migrations)
        if is_unclean and self._journal_mode == "wal":
            # An earlier life may have been killed between deleting something and wiping it from its log.
            with suppress(sqlite3.Error):
                connection.native.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        return applied

    def _say(self, applied: list[migrate.Migration]) -> None:
        wanted = self._settings.journal_mode
        if self._journal_mode != wanted:
            log.warning(
                "The database '%s' is in journal mode '%s'; '%s' was asked for. "
                "Stop whatever else has it open, or see whether its disk allows it",
                self._path,
                self._journal_mode,
                wanted,
            )
        for migration in applied:
            log.info("The database '%s' was brought to schema %s", self._path, migration.name)

    def _check(self) -> None:
        """SQLite's own check of every page, beside the normal reads."""
        log.info("The database '%s' was not closed properly; it is checked in the background", self._path)
        try:
            found = self._read(
                lambda connection: connection.pragma_text("quick_check(1)"), _CHECK_TIMEOUT_S
            )
        except StoreCorrupt:
            self._integrity = Integrity.DAMAGED
        except StoreError as error:
            self._integrity = Integrity.UNKNOWN
            log.warning("The check of '%s' was not finished: %s", self._path, error)
        else:
            if found == "ok":
                self._integrity = Integrity.INTACT
                log.info("The database '%s' is intact", self._path)
            else:
                self._integrity = Integrity.DAMAGED
                self._failed(damaged(self._path, found))

    def _failed(self, error: StoreError) -> None:
        """Remember a failure of disk or file; each kind is logged once a minute, damage once."""
        self._last_error = error.message
        if isinstance(error, StoreCorrupt):
            self._integrity = Integrity.DAMAGED
        if isinstance(error, StoreGone) and self._gone is None:
            self._gone = error
            self._farewell.start(self.stop, name="stop")
        now_s = time.monotonic()
        again_s = self._quiet_until_s.get(error.code, 0.0)
        if now_s >= again_s:
            self._quiet_until_s[error.code] = inf if isinstance(error, StoreCorrupt) else now_s + _QUIET_S
            log.error("%s %s", error.message, error.hint or "")

    def _closed(self) -> StoreClosed:
        return StoreClosed(f"The database '{self._path}' is not open.")


def _set_journal_mode(connection: Connection, wanted: str) -> str:
    """The mode the file is in after asking for `wanted`: SQLite keeps the old one where it must."""
    try:
        return connection.pragma_text(f"journal_mode = {wanted}")
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode & 0xFF not in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            raise
        # Another process has it open in the other mode; both can work in that one.
        return connection.pragma_text("journal_mode")


def _refuse_inside_work(verb: str) -> None:
    if is_inside_work():
        raise StoreError(
            f"{verb} was called from inside the work of another db.read or db.write.",
            hint="Use the connection that the work was given.",
        )
