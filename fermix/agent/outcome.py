"""What came of a turn's tool calls: kept apart from the history, which may be compacted meanwhile."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from fermix.messages import AssistantMessage, ChatMessage, ToolCall, ToolMessage, UserMessage

LONGEST = 120
_ENDED_BADLY = re.compile(r"\[(exit code [1-9]\d*|ended (?:by|after)|lost after)[^\n]*\]\Z")


@dataclass(frozen=True, slots=True)
class Outcome:
    """One call and its result."""

    call: ToolCall
    result: ToolMessage
    acts: bool
    """Whether the tool changes things."""

    @property
    def ended_badly(self) -> str | None:
        """How a command ended that ran and did not succeed; None for every other call."""
        found = None if self.result.is_error else _ENDED_BADLY.search(self.result.text)
        return found[0].strip("[]") if found else None

    def words(self) -> str:
        """What was asked for, on one line."""
        about = " ".join(str(value) for value in self.call.arguments.values())
        return _line(f"`{self.call.name}` {about}")

    def reason(self) -> str:
        """Why it failed, on one line."""
        return _line(self.result.text)


def outcomes_of(messages: Sequence[ChatMessage]) -> list[tuple[ToolCall, ToolMessage]]:
    """The calls with results since a person spoke last, for a turn that goes on in another life."""
    calls: dict[str, ToolCall] = {}
    found: list[tuple[ToolCall, ToolMessage]] = []
    start = next((i for i in range(len(messages) - 1, -1, -1) if isinstance(messages[i], UserMessage)), 0)
    for message in messages[start:]:
        if isinstance(message, AssistantMessage):
            calls.update((call.id, call) for call in message.tool_calls)
        elif isinstance(message, ToolMessage) and message.call_id in calls:
            found.append((calls[message.call_id], message))
    return found


def _line(text: str) -> str:
    shown = "".join(char if char.isprintable() else " " for char in text[: LONGEST * 10])
    line = " ".join(shown.split())
    return line if len(line) <= LONGEST else f"{line[: LONGEST - 1]}…"
