"""What is shown of a conversation instead of its older messages; those stay in the store for ever."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from fermix.db import Connection
from fermix.ids import new_id
from fermix.messages import AssistantMessage, ChatMessage, UserMessage

HEAD = (
    "[fermix: the older part of this conversation was summed up to save room. What stands under "
    "'First request', 'Plan' and 'Open items' is verbatim; the summary was written by a model.]"
)
GOING_ON = "I have the earlier conversation in mind and go on from here."
"""Between two messages of a person, since not every model takes them one after the other."""


class Summary(msgspec.Struct, frozen=True, kw_only=True):
    """The older part of a conversation, shortened."""

    first_request: str
    """What the person asked for at the very beginning, verbatim."""
    text: str
    """What a model made of the rest; empty where no model was asked."""
    plan: tuple[str, ...] = ()
    """The latest plan, one line for each step with its state, verbatim."""
    open_items: tuple[str, ...] = ()
    """What was still to be done, verbatim."""
    request: UserMessage | None = None
    """The person's latest words when what is left begins in the middle of their turn."""
    messages: int = 0
    """How many stored messages it stands for."""

    def shown(self) -> list[ChatMessage]:
        """The messages a model is shown of it; a message of a person or the model may follow."""
        parts = [HEAD]
        if self.first_request:
            parts.append(f"First request:\n{self.first_request}")
        if self.plan:
            parts.append("Plan:\n" + "\n".join(self.plan))
        if self.open_items:
            parts.append("Open items:\n" + "\n".join(f"- {item}" for item in self.open_items))
        parts.append(
            f"Summary of {self.messages} messages:\n{self.text}"
            if self.text
            else f"{self.messages} older messages are left out here."
        )
        shown: list[ChatMessage] = [UserMessage("\n\n".join(parts)), AssistantMessage(GOING_ON)]
        return shown if self.request is None else [*shown, self.request]


_decoder = msgspec.json.Decoder(Summary)
_encoder = msgspec.json.Encoder()
_LATEST = """
    SELECT upto_position, body FROM summaries WHERE conversation_id = ?
    ORDER BY upto_position DESC, rowid DESC LIMIT 1
"""
_PUT = """
    INSERT INTO summaries (id, conversation_id, turn_id, upto_position, body, created_ms)
    VALUES (?, ?, ?, ?, ?, ?)
"""
_FROM_THE_END = """
    SELECT position, body FROM messages WHERE conversation_id = ? ORDER BY position DESC LIMIT 1 OFFSET ?
"""
_messages: msgspec.json.Decoder[ChatMessage] = msgspec.json.Decoder(ChatMessage)


def put_within(
    connection: Connection,
    conversation_id: str,
    turn_id: str,
    summary: Summary,
    kept: Sequence[ChatMessage],
    *,
    now_ms: int,
) -> bool:
    """Store a summary of all but the last messages, `kept`, inside a caller's `db.write`.

    False, and nothing is stored, when the conversation does not end with them.
    """
    run = connection.native.execute
    found = run(_FROM_THE_END, (conversation_id, max(0, len(kept) - 1))).fetchone()
    if found is None:
        return False
    position, body = found
    if kept:
        if _messages.decode(body) != kept[0]:
            return False
        position -= 1
    stored = _encoder.encode(summary).decode()
    run(_PUT, (new_id(now_ms), conversation_id, turn_id, position, stored, now_ms))
    return True


def latest_within(connection: Connection, conversation_id: str) -> tuple[int, Summary] | None:
    """The last summary and the position up to which it reaches, inside a caller's read."""
    found = connection.native.execute(_LATEST, (conversation_id,)).fetchone()
    return None if found is None else (found[0], _decoder.decode(found[1]))
