"""Real databases in a temporary folder, and a gate that holds a real thread."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import gevent
import pytest

from fermix.db import Database
from fermix.db.settings import DatabaseSettings


class Gate:
    """Holds a thread of the database until the test opens it; `Event` would only hold a greenlet."""

    def __init__(self) -> None:
        self._reading, self._writing = os.pipe()
        self._is_held = False

    def wait(self) -> None:
        """Block the calling thread, hub and all, until `open`."""
        self._is_held = True
        os.read(self._reading, 1)

    def until_held(self) -> None:
        """Let greenlets run until a thread waits here."""
        with gevent.Timeout(10):
            while not self._is_held:
                gevent.sleep(0.001)

    def open(self) -> None:
        """Let one waiting thread go on."""
        os.write(self._writing, b".")

    def close(self) -> None:
        """Give the pipe back."""
        os.close(self._reading)
        os.close(self._writing)


@pytest.fixture
def gate() -> Iterator[Gate]:
    """A closed gate."""
    made = Gate()
    yield made
    made.close()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where the test's database goes."""
    return tmp_path / "memory.db"


@pytest.fixture
def open_database(path: Path) -> Iterator[Callable[..., Database]]:
    """Starts databases that are stopped when the test ends: `open_database(readers=1)`."""
    opened: list[Database] = []

    def start(at: Path = path, **settings: object) -> Database:
        database = Database(at, DatabaseSettings(**settings))
        database.start()
        opened.append(database)
        return database

    yield start
    for database in opened:
        database.stop()


@pytest.fixture
def db(open_database: Callable[..., Database]) -> Database:
    """An open, migrated, empty database with a table `notes(id, text)`."""
    database = open_database()
    database.write(
        lambda connection: connection.execute_sql(
            "CREATE TABLE notes (id INTEGER PRIMARY KEY, text TEXT NOT NULL UNIQUE)"
        )
    )
    return database


@pytest.fixture
def process(path: Path) -> Iterator[Callable[..., "subprocess.Popen[bytes]"]]:
    """Starts `writing_process.py` on the test's database: `process("write")`; killed at the end."""
    started: list[subprocess.Popen[bytes]] = []

    def start(*words: str, at: Path = path) -> "subprocess.Popen[bytes]":
        child = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("writing_process.py")), str(at), *words],
            env={"PYTHONPATH": str(Path(__file__).parents[2]), "PATH": "/usr/bin:/bin"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        started.append(child)
        return child

    yield start
    for child in started:
        child.kill()
        child.wait(timeout=10)
        for pipe in (child.stdin, child.stdout):
            if pipe is not None:
                pipe.close()
