"""Facts about what is happening, sent to the one sink that `daemon.app` sets."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar

Sink = Callable[[str, dict[str, object]], None]


turn_id: ContextVar[str] = ContextVar("turn_id", default="-")
"""The turn this greenlet works for; log lines carry it. Never used for decisions."""

_sinks: list[Sink] = []


def set_sink(sink: Sink | None) -> None:
    """Send every later event to `sink`; None means nowhere. Called once, by the composition root."""
    _sinks[:] = [] if sink is None else [sink]


def emit(name: str, **fields: object) -> None:
    """Tell the sink that `name` (dotted, past tense or state, e.g. `inbox.received`) has happened.

    Contract: fields are ids and numbers, never message contents or secrets.
    """
    for sink in _sinks:
        sink(name, fields)
