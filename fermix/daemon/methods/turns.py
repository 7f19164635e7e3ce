"""Methods about turns: say something, follow it, stop it."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from typing import Annotated

import msgspec

from fermix.daemon.desk import MAIN_SESSION, Desk, Words
from fermix.daemon.methods.access import operators, standing_of
from fermix.errors import ProtocolError
from fermix.gateway.inbox import InboxEntry
from fermix.gateway.watch import LAST_SEQ
from fermix.ipc.frames import BLOB_CHUNK_BYTES
from fermix.ipc.server import Call, Method
from fermix.messages import pin_of
from fermix.web.port import Upload


class MessageParams(msgspec.Struct):
    """`message`: a person's words; the same `client_id` again is the same message."""

    text: str
    client_id: str
    session: str = MAIN_SESSION
    cwd: str | None = None
    attachments: tuple[Upload, ...] = ()
    model: Annotated[str, msgspec.Meta(max_length=200)] | None = None
    """`PROVIDER/MODEL` or `PROVIDER` for this answer alone."""
    effort: Annotated[str, msgspec.Meta(max_length=40)] | None = None


class ResumeParams(msgspec.Struct):
    """`resume`: a turn's events after the last one seen."""

    turn_id: str
    after_seq: Annotated[int, msgspec.Meta(ge=0, le=LAST_SEQ)] = 0


class AckParams(msgspec.Struct):
    """`ack`: the whole reply of this turn was shown."""

    turn_id: str


class CancelParams(msgspec.Struct):
    """`cancel`: one turn, or whatever runs in a session."""

    turn_id: str | None = None
    session: str | None = None


class BlobParams(msgspec.Struct):
    """`blob`: the next piece of a file, base64; no id begins a new one."""

    data: str
    blob_id: str | None = None


class TurnMethods:
    """Answers them from the desk."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    def methods(self) -> dict[str, Method]:
        """Method name → what it takes and what answers it."""
        return {
            "message": Method(MessageParams, self._message),
            "resume": operators(ResumeParams, self._resume),
            "ack": operators(AckParams, self._ack),
            "cancel": operators(CancelParams, self._cancel),
            "blob": operators(BlobParams, self._blob),
        }

    def _message(self, params: MessageParams, call: Call) -> Mapping[str, object]:
        words = Words(
            text=params.text,
            client_id=params.client_id,
            session=params.session,
            cwd=params.cwd,
            attachments=params.attachments,
            pin=pin_of(params.model, params.effort),
        )
        entry = self._desk.submit(words, sender_id=f"uid {call.peer.uid}", at_most=standing_of(call))
        return self._follow(entry, 0, call)

    def _resume(self, params: ResumeParams, call: Call) -> Mapping[str, object]:
        return self._follow(self._desk.turn(params.turn_id), params.after_seq, call)

    def _follow(self, entry: InboxEntry, after_seq: int, call: Call) -> Mapping[str, object]:
        """Send the turn's events as they come; its end is the result."""
        named = {"turn_id": entry.turn_id, "session": entry.key.chat_id}
        call.event(0, "accepted", named)
        log = self._desk.events(entry.turn_id, after_seq)
        for event in log.follow(after_seq):
            call.event(event.seq, event.name, event.data)
        return {**named, **log.ending}

    def _ack(self, params: AckParams, call: Call) -> Mapping[str, object]:
        return {"delivered": self._desk.delivered(params.turn_id)}

    def _cancel(self, params: CancelParams, call: Call) -> Mapping[str, object]:
        if params.turn_id is not None:
            return {"cancelled": int(self._desk.cancel_turn(params.turn_id))}
        return {"cancelled": self._desk.cancel_session(params.session or MAIN_SESSION)}

    def _blob(self, params: BlobParams, call: Call) -> Mapping[str, object]:
        try:
            piece = base64.b64decode(params.data, validate=True)
        except binascii.Error as error:
            raise ProtocolError(f"blob: data is not base64: {error}.", code="invalid_params") from error
        if len(piece) > BLOB_CHUNK_BYTES:
            raise ProtocolError(
                f"blob: a piece of {len(piece)} bytes; at most {BLOB_CHUNK_BYTES} are taken.",
                code="invalid_params",
            )
        blob_id, size = self._desk.upload(params.blob_id, piece)
        return {"blob_id": blob_id, "size_bytes": size}
