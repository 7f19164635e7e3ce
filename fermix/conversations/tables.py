"""The rows of conversations and their messages."""

from __future__ import annotations

from peewee import BlobField, IntegerField, TextField

from fermix.db import Row


class ConversationRow(Row):
    """One thread of talk on one channel."""

    id = TextField(primary_key=True)
    channel = TextField()
    chat_id = TextField()
    thread = TextField()
    title = TextField()
    created_ms = IntegerField()
    updated_ms = IntegerField()
    archived_ms = IntegerField(null=True)

    class Meta:
        table_name = "conversations"
        indexes = ((("channel", "chat_id", "thread"), True), (("updated_ms",), False))


class MessageRow(Row):
    """One message; `body` is the JSON of a ChatMessage, `role` a copy of what is in it."""

    id = TextField(primary_key=True)
    conversation_id = TextField()
    turn_id = TextField(index=True)
    position = IntegerField()
    role = TextField()
    body = TextField()
    created_ms = IntegerField()

    class Meta:
        table_name = "messages"
        indexes = ((("conversation_id", "position"), True),)


class SummaryRow(Row):
    """What is shown instead of the messages up to a position; `body` is the JSON of a Summary."""

    id = TextField(primary_key=True)
    conversation_id = TextField()
    turn_id = TextField()
    upto_position = IntegerField()
    body = TextField()
    created_ms = IntegerField()

    class Meta:
        table_name = "summaries"
        indexes = ((("conversation_id", "upto_position"), False),)


class ToolResultRow(Row):
    """The whole of a long tool result, compressed; `owner` is the JSON of the conversation's key."""

    id = TextField(primary_key=True)
    owner = TextField(index=True)
    turn_id = TextField()
    tool = TextField()
    size_bytes = IntegerField()
    stored_bytes = IntegerField()
    body = BlobField()
    created_ms = IntegerField()

    class Meta:
        table_name = "tool_results"
