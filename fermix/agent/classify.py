"""Decides from a message alone, on this machine, what a turn gets: tools, effort and steps."""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from fermix.capabilities.tool import Tool
from fermix.messages import ChatMessage, UserMessage
from fermix.providers.port import BYTES_PER_TOKEN, ModelLimits, ToolSchema

SMALL_TALK_STEPS = 20
EARLY = 8
"""Messages until which the effort may be lowered: later a provider would have to read all of it anew."""
TOOLS_SHARE = 4
"""At most this part of a small window is given to tools."""
REMEMBERED = 256
"""Conversations whose tools are kept in memory."""

# Compiled when first looked for, and kept by `re`: a daemon that only waits does without them.
_SMALL_TALK = (
    r"(?:hi|hello|hey|hallo|moin|servus|hola|salut|bonjour|ciao|good (?:morning|evening|night)|"
    r"guten (?:morgen|tag|abend)|thanks|thank you|thx|danke(?: schön)?|merci|gracias|ping|bye|tschüss)"
    r"(?: (?:there|fermix|everyone|again|a lot|very much))?[\s!.,👋🙏😊]*"
)
_HARD = (
    r"\b(think (?:hard|harder|deeply|carefully|step by step)|ultrathink|take your time|"
    r"denk (?:gründlich|genau|gut) nach|überleg(?:e)? (?:gründlich|genau))\b"
)


class Kind(StrEnum):
    """What sort of message began the turn."""

    SMALL_TALK = "small talk"
    HARD = "hard thinking"
    WORK = "work"


@dataclass(frozen=True, slots=True)
class Choice:
    """What the turn gets."""

    kind: Kind
    steps: int
    is_early: bool
    """Whether the conversation is short, so that nothing is lost by another effort."""

    def effort(self, limits: ModelLimits) -> str | None:
        """One of the model's levels; None leaves it at what the settings or the vendor say."""
        if not limits.efforts:
            return None
        if self.kind is Kind.HARD:
            return limits.efforts[-1]
        return limits.efforts[0] if self.kind is Kind.SMALL_TALK and self.is_early else None

    def words(self, limits: ModelLimits) -> str:
        """What is not the usual; empty when nothing is."""
        effort = self.effort(limits)
        said = f"{self.kind.value}, at most {self.steps} steps" + (f", effort {effort}" if effort else "")
        return "" if self.kind is Kind.WORK else said


def classify(messages: Sequence[ChatMessage], *, steps: int) -> Choice:
    """What the last message of a person asks for; `steps` is the most the settings allow."""
    said = next((message for message in reversed(messages) if isinstance(message, UserMessage)), None)
    text = said.text.strip() if said else ""
    is_early = len(messages) <= EARLY
    if said and not said.images and len(text) <= 40 and re.fullmatch(_SMALL_TALK, text, re.IGNORECASE):
        return Choice(Kind.SMALL_TALK, min(steps, SMALL_TALK_STEPS), is_early)
    return Choice(Kind.HARD if re.search(_HARD, text[:4000], re.IGNORECASE) else Kind.WORK, steps, is_early)


def choose_tools(tools: Sequence[ToolSchema], limits: ModelLimits, text: str) -> tuple[ToolSchema, ...]:
    """All of them, or as many as a small window bears: those the words name first, in their order."""
    if limits.window_tokens is None:
        return tuple(tools)
    room = limits.window_tokens * BYTES_PER_TOKEN // TOOLS_SHARE
    sizes = {tool.name: len(tool.description) + len(str(tool.parameters)) for tool in tools}
    if sum(sizes.values()) <= room:
        return tuple(tools)
    words = set(re.findall(r"\w{3,}", text.lower()))

    def rank(tool: ToolSchema) -> int:
        return -len(words & set(re.findall(r"\w{3,}", f"{tool.name} {tool.description}".lower())))

    chosen: set[str] = set()
    for tool in sorted(tools, key=rank):
        if sizes[tool.name] <= room:
            room -= sizes[tool.name]
            chosen.add(tool.name)
    return tuple(tool for tool in tools if tool.name in chosen)


class Toolsets:
    """The tools of each conversation, the same for as long as it is spoken in.

    They stand in front of all that a provider may have in its cache.
    """

    def __init__(self) -> None:
        self._chosen: OrderedDict[tuple[object, ...], tuple[ToolSchema, ...]] = OrderedDict()

    def of(
        self, conversation_id: str, tools: Sequence[Tool], limits: ModelLimits, text: Callable[[], str]
    ) -> tuple[ToolSchema, ...]:
        """What a conversation was given first, or is given now; `text` is asked for then."""
        key = (conversation_id, tuple(tool.name for tool in tools), limits.window_tokens)
        known = self._chosen.get(key)
        if known is None:
            known = choose_tools([_schema(tool) for tool in tools], limits, text())
            self._chosen[key] = known
            if len(self._chosen) > REMEMBERED:
                self._chosen.popitem(last=False)
        else:
            self._chosen.move_to_end(key)
        return known


def _schema(tool: Tool) -> ToolSchema:
    return ToolSchema(tool.name, tool.description, tool.parameters)
