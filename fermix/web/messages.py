"""`POST /message`: say something; the answer comes whole, or event by event as it is made."""

from __future__ import annotations

import time
from collections.abc import Mapping

import msgspec

from fermix.gateway.inbox import InboxEntry
from fermix.ids import new_id
from fermix.messages import pin_of
from fermix.web import streams
from fermix.web.port import MAIN_SESSION, Upload, Words
from fermix.web.refusals import Refused
from fermix.web.routes import EVENTS, JSON, Call, Route
from fermix.web.schema import Effort, Id, ModelName, SessionName
from fermix.web.turns import TurnState, ended, log_of


class Message(msgspec.Struct, forbid_unknown_fields=True):
    """What a person says."""

    text: str
    session: SessionName = MAIN_SESSION
    """The conversation it belongs to, made with its first message."""
    attachments: tuple[Upload, ...] = ()
    """Files uploaded before."""
    client_id: Id | None = None
    """A ULID; the same one again is the same message. None has one made."""
    model: ModelName | None = None
    """`PROVIDER/MODEL` or `PROVIDER` for this answer alone; null leaves it to the settings."""
    effort: Effort | None = None
    """One of that model's levels of thinking; null leaves it to the settings."""


class Reply(TurnState, omit_defaults=True, kw_only=True):
    """The whole answer."""

    client_id: str


def _say(call: Call) -> object:
    message: Message = call.body
    after_seq = streams.after_of(call.headers)
    if after_seq is not None and message.client_id is None:
        raise Refused(
            400,
            "client_id_missing",
            "Last-Event-ID goes on with an earlier message; expected its client_id.",
        )
    client_id = message.client_id
    if client_id is None:
        client_id = new_id(time.time_ns() // 1_000_000)
    words = Words(
        text=message.text,
        client_id=client_id,
        session=message.session,
        attachments=message.attachments,
        pin=pin_of(message.model, message.effort),
    )
    sender = f"http {call.grant.name}" if call.grant is not None else "http"
    slot = call.slot()  # before the message is taken: what is refused must not have been accepted
    is_streamed = False
    try:
        entry = call.desk().submit(words, sender_id=sender)
        log = log_of(call, entry.turn_id, after_seq or 0)
        if call.wants_events():
            named = {"turn_id": entry.turn_id, "session": entry.key.chat_id, "client_id": client_id}
            is_streamed = True
            return streams.stream(call, log, named, after_seq or 0, slot)
        return _reply(call, entry, streams.wait(call, log), client_id)
    finally:
        if not is_streamed:
            slot.free()


def _reply(call: Call, entry: InboxEntry, ending: Mapping[str, object], client_id: str) -> Reply:
    streams.deliver_when_sent(call, entry.turn_id)
    whole = ended(entry, ending)
    return Reply(
        whole.turn_id,
        whole.session,
        whole.status,
        whole.text,
        whole.usage,
        whole.error,
        client_id=client_id,
    )


ROUTES = (
    Route(
        method="POST",
        path="/message",
        summary="Say something and get the answer, whole or (Accept: text/event-stream) event by event.",
        answer=_say,
        request=Message,
        response=Reply,
        media_types=(JSON, EVENTS),
        errors=(400, 404, 408, 409, 411, 413, 415, 429, 503),
        tag="messages",
    ),
)
