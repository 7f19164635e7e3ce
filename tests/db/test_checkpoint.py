"""The write-ahead log is copied back while the database works, so it stays small."""

import gevent

LIMIT = 1_000_000


def fill(db, times):
    for _ in range(times):
        db.write(lambda c: c.execute_sql("INSERT INTO blobs (body) VALUES (zeroblob(20000))"))


def table(db):
    db.write(lambda c: c.execute_sql("CREATE TABLE blobs (n INTEGER PRIMARY KEY, body BLOB)"))


def test_log_stays_small_over_many_writes(open_database, path):
    db = open_database(checkpoint_bytes=65_536, wal_limit_bytes=LIMIT)
    table(db)

    fill(db, 500)

    assert path.stat().st_size > 9_000_000
    assert db.health().wal_bytes < LIMIT


def test_log_that_a_long_read_held_is_cut_when_the_read_ends(open_database, gate, caplog):
    db = open_database(checkpoint_bytes=65_536, wal_limit_bytes=LIMIT, busy_timeout_ms=20)
    table(db)

    def long_read(connection):
        connection.execute_sql("SELECT count(*) FROM blobs").fetchone()
        gate.wait()

    reading = gevent.spawn(db.read, long_read)
    gate.until_held()
    fill(db, 100)
    held = db.health().wal_bytes
    gate.open()
    reading.join(10)
    fill(db, 20)

    assert held > LIMIT
    assert "long read keeps the write-ahead log" in caplog.text
    assert db.health().wal_bytes < LIMIT


def test_many_small_commits_are_copied_back_too(open_database, path):
    db = open_database()
    table(db)
    before = path.stat().st_mtime_ns

    for _ in range(300):
        db.write(lambda c: c.execute_sql("INSERT INTO blobs (body) VALUES ('small')"))

    assert path.stat().st_mtime_ns > before
