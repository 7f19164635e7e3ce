"""What a person's client may do with turns and sessions, over the control socket and over HTTP alike."""

from __future__ import annotations

import difflib
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from fermix.clock import Clock
from fermix.conversations import ConversationStore, ConversationSummary, ExportPage, StoredMessage
from fermix.conversations.export import PAGE_CHARS
from fermix.daemon.blobs import Blobs
from fermix.errors import ClientIdTaken, ProtocolError, SessionUnknown, ToolDenied, UsageError
from fermix.gateway.authorizer import LOCAL
from fermix.gateway.erase import DELETED, Erased
from fermix.gateway.gateway import Denied, Gateway
from fermix.gateway.inbox import InboxEntry
from fermix.gateway.replay import Replay
from fermix.gateway.watch import TurnLog, Watch
from fermix.ids import is_id
from fermix.messages import AssistantMessage, ChatMessage, ConversationKey, Inbound, Pin, UserMessage
from fermix.trust import OPERATOR_ATTENDED, Standing, Trust
from fermix.web.port import MAIN_SESSION, Words

SESSION_LENGTH = 64
MOST_SESSIONS = 1000
MOST_MESSAGES = 200
MOST_EXPORTED = 1000
"""Messages in one page of an export."""
TITLE_LENGTH = 200
HIDDEN = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp", "Zs"})
"""Categories of Unicode."""


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
    erase: Callable[[ConversationKey], Erased | None]
    """Deletes a conversation; None when there was nothing."""
    check_pin: Callable[[Pin], None]
    """Raises: ModelPinRefused when the model a message asks for cannot be had."""
    clock: Clock

    def submit(self, words: Words, *, sender_id: str, at_most: Standing = OPERATOR_ATTENDED) -> InboxEntry:
        """The accepted message; the same `client_id` again is the same message.

        Raises: ProtocolError, UsageError, ToolDenied, Draining, QueueFull, StoreError.
        """
        if not is_id(words.client_id):
            raise ProtocolError(f"client_id {words.client_id[:40]!r} is not a ULID.", code="invalid_params")
        if words.pin is not None and self.known(words.client_id) is None:
            if at_most.trust is not Trust.OPERATOR:
                raise ToolDenied("The model of an answer is its owner's to choose.")
            self.check_pin(words.pin)
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
            pin=words.pin,
        )
        entry = self.gateway.submit(inbound, at_most=at_most)
        if isinstance(entry, Denied):
            raise ToolDenied("This process may not talk to fermix.")
        if entry.key.chat_id == DELETED:
            raise ClientIdTaken("This message was deleted with its session; send it as a new one.")
        if entry.key != key:
            raise ClientIdTaken(f"client_id {words.client_id!r} is a message of another session.")
        if entry.inbound.text != words.text:
            raise ClientIdTaken(
                f"client_id {words.client_id!r} is a message with other words; expected a fresh one."
            )
        return entry

    def known(self, client_id: str) -> InboxEntry | None:
        """The message that was accepted under this id before; None when it is a new one."""
        return self.gateway.known(LOCAL, client_id)

    def seed(self, session: str, messages: Sequence[ChatMessage]) -> None:
        """Begin a session with what was said elsewhere; one that has begun stays as it is.

        Put away until somebody speaks in it; durable when it returns. Raises: UsageError, StoreError.
        """
        self.conversations.seed(key_of(session), messages)

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

    def sessions(self, limit: int, *, is_archived: bool = False) -> list[ConversationSummary]:
        """The sessions in use, or those put away, the latest first."""
        return self.conversations.list(LOCAL, max(1, min(limit, MOST_SESSIONS)), is_archived=is_archived)

    def session(self, session: str) -> ConversationSummary:
        """One session. Raises: SessionUnknown with the nearest name, UsageError."""
        found = self.conversations.summary(key_of(session))
        if found is None:
            raise self._unknown(session)
        return found

    def retitle(self, session: str, title: str) -> ConversationSummary:
        """Give a session this title. Raises: SessionUnknown, UsageError."""
        words = " ".join(title.split())
        if len(words) > TITLE_LENGTH or not _can_be_shown(words):
            raise UsageError(
                f"{words[:80]!r} is no title; expected at most {TITLE_LENGTH} printable characters."
            )
        self.conversations.retitle(key_of(session), words)
        return self.session(session)

    def archive(self, session: str, *, is_archived: bool) -> ConversationSummary:
        """Put a session away or take it back, as new words in it do. Raises: SessionUnknown."""
        self.conversations.archive(key_of(session), is_archived=is_archived)
        return self.session(session)

    def export(self, session: str, after_position: int, limit: int) -> ExportPage:
        """Some messages of a session with everything in them, in order; of bounded size.

        A `summary.conversation.id` other than the last page's tells that the session was deleted and begun
        again. Raises: SessionUnknown, UsageError.
        """
        summary = self.session(session)
        most = max(1, min(limit, MOST_EXPORTED))
        found = self.conversations.page(
            summary.conversation.id, after_position, limit=most, size_chars=PAGE_CHARS
        )
        is_last = not found or found[-1].position >= summary.message_count
        return ExportPage(
            summary=summary, messages=found, next_position=None if is_last else found[-1].position
        )

    def delete(self, session: str) -> Erased:
        """Stop what runs and waits in a session, and delete it for good.

        Raises: SessionUnknown, UsageError; OwnerError, StoreError when nothing was deleted.
        """
        erased = self.erase(key_of(session))
        if erased is None:
            raise self._unknown(session)
        return erased

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

    def _unknown(self, session: str) -> SessionUnknown:
        known = [
            summary.conversation.key.chat_id
            for is_archived in (False, True)
            for summary in self.sessions(MOST_SESSIONS, is_archived=is_archived)
        ]
        nearest = difflib.get_close_matches(session, known, n=1)
        asked = f" Did you mean {nearest[0]!r}?" if nearest else ""
        return SessionUnknown(f"No session named {session!r}.{asked}", hint="fermix sessions list")


def key_of(session: str) -> ConversationKey:
    """The conversation a session's name stands for. Raises: UsageError when it cannot be a name."""
    if not 0 < len(session) <= SESSION_LENGTH or session != session.strip() or not _can_be_shown(session):
        raise UsageError(
            f"{session[:80]!r} is not a session name; expected 1 to {SESSION_LENGTH} printable characters."
        )
    if session == DELETED:
        raise UsageError(f"No session can be called {DELETED!r}: it is what deleted ones are called.")
    return ConversationKey(LOCAL, session)


def _can_be_shown(text: str) -> bool:
    """Whether no character controls a terminal, hides or breaks lines; what has no glyph yet may come."""
    return text.isprintable() or all(
        sign == " " or unicodedata.category(sign) not in HIDDEN for sign in text
    )


__all__ = ["MAIN_SESSION", "Desk", "Words", "key_of"]
