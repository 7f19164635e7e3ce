"""What the bytes of a request are: each part of the instructions, each tool, the message, the rest."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import msgspec

from fermix.agent.composer import Composer
from fermix.agent.prompt import fit
from fermix.messages import ChatMessage, UserMessage
from fermix.providers.apis.history import user_text
from fermix.providers.port import BYTES_PER_TOKEN, ModelLimits, ModelRequest, ToolSchema
from fermix.tasks import Cancel, Deadline

NAME_LENGTH = 40


@dataclass(frozen=True, slots=True)
class Weight:
    """One part of a request."""

    kind: str
    """`instructions`, `tool`, `message` or `framing`: what the wire puts around them."""
    name: str
    size_bytes: int

    @property
    def tokens(self) -> int:
        """An estimate."""
        return -(-self.size_bytes // BYTES_PER_TOKEN)


@dataclass(frozen=True, slots=True)
class Weighed:
    """A whole request."""

    parts: tuple[Weight, ...]
    size_bytes: int
    """The sum of the parts, and the length of what is sent."""


def weigh(
    message: UserMessage,
    *,
    composer: Composer,
    limits: ModelLimits,
    tools: Sequence[ToolSchema],
    encode: Callable[[ModelRequest], bytes],
) -> Weighed:
    """The request that this message alone would make, by parts; `encode` is the wire's."""
    tools = tuple(tools) if limits.takes_tools else ()
    system = composer.system(limits)
    messages = fit([message], limits, system=system)
    words = "".join(map(_words, messages))

    def sent(shown: Sequence[ToolSchema]) -> int:
        deadline = Deadline.after(1.0)
        request = ModelRequest(
            system=system, messages=messages, tools=tuple(shown), cancel=Cancel(), deadline=deadline
        )
        return len(encode(request))

    whole = sent(tools)
    weights = [
        Weight("instructions", part.name, _inside_json(part.text)) for part in composer.parts(limits)
    ]
    # Each with the comma behind it, against one tool alone, so that what all share counts once.
    weights += [Weight("tool", tool.name, sent((tool, tool)) - sent((tool,))) for tool in tools]
    weights.append(Weight("message", " ".join(message.text.split())[:NAME_LENGTH], _inside_json(words)))
    rest = whole - sum(each.size_bytes for each in weights)
    return Weighed((*weights, Weight("framing", "", rest)), whole)


def _words(message: ChatMessage) -> str:
    return user_text(message) if isinstance(message, UserMessage) else message.text


def _inside_json(text: str) -> int:
    """Bytes of the text with the escapes JSON needs."""
    return len(msgspec.json.encode(text)) - 2
