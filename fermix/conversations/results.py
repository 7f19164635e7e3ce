"""The whole of long tool results, for a while, so that a model needs to be shown only a part."""

from __future__ import annotations

import zlib
from dataclasses import dataclass

import msgspec

from fermix.clock import Clock
from fermix.db import Connection, Database
from fermix.ids import new_id
from fermix.messages import ConversationKey
from fermix.tasks import ThreadPool

LONGEST_BYTES = 8 * 1024 * 1024
"""Of a longer result only the beginning is kept."""
TOTAL_BYTES = 256 * 1024 * 1024
"""The oldest results go when all together take more than this, compressed."""
_POOL_TIMEOUT_S = 30.0

_PUT = """
    INSERT INTO tool_results (id, owner, turn_id, tool, size_bytes, stored_bytes, body, created_ms)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?)
"""
_GET = "SELECT tool, size_bytes, body FROM tool_results WHERE id = ? AND owner = ?"
_HELD = "SELECT coalesce(sum(stored_bytes), 0) FROM tool_results"
_OLDEST = "SELECT id, stored_bytes FROM tool_results ORDER BY rowid LIMIT 64"
"""In the order they were written; ids of one millisecond sort by chance."""


@dataclass(frozen=True, slots=True)
class StoredResult:
    """A tool result as it is kept."""

    tool: str
    text: str
    is_cut: bool
    """Whether only its beginning is kept."""


class ResultStore:
    """Long results by id, each only for the conversation it came up in."""

    def __init__(
        self, db: Database, pool: ThreadPool, clock: Clock, *, total_bytes: int = TOTAL_BYTES
    ) -> None:
        self._db = db
        self._pool = pool
        self._clock = clock
        self._total_bytes = total_bytes
        self._held: int | None = None

    def put(self, key: ConversationKey, turn_id: str, tool: str, text: str) -> str:
        """Keep a result; the id it is found by. Raises: StoreError."""
        encoded = text.encode()
        body = self._pool.run(lambda: zlib.compress(encoded[:LONGEST_BYTES], 1), timeout_s=_POOL_TIMEOUT_S)
        now_ms = self._clock.now_ms()
        id = new_id(now_ms)
        row = (id, owner_of(key), turn_id, tool, len(encoded), len(body), body, now_ms)
        self._db.write(lambda connection: self._put(connection, row))
        return id

    def get(self, key: ConversationKey, id: str) -> StoredResult | None:
        """A kept result of this conversation; None when there is none under this id, or no longer."""
        where = (id.strip(), owner_of(key))
        found = self._db.read(lambda connection: connection.native.execute(_GET, where).fetchone())
        if found is None:
            return None
        tool, size_bytes, body = found
        whole = self._pool.run(lambda: zlib.decompress(body), timeout_s=_POOL_TIMEOUT_S)
        return StoredResult(tool, whole.decode(errors="ignore"), is_cut=len(whole) < size_bytes)

    def _put(self, connection: Connection, row: tuple[object, ...]) -> None:
        run = connection.native.execute
        run(_PUT, row)
        held = run(_HELD).fetchone()[0] if self._held is None else self._held + int(str(row[5]))
        while held > self._total_bytes and (oldest := run(_OLDEST).fetchall()):
            for id, stored_bytes in oldest:
                if held <= self._total_bytes or id == row[0]:
                    break
                run("DELETE FROM tool_results WHERE id = ?", (id,))
                held -= stored_bytes
            else:
                continue
            break
        # Counted again now and then: a session that is deleted takes its results along.
        self._held = held if held <= self._total_bytes * 0.9 else None


def owner_of(key: ConversationKey) -> str:
    """How a conversation is named in the table."""
    return msgspec.json.encode(key).decode()
