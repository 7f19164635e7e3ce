"""What a running turn tells its watchers, one typed value per thing that happened."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from fermix.agent.plan import Plan
from fermix.conversations.summaries import Summary
from fermix.messages import AssistantMessage, ChatMessage, ToolCall, ToolMessage, Usage
from fermix.providers.port import Called, ReasoningDelta, Restarted, TextDelta


class Phase(StrEnum):
    """What the agent is busy with."""

    PERCEIVE = "perceive"
    CLASSIFY = "classify"
    REASON = "reason"
    PLAN = "plan"
    ACT = "act"
    VERIFY = "verify"
    SYNTHESIZE = "synthesize"


class TurnStatus(StrEnum):
    """How a turn ended; it ends exactly once."""

    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"
    INTERRUPTED = "interrupted"


@dataclass(frozen=True, slots=True)
class PhaseChanged:
    """The agent turned to something else and decided something; else a phase is not told."""

    phase: Phase
    decision: str = ""
    """In a few words, as it is stored with the turn."""


@dataclass(frozen=True, slots=True)
class Replied:
    """A whole reply of the model; a step that is to be durable before the loop goes on."""

    reply: AssistantMessage


@dataclass(frozen=True, slots=True)
class ToolCalled:
    """A tool call that is about to run."""

    call: ToolCall


@dataclass(frozen=True, slots=True)
class ToolReplied:
    """A tool's result; a step that is to be durable before the loop goes on."""

    result: ToolMessage


@dataclass(frozen=True, slots=True)
class Compacted:
    """A summary stands from now on instead of all messages but the last; a step that is to be durable.

    None when it failed: what it took stands on the bill all the same.
    """

    summary: Summary | None
    kept: tuple[ChatMessage, ...]


@dataclass(frozen=True, slots=True)
class Notice:
    """Something a person should know that is not part of the answer."""

    text: str


@dataclass(frozen=True, slots=True)
class Planned:
    """The model's list of steps, new or changed."""

    plan: Plan


@dataclass(frozen=True, slots=True)
class Corrected:
    """What is added to the final words since the record says otherwise."""

    text: str


@dataclass(frozen=True, slots=True)
class TurnEnded:
    """The last event of every turn."""

    status: TurnStatus
    text: str
    """What the person is told."""
    usage: Usage
    error_code: str | None = None
    """None when it completed."""
    cost_micro_usd: int | None = 0
    """Filled in from the stored calls; None when the price of one is not known."""


AgentEvent = (
    PhaseChanged
    | TextDelta
    | ReasoningDelta
    | Restarted
    | Called
    | Replied
    | ToolCalled
    | ToolReplied
    | Compacted
    | Planned
    | Corrected
    | Notice
    | TurnEnded
)

__all__ = [
    "AgentEvent",
    "Called",
    "Compacted",
    "Notice",
    "Phase",
    "PhaseChanged",
    "Planned",
    "ReasoningDelta",
    "Replied",
    "Restarted",
    "TextDelta",
    "ToolCalled",
    "ToolReplied",
    "TurnEnded",
    "TurnStatus",
]
