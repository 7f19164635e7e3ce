"""The rows of calls to models."""

from __future__ import annotations

from peewee import IntegerField, TextField

from fermix.db import Row


class ModelCallRow(Row):
    """One request that a provider began to answer."""

    id = TextField(primary_key=True)
    turn_id = TextField(index=True)
    conversation_id = TextField()
    job_id = TextField()
    purpose = TextField()
    provider = TextField()
    model = TextField()
    outcome = TextField()
    input_tokens = IntegerField()
    cached_tokens = IntegerField()
    written_tokens = IntegerField()
    output_tokens = IntegerField()
    reasoning_tokens = IntegerField()
    is_estimated = IntegerField()
    cost_micro_usd = IntegerField(null=True)
    started_ms = IntegerField()
    ended_ms = IntegerField()

    class Meta:
        table_name = "model_calls"
        indexes = ((("conversation_id", "ended_ms"), False), (("ended_ms",), False))
