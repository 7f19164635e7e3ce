"""One turn on its way through the loop, and who decides what of its conversation a model is shown."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from fermix.agent.classify import Choice
from fermix.agent.detector import Detector
from fermix.agent.events import AgentEvent
from fermix.agent.outcome import Outcome
from fermix.agent.prompt import fit
from fermix.capabilities.context import ToolContext
from fermix.conversations.summaries import Summary
from fermix.messages import ChatMessage, ModelCall, Usage, UserMessage
from fermix.providers.port import ModelLimits, Price, Provider, ToolSchema
from fermix.usage.spent import NOTHING, Spent


class Day(Protocol):
    """What was spent today, as the ledger knows it before every call."""

    def of_conversation(self, conversation_id: str) -> Spent: ...

    def of_provider(self, provider: str) -> Spent: ...


def _nothing_more() -> Sequence[UserMessage]:
    return ()


@dataclass(slots=True)
class Thinking:
    """One turn on its way through the loop."""

    context: ToolContext
    messages: list[ChatMessage]
    """The history and this turn's own messages; the loop appends what it yields as steps."""
    usage: Usage = field(default_factory=Usage)
    conversation_id: str = ""
    steered: Callable[[], Sequence[UserMessage]] = _nothing_more
    """What a person added since the last step: stored already, and taken up by this turn."""
    day: Day | None = None
    """None where nobody keeps account of days."""
    spent: Spent = NOTHING
    """What this turn's calls took until now."""
    summary: Summary | None = None
    """What the messages begin with instead of older ones."""
    wants_room: bool = False
    """Whether the person asked for the older messages to be summed up."""
    asked_bytes: int = 0
    """About the size of the question that was asked last."""
    barred: Callable[[str, Price | None], str | None] | None = None
    """Why a provider of this name and price must not be asked, a summary included; None: all may."""
    overflows: int = 0
    """How often in this turn a provider called the question too long."""
    steps: int = 0
    """Questions a model was asked in this turn."""
    estimate: int = 0
    """About how many tokens the next question is; 0 while no budget asks for it."""
    outcomes: list[Outcome] = field(default_factory=list)
    """What came of this turn's tool calls, whatever becomes of the messages."""
    detector: Detector = field(default_factory=Detector)
    choice: Choice | None = None
    """What the message asks for; None until it was looked at."""
    said: str = ""
    """The model's last words before an answer."""


class Keeper(Protocol):
    """Decides what of a conversation a model is shown, and makes room where it does not fit.

    Contract: all of it is cheap while everything fits; `view` is pure.
    """

    def prepared(
        self, thinking: Thinking, provider: Provider, *, system: str, tools: Sequence[ToolSchema]
    ) -> Generator[AgentEvent, None, None]:
        """Before each question: compact `thinking.messages` in place when it is time, and tell of it."""
        ...

    def view(
        self, messages: Sequence[ChatMessage], limits: ModelLimits, *, system: str
    ) -> tuple[ChatMessage, ...]:
        """What a model of these limits is shown."""
        ...

    def overflowed(
        self, thinking: Thinking, provider: Provider, *, system: str, tools: Sequence[ToolSchema]
    ) -> Generator[AgentEvent, None, bool]:
        """After a provider said the question is too long: whether it is shorter now, and worth a try."""
        ...

    def heard(self, thinking: Thinking, call: ModelCall) -> None:
        """What the provider counted for the question that was asked last."""
        ...


class PlainKeeper:
    """Shows what `fit` leaves, and cannot make more room than that."""

    def prepared(
        self, thinking: Thinking, provider: Provider, *, system: str, tools: Sequence[ToolSchema]
    ) -> Generator[AgentEvent, None, None]:
        """See `Keeper.prepared`."""
        yield from ()

    def view(
        self, messages: Sequence[ChatMessage], limits: ModelLimits, *, system: str
    ) -> tuple[ChatMessage, ...]:
        """See `Keeper.view`."""
        return fit(messages, limits, system=system)

    def overflowed(
        self, thinking: Thinking, provider: Provider, *, system: str, tools: Sequence[ToolSchema]
    ) -> Generator[AgentEvent, None, bool]:
        """See `Keeper.overflowed`."""
        yield from ()
        return False

    def heard(self, thinking: Thinking, call: ModelCall) -> None:
        """See `Keeper.heard`."""
