"""What a local client may ask the daemon: the methods of the control socket."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated

import msgspec

from fermix.clock import Clock
from fermix.conversations import ConversationStore
from fermix.daemon.blobs import Blobs
from fermix.errors import ProtocolError, ToolDenied, UsageError
from fermix.gateway.authorizer import LOCAL
from fermix.gateway.gateway import Denied, Gateway
from fermix.gateway.replay import Replay
from fermix.gateway.watch import TurnLog, Watch
from fermix.ids import is_id
from fermix.ipc.frames import BLOB_CHUNK_BYTES
from fermix.ipc.server import Call, Method
from fermix.messages import AssistantMessage, ConversationKey, Inbound, UserMessage
from fermix.trust import Trust

MAIN_SESSION = "main"
SESSION_LENGTH = 64
LAST_SEQ = 1 << 53
"""The largest whole number that every JSON reader keeps."""
LISTED_TEXT = 4_000
"""Characters of each message shown when a session is taken up again."""


class NoParams(msgspec.Struct):
    """Nothing to say."""


class StopParams(msgspec.Struct):
    """`stop`: `only_private` leaves a full daemon alone."""

    only_private: bool = False


class NamedBlob(msgspec.Struct):
    """An upload and what to call it."""

    blob_id: str
    name: str
    media_type: str = "application/octet-stream"


class MessageParams(msgspec.Struct):
    """`message`: a person's words; the same `client_id` again is the same message."""

    text: str
    client_id: str
    session: str = MAIN_SESSION
    cwd: str | None = None
    attachments: tuple[NamedBlob, ...] = ()


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


class ListParams(msgspec.Struct):
    """`sessions.list`."""

    limit: int = 50


class HistoryParams(msgspec.Struct):
    """`sessions.messages`: the last messages of a session."""

    session: str
    limit: int = 20


class Control:
    """Answers the methods; the socket itself is `ipc.server`'s."""

    def __init__(
        self,
        *,
        gateway: Gateway,
        watch: Watch,
        replay: Replay,
        conversations: ConversationStore,
        blobs: Blobs,
        confirm: Callable[[str], bool],
        status: Callable[[], Mapping[str, object]],
        stop: Callable[[bool], bool],
        clock: Clock,
    ) -> None:
        """`stop(only_private)` begins the daemon's end and says whether it did."""
        self._gateway = gateway
        self._watch = watch
        self._replay = replay
        self._conversations = conversations
        self._blobs = blobs
        self._confirm = confirm
        self._status = status
        self._stop = stop
        self._clock = clock

    def methods(self) -> dict[str, Method]:
        """Method name → what it takes and what answers it."""
        return {
            "status": Method(NoParams, lambda params, call: self._status()),
            "stop": Method(StopParams, self._stop_daemon),
            "message": Method(MessageParams, self._message),
            "resume": Method(ResumeParams, self._resume),
            "ack": Method(AckParams, self._ack),
            "cancel": Method(CancelParams, self._cancel),
            "blob": Method(BlobParams, self._blob),
            "sessions.list": Method(ListParams, self._list),
            "sessions.messages": Method(HistoryParams, self._history),
        }

    def _stop_daemon(self, params: StopParams, call: Call) -> Mapping[str, object]:
        self._require_operator(call)
        return {"stopping": self._stop(params.only_private)}

    def _message(self, params: MessageParams, call: Call) -> Mapping[str, object]:
        if not is_id(params.client_id):
            raise ProtocolError(
                f"client_id {params.client_id[:40]!r} is not a ULID.", code="invalid_params"
            )
        files = tuple(
            self._blobs.take(blob.blob_id, blob.name, blob.media_type) for blob in params.attachments
        )
        key = _key(params.session)
        if not _is_operator(call):
            # A guest's process talks in a conversation of its own and never sees or stops the owner's.
            key = ConversationKey(LOCAL, f"{key.chat_id} (guest)")
        inbound = Inbound(
            key=key,
            platform_id=params.client_id,
            sender_id=f"uid {call.peer.uid}",
            text=params.text,
            attachments=files,
            cwd=params.cwd if params.cwd is not None and Path(params.cwd).is_absolute() else None,
            received_ms=self._clock.now_ms(),
        )
        entry = self._gateway.submit(inbound, at_most=call.peer.standing)
        if isinstance(entry, Denied):
            raise ToolDenied("This process may not talk to fermix.")
        if entry.key != key:
            raise UsageError(f"client_id {params.client_id!r} is a message of another session.")
        return self._follow(entry.turn_id, entry.key.chat_id, 0, call)

    def _resume(self, params: ResumeParams, call: Call) -> Mapping[str, object]:
        self._require_operator(call)
        entry = self._gateway.entry_of(params.turn_id)
        if entry is None or entry.key.channel != LOCAL:
            raise UsageError(f"No turn {params.turn_id[:40]!r} in a local session.")
        return self._follow(entry.turn_id, entry.key.chat_id, params.after_seq, call)

    def _follow(self, turn_id: str, session: str, after_seq: int, call: Call) -> Mapping[str, object]:
        """Send the turn's events as they come; its end is the result."""
        call.event(0, "accepted", {"turn_id": turn_id, "session": session})
        log = self._watch.find(turn_id) or self._replay.log_of(turn_id, after_seq)
        return {"turn_id": turn_id, "session": session, **_send_all(log, after_seq, call)}

    def _ack(self, params: AckParams, call: Call) -> Mapping[str, object]:
        self._require_operator(call)
        return {"delivered": self._confirm(params.turn_id)}

    def _cancel(self, params: CancelParams, call: Call) -> Mapping[str, object]:
        self._require_operator(call)
        if params.turn_id is not None:
            return {"cancelled": int(self._gateway.cancel_turn(params.turn_id, "on request"))}
        return {"cancelled": self._gateway.turns.cancel(_key(params.session or MAIN_SESSION), "on request")}

    def _blob(self, params: BlobParams, call: Call) -> Mapping[str, object]:
        self._require_operator(call)
        try:
            piece = base64.b64decode(params.data, validate=True)
        except binascii.Error as error:
            raise ProtocolError(f"blob: data is not base64: {error}.", code="invalid_params") from error
        if len(piece) > BLOB_CHUNK_BYTES:
            raise ProtocolError(
                f"blob: a piece of {len(piece)} bytes; at most {BLOB_CHUNK_BYTES} are taken.",
                code="invalid_params",
            )
        blob_id, size = self._blobs.add(params.blob_id, piece)
        return {"blob_id": blob_id, "size_bytes": size}

    def _list(self, params: ListParams, call: Call) -> Mapping[str, object]:
        self._require_operator(call)
        found = self._conversations.list(LOCAL, max(1, min(params.limit, 1000)))
        return {
            "sessions": [
                {
                    "session": summary.conversation.key.chat_id,
                    "title": summary.conversation.title,
                    "updated_ms": summary.conversation.updated_ms,
                    "message_count": summary.message_count,
                    "last_text": (summary.last_text or "")[:200],
                }
                for summary in found
            ]
        }

    def _history(self, params: HistoryParams, call: Call) -> Mapping[str, object]:
        self._require_operator(call)
        conversation = self._conversations.find(_key(params.session))
        if conversation is None:
            return {"messages": []}
        stored = self._conversations.tail(conversation.id, max(1, min(params.limit, 200)))
        return {
            "messages": [
                {
                    "role": "user" if isinstance(message.message, UserMessage) else "assistant",
                    "text": message.message.text[:LISTED_TEXT],
                    "created_ms": message.created_ms,
                }
                for message in stored
                if isinstance(message.message, UserMessage | AssistantMessage) and message.message.text
            ]
        }

    def _require_operator(self, call: Call) -> None:
        """A command that a guest's turn started reaches nothing but `message` and `status`."""
        if not _is_operator(call):
            raise ToolDenied("A process of a guest's turn may not do this.")


def _send_all(log: TurnLog, after_seq: int, call: Call) -> Mapping[str, object]:
    for event in log.follow(after_seq):
        call.event(event.seq, event.name, event.data)
    return log.ending


def _is_operator(call: Call) -> bool:
    standing = call.peer.standing
    return standing is None or standing.trust is Trust.OPERATOR


def _key(session: str) -> ConversationKey:
    if not 0 < len(session) <= SESSION_LENGTH or not session.isprintable() or session != session.strip():
        raise UsageError(
            f"{session[:80]!r} is not a session name; expected 1 to {SESSION_LENGTH} printable characters."
        )
    return ConversationKey(LOCAL, session)
