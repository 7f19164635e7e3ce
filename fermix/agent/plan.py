"""The list of steps the model shows: read from its own calls, so that it lives as long as they do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fermix.messages import AssistantMessage, ChatMessage, ToolCall, ToolMessage

TOOL = "plan"
"""The tool whose calls are plans."""


@dataclass(frozen=True, slots=True)
class Plan:
    """Steps in order, the first `done` of them done."""

    steps: tuple[str, ...]
    done: int = 0

    @property
    def left(self) -> tuple[str, ...]:
        """The steps that are still to do."""
        return self.steps[self.done :]

    def words(self) -> str:
        """As a list to read, and to tell a model again."""
        return "\n".join(
            f"- [{'x' if index < self.done else ' '}] {step}" for index, step in enumerate(self.steps)
        )


def plan_in(call: ToolCall) -> Plan | None:
    """The plan a call shows; None when it shows none, or not in the way it should."""
    steps, done = call.arguments.get("steps"), call.arguments.get("done", 0)
    if call.name != TOOL or not isinstance(steps, list) or not isinstance(done, int):
        return None
    return Plan(tuple(" ".join(str(step).split()) for step in steps), max(0, min(done, len(steps))))


def plan_of(messages: Sequence[ChatMessage]) -> Plan | None:
    """The plan that was shown last; None when there is none, or a call for one was refused."""
    refused: set[str] = set()
    for message in reversed(messages):
        if isinstance(message, ToolMessage) and message.name == TOOL and message.is_error:
            refused.add(message.call_id)
        elif isinstance(message, AssistantMessage):
            for call in reversed(message.tool_calls):
                if call.id not in refused and (plan := plan_in(call)) is not None:
                    return plan
    return None
