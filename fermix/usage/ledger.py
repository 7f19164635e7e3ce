"""What was spent today, in memory, so that a budget can be looked at before every call."""

from __future__ import annotations

from dataclasses import dataclass, field

from fermix.clock import Clock
from fermix.db import Connection, Database
from fermix.messages import ModelCall
from fermix.usage.calls import SUMS, spent_of
from fermix.usage.days import day_of
from fermix.usage.spent import NOTHING, Spent

_TODAY = "SELECT {column}, " + SUMS + " FROM model_calls WHERE ended_ms >= ? GROUP BY {column}"


@dataclass(slots=True)
class _Day:
    """The sums of one local day."""

    begins_ms: int
    ends_ms: int
    conversations: dict[str, Spent] = field(default_factory=dict)
    providers: dict[str, Spent] = field(default_factory=dict)
    whole: Spent = NOTHING


class Ledger:
    """The running sums of the local day, filled from the rows once and kept by whoever calls models.

    A clock that is set back to an earlier day begins that day anew.
    """

    def __init__(self, db: Database, clock: Clock) -> None:
        self._clock = clock
        day = _Day(*day_of(clock.now_ms()))

        def work(connection: Connection) -> None:
            for column, sums in (("conversation_id", day.conversations), ("provider", day.providers)):
                rows = connection.native.execute(_TODAY.format(column=column), (day.begins_ms,))
                sums.update((name, spent_of(tuple(row))) for name, *row in rows)

        db.read(work)
        day.whole = sum(day.providers.values(), NOTHING)
        self._day = day

    def note(self, call: ModelCall, *, conversation_id: str) -> None:
        """Count a call at once; its row follows with the next commit."""
        day, spent = self._today(), Spent.of(call)
        day.conversations[conversation_id] = day.conversations.get(conversation_id, NOTHING) + spent
        day.providers[call.provider] = day.providers.get(call.provider, NOTHING) + spent
        day.whole += spent

    def of_conversation(self, conversation_id: str) -> Spent:
        """What a conversation has spent today."""
        return self._today().conversations.get(conversation_id, NOTHING)

    def of_provider(self, provider: str) -> Spent:
        """What was spent today at a provider."""
        return self._today().providers.get(provider, NOTHING)

    @property
    def of_all(self) -> Spent:
        """What was spent today altogether."""
        return self._today().whole

    def _today(self) -> _Day:
        now_ms = self._clock.now_ms()
        if not self._day.begins_ms <= now_ms < self._day.ends_ms:
            self._day = _Day(*day_of(now_ms))
        return self._day
