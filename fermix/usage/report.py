"""Sums over stored calls, by day, model, provider, conversation, job, turn or purpose."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from fermix.db import Connection, Database
from fermix.messages import ConversationKey
from fermix.usage.calls import SUMS, spent_of
from fermix.usage.spent import Spent

MOST_LINES = 1000


class By(StrEnum):
    """What the calls of one line have in common."""

    DAY = "day"
    MODEL = "model"
    PROVIDER = "provider"
    CONVERSATION = "conversation"
    JOB = "job"
    TURN = "turn"
    PURPOSE = "purpose"


_CONVERSATION_NAME = """
    coalesce((SELECT c.channel || ':' || c.chat_id || iif(c.thread = '', '', ':' || c.thread)
        FROM conversations AS c WHERE c.id = conversation_id), iif(conversation_id = '', '', '(deleted)'))
"""
_NAMES = {
    By.DAY: "date(ended_ms / 1000, 'unixepoch', 'localtime')",
    By.MODEL: "provider || '/' || model",
    By.PROVIDER: "provider",
    By.CONVERSATION: _CONVERSATION_NAME,
    By.JOB: "job_id",
    By.TURN: "turn_id",
    By.PURPOSE: "purpose",
}
_ORDERS = {By.DAY: "name DESC", By.TURN: "max(ended_ms) DESC"}
_MOST_FIRST = "coalesce(sum(cost_micro_usd), 0) DESC, sum(input_tokens + output_tokens) DESC, name"
_FILTER = """
    ended_ms >= :since_ms AND (:channel IS NULL OR conversation_id = (
        SELECT id FROM conversations WHERE channel = :channel AND chat_id = :chat_id AND thread = :thread))
"""


@dataclass(frozen=True, slots=True)
class UsageLine:
    """What calls of one kind came to."""

    name: str
    """A day as 2026-12-01, a model as provider/model; empty for calls outside any."""
    spent: Spent


class UsageStore:
    """Reads of the calls' rows."""

    def __init__(self, db: Database) -> None:
        self._db = db

    def lines(
        self, by: By, *, since_ms: int = 0, limit: int = MOST_LINES, of: ConversationKey | None = None
    ) -> list[UsageLine]:
        """One line for each value: the latest day or turn first, else the dearest.

        `of`: only this conversation's; None means everywhere.
        """
        order = _ORDERS.get(by, _MOST_FIRST)
        query = f"""
            SELECT {_NAMES[by]} AS name, {SUMS} FROM model_calls WHERE {_FILTER}
            GROUP BY name ORDER BY {order} LIMIT :limit
        """
        values = {**_values(since_ms, of), "limit": max(0, min(limit, MOST_LINES))}

        def work(connection: Connection) -> list[tuple[Any, ...]]:  # Any: rows of SQLite
            return connection.native.execute(query, values).fetchall()

        return [UsageLine(name, spent_of(tuple(sums))) for name, *sums in self._db.read(work)]

    def total(self, *, since_ms: int = 0, of: ConversationKey | None = None) -> Spent:
        """All of it in one sum."""
        query = f"SELECT {SUMS} FROM model_calls WHERE {_FILTER}"
        values = _values(since_ms, of)
        return spent_of(
            self._db.read(lambda connection: connection.native.execute(query, values).fetchone())
        )


def _values(since_ms: int, of: ConversationKey | None) -> dict[str, object]:
    return {
        "since_ms": since_ms,
        "channel": of.channel if of else None,
        "chat_id": of.chat_id if of else None,
        "thread": of.thread if of else None,
    }
