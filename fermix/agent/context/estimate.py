"""How many tokens a request takes, before anybody counted them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from fermix.messages import AssistantMessage, ChatMessage, UserMessage
from fermix.providers.port import ToolSchema

FRAME_BYTES = 24
"""What a wire and a model's template put around one message, about."""
IMAGE_BYTES = 6_000
"""A picture takes about as much as this many bytes of text."""
UNKNOWN = 3.5
"""Bytes for a token of a model that has counted nothing yet; careful, since most make four of English."""
FEWEST, MOST = 1.0, 6.0
"""Counts outside are no counts of the whole request: those of a truncated prompt, or of a cache."""
RELAXING = 0.1
"""How much of the way to a more generous count is taken at once; to a stricter one it is all of it."""
SMALLEST_SAMPLE = 2_000
"""Bytes of a request whose count says something."""

_encode = msgspec.json.encode


def size_of(message: ChatMessage) -> int:
    """About how many bytes of text the message is for a model."""
    text = message.text
    size = FRAME_BYTES + (len(text) if text.isascii() else len(text.encode(errors="replace")))
    if isinstance(message, UserMessage):
        if message.note:
            size += len(message.note) + 2
        if message.images:
            size += IMAGE_BYTES * len(message.images)
    elif isinstance(message, AssistantMessage):
        if message.native is not None:
            # The wire's own items hold text and calls too; the larger of both is what is sent.
            return max(size, len(_encode(message.native.items)) + FRAME_BYTES)
        for call in message.tool_calls:
            size += len(call.name) + len(_encode(call.arguments)) + FRAME_BYTES
    return size


def sizes_of(messages: Iterable[ChatMessage]) -> list[int]:
    """The same for each."""
    return [size_of(message) for message in messages]


class Estimator:
    """Bytes for a token by model, learned from what providers count."""

    def __init__(self) -> None:
        self._learned: dict[str, float] = {}
        self._tools: dict[tuple[tuple[str, int], ...], int] = {}
        self._ceilings: dict[str, int] = {}

    def bytes_per_token(self, model: str) -> float:
        """In quarters, so that a request's shape does not change with every count."""
        return int(self._learned.get(model, UNKNOWN) * 4) / 4

    def ceiling(self, model: str) -> int | None:
        """Bytes that a whole request must stay below, since a provider refused longer ones."""
        return self._ceilings.get(model)

    def tools_size(self, tools: Sequence[ToolSchema]) -> int:
        """About how many bytes the schemas are."""
        key = tuple((tool.name, len(tool.description)) for tool in tools)
        size = self._tools.get(key)
        if size is None:
            if len(self._tools) > 64:
                self._tools.clear()
            size = self._tools[key] = sum(
                len(tool.name) + len(tool.description) + len(_encode(tool.parameters)) + 2 * FRAME_BYTES
                for tool in tools
            )
        return size

    def learn(self, model: str, size_bytes: int, tokens: int) -> None:
        """A provider counted these tokens for a request of this size."""
        if size_bytes < SMALLEST_SAMPLE or tokens <= 0:
            return
        seen = size_bytes / tokens
        if not FEWEST <= seen <= MOST:
            return
        known = self._learned.get(model, UNKNOWN)
        is_first = model not in self._learned
        self._learned[model] = seen if seen < known or is_first else known + (seen - known) * RELAXING

    def refused(self, model: str, size_bytes: int) -> None:
        """A request of this size was too long, whatever we believed."""
        below = int(size_bytes * 0.7)
        self._ceilings[model] = min(below, self._ceilings.get(model, below))
