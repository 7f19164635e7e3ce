"""The durable outbox: replies leave in order within their chat, and a crash never hides one.

pending → sending → sent | uncertain
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Mapping
from functools import partial

from peewee import SQL

from fermix import events
from fermix.channels.port import Channel, Chunk, Delivery, SendFailed
from fermix.clock import Clock
from fermix.db import Connection, Database
from fermix.errors import StoreError
from fermix.gateway.tables import OutboxRow
from fermix.ids import new_id
from fermix.messages import ConversationKey
from fermix.tasks import TaskGroup, sleep

log = logging.getLogger(__name__)

LONGEST_PAUSE_S = 300.0
DAY_MS = 86_400_000
DOUBT = (
    "fermix was stopped while it sent you a message. That message may have arrived whole, or may be "
    "missing here; it was not sent again, so that you do not get it twice."
)


class Outbox:
    """Sends chunks, one chat at a time in order, chats side by side."""

    def __init__(
        self,
        db: Database,
        *,
        channels: Mapping[str, Channel],
        clock: Clock,
        on_delivered: Callable[[str], None],
    ) -> None:
        """`on_delivered` is told the turn whose whole reply has reached its chat."""
        self._db = db
        self._channels = channels
        self._clock = clock
        self._on_delivered = on_delivered
        self._lanes: dict[ConversationKey, deque[Chunk]] = {}
        self._tasks = TaskGroup("outbox")

    def put(self, connection: Connection, turn_id: str, key: ConversationKey, text: str) -> list[Chunk]:
        """Write a reply's chunks inside a write; `send` them once it is committed."""
        now_ms = self._clock.now_ms()
        channel = self._channels.get(key.channel)
        pieces = [text] if channel is None else channel.split(text)
        chunks = [
            Chunk(new_id(now_ms), turn_id, key, position, piece) for position, piece in enumerate(pieces)
        ]
        where = (key.channel, key.chat_id, key.thread)
        for chunk in chunks:
            row = (chunk.id, turn_id, *where, chunk.position, chunk.text, now_ms, now_ms)
            connection.native.execute(_PUT, row)
        return chunks

    def send(self, chunks: list[Chunk]) -> None:
        """Send committed chunks after those of their chat that are still to go.

        Those of a channel that is off wait in their rows for a life in which it is on.
        """
        for chunk in chunks:
            if chunk.key.channel not in self._channels:
                continue
            lane = self._lanes.get(chunk.key)
            if lane is None:
                lane = self._lanes[chunk.key] = deque()
                self._tasks.start(partial(self._drain, chunk.key), name=chunk.key.chat_id)
            lane.append(chunk)

    def unsent(self, turn_id: str) -> list[Chunk]:
        """The committed chunks of a turn that are still to be sent, in order."""

        def work(connection: Connection) -> list[Chunk]:
            rows = OutboxRow.select().where(OutboxRow.turn_id == turn_id, OutboxRow.state == "pending")
            return [_chunk(row) for row in rows.order_by(OutboxRow.position)]

        return self._db.read(work)

    def confirm(self, turn_id: str, *, channel: str) -> bool:
        """The reader has the whole reply of a deferred turn; False when there is nothing to confirm."""
        row = (self._clock.now_ms(), turn_id, channel)

        def work(connection: Connection) -> bool:
            if not connection.native.execute(_CONFIRM, row).rowcount:
                return False
            self._mark_delivered(connection, turn_id)
            return True

        if not self._db.write(work, durable=True):
            return False
        events.emit("outbox.sent", turn_id=turn_id)
        events.emit("inbox.delivered", turn_id=turn_id)
        try:
            self._on_delivered(turn_id)
        except StoreError:
            # The reader's word is kept; what follows it must not wait for a next life to be done.
            self._tasks.start(
                lambda: self._insist(f"Turn {turn_id}", lambda: self._on_delivered(turn_id)), name=turn_id
            )
        return True

    def recover(self, unread_reply_days: int) -> None:
        """Take up what an earlier life left: pending goes out, sending is uncertain.

        A reply that lay ready for its reader longer than `unread_reply_days` is not offered again.
        Contract: called before this life writes its first reply.
        """
        now_ms = self._clock.now_ms()
        tellers = [name for name, channel in self._channels.items() if channel.can_tell_duplicates]

        def work(connection: Connection) -> tuple[list[Chunk], list[str]]:
            sending = OutboxRow.state == "sending"
            again = sending & OutboxRow.channel.in_(tellers)
            unread = again & (OutboxRow.created_ms < now_ms - unread_reply_days * DAY_MS)
            settled = [row.turn_id for row in OutboxRow.select().where(unread)]
            OutboxRow.update(state="uncertain", updated_ms=now_ms).where(unread).execute()
            OutboxRow.update(state="pending", updated_ms=now_ms).where(again).execute()
            doubtful = list(OutboxRow.select().where(sending))
            OutboxRow.update(state="uncertain", updated_ms=now_ms).where(sending).execute()
            settled += [row.turn_id for row in doubtful if not self._say_doubt(connection, row, now_ms)]
            rows = OutboxRow.select().where(OutboxRow.state == "pending").order_by(SQL("rowid"))
            for turn_id in settled:
                self._mark_delivered(connection, turn_id)
            return [_chunk(row) for row in rows], settled

        chunks, settled = self._db.write(work, durable=True)
        for turn_id in settled:
            self._on_delivered(turn_id)
        self.send(chunks)

    def _say_doubt(self, connection: Connection, row: OutboxRow, now_ms: int) -> bool:
        """Add a word to the chat about a piece that may not have arrived; False for that word itself."""
        if row.body == DOUBT or row.channel not in self._channels:
            return False
        last: int = connection.native.execute(_LAST_POSITION, (row.turn_id,)).fetchone()[0]
        where = (row.channel, row.chat_id, row.thread)
        added = (new_id(now_ms), row.turn_id, *where, last + 1, DOUBT, now_ms, now_ms)
        connection.native.execute(_PUT, added)
        return True

    def stop(self, timeout_s: float) -> None:
        """Stop sending; what is not out stays in its rows."""
        self._tasks.stop(timeout_s)

    def _drain(self, key: ConversationKey) -> None:
        lane = self._lanes[key]
        try:
            while lane:
                self._deliver(self._channels[key.channel], lane[0])
                lane.popleft()
        finally:
            del self._lanes[key]

    def _deliver(self, channel: Channel, chunk: Chunk) -> None:
        """Send one chunk however long it takes; a full disk or a deaf platform only delays it."""
        pause_s = 1.0
        while not self._is_out(channel, chunk, pause_s):
            pause_s = min(pause_s * 2, LONGEST_PAUSE_S)

    def _is_out(self, channel: Channel, chunk: Chunk, pause_s: float) -> bool:
        """One attempt; False, after a pause, when there must be another."""
        is_durable = not channel.can_tell_duplicates
        self._insist(f"Chunk {chunk.id}", lambda: self._write(_SENDING, chunk, durable=is_durable))
        events.emit("outbox.sending", turn_id=chunk.turn_id, chunk_id=chunk.id)
        try:
            delivery = channel.send(chunk)
        except SendFailed as failure:
            log.warning("Chunk %s was not taken by %s: %s", chunk.id, channel.name, failure)
            # pending again: a crash in the pause must not make it look as if it might be there
            self._insist(f"Chunk {chunk.id}", lambda: self._write(_NOT_SENT, chunk, durable=is_durable))
            sleep(min(failure.retry_after_s or pause_s, LONGEST_PAUSE_S))
            return False
        except Exception:
            # The boundary of a channel: its fault must not hold up the chat's later chunks for ever.
            log.exception("Channel %s broke on chunk %s", channel.name, chunk.id)
            if channel.can_tell_duplicates:
                sleep(pause_s)
                return False
            self._insist(f"Chunk {chunk.id}", lambda: self._settle(chunk, "uncertain"))
            return True
        if delivery is Delivery.SENT:
            self._insist(f"Chunk {chunk.id}", lambda: self._settle(chunk, "sent"))
        return True

    def _insist(self, what: str, write: Callable[[], object]) -> None:
        """Write until the database takes it; what was sent must not be sent again for its sake."""
        pause_s = 1.0
        while True:
            try:
                write()
                return
            except StoreError as failure:
                log.warning("%s waits for the database: %s", what, failure)
                sleep(pause_s)
                pause_s = min(pause_s * 2, LONGEST_PAUSE_S)

    def _write(self, statement: str, chunk: Chunk, *, durable: bool) -> None:
        row = (self._clock.now_ms(), chunk.id)
        self._db.write(lambda connection: connection.native.execute(statement, row), durable=durable)

    def _settle(self, chunk: Chunk, state: str) -> None:
        """Write a chunk's last state; with the last chunk of a turn the whole reply is delivered."""

        def work(connection: Connection) -> bool:
            connection.native.execute(_SETTLED, (state, self._clock.now_ms(), chunk.id))
            if connection.native.execute(_LEFT, (chunk.turn_id,)).fetchone() is not None:
                return False
            self._mark_delivered(connection, chunk.turn_id)
            return True

        is_whole = self._db.write(work, durable=True)
        events.emit(f"outbox.{state}", turn_id=chunk.turn_id)
        if is_whole:
            events.emit("inbox.delivered", turn_id=chunk.turn_id)
            self._on_delivered(chunk.turn_id)

    def _mark_delivered(self, connection: Connection, turn_id: str) -> None:
        connection.native.execute(_DELIVERED, (self._clock.now_ms(), turn_id))


_PUT = """
    INSERT INTO outbox (id, turn_id, channel, chat_id, thread, position, body, state, attempts,
        created_ms, updated_ms)
    VALUES (?, ?, ?, ?, ?, ?, ?, 'pending', 0, ?, ?)
    ON CONFLICT (turn_id, position) DO NOTHING
"""
_SENDING = """
    UPDATE outbox SET state = 'sending', attempts = attempts + 1, updated_ms = ?
    WHERE id = ? AND state = 'pending'
"""
_LAST_POSITION = "SELECT max(position) FROM outbox WHERE turn_id = ?"
_NOT_SENT = "UPDATE outbox SET state = 'pending', updated_ms = ? WHERE id = ? AND state = 'sending'"
_SETTLED = "UPDATE outbox SET state = ?, updated_ms = ? WHERE id = ?"
_LEFT = "SELECT 1 FROM outbox WHERE turn_id = ? AND state IN ('pending', 'sending')"
_CONFIRM = """
    UPDATE outbox SET state = 'sent', updated_ms = ?
    WHERE turn_id = ? AND channel = ? AND state IN ('pending', 'sending')
"""
_DELIVERED = """
    UPDATE inbox SET state = 'delivered', updated_ms = ? WHERE turn_id = ? AND state = 'running'
"""


def _chunk(row: OutboxRow) -> Chunk:
    key = ConversationKey(row.channel, row.chat_id, row.thread)
    return Chunk(row.id, row.turn_id, key, row.position, row.body)
