"""kill -9, other processes, a full disk: what was acknowledged is there, what failed says why."""

import random
import resource
import sqlite3
import subprocess

import gevent
import pytest

from fermix.db import Integrity
from fermix.errors import StoreError, StoreFull


def numbers(db):
    return {row[0] for row in db.read(lambda c: c.execute_sql("SELECT n FROM acks").fetchall())}


def test_every_acknowledged_durable_write_survives_twenty_kills(process, open_database):
    seeded = random.Random(2)
    acknowledged = set()
    for _ in range(20):
        child = process("write")
        lines = [child.stdout.readline() for _ in range(seeded.randint(1, 400))]
        gevent.sleep(seeded.random() * 0.005)
        child.kill()
        rest, _ = child.communicate(timeout=10)
        acknowledged |= {
            int(line) for line in [*lines, *rest.splitlines(keepends=True)] if line[-1:] == b"\n"
        }

    db = open_database()

    assert len(acknowledged) > 1000
    assert acknowledged <= numbers(db)
    assert db.read(lambda c: c.pragma_text("integrity_check")) == "ok"


def test_log_left_behind_is_recovered_and_the_file_checked(process, open_database, path, caplog):
    child = process("write")
    last = [child.stdout.readline() for _ in range(50)]
    child.kill()
    child.wait(10)
    assert path.with_name("memory.db-wal").stat().st_size > 0

    with caplog.at_level("INFO", logger="fermix.db"):
        db = open_database()
        assert {int(line) for line in last} <= numbers(db)
        with gevent.Timeout(20):
            while db.health().integrity is Integrity.CHECKING:
                gevent.sleep(0.01)

    assert db.health().integrity is Integrity.INTACT
    assert "was not closed properly" in caplog.text
    assert "is intact" in caplog.text


def test_clean_stop_needs_no_check(open_database, path):
    open_database().stop()

    assert not path.with_name("memory.db-wal").exists()
    assert open_database().health().integrity is Integrity.CLEAN


def test_second_process_leaves_the_side_files_of_the_first(open_database, process, path):
    """R173."""
    db = open_database()
    db.write(lambda c: c.execute_sql("CREATE TABLE acks (n INTEGER PRIMARY KEY)"))
    sides = [path.with_name("memory.db-wal"), path.with_name("memory.db-shm")]
    before = [side.stat().st_ino for side in sides]

    child = process("open")
    assert child.stdout.readline() == b"open\n"
    db.write(lambda c: c.execute_sql("INSERT INTO acks VALUES (1)"), durable=True)
    child.communicate(timeout=20)
    assert child.returncode == 0
    db.write(lambda c: c.execute_sql("INSERT INTO acks VALUES (2)"), durable=True)

    assert [side.stat().st_ino for side in sides] == before
    assert numbers(db) == {1, 2}
    assert db.read(lambda c: c.pragma_text("integrity_check")) == "ok"


def test_read_then_write_waits_for_another_writer(open_database, path):
    """R167: a deferred transaction that reads first would lose against the other writer at once."""
    db = open_database()
    db.write(lambda c: c.execute_sql("CREATE TABLE acks (n INTEGER PRIMARY KEY)"))
    other = subprocess.Popen(
        ["python3", "-c", OTHER_WRITER, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert other.stdout.readline() == b"writing\n"

    def next_number(connection):
        (last,) = connection.execute_sql("SELECT coalesce(max(n), 0) FROM acks").fetchone()
        connection.execute_sql("INSERT INTO acks VALUES (?)", (last + 1,))

    for _ in range(100):
        db.write(next_number)
    written, _ = other.communicate(b"stop\n", timeout=20)

    assert other.returncode == 0
    assert len(numbers(db)) == 100 + int(written)
    assert int(written) > 0


OTHER_WRITER = """
import select, sqlite3, sys, time
connection = sqlite3.connect(sys.argv[1], timeout=20, isolation_level=None)
print("writing", flush=True)
count = 0
while not select.select([sys.stdin], [], [], 0)[0] or not count:
    connection.execute("BEGIN IMMEDIATE")
    connection.execute("INSERT INTO acks SELECT coalesce(max(n), 0) + 1 FROM acks")
    time.sleep(0.001)
    connection.execute("COMMIT")
    count += 1
    time.sleep(0.001)
print(count)
"""


def test_other_process_that_keeps_the_lock_gives_an_error_that_names_the_file(open_database, path):
    db = open_database(busy_timeout_ms=50)
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")

    with pytest.raises(StoreError, match="held by another process") as caught:
        db.write(lambda c: c.execute_sql("CREATE TABLE t (n)"))
    other.execute("ROLLBACK")
    other.close()

    assert "fuser" in caught.value.hint
    db.write(lambda c: c.execute_sql("CREATE TABLE t (n)"))


class SmallDisk:
    """A folder of 2 MB: a tmpfs where we may mount one, else a limit on this process's files."""

    def __init__(self, folder):
        self.folder = folder
        self._limits = resource.getrlimit(resource.RLIMIT_FSIZE)
        self._is_mounted = self._mount("-t", "tmpfs", "-o", "size=2m", "fermix-test")
        if not self._is_mounted:
            resource.setrlimit(resource.RLIMIT_FSIZE, (2_000_000, self._limits[1]))

    def _mount(self, *words):
        command = ["mount", *words, str(self.folder)]
        return subprocess.run(command, capture_output=True, check=False).returncode == 0

    @property
    def error(self):
        """What a write is refused with; a limit on files is no full disk to SQLite."""
        return StoreFull if self._is_mounted else StoreError

    def make_room(self):
        if self._is_mounted:
            assert self._mount("-o", "remount,size=20m")
        else:
            resource.setrlimit(resource.RLIMIT_FSIZE, self._limits)

    def close(self):
        resource.setrlimit(resource.RLIMIT_FSIZE, self._limits)
        if self._is_mounted:
            subprocess.run(["umount", str(self.folder)], check=True)


@pytest.fixture
def small_disk(tmp_path):
    folder = tmp_path / "small"
    folder.mkdir()
    disk = SmallDisk(folder)
    yield disk
    disk.close()


def test_full_disk_fails_the_writes_and_they_work_again_when_there_is_room(small_disk, open_database):
    path = small_disk.folder / "memory.db"
    db = open_database(path, checkpoint_bytes=65_536)
    db.write(lambda c: c.execute_sql("CREATE TABLE blobs (n INTEGER PRIMARY KEY, body BLOB)"))

    def put(number):
        insert = "INSERT INTO blobs VALUES (?, zeroblob(50000))"
        db.write(lambda c: c.execute_sql(insert, (number,)), durable=True)

    def stored():
        return {row[0] for row in db.read(lambda c: c.execute_sql("SELECT n FROM blobs").fetchall())}

    kept = set()
    with pytest.raises(small_disk.error) as caught:
        for number in range(200):
            put(number)
            kept.add(number)

    assert str(path) in caught.value.message
    assert db.health().last_error == caught.value.message
    assert stored() == kept
    with pytest.raises(small_disk.error):
        put(500)
    small_disk.make_room()
    put(1000)
    assert db.health().last_error is None
    assert stored() == {*kept, 1000}
    assert db.read(lambda c: c.pragma_text("integrity_check")) == "ok"


def test_failing_commit_fails_every_write_of_its_batch(open_database, gate):
    db = open_database()
    db.write(lambda c: c.execute_sql("CREATE TABLE blobs (n INTEGER PRIMARY KEY, body BLOB)"))
    pages = int(db.write(lambda c: c.pragma_text("page_count")))
    db.write(lambda c: c.pragma_text(f"max_page_count = {pages + 3}"))
    gevent.spawn(db.write, lambda _: gate.wait())
    gate.until_held()
    small = gevent.spawn(db.write, lambda c: c.execute_sql("INSERT INTO blobs VALUES (1, 'small')"))
    big = gevent.spawn(db.write, lambda c: c.execute_sql("INSERT INTO blobs VALUES (2, zeroblob(900000))"))
    gevent.sleep(0.05)
    gate.open()
    gevent.joinall([small, big], timeout=10)

    def stored():
        return {row[0] for row in db.read(lambda c: c.execute_sql("SELECT n FROM blobs").fetchall())}

    assert isinstance(big.exception, StoreFull)
    assert stored() == ({1} if small.successful() else set())
    assert small.successful() or isinstance(small.exception, StoreFull)

    db.write(lambda c: c.pragma_text("max_page_count = 1000000"))
    db.write(lambda c: c.execute_sql("INSERT INTO blobs VALUES (3, zeroblob(900000))"))
    assert 3 in stored()
