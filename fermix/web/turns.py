"""`/turns`: what became of a message, its events again, and stopping it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from fermix.errors import UsageError
from fermix.gateway.inbox import InboxEntry
from fermix.gateway.watch import TurnLog
from fermix.web import streams
from fermix.web.refusals import ErrorDetail, Refused
from fermix.web.routes import EVENTS, Call, Route


class TurnUsage(msgspec.Struct):
    """What a turn took of models."""

    input_tokens: int
    output_tokens: int
    cached_tokens: int
    cost_micro_usd: int | None = None
    """Millionths of a dollar; null when the price of one of its calls is not known."""


class TurnState(msgspec.Struct, omit_defaults=True):
    """A turn as it stands."""

    turn_id: str
    session: str
    status: str
    """waiting, running, completed, failed, cancelled or interrupted."""
    text: str | msgspec.UnsetType = msgspec.UNSET
    """The whole reply, once the turn is over."""
    usage: TurnUsage | msgspec.UnsetType = msgspec.UNSET
    error: ErrorDetail | msgspec.UnsetType = msgspec.UNSET
    """Why, when it did not complete."""


class Cancelled(msgspec.Struct):
    """How many turns were told to stop."""

    cancelled: int


def entry_of(call: Call) -> InboxEntry:
    """The message whose turn the path names. Raises: Refused when there is none."""
    turn_id = call.path["turn_id"]
    try:
        return call.desk().turn(turn_id)
    except UsageError as error:
        raise Refused(404, "turn_unknown", f"No turn {turn_id[:40]!r}.") from error


def log_of(call: Call, turn_id: str, after_seq: int) -> TurnLog:
    """Its events. Raises: Refused when they are kept no longer."""
    try:
        return call.desk().events(turn_id, after_seq)
    except UsageError as error:
        raise Refused(404, "turn_unknown", f"The turn {turn_id!r} left nothing behind.") from error


def ended(entry: InboxEntry, ending: Mapping[str, Any]) -> TurnState:
    """A turn that is over."""
    error = ending.get("error")
    return TurnState(
        entry.turn_id,
        entry.key.chat_id,
        str(ending["status"]),
        str(ending["text"]),
        msgspec.convert(ending["usage"], type=TurnUsage),
        msgspec.convert(error, type=ErrorDetail) if error is not None else msgspec.UNSET,
    )


def _show(call: Call) -> object:
    entry = entry_of(call)
    log = log_of(call, entry.turn_id, 0)
    if log.is_over:
        streams.deliver_when_sent(call, entry.turn_id)
        return ended(entry, log.ending)
    status = "waiting" if entry.state == "received" else "running"
    return TurnState(entry.turn_id, entry.key.chat_id, status)


def _events(call: Call) -> object:
    entry = entry_of(call)
    after_seq = streams.after_of(call.headers) or 0
    named = {"turn_id": entry.turn_id, "session": entry.key.chat_id}
    log = log_of(call, entry.turn_id, after_seq)
    return streams.stream(call, log, named, after_seq, call.slot())


def _cancel(call: Call) -> object:
    return Cancelled(int(call.desk().cancel_turn(entry_of(call).turn_id)))


ROUTES = (
    Route(
        method="GET",
        path="/turns/{turn_id}",
        summary="What became of a message.",
        answer=_show,
        response=TurnState,
        errors=(404, 503),
        tag="turns",
    ),
    Route(
        method="GET",
        path="/turns/{turn_id}/events",
        summary="A turn's events, after the one named by Last-Event-ID; `done` is the last.",
        answer=_events,
        media_types=(EVENTS,),
        errors=(400, 404, 429, 503),
        tag="turns",
    ),
    Route(
        method="POST",
        path="/turns/{turn_id}/cancel",
        summary="Stop a turn that runs or waits.",
        answer=_cancel,
        response=Cancelled,
        errors=(404, 503),
        tag="turns",
    ),
)
