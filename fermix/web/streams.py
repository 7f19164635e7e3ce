"""A turn's events as server-sent events, and the wait for a turn's end.

Source: https://html.spec.whatwg.org/multipage/server-sent-events.html (fields `id`, `event`, `data`; a
line that begins with a colon is a comment; `Last-Event-ID` says where to go on).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress

import msgspec

from fermix.errors import FermixError
from fermix.gateway.watch import LAST_SEQ, TurnLog
from fermix.tasks import Deadline
from fermix.web.refusals import Refused, body_of
from fermix.web.routes import Call, Stream
from fermix.web.slots import Slot

TICK_S = 1.0
"""How often a quiet stream looks whether its token still counts and its client is still there."""


def after_of(headers: Mapping[str, str]) -> int | None:
    """The event after which to go on; None when the client names none. Raises: Refused."""
    text = headers.get("last-event-id", "").strip()
    if not text:
        return None
    if not (text.isascii() and text.isdigit() and len(text) <= 16 and int(text) <= LAST_SEQ):
        raise Refused(
            400, "last_event_id_invalid", f"Last-Event-ID is {text[:40]!r}; expected the id of an event."
        )
    return int(text)


def wait(call: Call, log: TurnLog) -> Mapping[str, object]:
    """The turn's ending, once it is over. Raises: Refused when the client leaves or loses its token.

    Contract: the caller holds a slot.
    """
    for _ in log.watch(LAST_SEQ, TICK_S):
        call.check()
    return log.ending


def stream(call: Call, log: TurnLog, named: Mapping[str, object], after_seq: int, slot: Slot) -> Stream:
    """The turn's events after one, the last of them `done`; the slot is free when it is over."""
    return Stream(_pieces(call, log, named, after_seq), on_close=slot.free)


def piece(name: str, data: object, seq: int | None = None) -> bytes:
    """One event in bytes."""
    number = b"" if seq is None else b"id: %d\n" % seq
    return b"%sevent: %s\ndata: %s\n\n" % (number, name.encode(), msgspec.json.encode(data))


def _pieces(call: Call, log: TurnLog, named: Mapping[str, object], after_seq: int) -> Iterator[bytes]:
    yield piece("accepted", named, after_seq)
    last_seq, is_done = after_seq, False
    keep_alive_s = call.settings.keep_alive_s
    quiet_until = Deadline.after(keep_alive_s)
    try:
        for event in log.watch(after_seq, min(TICK_S, keep_alive_s)):
            call.check()
            if event is not None:
                last_seq, is_done = event.seq, event.name == "done"
                if is_done:
                    deliver_when_sent(call, log.turn_id)
                yield piece(event.name, event.data, event.seq)
            elif quiet_until.is_over():
                yield b": keep-alive\n\n"
            else:
                continue
            quiet_until = Deadline.after(keep_alive_s)
    except FermixError as error:
        yield piece("error", body_of(error))
        return
    if not is_done:  # whoever has seen all of it is told again that this was all
        deliver_when_sent(call, log.turn_id)
        yield piece("done", log.ending, last_seq)


def deliver(call: Call, turn_id: str) -> None:
    """The client has the whole reply. One that cannot be noted is offered again, as after a crash."""
    with suppress(FermixError):
        call.desk().delivered(turn_id)


def deliver_when_sent(call: Call, turn_id: str) -> None:
    """Mark the turn's reply as delivered once this answer's last byte was handed over."""
    call.link.on_sent(lambda: deliver(call, turn_id))
