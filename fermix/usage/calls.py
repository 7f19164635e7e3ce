"""The calls of a turn in the database, written by the commit of the step that follows them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from fermix.db import Connection
from fermix.ids import new_id
from fermix.messages import ModelCall, Usage
from fermix.usage.spent import Spent

SUMS = """
    count(*), coalesce(sum(input_tokens), 0), coalesce(sum(output_tokens), 0),
    coalesce(sum(cached_tokens), 0), coalesce(sum(written_tokens), 0),
    coalesce(sum(reasoning_tokens), 0), coalesce(sum(cost_micro_usd), 0),
    count(*) - count(cost_micro_usd), coalesce(sum(is_estimated), 0)
"""
"""The columns `spent_of` reads."""

_RECORD = """
    INSERT INTO model_calls (id, turn_id, conversation_id, job_id, purpose, provider, model, outcome,
        input_tokens, cached_tokens, written_tokens, output_tokens, reasoning_tokens,
        is_estimated, cost_micro_usd, started_ms, ended_ms)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
_OF_TURN = f"SELECT {SUMS} FROM model_calls WHERE turn_id = ?"


def record_within(
    connection: Connection,
    calls: Iterable[ModelCall],
    *,
    turn_id: str,
    conversation_id: str,
    job_id: str = "",
) -> None:
    """Store calls inside a caller's `db.write`, so that they are billed by the commit they led to.

    Empty ids where a call belongs to no turn, conversation or job.
    """
    for call in calls:
        used = call.usage
        connection.native.execute(
            _RECORD,
            (
                new_id(call.ended_ms),
                turn_id,
                conversation_id,
                job_id,
                call.purpose,
                call.provider,
                call.model,
                call.outcome,
                used.input_tokens,
                used.cached_tokens,
                used.written_tokens,
                used.output_tokens,
                used.reasoning_tokens,
                int(call.is_estimated),
                call.cost_micro_usd,
                call.started_ms,
                call.ended_ms,
            ),
        )


def spent_within(connection: Connection, turn_id: str) -> Spent:
    """All that is stored of a turn, its earlier lives included, inside a caller's read or write."""
    return spent_of(connection.native.execute(_OF_TURN, (turn_id,)).fetchone())


def spent_of(sums: tuple[Any, ...]) -> Spent:  # Any: a row of SQLite
    """What the columns SUMS say."""
    calls, asked, said, cached, written, reasoning, cost, unpriced, estimated = sums
    return Spent(calls, Usage(asked, said, cached, written, reasoning), cost, unpriced, estimated)
