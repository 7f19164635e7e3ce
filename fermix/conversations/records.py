"""What callers see of a conversation: plain values, never rows."""

from __future__ import annotations

from dataclasses import dataclass

from fermix.messages import ChatMessage, ConversationKey


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """One thread of talk on one channel."""

    id: str
    key: ConversationKey
    title: str
    """The beginning of what was said first; empty before that."""
    created_ms: int
    updated_ms: int
    """When the last message was stored."""
    archived_ms: int | None
    """When it was put away; None while it is in use."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationSummary:
    """One line of a list of conversations."""

    conversation: Conversation
    message_count: int
    last_text: str
    """The beginning of what a person or the model said last; empty when nobody has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredMessage:
    """A message and its place."""

    id: str
    conversation_id: str
    turn_id: str
    position: int
    """From 1, without gaps, in the order the messages were stored."""
    message: ChatMessage
    created_ms: int
