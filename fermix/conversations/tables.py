"""The rows of conversations and their messages."""

from __future__ import annotations

from peewee import IntegerField, TextField

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
