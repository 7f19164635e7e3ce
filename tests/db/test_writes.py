"""`db.write`: one thread, shared commits, savepoints, and waits that may be given up."""

import contextlib
import random
import sqlite3
import threading
import time

import gevent
import peewee
import pytest

from fermix.db import Row
from fermix.errors import StoreClosed, StoreError


class NoteRow(Row):
    id = peewee.IntegerField(primary_key=True)
    text = peewee.TextField(unique=True)

    class Meta:
        table_name = "notes"


def note(text):
    return lambda connection: NoteRow.insert(text=text).execute(connection)


def texts(path):
    """What another process would see."""
    with sqlite3.connect(path) as outside:
        found = [row[0] for row in outside.execute("SELECT text FROM notes ORDER BY text")]
    outside.close()
    return found


def test_write_returns_its_value_after_the_commit(db, path):
    number = db.write(note("hello"))

    assert number == 1
    assert texts(path) == ["hello"]


def test_work_that_raises_undoes_only_itself(db, gate, path):
    def two_then_fail(connection):
        note("half")(connection)
        raise ValueError("no")

    gevent.spawn(db.write, lambda _: gate.wait())
    gate.until_held()
    good = [gevent.spawn(db.write, note(text)) for text in ("a", "b")]
    bad = gevent.spawn(db.write, two_then_fail)
    also_good = gevent.spawn(db.write, note("c"))
    gevent.sleep(0.05)
    gate.open()
    gevent.joinall([*good, bad, also_good], timeout=10)

    assert isinstance(bad.exception, ValueError)
    assert texts(path) == ["a", "b", "c"]


def test_constraint_reaches_the_caller_as_what_it_is(db):
    db.write(note("once"))

    with pytest.raises(peewee.IntegrityError):
        db.write(note("once"))
    assert db.health().last_error is None


def test_writes_that_wait_together_share_one_commit(db, gate, path):
    committed = []

    def look_outside(connection):
        note("last")(connection)
        committed.append(texts(path))

    gevent.spawn(db.write, lambda _: gate.wait())
    gate.until_held()
    waiting = [gevent.spawn(db.write, note(str(number))) for number in range(20)]
    waiting.append(gevent.spawn(db.write, look_outside))
    gevent.sleep(0.05)
    gate.open()
    gevent.joinall(waiting, timeout=10, raise_error=True)

    assert committed == [[]]
    assert len(texts(path)) == 21


def test_batch_is_cut_by_its_limit_and_nothing_is_lost(open_database, path):
    db = open_database(batch_limit=3, batch_time_ms=1)
    db.write(lambda c: c.execute_sql("CREATE TABLE notes (id INTEGER PRIMARY KEY, text TEXT UNIQUE)"))

    def slow(text):
        def work(connection):
            time.sleep(0.002)
            return note(text)(connection)

        return work

    greenlets = [gevent.spawn(db.write, slow(f"{number:03}")) for number in range(50)]
    gevent.joinall(greenlets, timeout=30, raise_error=True)

    assert texts(path) == [f"{number:03}" for number in range(50)]


def test_durable_work_makes_its_batch_full_and_the_next_one_normal(db):
    def level(connection):
        return connection.pragma_text("synchronous")

    assert db.write(level, durable=True) == "2"
    assert db.write(level) == "1"
    assert db.write(level, durable=True) == "2"


def test_write_inside_work_is_refused_and_nothing_hangs(db):
    with pytest.raises(StoreError, match=r"db\.write was called from inside the work"):
        db.write(lambda connection: db.write(note("inner")))
    with pytest.raises(StoreError, match=r"db\.read was called from inside the work"):
        db.write(lambda connection: db.read(lambda inner: 1))
    with pytest.raises(StoreError, match=r"db\.write was called from inside the work"):
        db.read(lambda connection: db.write(note("inner")))
    assert db.write(note("outer")) == 1


def test_row_outside_of_work_is_refused(db):
    with pytest.raises(peewee.InterfaceError, match="not opened"):
        NoteRow.insert(text="stray").execute()


def test_atomic_inside_work_is_a_savepoint(db, path):
    def work(connection):
        note("kept")(connection)
        with pytest.raises(ValueError, match="inner"), connection.atomic():
            note("undone")(connection)
            raise ValueError("inner")
        NoteRow.get_or_create(text="also kept")

    db.write(work)

    assert texts(path) == ["also kept", "kept"]


def test_work_that_commits_by_itself_is_told_and_the_next_one_works(db):
    with pytest.raises(StoreError, match="ended the transaction itself"):
        db.write(lambda connection: connection.native.execute("COMMIT"))
    assert db.write(note("after")) == 1


def test_greenlet_killed_while_it_waits_takes_its_write_back(db, gate, path):
    gevent.spawn(db.write, lambda _: gate.wait())
    gate.until_held()
    victim = gevent.spawn(db.write, note("victim"))
    other = gevent.spawn(db.write, note("other"))
    gevent.sleep(0.05)
    victim.kill(timeout=5)
    gate.open()
    other.join(10)

    assert texts(path) == ["other"]
    assert db.write(note("later")) == 2


def test_greenlet_killed_while_its_work_runs_harms_nobody(db, gate, path):
    def slow(connection):
        note("begun")(connection)
        gate.wait()

    victim = gevent.spawn(db.write, slow)
    gate.until_held()
    neighbour = gevent.spawn(db.write, note("neighbour"))
    victim.kill(timeout=5)
    gate.open()
    neighbour.join(10)

    assert neighbour.successful()
    assert texts(path) == ["begun", "neighbour"]


def test_timeout_of_the_caller_passes_through(db, gate):
    blocked = gevent.spawn(db.write, lambda _: gate.wait())
    gate.until_held()

    with pytest.raises(gevent.Timeout), gevent.Timeout(0.1):
        db.write(note("late"))
    gate.open()
    blocked.join(10)
    assert db.write(note("next")) == 1


def test_write_that_waits_too_long_says_so(open_database, gate):
    db = open_database(write_timeout_s=0.2)
    blocked = gevent.spawn(db.write, lambda _: gate.wait())
    gate.until_held()

    with pytest.raises(StoreError, match=r"waited 0\.2 s for its commit"):
        db.write(lambda _: 1)
    gate.open()
    blocked.join(10)
    assert db.write(lambda _: 1) == 1


def test_exit_raised_by_work_reaches_its_caller_and_the_writer_lives(db):
    def leave(connection):
        raise SystemExit(7)

    with pytest.raises(SystemExit):
        db.write(leave)
    assert db.write(note("alive")) == 1


def test_all_writes_of_many_greenlets_run_on_one_real_thread(db):
    """R174: no connection is shared between threads, none is opened per greenlet."""
    writers, readers = set(), set()

    def write(number):
        def work(connection):
            writers.add(threading.get_native_id())
            NoteRow.insert(text=str(number)).execute()
            time.sleep(0)

        db.write(work, durable=number % 3 == 0)

    def read(number):
        def work(connection):
            readers.add(threading.get_native_id())
            return NoteRow.select().count()

        return db.read(work)

    greenlets = [gevent.spawn(write, number) for number in range(200)]
    greenlets += [gevent.spawn(read, number) for number in range(200)]
    gevent.joinall(greenlets, timeout=30, raise_error=True)

    assert len(writers) == 1
    assert 1 <= len(readers) <= 4
    assert not writers & readers
    assert threading.get_native_id() not in writers | readers
    assert db.read(lambda _: NoteRow.select().count()) == 200


def test_stop_commits_what_waits_and_refuses_what_comes_later(db, gate, path):
    gevent.spawn(db.write, lambda _: gate.wait())
    gate.until_held()
    waiting = [gevent.spawn(db.write, note(str(number))) for number in range(10)]
    gevent.sleep(0.05)
    stopping = gevent.spawn(db.stop)
    gevent.sleep(0.05)
    gate.open()
    gevent.joinall([*waiting, stopping], timeout=10, raise_error=True)

    assert len(texts(path)) == 10
    with pytest.raises(StoreClosed):
        db.write(note("too late"))
    with pytest.raises(StoreClosed):
        db.read(lambda _: 1)
    assert db.wait(0.1)


def test_database_can_be_started_again(db):
    db.write(note("before"))
    assert not db.wait(0.01)

    db.stop()
    db.start()

    assert db.read(lambda _: [row.text for row in NoteRow.select()]) == ["before"]


def test_what_people_said_is_never_logged(db, caplog):
    with caplog.at_level("DEBUG"):
        db.write(note("my words"))
        db.write(lambda connection: NoteRow.insert(text="more of my words").execute())
        db.read(lambda _: list(NoteRow.select().where(NoteRow.text == "my words")))

    assert "my words" not in caplog.text


def test_random_kills_timeouts_and_errors_leave_whole_works_only(db, path):
    seeded = random.Random(7)
    acknowledged = set()

    def talk(number):
        for step in range(20):
            name = f"{number}-{step}"
            chance = seeded.random()

            def pair(connection, name=name, chance=chance):
                note(f"{name} a")(connection)
                if chance < 0.2:
                    raise ValueError(name)
                note(f"{name} b")(connection)

            with contextlib.suppress(ValueError), gevent.Timeout(0.001 if chance > 0.9 else 10, False):
                db.write(pair, durable=chance > 0.5)
                acknowledged.add(name)

    talking = [gevent.spawn(talk, number) for number in range(60)]
    for victim in seeded.sample(talking, 30):
        gevent.sleep(seeded.random() * 0.01)
        victim.kill(timeout=5)
    gevent.joinall(talking, timeout=60)
    db.stop()

    found = {}
    for text in texts(path):
        name, half = text.split()
        found.setdefault(name, set()).add(half)
    assert len(acknowledged) > 300
    assert all(halves == {"a", "b"} for halves in found.values())
    assert acknowledged <= set(found)
