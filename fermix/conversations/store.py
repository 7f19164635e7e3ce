"""Conversations and messages in the database: the truth that every cache is filled from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from peewee import fn

from fermix.clock import Clock
from fermix.conversations.records import Conversation, ConversationSummary, StoredMessage
from fermix.conversations.summaries import Summary, latest_within, put_within
from fermix.conversations.tables import ConversationRow, MessageRow
from fermix.db import Connection, Database
from fermix.ids import new_id
from fermix.messages import ChatMessage, ConversationKey, UserMessage

StoredMessages = list[StoredMessage]  # the class below has a verb named `list`
Rows = list[MessageRow]
Columns = list[tuple[Any, ...]]  # Any: columns of many types

_TITLE_LENGTH = 60
_LAST_TEXT_LENGTH = 200

_decoder: msgspec.json.Decoder[ChatMessage] = msgspec.json.Decoder(ChatMessage)
_encoder = msgspec.json.Encoder()

_SUMMARY = """
    SELECT c.id, c.channel, c.chat_id, c.thread, c.title, c.created_ms, c.updated_ms, c.archived_ms,
        (SELECT count(*) FROM messages WHERE conversation_id = c.id),
        (SELECT substr(json_extract(body, '$.text'), 1, :length) FROM messages
            WHERE conversation_id = c.id AND role IN ('user', 'assistant')
                AND json_extract(body, '$.text') <> ''
            ORDER BY position DESC LIMIT 1)
    FROM conversations AS c
"""
_SUMMARIES = f"""{_SUMMARY}
    WHERE (c.archived_ms IS NOT NULL) = :is_archived AND (:channel IS NULL OR c.channel = :channel)
    ORDER BY c.updated_ms DESC, c.id DESC
    LIMIT :limit
"""
_SUMMARY_OF = f"{_SUMMARY} WHERE c.channel = :channel AND c.chat_id = :chat_id AND c.thread = :thread"
_PAGE = """
    SELECT id, turn_id, position, body, created_ms FROM messages
    WHERE conversation_id = ? AND position > ? ORDER BY position LIMIT ?
"""

_LAST_POSITION = "SELECT max(position) FROM messages WHERE conversation_id = ?"
_GONE_ON = "UPDATE conversations SET updated_ms = ? WHERE id = ?"
_SPOKEN = "UPDATE conversations SET updated_ms = ?, archived_ms = NULL WHERE id = ?"
_PUT_AWAY = "UPDATE conversations SET archived_ms = ? WHERE id = ?"
_APPEND = """
    INSERT INTO messages (id, conversation_id, turn_id, position, role, body, created_ms)
    VALUES (:id, :conversation_id, :turn_id, :position, :role, :body, :created_ms)
"""


class ConversationStore:
    """Verbs on conversations; each is one read or one write of the database."""

    def __init__(self, db: Database, clock: Clock) -> None:
        self._db = db
        self._clock = clock

    def open(self, key: ConversationKey) -> Conversation:
        """The conversation of `key`, made now when there is none."""
        found = self.find(key)
        if found is not None:
            return found
        now_ms = self._clock.now_ms()
        return self._db.write(lambda connection: self.open_within(connection, key, now_ms=now_ms))

    def open_within(self, connection: Connection, key: ConversationKey, *, now_ms: int) -> Conversation:
        """The same inside a caller's `db.write`."""
        row = ConversationRow(
            id=new_id(now_ms),
            channel=key.channel,
            chat_id=key.chat_id,
            thread=key.thread,
            title="",
            created_ms=now_ms,
            updated_ms=now_ms,
        )
        ConversationRow.insert(row.__data__).on_conflict_ignore().execute(connection)
        found = _find(key)
        assert found is not None  # it was there or has just been made, in this very transaction
        return found

    def seed(self, key: ConversationKey, messages: Sequence[ChatMessage]) -> None:
        """Begin a conversation with what was said elsewhere; one that has begun stays as it is.

        Durable when it returns: whole or not at all. It is put away until somebody speaks in it.
        """
        now_ms = self._clock.now_ms()

        def work(connection: Connection) -> None:
            conversation = self.open_within(connection, key, now_ms=now_ms)
            if connection.native.execute(_LAST_POSITION, (conversation.id,)).fetchone()[0] is None:
                self.append(connection, conversation.id, "", messages, now_ms)
                connection.native.execute(_PUT_AWAY, (now_ms, conversation.id))

        self._db.write(work, durable=True)

    def find(self, key: ConversationKey) -> Conversation | None:
        """The conversation of `key`; None when nobody spoke there yet."""
        return self._db.read(lambda _: _find(key))

    def list(
        self, channel: str | None, limit: int, *, is_archived: bool = False
    ) -> list[ConversationSummary]:
        """Conversations in use, or those put away, the latest first; `channel` None means of every one."""
        parameters = {"channel": channel, "limit": max(0, limit), "is_archived": is_archived}
        return [_summary(columns) for columns in self._read_summaries(_SUMMARIES, parameters)]

    def summary(self, key: ConversationKey) -> ConversationSummary | None:
        """The line of one conversation; None when nobody spoke there yet."""
        parameters = {"channel": key.channel, "chat_id": key.chat_id, "thread": key.thread}
        found = self._read_summaries(_SUMMARY_OF, parameters)
        return _summary(found[0]) if found else None

    def retitle(self, key: ConversationKey, title: str) -> bool:
        """Give a conversation this title; False when there is no such conversation."""
        return self._change("UPDATE conversations SET title = ?", title, key)

    def archive(self, key: ConversationKey, *, is_archived: bool) -> bool:
        """Put a conversation away, or take it back; False when there is no such conversation."""
        archived_ms = self._clock.now_ms() if is_archived else None
        return self._change("UPDATE conversations SET archived_ms = ?", archived_ms, key)

    def page(
        self, conversation_id: str, after_position: int, *, limit: int, size_chars: int
    ) -> StoredMessages:
        """Messages behind a position, in order: at most `limit`; all but the first within `size_chars`."""

        def work(connection: Connection) -> StoredMessages:
            found: StoredMessages = []
            left = size_chars
            for id, turn_id, position, body, created_ms in connection.native.execute(
                _PAGE, (conversation_id, after_position, max(0, limit))
            ):
                left -= len(body)
                if found and left < 0:
                    break
                found.append(
                    StoredMessage(
                        id=id,
                        conversation_id=conversation_id,
                        turn_id=turn_id,
                        position=position,
                        message=_decoder.decode(body),
                        created_ms=created_ms,
                    )
                )
            return found

        return self._db.read(work)

    def append(
        self,
        connection: Connection,
        conversation_id: str,
        turn_id: str,
        messages: Sequence[ChatMessage],
        now_ms: int | None = None,
    ) -> StoredMessages:
        """Store `messages` after the last one, inside a caller's `db.write`.

        `now_ms`: when they were said; None means now. The first words of a person become the title, and
        later ones take a conversation back that was put away.
        """
        if not messages:
            return []
        now_ms = self._clock.now_ms() if now_ms is None else now_ms
        # Plain SQL: every step of every turn waits for this, and peewee's builder costs ten times it.
        run = connection.native.execute
        last: int | None = run(_LAST_POSITION, (conversation_id,)).fetchone()[0]
        stored = [
            StoredMessage(
                id=new_id(now_ms),
                conversation_id=conversation_id,
                turn_id=turn_id,
                position=position,
                message=message,
                created_ms=now_ms,
            )
            for position, message in enumerate(messages, (last or 0) + 1)
        ]
        for one in stored:
            run(_APPEND, _columns(one))
        run(_SPOKEN if isinstance(messages[0], UserMessage) else _GONE_ON, (now_ms, conversation_id))
        if last is None:
            run(
                "UPDATE conversations SET title = ? WHERE id = ? AND title = ''",
                (_title(messages), conversation_id),
            )
        return stored

    def of_turn(self, turn_id: str) -> StoredMessages:
        """The messages a turn has stored, in order."""

        def work(_: Connection) -> Rows:
            return list(
                MessageRow.select().where(MessageRow.turn_id == turn_id).order_by(MessageRow.position)
            )

        return [_stored(row) for row in self._db.read(work)]

    def tail(self, conversation_id: str, limit: int) -> StoredMessages:
        """The last `limit` messages, oldest first."""

        def work(_: Connection) -> Rows:
            return _last(conversation_id, limit)

        return [_stored(row) for row in reversed(self._db.read(work))]

    def recent(self, conversation_id: str, limit: int) -> tuple[Summary | None, StoredMessages]:
        """The latest summary, and of what stands behind it the last `limit` messages.

        They go back a little further where they would begin with the result of a tool call.
        """

        def work(connection: Connection) -> tuple[Summary | None, Rows]:
            upto, summary = latest_within(connection, conversation_id) or (0, None)
            rows = _last(conversation_id, limit, after_position=upto)
            if not rows or rows[-1].role != "tool":
                return summary, rows
            asked = (
                MessageRow.select(fn.MAX(MessageRow.position))
                .where(
                    MessageRow.conversation_id == conversation_id,
                    MessageRow.position < rows[-1].position,
                    MessageRow.role != "tool",
                )
                .scalar()
            )
            older = (
                MessageRow.select()
                .where(
                    MessageRow.conversation_id == conversation_id,
                    MessageRow.position >= (asked or 0),
                    MessageRow.position < rows[-1].position,
                )
                .order_by(MessageRow.position.desc())
            )
            return summary, rows + list(older)

        summary, rows = self._db.read(work)
        return summary, [_stored(row) for row in reversed(rows)]

    def sum_up(
        self,
        connection: Connection,
        conversation_id: str,
        turn_id: str,
        summary: Summary,
        kept: Sequence[ChatMessage],
    ) -> bool:
        """Show this instead of all but the last messages from now on, inside a caller's `db.write`.

        False, and nothing changes, when the conversation does not end with `kept`.
        """
        return put_within(connection, conversation_id, turn_id, summary, kept, now_ms=self._clock.now_ms())

    def _read_summaries(self, query: str, parameters: Mapping[str, object]) -> Columns:
        def work(connection: Connection) -> Columns:
            return connection.native.execute(query, {**parameters, "length": _LAST_TEXT_LENGTH}).fetchall()

        return self._db.read(work)

    def _change(self, statement: str, value: str | int | None, key: ConversationKey) -> bool:
        row = (value, key.channel, key.chat_id, key.thread)
        query = f"{statement} WHERE channel = ? AND chat_id = ? AND thread = ?"
        changed: int = self._db.write(lambda connection: connection.native.execute(query, row).rowcount)
        return changed > 0


def _summary(columns: tuple[Any, ...]) -> ConversationSummary:  # Any: columns of many types
    return ConversationSummary(
        conversation=_conversation(columns[:8]), message_count=columns[8], last_text=columns[9] or ""
    )


def _find(key: ConversationKey) -> Conversation | None:
    columns = (
        ConversationRow.select()
        .where(
            ConversationRow.channel == key.channel,
            ConversationRow.chat_id == key.chat_id,
            ConversationRow.thread == key.thread,
        )
        .tuples()
        .first()
    )
    return None if columns is None else _conversation(columns)


def _last(conversation_id: str, limit: int, *, after_position: int = 0) -> list[MessageRow]:
    return list(
        MessageRow.select()
        .where(MessageRow.conversation_id == conversation_id, MessageRow.position > after_position)
        .order_by(MessageRow.position.desc())
        .limit(max(0, limit))
    )


def _conversation(columns: tuple[Any, ...]) -> Conversation:  # Any: columns of many types
    id, channel, chat_id, thread, title, created_ms, updated_ms, archived_ms = columns
    return Conversation(
        id=id,
        key=ConversationKey(channel, chat_id, thread),
        title=title,
        created_ms=created_ms,
        updated_ms=updated_ms,
        archived_ms=archived_ms,
    )


def _columns(stored: StoredMessage) -> dict[str, str | int]:
    message = stored.message
    return {
        "id": stored.id,
        "conversation_id": stored.conversation_id,
        "turn_id": stored.turn_id,
        "position": stored.position,
        "role": str(message.__struct_config__.tag),
        "body": _encoder.encode(message).decode(),
        "created_ms": stored.created_ms,
    }


def _stored(row: MessageRow) -> StoredMessage:
    return StoredMessage(
        id=row.id,
        conversation_id=row.conversation_id,
        turn_id=row.turn_id,
        position=row.position,
        message=_decoder.decode(row.body),
        created_ms=row.created_ms,
    )


def _title(messages: Sequence[ChatMessage]) -> str:
    """The first words a person said, on one line."""
    for message in messages:
        if isinstance(message, UserMessage) and message.text.strip():
            words = " ".join(message.text.split())
            return words if len(words) <= _TITLE_LENGTH else words[: _TITLE_LENGTH - 1] + "…"
    return ""
