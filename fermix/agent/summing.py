"""What a turn that had to stop leaves the person with: what was done and what is left, without a model."""

from __future__ import annotations

from collections.abc import Sequence

from fermix.agent.outcome import Outcome
from fermix.agent.plan import Plan

MOST_LINES = 12
LONGEST_WORDS = 600


def summed_up(why: str, outcomes: Sequence[Outcome], plan: Plan | None, said: str, *, way_on: str) -> str:
    """Why it stopped, what was done, what is left, and how to go on.

    `said` is what the model said last on the way.
    """
    parts = [f"Stopped: {why}"]
    told = [outcome for outcome in outcomes if plan is None or outcome.call.name != "plan"]
    if told:
        parts.append("Done until then:\n" + "\n".join(_lines(told)))
    else:
        parts.append("Nothing was done until then.")
    if said:
        parts.append(f"The last words on the way: {said[:LONGEST_WORDS]}")
    if plan is not None and plan.left:
        parts.append("Left to do:\n" + "\n".join(f"- {step}" for step in plan.left))
    else:
        parts.append("Left to do: the answer itself.")
    parts.append(way_on)
    return "\n\n".join(parts)


def _lines(outcomes: Sequence[Outcome]) -> list[str]:
    """One for each different call, the latest ones, with how it ended and how often."""
    found: dict[tuple[str, bool], list[Outcome]] = {}
    for outcome in outcomes:
        found.setdefault((outcome.words(), outcome.result.is_error), []).append(outcome)
    lines = [
        f"- {words}: {'failed: ' + same[-1].reason() if is_error else 'done'}"
        + (f" ({len(same)} times)" if len(same) > 1 else "")
        for (words, is_error), same in found.items()
    ]
    left_out = len(lines) - MOST_LINES
    return [f"- … and {left_out} more before", *lines[-MOST_LINES:]] if left_out > 0 else lines
