"""A real database in a zone that is set, and a way to put calls into it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from fermix.db import Database
from fermix.db.settings import DatabaseSettings
from fermix.messages import ModelCall
from fermix.usage import record_within


@pytest.fixture(autouse=True)
def zone(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], None]]:
    """Sets the machine's time zone; UTC until then."""

    def set_zone(name: str) -> None:
        monkeypatch.setenv("TZ", name)
        time.tzset()

    set_zone("UTC")
    yield set_zone
    monkeypatch.undo()
    time.tzset()


@pytest.fixture
def db(tmp_path: Path) -> Iterator[Database]:
    """An open database."""
    database = Database(tmp_path / "memory.db", DatabaseSettings())
    database.start()
    yield database
    database.stop()


@pytest.fixture
def record(db: Database) -> Callable[..., None]:
    """Stores calls of one turn: `record(call, turn="t1", conversation="c1")`."""

    def put(*calls: ModelCall, turn: str = "t1", conversation: str = "c1", **more: str) -> None:
        db.write(
            lambda c: record_within(c, calls, turn_id=turn, conversation_id=conversation, **more),
            durable=True,
        )

    return put
