"""The port every channel fills."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Protocol

from fermix.messages import ConversationKey


@dataclass(frozen=True, slots=True)
class Chunk:
    """One piece of a reply, as it goes to a chat."""

    id: str
    """The same at every try, so that a platform can tell a duplicate."""
    turn_id: str
    key: ConversationKey
    position: int
    text: str


class Delivery(Enum):
    """What became of a chunk."""

    SENT = "sent"
    """The platform has it."""
    DEFERRED = "deferred"
    """It is there for the reader to take; the outbox is told when that happened."""


class SendFailed(Exception):
    """The platform did not take a chunk; the outbox tries again later."""

    def __init__(self, message: str, *, retry_after_s: float | None = None) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class Channel(Protocol):
    """A way out to people."""

    name: str
    can_tell_duplicates: bool
    """A chunk sent twice is shown once, so an uncertain one may be sent again."""

    def split(self, text: str) -> list[str]:
        """The text in pieces the platform takes; never empty."""
        ...

    def send(self, chunk: Chunk) -> Delivery:
        """Hand a chunk to the platform.

        Raises: SendFailed when the platform did not take it.
        """
        ...
