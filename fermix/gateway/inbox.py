"""The durable inbox: what was accepted is answered, whatever dies in between.

received → running → delivered → committed, or failed | dropped
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass

import msgspec
from peewee import SQL

from fermix import events
from fermix.clock import Clock
from fermix.db import Connection, Database
from fermix.errors import StoreError
from fermix.gateway.tables import InboxRow, TurnRow
from fermix.ids import new_id
from fermix.messages import ConversationKey, Inbound, Usage
from fermix.trust import Standing, Trust
from fermix.usage import Spent

AT_HAND = 256
AT_HAND_LENGTH = 16_384
"""Characters; longer messages are read back from their rows."""
UNFINISHED = ("received", "running", "delivered")
ARRIVAL = SQL("rowid")
"""The order rows were written in; ids of one millisecond sort by chance."""


class EntryDropped(Exception):
    """The message was deleted together with its conversation; there is nothing to answer."""


@dataclass(frozen=True, slots=True)
class InboxEntry:
    """An accepted message and the turn that answers it."""

    id: str
    turn_id: str
    inbound: Inbound
    standing: Standing
    state: str
    attempts: int
    """How often the turn was begun and not handed back."""

    @property
    def key(self) -> ConversationKey:
        return self.inbound.key


@dataclass(frozen=True, slots=True)
class TurnRecord:
    """A turn as its row tells it."""

    id: str
    conversation_id: str
    state: str
    attempt: int
    usage: Usage
    cost_micro_usd: int | None
    """None when it is not known, or the turn has not ended."""
    error: str | None
    """The error's code; None when there was none."""


class Inbox:
    """Verbs on inbox and turn rows; those that take a connection run inside a caller's write.

    What every turn does is plain SQL: building the same statements with peewee costs ten times
    what SQLite needs for them, on the one thread all turns wait for.
    """

    def __init__(self, db: Database, clock: Clock) -> None:
        self._db = db
        self._clock = clock
        self._at_hand: OrderedDict[str, InboxEntry] = OrderedDict()

    def accept(self, inbound: Inbound, standing: Standing) -> tuple[InboxEntry, bool]:
        """The entry and whether it is new; the same platform id again is the entry there is.

        Durable when it returns. Raises: StoreFull, StoreError; then nothing was accepted.
        """
        now_ms = self._clock.now_ms()
        entry = InboxEntry(new_id(now_ms), new_id(now_ms), inbound, standing, "received", 0)
        columns = _columns(entry, now_ms)

        def work(connection: Connection) -> InboxEntry | None:
            if connection.native.execute(_ACCEPT, columns).rowcount:
                return None
            return _find(inbound.key.channel, inbound.platform_id)  # it refused because there is one

        try:
            there = self._db.write(work, durable=True)
        except StoreError:
            # A write that was given up may be committed all the same; the sender is told that it was not.
            with suppress(StoreError):
                self._db.write(lambda connection: connection.native.execute(_TAKE_BACK, (entry.id,)))
            raise
        if there is None:
            self._keep_at_hand(entry)
        accepted = there or entry
        events.emit("inbox.received", inbox_id=accepted.id, turn_id=accepted.turn_id)
        return accepted, there is None

    def known(self, channel: str, platform_id: str) -> InboxEntry | None:
        """The entry of a message that was accepted before; None when it is a new one."""
        return self._db.read(lambda connection: _find(channel, platform_id))

    def load(self, entry_id: str) -> InboxEntry:
        """The entry as it stands before its turn begins."""
        at_hand = self._at_hand.pop(entry_id, None)
        return at_hand or self._db.read(lambda connection: _entry(InboxRow.get_by_id(entry_id)))

    def of_turn(self, turn_id: str) -> InboxEntry | None:
        """The entry a turn answers; None for an unknown turn."""

        def work(connection: Connection) -> InboxEntry | None:
            row = InboxRow.get_or_none(InboxRow.turn_id == turn_id)
            return None if row is None else _entry(row)

        return self._db.read(work)

    def unfinished(self) -> list[InboxEntry]:
        """What an earlier life left to do, oldest first."""

        def work(connection: Connection) -> list[InboxEntry]:
            rows = InboxRow.select().where(InboxRow.state.in_(UNFINISHED)).order_by(ARRIVAL)
            return [_entry(row) for row in rows]

        return self._db.read(work)

    def turn(self, turn_id: str) -> TurnRecord | None:
        """What is written of a turn; None when it has not begun."""

        def work(connection: Connection) -> TurnRecord | None:
            row = TurnRow.get_or_none(TurnRow.id == turn_id)
            return None if row is None else _record(row)

        return self._db.read(work)

    def begin(
        self, connection: Connection, entry: InboxEntry, conversation_id: str, *, provider: str, model: str
    ) -> int:
        """Mark the turn running inside a write; which of its lives this is, from 1.

        Every beginning is a life; only those that were not handed back count as attempts.
        Raises: EntryDropped when its conversation was deleted since it was accepted.
        """
        now_ms = self._clock.now_ms()
        run = connection.native.execute
        if not run(_RUN, (entry.attempts + 1, now_ms, entry.id)).rowcount:
            raise EntryDropped(entry.id)
        run(_BEGIN, (entry.turn_id, entry.id, conversation_id, provider, model, now_ms))
        life: int = run("SELECT attempt FROM turns WHERE id = ?", (entry.turn_id,)).fetchone()[0]
        return life

    def end(
        self, connection: Connection, entry: InboxEntry, state: str, spent: Spent, error: str | None
    ) -> None:
        """Write inside a write how the turn ended; its reply is in the outbox by the same commit.

        A turn whose beginning could not be stored is begun by this write too.
        """
        usage = spent.usage
        tokens = (usage.input_tokens, usage.output_tokens, usage.cached_tokens)
        row = (state, *tokens, spent.cost_micro_usd, self._clock.now_ms(), error, entry.turn_id)
        if not connection.native.execute(_END, row).rowcount:
            self.begin(connection, entry, "", provider="", model="")
            connection.native.execute(_END, row)

    def decided(self, connection: Connection, entry: InboxEntry, decisions: Sequence[str]) -> None:
        """Write inside a write what the phases of a turn decided, in their order."""
        row = (msgspec.json.encode(decisions).decode(), entry.turn_id)
        connection.native.execute("UPDATE turns SET decisions = ? WHERE id = ?", row)

    def hand_back(self, entry: InboxEntry) -> None:
        """Return a turn that was begun to the inbox; the beginning does not count as an attempt.

        Nothing happens to one whose end is stored: its reply is on the way.
        """
        row = (entry.attempts, self._clock.now_ms(), entry.id)
        self._db.write(lambda connection: connection.native.execute(_HAND_BACK, row), durable=True)

    def commit(self, turn_id: str) -> None:
        """The last state: answered, delivered, and all that follows a turn is done."""
        row = (self._clock.now_ms(), turn_id)
        self._db.write(lambda connection: connection.native.execute(_COMMIT, row), durable=True)
        events.emit("inbox.committed", turn_id=turn_id)

    def forget(self, entry_ids: Iterable[str]) -> None:
        """Drop what memory holds of entries whose words were deleted."""
        for entry_id in entry_ids:
            self._at_hand.pop(entry_id, None)

    def _keep_at_hand(self, entry: InboxEntry) -> None:
        """Spare a turn that begins at once the reading of what was just written."""
        if len(entry.inbound.text) <= AT_HAND_LENGTH:
            self._at_hand[entry.id] = entry
            if len(self._at_hand) > AT_HAND:
                self._at_hand.popitem(last=False)


_ACCEPT = """
    INSERT INTO inbox (id, channel, platform_id, chat_id, thread, sender_id, trust, attended, body,
        state, attempts, turn_id, received_ms, updated_ms)
    VALUES (:id, :channel, :platform_id, :chat_id, :thread, :sender_id, :trust, :attended, :body,
        :state, :attempts, :turn_id, :received_ms, :updated_ms)
    ON CONFLICT (channel, platform_id) DO NOTHING
"""
_TAKE_BACK = "DELETE FROM inbox WHERE id = ? AND state = 'received'"
_RUN = """
    UPDATE inbox SET state = 'running', attempts = ?, updated_ms = ? WHERE id = ? AND state <> 'dropped'
"""
_BEGIN = """
    INSERT INTO turns (id, inbox_id, conversation_id, state, attempt, provider, model,
        input_tokens, output_tokens, cached_tokens, started_ms)
    VALUES (?, ?, ?, 'running', 1, ?, ?, 0, 0, 0, ?)
    ON CONFLICT (id) DO UPDATE SET state = 'running', attempt = attempt + 1,
        conversation_id = excluded.conversation_id, provider = excluded.provider,
        model = excluded.model, started_ms = excluded.started_ms
"""
_END = """
    UPDATE turns SET state = ?, input_tokens = ?, output_tokens = ?, cached_tokens = ?,
        cost_micro_usd = ?, ended_ms = ?, error = ?
    WHERE id = ?
"""
_HAND_BACK = """
    UPDATE inbox SET state = 'received', attempts = ?, updated_ms = ?
    WHERE id = ? AND EXISTS (
        SELECT 1 FROM turns WHERE turns.id = inbox.turn_id AND turns.state = 'running')
"""
_COMMIT = """
    UPDATE inbox SET updated_ms = ?, state = CASE
        WHEN EXISTS (SELECT 1 FROM turns WHERE turns.id = inbox.turn_id AND turns.state = 'failed')
        THEN 'failed' ELSE 'committed' END
    WHERE turn_id = ? AND state = 'delivered'
"""


def _columns(entry: InboxEntry, now_ms: int) -> dict[str, object]:
    inbound = entry.inbound
    return {
        "id": entry.id,
        "channel": inbound.key.channel,
        "platform_id": inbound.platform_id,
        "chat_id": inbound.key.chat_id,
        "thread": inbound.key.thread,
        "sender_id": inbound.sender_id,
        "trust": int(entry.standing.trust),
        "attended": int(entry.standing.attended),
        "body": msgspec.json.encode(inbound).decode(),
        "state": entry.state,
        "attempts": entry.attempts,
        "turn_id": entry.turn_id,
        "received_ms": inbound.received_ms,
        "updated_ms": now_ms,
    }


def _find(channel: str, platform_id: str) -> InboxEntry | None:
    row = InboxRow.get_or_none(InboxRow.channel == channel, InboxRow.platform_id == platform_id)
    return None if row is None else _entry(row)


def _entry(row: InboxRow) -> InboxEntry:
    return InboxEntry(
        id=row.id,
        turn_id=row.turn_id,
        inbound=msgspec.json.decode(row.body, type=Inbound),
        standing=Standing(Trust(row.trust), attended=bool(row.attended)),
        state=row.state,
        attempts=row.attempts,
    )


def _record(row: TurnRow) -> TurnRecord:
    return TurnRecord(
        id=row.id,
        conversation_id=row.conversation_id,
        state=row.state,
        attempt=row.attempt,
        usage=Usage(row.input_tokens, row.output_tokens, row.cached_tokens),
        cost_micro_usd=row.cost_micro_usd,
        error=row.error,
    )
