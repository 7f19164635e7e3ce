"""Tool activity in words: what is being done, on one line."""

from __future__ import annotations

from typing import Any

from fermix.cli.terminal import one_line
from fermix.ipc.client import Event

_PHASES = {
    "perceive": "reading",
    "classify": "reading",
    "reason": "thinking",
    "plan": "planning",
    "act": "working",
    "verify": "checking",
    "synthesize": "summing up",
    "think": "thinking",
}


def tool_line(event: Event, width: int) -> str | None:
    """A line for a tool event, safe for a terminal; None when there is nothing worth telling."""
    name = str(event.data.get("name") or "tool")
    if event.name == "tool_call_complete" and name != "plan":
        return one_line(f"· {name} {_arguments(event.data.get('arguments'))}", width)
    if event.name == "tool_result" and event.data.get("is_error"):
        return one_line(f"· {name} failed: {event.data.get('text') or ''}", width)
    return None


def plan_lines(event: Event, width: int) -> str:
    """The steps of a plan, one on a line, those that are done marked."""
    steps = event.data.get("steps")
    known = [step for step in steps if isinstance(step, dict)] if isinstance(steps, list) else []
    return "\n".join(
        one_line(f"{'✓' if step.get('is_done') else '·'} {step.get('text') or ''}", width) for step in known
    )


def phase_words(phase: str) -> str:
    """What a person reads while a phase lasts."""
    return _PHASES.get(phase) or one_line(phase.replace("_", " ") or "working", 40)


def _arguments(arguments: Any) -> str:
    """`key=value` pairs; Any: whatever JSON the daemon sent."""
    if not isinstance(arguments, dict):
        return str(arguments or "")
    if len(arguments) == 1:
        return str(next(iter(arguments.values())))
    return ", ".join(f"{key}={value}" for key, value in arguments.items())
