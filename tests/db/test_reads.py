"""`db.read`: a few threads, snapshots, and queries that can be ended."""

import gevent
import pytest

from fermix.errors import StoreError

ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"
LONG = (
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 3000000) SELECT count(*) FROM n"
)


def count(connection):
    return connection.execute_sql("SELECT count(*) FROM notes").fetchone()[0]


def insert(text):
    return lambda connection: connection.execute_sql("INSERT INTO notes (text) VALUES (?)", (text,))


def test_read_goes_on_while_a_write_is_open(db, gate):
    """R168: write-ahead log and busy timeout on each connection; readers never see 'locked'."""

    def slow_write(connection):
        insert("pending")(connection)
        gate.wait()

    writing = gevent.spawn(db.write, slow_write)
    gate.until_held()
    seen = [db.read(count) for _ in range(30)]
    gate.open()
    writing.join(10)

    assert seen == [0] * 30
    assert db.read(count) == 1


def test_every_connection_has_log_and_busy_timeout(open_database):
    """R168."""
    db = open_database(readers=3, busy_timeout_ms=1234)

    def facts(connection):
        return connection.pragma_text("journal_mode"), connection.pragma_text("busy_timeout")

    readers = [gevent.spawn(db.read, facts) for _ in range(9)]
    gevent.joinall(readers, timeout=10)

    assert db.write(facts) == ("wal", "1234")
    assert {reader.value for reader in readers} == {("wal", "1234")}


def test_read_sees_one_snapshot(db, gate):
    counts = []

    def look_twice(connection):
        counts.append(count(connection))
        gate.wait()
        counts.append(count(connection))

    reading = gevent.spawn(db.read, look_twice)
    gate.until_held()
    db.write(insert("meanwhile"))
    gate.open()
    reading.join(10)

    assert counts == [0, 0]
    assert db.read(count) == 1


def test_reader_cannot_write(db):
    with pytest.raises(StoreError, match="readonly"):
        db.read(insert("no"))
    assert db.read(count) == 0


def test_hub_goes_on_while_a_query_is_slow(db):
    ticks = []

    def tick():
        while True:
            gevent.sleep(0.005)
            ticks.append(1)

    ticking = gevent.spawn(tick)
    db.read(lambda connection: connection.execute_sql(LONG).fetchone())
    ticking.kill()

    assert len(ticks) > 5


def test_read_that_takes_too_long_is_ended_and_its_thread_is_free_again(open_database):
    db = open_database(readers=1, read_timeout_s=0.3)

    with pytest.raises(StoreError, match=r"took longer than 0\.3 s"):
        db.read(lambda connection: connection.execute_sql(ENDLESS).fetchone())

    gevent.sleep(0.1)
    assert db.read(lambda connection: connection.execute_sql("SELECT 7").fetchone()) == (7,)


def test_killed_reader_frees_its_thread(open_database):
    db = open_database(readers=1, read_timeout_s=20)
    victim = gevent.spawn(db.read, lambda connection: connection.execute_sql(ENDLESS).fetchone())
    gevent.sleep(0.1)

    victim.kill(timeout=5)

    assert db.read(lambda connection: connection.execute_sql("SELECT 7").fetchone()) == (7,)


def test_read_that_finds_no_free_thread_says_so(open_database, gate):
    db = open_database(readers=1, read_timeout_s=0.3)
    first = gevent.spawn(db.read, lambda _: gate.wait())
    gate.until_held()

    with pytest.raises(StoreError, match=r"waited 0\.3 s for one of 1 readers"):
        db.read(lambda _: 1)
    gate.open()
    first.join(10)


def test_failing_work_raises_what_it_raised(db):
    with pytest.raises(KeyError, match="mine"):
        db.read(lambda _: {}["mine"])
    assert db.read(count) == 0
