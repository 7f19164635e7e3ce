"""The durable inbox: what was accepted is answered, whatever dies in between.

received → running → delivered → committed, or failed | dropped
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec
from peewee import IntegrityError

from fermix import events
from fermix.clock import Clock
from fermix.db import Connection, Database
from fermix.gateway.tables import InboxRow, TurnRow
from fermix.ids import new_id
from fermix.messages import ConversationKey, Inbound, Usage
from fermix.trust import Standing, Trust

UNFINISHED = ("received", "running", "delivered")


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
    error: str | None
    """The error's code; None when there was none."""


class Inbox:
    """Verbs on inbox and turn rows; those that take a connection run inside a caller's write."""

    def __init__(self, db: Database, clock: Clock) -> None:
        self._db = db
        self._clock = clock

    def accept(self, inbound: Inbound, standing: Standing) -> tuple[InboxEntry, bool]:
        """The entry and whether it is new; the same platform id again is the entry there is.

        Durable when it returns. Raises: StoreFull, StoreError; then nothing was accepted.
        """
        now_ms = self._clock.now_ms()
        entry = InboxEntry(new_id(now_ms), new_id(now_ms), inbound, standing, "received", 0)

        def work(connection: Connection) -> tuple[InboxEntry, bool]:
            try:
                InboxRow.insert(**_columns(entry, now_ms)).execute()
            except IntegrityError:
                return _find(inbound), False
            return entry, True

        accepted = self._db.write(work, durable=True)
        events.emit("inbox.received", inbox_id=accepted[0].id, turn_id=accepted[0].turn_id)
        return accepted

    def load(self, entry_id: str) -> InboxEntry:
        """The entry as it stands now."""
        return self._db.read(lambda connection: _entry(InboxRow.get_by_id(entry_id)))

    def of_turn(self, turn_id: str) -> InboxEntry | None:
        """The entry a turn answers; None for an unknown turn."""

        def work(connection: Connection) -> InboxEntry | None:
            row = InboxRow.get_or_none(InboxRow.turn_id == turn_id)
            return None if row is None else _entry(row)

        return self._db.read(work)

    def unfinished(self) -> list[InboxEntry]:
        """What an earlier life left to do, oldest first."""

        def work(connection: Connection) -> list[InboxEntry]:
            rows = InboxRow.select().where(InboxRow.state.in_(UNFINISHED)).order_by(InboxRow.id)
            return [_entry(row) for row in rows]

        return self._db.read(work)

    def turn(self, turn_id: str) -> TurnRecord | None:
        """What is written of a turn; None when it has not begun."""

        def work(connection: Connection) -> TurnRecord | None:
            row = TurnRow.get_or_none(TurnRow.id == turn_id)
            return None if row is None else _record(row)

        return self._db.read(work)

    def begin(self, entry: InboxEntry, conversation_id: str, *, provider: str, model: str) -> int:
        """Mark the turn running inside a write; which of its lives this is, from 1.

        Every beginning is a life; only those that were not handed back count as attempts.
        """
        now_ms = self._clock.now_ms()
        InboxRow.update(state="running", attempts=entry.attempts + 1, updated_ms=now_ms).where(
            InboxRow.id == entry.id
        ).execute()
        before = TurnRow.get_or_none(TurnRow.id == entry.turn_id)
        life: int = 1 if before is None else before.attempt + 1
        began = {
            "inbox_id": entry.id,
            "conversation_id": conversation_id,
            "state": "running",
            "attempt": life,
            "provider": provider,
            "model": model,
            "started_ms": now_ms,
        }
        if before is None:
            TurnRow.insert(
                id=entry.turn_id, input_tokens=0, output_tokens=0, cached_tokens=0, **began
            ).execute()
        else:
            TurnRow.update(**began).where(TurnRow.id == entry.turn_id).execute()
        return life

    def end(self, turn_id: str, state: str, usage: Usage, error: str | None) -> None:
        """Write inside a write how the turn ended; its reply is in the outbox by the same commit."""
        TurnRow.update(
            state=state,
            input_tokens=usage.input_tokens,
            output_tokens=usage.output_tokens,
            cached_tokens=usage.cached_tokens,
            ended_ms=self._clock.now_ms(),
            error=error,
        ).where(TurnRow.id == turn_id).execute()

    def hand_back(self, entry: InboxEntry) -> None:
        """Return a turn that was begun to the inbox; the beginning does not count as an attempt."""

        def work(connection: Connection) -> None:
            InboxRow.update(
                state="received", attempts=entry.attempts, updated_ms=self._clock.now_ms()
            ).where(InboxRow.id == entry.id).execute()

        self._db.write(work, durable=True)

    def mark_delivered(self, turn_ids: Sequence[str]) -> None:
        """Write inside a write that the whole replies have reached their chats."""
        InboxRow.update(state="delivered", updated_ms=self._clock.now_ms()).where(
            InboxRow.turn_id.in_(turn_ids), InboxRow.state == "running"
        ).execute()

    def commit(self, turn_id: str) -> None:
        """The last state: answered, delivered, and all that follows a turn is done."""

        def work(connection: Connection) -> None:
            failed = TurnRow.select().where(TurnRow.id == turn_id, TurnRow.state == "failed").exists()
            InboxRow.update(
                state="failed" if failed else "committed", updated_ms=self._clock.now_ms()
            ).where(InboxRow.turn_id == turn_id, InboxRow.state == "delivered").execute()

        self._db.write(work, durable=True)
        events.emit("inbox.committed", turn_id=turn_id)


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


def _find(inbound: Inbound) -> InboxEntry:
    return _entry(
        InboxRow.get(InboxRow.channel == inbound.key.channel, InboxRow.platform_id == inbound.platform_id)
    )


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
        error=row.error,
    )
