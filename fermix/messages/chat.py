"""The messages of a conversation as they are stored and as providers are asked.

A conversation is a list of these; a ToolMessage always answers a ToolCall of an
earlier AssistantMessage, and the two are never split.
"""

from __future__ import annotations

from typing import Any

import msgspec


class Usage(msgspec.Struct, frozen=True):
    """Tokens a provider counted."""

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.cached_tokens + other.cached_tokens,
        )


class ToolCall(msgspec.Struct, frozen=True):
    """A model's wish to use a tool."""

    id: str
    name: str
    arguments: dict[str, Any]
    """Always a JSON object; what could not be read as one is in `broken`."""
    broken: str | None = None
    """Why the arguments could not be read, as told to the model; None when they could."""


class UserMessage(msgspec.Struct, frozen=True, tag="user", tag_field="role"):
    """What a person said."""

    text: str


class AssistantMessage(msgspec.Struct, frozen=True, tag="assistant", tag_field="role"):
    """What the model said and which tools it asked for."""

    text: str
    tool_calls: tuple[ToolCall, ...] = ()
    reasoning: str = ""


class ToolMessage(msgspec.Struct, frozen=True, tag="tool", tag_field="role"):
    """What a tool gave back for one call."""

    call_id: str
    name: str
    text: str
    is_error: bool = False


ChatMessage = UserMessage | AssistantMessage | ToolMessage
