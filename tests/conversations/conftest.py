"""A real store in a temporary folder."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from fermix.conversations import ConversationStore, StoredMessage
from fermix.db import Database
from fermix.db.settings import DatabaseSettings
from fermix.messages import ChatMessage


class SteppingClock:
    """Each look is one second later."""

    def __init__(self) -> None:
        self._now_ms = 1_700_000_000_000

    def now_ms(self) -> int:
        """The time of day."""
        self._now_ms += 1000
        return self._now_ms

    def monotonic_s(self) -> float:
        """The same in seconds."""
        return self._now_ms / 1000


@pytest.fixture
def db(tmp_path: Path) -> Iterator[Database]:
    """An open database."""
    database = Database(tmp_path / "memory.db", DatabaseSettings())
    database.start()
    yield database
    database.stop()


@pytest.fixture
def store(db: Database) -> ConversationStore:
    """A store over it."""
    return ConversationStore(db, SteppingClock())


@pytest.fixture
def append(db: Database, store: ConversationStore) -> Callable[..., list[StoredMessage]]:
    """Stores messages in a write of their own: `append(id, [UserMessage("hi")], turn="t1")`."""

    def put(
        conversation_id: str, messages: Sequence[ChatMessage], turn: str = "turn"
    ) -> list[StoredMessage]:
        return db.write(lambda c: store.append(c, conversation_id, turn, messages), durable=True)

    return put
