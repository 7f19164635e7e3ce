"""What the settings of the database change; each counts from its next start on."""

from __future__ import annotations

import sqlite3
import time

import gevent
import pytest

from fermix.db import Database
from fermix.db.settings import DatabaseSettings
from fermix.errors import StoreError

MIB = 1024 * 1024


def batches(db, gate, path, *, writes):
    """How many commits `writes` works share that wait together."""
    seen = []

    def work(connection):
        time.sleep(0.005)
        connection.execute_sql("INSERT INTO notes DEFAULT VALUES")
        with sqlite3.connect(path) as other:
            seen.append(other.execute("SELECT count(*) FROM notes").fetchone()[0])
        other.close()

    db.write(lambda c: c.execute_sql("CREATE TABLE notes (id INTEGER PRIMARY KEY)"))
    blocked = gevent.spawn(db.write, lambda _: gate.wait())
    gate.until_held()
    waiting = [gevent.spawn(db.write, work) for _ in range(writes)]
    gevent.sleep(0.05)
    gate.open()
    gevent.joinall([blocked, *waiting], timeout=20, raise_error=True)
    return len(set(seen))


@pytest.mark.parametrize(("limit", "commits"), [(100, 1), (3, 4)])
def test_as_many_writes_share_a_commit_as_the_setting_says(open_database, gate, path, limit, commits):
    db = open_database(batch_limit=limit, batch_time_ms=10_000)

    assert batches(db, gate, path, writes=10 if limit == 3 else 20) == commits


@pytest.mark.parametrize(("time_ms", "is_shared"), [(10_000, True), (1, False)])
def test_commit_waits_for_other_writes_as_long_as_the_setting_says(
    open_database, gate, path, time_ms, is_shared
):
    db = open_database(batch_time_ms=time_ms)

    assert (batches(db, gate, path, writes=10) == 1) is is_shared


def fill(db, mebibytes):
    db.write(lambda c: c.execute_sql("CREATE TABLE blobs (body BLOB)"))
    for _ in range(mebibytes):
        db.write(lambda c: c.execute_sql("INSERT INTO blobs VALUES (zeroblob(1048576))"))


@pytest.mark.parametrize(("size", "is_copied"), [(MIB, True), (64 * MIB, False)])
def test_log_is_copied_back_after_the_growth_the_setting_says(open_database, path, size, is_copied):
    db = open_database(checkpoint_bytes=size)

    fill(db, 6)

    assert (path.stat().st_size > 4 * MIB) is is_copied


@pytest.mark.parametrize(("size", "waits"), [(2 * MIB, True), (1024 * MIB, False)])
def test_writers_wait_for_readers_from_the_log_size_the_setting_says(
    open_database, gate, caplog, size, waits
):
    db = open_database(checkpoint_bytes=65_536, wal_limit_bytes=size, busy_timeout_ms=20)

    def long_read(connection):
        connection.execute_sql("SELECT count(*) FROM messages").fetchone()
        gate.wait()

    reading = gevent.spawn(db.read, long_read)
    gate.until_held()
    fill(db, 6)
    gate.open()
    reading.join(10)

    assert ("long read keeps the write-ahead log" in caplog.text) is waits


@pytest.mark.parametrize("readers", [1, 3])
def test_as_many_read_at_once_as_the_setting_says(open_database, gate, readers):
    db = open_database(readers=readers, read_timeout_s=1.0)
    held = []

    def read(_):
        held.append(1)
        gate.wait()

    reading = [gevent.spawn(db.read, read) for _ in range(4)]
    with gevent.Timeout(10):
        while len(held) < readers:
            gevent.sleep(0.001)
    gevent.sleep(0.05)
    began = len(held)
    for _ in range(4):
        gate.open()
    gevent.joinall(reading, timeout=10)

    assert began == readers


def test_other_process_is_waited_for_as_long_as_the_setting_says(open_database, path):
    impatient = open_database(busy_timeout_ms=10)
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreError, match="held by another process"):
        impatient.write(lambda c: c.execute_sql("CREATE TABLE t (n)"))
    other.execute("ROLLBACK")
    impatient.stop()

    patient = open_database(busy_timeout_ms=20_000)
    other.execute("BEGIN IMMEDIATE")
    writing = gevent.spawn(patient.write, lambda c: c.execute_sql("CREATE TABLE t (n)"))
    gevent.sleep(0.2)
    other.execute("ROLLBACK")
    other.close()

    writing.get(timeout=10)


def test_start_is_given_up_after_the_time_the_setting_says(open_database, path):
    open_database().stop()
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("PRAGMA locking_mode = EXCLUSIVE")
    other.execute("BEGIN EXCLUSIVE")
    other.execute("CREATE TABLE t (n)")
    impatient = Database(path, DatabaseSettings(start_timeout_s=1, busy_timeout_ms=2_500))

    # With the default of 300 s the wait for the lock would have been over first.
    with pytest.raises(StoreError, match="was not ready after 1 s"):
        impatient.start()

    other.execute("ROLLBACK")
    other.close()
    open_database()
