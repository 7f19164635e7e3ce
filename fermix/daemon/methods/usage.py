"""`usage.report`: what the calls to models took and cost."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

import msgspec

from fermix.daemon.desk import Desk
from fermix.daemon.methods.access import operators
from fermix.ipc.server import Call, Method
from fermix.usage import By, Spent, UsageStore

LAST_MS = 1 << 53


class UsageParams(msgspec.Struct):
    """`usage.report`: lines of one kind; `session` None means of every conversation."""

    by: By = By.DAY
    since_ms: Annotated[int, msgspec.Meta(ge=0, le=LAST_MS)] = 0
    limit: Annotated[int, msgspec.Meta(ge=1, le=1000)] = 100
    session: str | None = None


class UsageMethods:
    """Answers it from the rows."""

    def __init__(self, store: UsageStore, desk: Desk) -> None:
        self._store = store
        self._desk = desk

    def methods(self) -> dict[str, Method]:
        """Method name → what it takes and what answers it."""
        return {"usage.report": operators(UsageParams, self._report)}

    def _report(self, params: UsageParams, call: Call) -> Mapping[str, object]:
        """Raises: SessionUnknown with the nearest name, UsageError."""
        of = None if params.session is None else self._desk.session(params.session).conversation.key
        lines = self._store.lines(params.by, since_ms=params.since_ms, limit=params.limit, of=of)
        return {
            "by": params.by.value,
            "since_ms": params.since_ms,
            "lines": [{"name": line.name, **facts(line.spent)} for line in lines],
            "total": facts(self._store.total(since_ms=params.since_ms, of=of)),
        }


def facts(spent: Spent) -> dict[str, object]:
    """The sum under the names it has everywhere; `cost_micro_usd` None is unknown."""
    used = spent.usage
    return {
        "calls": spent.calls,
        "input_tokens": used.input_tokens,
        "cached_tokens": used.cached_tokens,
        "written_tokens": used.written_tokens,
        "output_tokens": used.output_tokens,
        "reasoning_tokens": used.reasoning_tokens,
        "cost_micro_usd": spent.cost_micro_usd,
        "priced_micro_usd": spent.priced_micro_usd,
        "unpriced_calls": spent.unpriced,
        "estimated_calls": spent.estimated,
    }
