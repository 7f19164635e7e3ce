"""The rows of a message on its way: inbox, turn, outbox."""

from __future__ import annotations

from peewee import IntegerField, TextField

from fermix.db import Row


class InboxRow(Row):
    """A message that was acknowledged to its platform and is answered whatever happens."""

    id = TextField(primary_key=True)
    channel = TextField()
    platform_id = TextField()
    chat_id = TextField()
    thread = TextField()
    sender_id = TextField()
    trust = IntegerField()
    attended = IntegerField()
    body = TextField()
    state = TextField()
    attempts = IntegerField()
    turn_id = TextField()
    received_ms = IntegerField()
    updated_ms = IntegerField()
    error = TextField(null=True)

    class Meta:
        table_name = "inbox"


class TurnRow(Row):
    """One answer being worked out, or how that ended."""

    id = TextField(primary_key=True)
    inbox_id = TextField()
    conversation_id = TextField()
    state = TextField()
    attempt = IntegerField()
    provider = TextField()
    model = TextField()
    input_tokens = IntegerField()
    output_tokens = IntegerField()
    cached_tokens = IntegerField()
    cost_micro_usd = IntegerField(null=True)
    started_ms = IntegerField()
    ended_ms = IntegerField(null=True)
    error = TextField(null=True)
    decisions = TextField(default="[]")

    class Meta:
        table_name = "turns"


class OutboxRow(Row):
    """One piece of a reply, sent in order within its chat."""

    id = TextField(primary_key=True)
    turn_id = TextField()
    channel = TextField()
    chat_id = TextField()
    thread = TextField()
    position = IntegerField()
    body = TextField()
    state = TextField()
    attempts = IntegerField()
    created_ms = IntegerField()
    updated_ms = IntegerField()

    class Meta:
        table_name = "outbox"
