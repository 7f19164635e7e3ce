"""A message on its way in: one normal form for every channel."""

from __future__ import annotations

import msgspec

from fermix.messages.pin import Pin


class ConversationKey(msgspec.Struct, frozen=True):
    """Which conversation a message belongs to; turns of one key run one after the other."""

    channel: str
    chat_id: str
    thread: str = ""
    """Empty where the platform has no threads or the message is in none."""


class Attachment(msgspec.Struct, frozen=True):
    """A file that came with a message, already stored under the home."""

    path: str
    """Absolute, below the workspace, so that tools can read it."""
    name: str
    media_type: str
    size_bytes: int


class Inbound(msgspec.Struct, frozen=True, kw_only=True):
    """One message from one sender, as every channel's wire hands it on."""

    key: ConversationKey
    platform_id: str
    """Unique per channel; the same id twice is the same message."""
    sender_id: str
    text: str
    attachments: tuple[Attachment, ...] = ()
    cwd: str | None = None
    """The sender's working folder; None off the command line."""
    received_ms: int
    pin: Pin | None = None
    """The model its sender wants for it; None leaves it to the settings."""
