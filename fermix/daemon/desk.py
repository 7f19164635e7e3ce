"""What a person's client may do with turns and sessions, over the control socket and over HTTP alike."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from fermix.clock import Clock
from fermix.conversations import ConversationStore, ConversationSummary, StoredMessage
from fermix.daemon.blobs import Blobs
from fermix.errors import ProtocolError, ToolDenied, UsageError
from fermix.gateway.authorizer import LOCAL
from fermix.gateway.gateway import Denied, Gateway
from fermix.gateway.inbox import InboxEntry
from fermix.gateway.replay import Replay
from fermix.gateway.watch import TurnLog, Watch
from fermix.ids import is_id
from fermix.messages import AssistantMessage, ConversationKey, Inbound, UserMessage
from fermix.trust import OPERATOR_ATTENDED, Standing, Trust
from fermix.web.port import MAIN_SESSION, Words

SESSION_LENGTH = 64
MOST_SESSIONS = 1000
MOST_MESSAGES = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Desk:
    """Takes messages in, lets turns be followed, and keeps the sessions of the local channel."""

    gateway: Gateway
    watch: Watch
    replay: Replay
    conversations: ConversationStore
    blobs: Blobs
    confirm: Callable[[str], bool]
    """Marks a turn's reply as delivered; False when there was none to deliver."""
    clock: Clock

    def submit(self, words: Words, *, sender_id: str, at_most: Standing = OPERATOR_ATTENDED) -> InboxEntry:
        """The accepted message; the same `client_id` again is the same message.

        Raises: ProtocolError, UsageError, ToolDenied, Draining, QueueFull, StoreError.
        """
        if not is_id(words.client_id):
            raise ProtocolError(f"client_id {words.client_id[:40]!r} is not a ULID.", code="invalid_params")
        files = tuple(
            self.blobs.take(upload.blob_id, upload.name, upload.media_type) for upload in words.attachments
        )
        key = key_of(words.session)
        if at_most.trust is not Trust.OPERATOR:
            # A guest's process talks in a conversation of its own and never sees or stops the owner's.
            key = ConversationKey(LOCAL, f"{key.chat_id} (guest)")
        inbound = Inbound(
            key=key,
            platform_id=words.client_id,
            sender_id=sender_id,
            text=words.text,
            attachments=files,
            cwd=words.cwd if words.cwd is not None and Path(words.cwd).is_absolute() else None,
            received_ms=self.clock.now_ms(),
        )
        entry = self.gateway.submit(inbound, at_most=at_most)
        if isinstance(entry, Denied):
            raise ToolDenied("This process may not talk to fermix.")
        if entry.key != key:
            raise UsageError(f"client_id {words.client_id!r} is a message of another session.")
        return entry

    def turn(self, turn_id: str) -> InboxEntry:
        """The accepted message a turn answers. Raises: UsageError when no local session has such a turn."""
        entry = self.gateway.entry_of(turn_id)
        if entry is None or entry.key.channel != LOCAL:
            raise UsageError(f"No turn {turn_id[:40]!r} in a local session.")
        return entry

    def events(self, turn_id: str, after_seq: int) -> TurnLog:
        """The events of a turn that runs, waits or has ended."""
        return self.watch.find(turn_id) or self.replay.log_of(turn_id, after_seq)

    def delivered(self, turn_id: str) -> bool:
        """The client has the whole reply; False when there was none to deliver."""
        return self.confirm(turn_id)

    def cancel_turn(self, turn_id: str) -> bool:
        """Stop one turn; False when it neither runs nor waits."""
        return self.gateway.cancel_turn(turn_id, "on request")

    def cancel_session(self, session: str) -> int:
        """Stop what runs in a session; how many turns were told to stop."""
        return self.gateway.turns.cancel(key_of(session), "on request")

    def upload(self, blob_id: str | None, piece: bytes) -> tuple[str, int]:
        """Add a piece to an upload; its id and size so far. No id begins a new one."""
        return self.blobs.add(blob_id, piece)

    def sessions(self, limit: int) -> list[ConversationSummary]:
        """The sessions in use, the latest first."""
        return self.conversations.list(LOCAL, max(1, min(limit, MOST_SESSIONS)))

    def messages(self, session: str, limit: int) -> Sequence[StoredMessage]:
        """What was said last in a session, oldest first; empty for one that does not exist."""
        conversation = self.conversations.find(key_of(session))
        if conversation is None:
            return ()
        stored = self.conversations.tail(conversation.id, max(1, min(limit, MOST_MESSAGES)))
        return [
            each
            for each in stored
            if isinstance(each.message, UserMessage | AssistantMessage) and each.message.text
        ]


def key_of(session: str) -> ConversationKey:
    """The conversation a session's name stands for. Raises: UsageError when it cannot be a name."""
    if not 0 < len(session) <= SESSION_LENGTH or not session.isprintable() or session != session.strip():
        raise UsageError(
            f"{session[:80]!r} is not a session name; expected 1 to {SESSION_LENGTH} printable characters."
        )
    return ConversationKey(LOCAL, session)


__all__ = ["MAIN_SESSION", "Desk", "Words", "key_of"]
