"""What is refused at the door, and with which words; what the files look like to others."""

import contextlib
import os
import sqlite3
import stat
from pathlib import Path

import gevent
import pytest

from fermix.db import Database, Integrity
from fermix.db.settings import DatabaseSettings
from fermix.errors import SchemaNewer, StoreClosed, StoreCorrupt, StoreError, StoreGone


def test_garbage_is_refused_in_one_clear_message_and_left_as_it_is(open_database, path):
    """R171."""
    garbage = b"this is no database\n" * 1000
    path.write_bytes(garbage)

    with pytest.raises(StoreCorrupt) as caught:
        open_database()

    assert str(path) in caught.value.message
    assert "mv memory.db*" in caught.value.hint
    assert caught.value.code == "store_corrupt"
    assert path.read_bytes() == garbage
    assert list(path.parent.iterdir()) == [path]


def test_damage_inside_is_found_after_a_kill_and_said_once(open_database, process, path, caplog):
    """R171: 4 KB overwritten in the middle; reads that meet it say the same thing, the log says it once."""
    seeding = sqlite3.connect(path)
    seeding.execute("PRAGMA journal_mode = wal")
    seeding.execute("CREATE TABLE notes (n INTEGER PRIMARY KEY, body TEXT)")
    seeding.executemany("INSERT INTO notes VALUES (?, ?)", ((n, "x" * 2000) for n in range(500)))
    seeding.commit()
    seeding.close()
    with path.open("r+b") as file:
        file.seek(4096 * 100)
        file.write(os.urandom(4096))
    path.with_name("memory.db-wal").touch()

    with caplog.at_level("INFO", logger="fermix.db"):
        db = open_database()
        for _ in range(50):
            with pytest.raises(StoreCorrupt, match=r"memory\.db"):
                db.read(lambda c: c.execute_sql("SELECT sum(length(body)) FROM notes").fetchone())
            with pytest.raises(StoreCorrupt, match=r"memory\.db"):
                db.write(lambda c: c.execute_sql("UPDATE notes SET body = body || 'y'"))
        with gevent.Timeout(20):
            while db.health().integrity is Integrity.CHECKING:
                gevent.sleep(0.01)

    assert db.health().integrity is Integrity.DAMAGED
    assert str(path) in db.health().last_error
    errors = [record for record in caplog.records if record.levelname == "ERROR"]
    assert len(errors) == 1
    assert "is damaged" in errors[0].getMessage()
    assert "put a backup" in errors[0].getMessage()


def test_table_that_was_dropped_is_told_as_damage(open_database, path):
    open_database().stop(5.0)
    with contextlib.closing(sqlite3.connect(path)) as other:
        other.execute("DROP TABLE outbox")
        other.commit()
    db = open_database()

    with pytest.raises(StoreCorrupt, match="no such table: outbox"):
        db.read(lambda connection: connection.native.execute("SELECT * FROM outbox").fetchall())


def test_newer_schema_is_refused_and_the_file_not_changed(open_database, path):
    newer = sqlite3.connect(path)
    newer.execute("CREATE TABLE future (n)")
    newer.execute("PRAGMA user_version = 4711")
    newer.close()
    before = path.read_bytes()

    with pytest.raises(SchemaNewer, match="schema 4711"):
        open_database()

    assert path.read_bytes() == before


def test_files_are_for_the_owner_only_from_the_first_byte(open_database, path, caplog):
    before = os.umask(0)
    try:
        db = open_database(path.parent / "new" / "memory.db")
        db.write(lambda c: c.execute_sql("CREATE TABLE t (n)"))
    finally:
        os.umask(before)

    modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in (path.parent / "new").iterdir()}
    assert modes == {"memory.db": 0o600, "memory.db-wal": 0o600, "memory.db-shm": 0o600}
    assert stat.S_IMODE((path.parent / "new").stat().st_mode) == 0o700
    assert "had mode" not in caplog.text  # not made loose and tightened afterwards


def test_loose_mode_is_tightened_and_said(open_database, path, caplog):
    path.touch(mode=0o644)
    path.chmod(0o644)

    open_database()

    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert "had mode 0644" in caplog.text


def test_odd_names_are_just_names(open_database, tmp_path):
    place = tmp_path / "a b#c?d%20é'" / "memory.db"
    db = open_database(place)

    db.write(lambda c: c.execute_sql("CREATE TABLE t (n)"))

    assert place.stat().st_size > 0 or place.with_name("memory.db-wal").stat().st_size > 0
    assert sorted(file.name for file in place.parent.iterdir()) == [
        "memory.db",
        "memory.db-shm",
        "memory.db-wal",
    ]


def test_folder_in_place_of_the_file_is_a_clear_error(open_database, path):
    path.mkdir()

    with pytest.raises(StoreError, match="cannot be used") as caught:
        open_database()
    assert str(path) in caught.value.message


def test_file_in_place_of_the_home_is_a_clear_error(open_database, tmp_path):
    (tmp_path / "home").write_text("")

    with pytest.raises(StoreError, match="cannot be opened"):
        open_database(tmp_path / "home" / "memory.db")


def test_journal_mode_of_the_settings_is_applied_to_an_existing_file(open_database, path):
    """R172."""
    open_database().stop()

    db = open_database(journal_mode="delete")

    assert db.health().journal_mode == "delete"
    assert db.write(lambda c: c.pragma_text("synchronous")) == "2"
    assert db.read(lambda c: c.pragma_text("journal_mode")) == "delete"
    assert not path.with_name("memory.db-wal").exists()


def test_journal_mode_that_could_not_be_applied_is_said_and_shown(open_database, path, caplog):
    """R172: the other process keeps the log in use, so the file stays as it is."""
    open_database().stop()
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN")
    other.execute("SELECT count(*) FROM messages").fetchone()
    try:
        db = open_database(journal_mode="delete", busy_timeout_ms=50)
        shown = db.health().journal_mode
    finally:
        other.close()

    assert shown == "wal"
    assert "'delete' was asked for" in caplog.text
    assert db.write(lambda c: 1) == 1


def test_start_that_failed_leaves_nothing_open(path):
    path.write_bytes(b"garbage " * 2000)
    database = Database(path, DatabaseSettings())
    with pytest.raises(StoreCorrupt):
        database.start()
    path.unlink()

    database.start()

    assert database.write(lambda c: 1) == 1
    database.stop()
    assert not [link for link in _open_files() if str(path) in link]


def _open_files():
    links = []
    for entry in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError):
            links.append(str(entry.readlink()))
    return links


@pytest.mark.parametrize("harm", ["database removed", "database replaced", "log removed"])
def test_database_that_is_taken_away_keeps_nothing_more_and_ends(db, path, harm):
    db.write(lambda c: c.execute_sql("INSERT INTO notes (text) VALUES ('before')"))
    if harm == "database replaced":
        copy = path.with_name("copy.db")
        sqlite3.connect(copy).close()
        copy.replace(path)
    else:
        path.with_name("memory.db-wal" if harm == "log removed" else "memory.db").unlink()

    with pytest.raises(StoreGone) as caught:
        db.write(lambda c: c.execute_sql("INSERT INTO notes (text) VALUES ('lost')"), durable=True)

    assert str(path) in caught.value.message
    with pytest.raises(StoreGone):
        db.wait(10.0)
    with pytest.raises(StoreClosed):
        db.write(lambda c: None)


def test_database_put_in_the_place_of_the_old_one_is_opened_by_the_next_start(db, path, open_database):
    db.write(lambda c: c.execute_sql("INSERT INTO notes (text) VALUES ('old')"))
    path.unlink()
    with pytest.raises(StoreGone):
        db.write(lambda c: c.execute_sql("INSERT INTO notes (text) VALUES ('lost')"))
    with pytest.raises(StoreGone):
        db.wait(10.0)
    for side in ("memory.db-wal", "memory.db-shm"):
        path.with_name(side).unlink(missing_ok=True)

    fresh = open_database()

    fresh.write(lambda c: c.execute_sql("CREATE TABLE notes (text)"), durable=True)
    assert fresh.wait(0.01) is False
