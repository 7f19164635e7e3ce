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
    """All that was read, from a cache or not."""
    output_tokens: int = 0
    """All that was written, thinking included."""
    cached_tokens: int = 0
    """Those of the input that came from the provider's cache."""
    written_tokens: int = 0
    """Those of the input that were put into its cache, where that is priced apart."""
    reasoning_tokens: int = 0
    """Those of the output that were thinking."""

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.cached_tokens + other.cached_tokens,
            self.written_tokens + other.written_tokens,
            self.reasoning_tokens + other.reasoning_tokens,
        )


class ModelCall(msgspec.Struct, frozen=True, kw_only=True):
    """One request that a provider began to answer, and so may charge for."""

    provider: str
    model: str
    usage: Usage
    is_estimated: bool
    """Whether the tokens are our estimate, since the provider did not count them."""
    cost_micro_usd: int | None
    """None where the model's price is not known."""
    outcome: str
    """`done`, or the kind of failure it ended with."""
    started_ms: int
    ended_ms: int
    purpose: str = "answer"
    """What it was asked for: `answer` to a person, or `compaction` of what was said before."""


class NativeReply(msgspec.Struct, frozen=True):
    """A reply in the provider's own words, for those that want it back unchanged."""

    origin: str
    """Wire API and provider that said it; another one must not be shown it."""
    items: list[dict[str, Any]]
    """The wire's own items in their order: thinking blocks with signatures, reasoning items, calls."""
    asked: str = ""
    """Mark of all the model had been told before; empty where the wire does not look at it."""


class Image(msgspec.Struct, frozen=True):
    """A picture that came with a message, stored below the workspace."""

    path: str
    media_type: str


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
    note: str = ""
    """What fermix tells the model beneath the person's words: date, files that came along."""
    images: tuple[Image, ...] = ()


class AssistantMessage(msgspec.Struct, frozen=True, tag="assistant", tag_field="role"):
    """What the model said and which tools it asked for."""

    text: str
    tool_calls: tuple[ToolCall, ...] = ()
    reasoning: str = ""
    native: NativeReply | None = None
    """None where the wire needs nothing but the fields above."""


class ToolMessage(msgspec.Struct, frozen=True, tag="tool", tag_field="role"):
    """What a tool gave back for one call."""

    call_id: str
    name: str
    text: str
    is_error: bool = False
    result_id: str = ""
    """Where the whole of it is kept when `text` is only a part; empty when it is all."""


ChatMessage = UserMessage | AssistantMessage | ToolMessage
