"""The port through which HTTP asks the daemon: its health, and the desk that keeps turns and sessions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import msgspec

from fermix.auth.tokens import Tokens
from fermix.conversations import ConversationSummary, ExportPage, StoredMessage
from fermix.gateway.erase import Erased
from fermix.gateway.inbox import InboxEntry
from fermix.gateway.watch import TurnLog
from fermix.messages import ChatMessage, Pin
from fermix.trust import OPERATOR_ATTENDED, Standing
from fermix.web.health import HealthReport
from fermix.web.schema import Id

MAIN_SESSION = "main"
"""Where words go that name no session."""


class Upload(msgspec.Struct):
    """An uploaded file and what to call it."""

    blob_id: Id
    name: str
    media_type: str = "application/octet-stream"


@dataclass(frozen=True, slots=True, kw_only=True)
class Words:
    """What a person said to fermix."""

    text: str
    client_id: str
    """A ULID the client made; the same one again is the same message."""
    session: str = MAIN_SESSION
    cwd: str | None = None
    """The person's working folder; None where there is none."""
    attachments: tuple[Upload, ...] = ()
    pin: Pin | None = None
    """The model that is to answer; None leaves it to the settings."""


class DeskPort(Protocol):
    """Turns and sessions; `daemon.desk.Desk` says what each verb does and raises."""

    def submit(
        self, words: Words, *, sender_id: str, at_most: Standing = OPERATOR_ATTENDED
    ) -> InboxEntry: ...

    def known(self, client_id: str) -> InboxEntry | None: ...

    def seed(self, session: str, messages: Sequence[ChatMessage]) -> None: ...

    def turn(self, turn_id: str) -> InboxEntry: ...

    def events(self, turn_id: str, after_seq: int) -> TurnLog: ...

    def delivered(self, turn_id: str) -> bool: ...

    def cancel_turn(self, turn_id: str) -> bool: ...

    def cancel_session(self, session: str) -> int: ...

    def upload(self, blob_id: str | None, piece: bytes) -> tuple[str, int]: ...

    def sessions(self, limit: int, *, is_archived: bool = False) -> list[ConversationSummary]: ...

    def session(self, session: str) -> ConversationSummary: ...

    def retitle(self, session: str, title: str) -> ConversationSummary: ...

    def archive(self, session: str, *, is_archived: bool) -> ConversationSummary: ...

    def export(self, session: str, after_position: int, limit: int) -> ExportPage: ...

    def delete(self, session: str) -> Erased: ...

    def messages(self, session: str, limit: int) -> Sequence[StoredMessage]: ...


class DaemonControl(Protocol):
    """What HTTP may ask the daemon."""

    def health(self) -> HealthReport:
        """The present state.

        Contract: answers at once from what is known, never waits, never raises.
        """
        ...

    def desk(self) -> DeskPort:
        """The desk. Raises: NotReady while the daemon starts."""
        ...

    def tokens(self) -> Tokens:
        """Who may come in. Raises: NotReady while the daemon starts."""
        ...

    def is_of_a_turn(self, peer: tuple[str, int], own: tuple[str, int]) -> bool:
        """Whether a process that a turn has started is at the other end of a connection of ours."""
        ...
