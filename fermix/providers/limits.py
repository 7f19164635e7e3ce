"""What fits into one request to a model, and what it costs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # a list of models is told by a client that needs none of this
    from fermix.messages import Usage

BYTES_PER_TOKEN = 4
"""About what the tokenizers of large models make of English, JSON and code, where nobody counted."""


@dataclass(frozen=True, slots=True)
class ModelLimits:
    """What fits into one request."""

    takes_tools: bool = True
    sees_images: bool = False
    window_tokens: int | None = None
    """Input and output together; None when it is not known."""
    efforts: tuple[str, ...] = ()
    """Levels of thinking that may be asked for, the least first."""
    prompt_bytes: int | None = None
    """Most bytes of system text and messages together; None when only the window counts."""
    max_output_tokens: int | None = None
    """None leaves it to the vendor."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """What a model costs, in micro-USD for a million tokens."""

    input: int
    output: int
    cached: int
    written: int
    as_of: str
    """The day the vendor's page was read, `2026-12-01`."""
    up_to_tokens: int | None = None
    """Longest input these prices are for; None for any."""

    def cost(self, usage: Usage) -> int | None:
        """Micro-USD for these tokens, rounded up; None where these are not the prices for so many."""
        if self.up_to_tokens is not None and usage.input_tokens > self.up_to_tokens:
            return None
        fresh = usage.input_tokens - usage.cached_tokens - usage.written_tokens
        total = (
            max(0, fresh) * self.input
            + usage.cached_tokens * self.cached
            + usage.written_tokens * self.written
            + usage.output_tokens * self.output
        )
        return -(-total // 1_000_000)


FREE = Price(input=0, output=0, cached=0, written=0, as_of="")
"""Of models that run on this machine."""
