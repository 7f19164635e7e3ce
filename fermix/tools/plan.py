"""Shows the person what the agent is about to do, step by step."""

from __future__ import annotations

from fermix.capabilities.context import ToolContext
from fermix.capabilities.tool import tool
from fermix.errors import ToolRetry
from fermix.trust import Policy

MOST_STEPS = 20
LONGEST_STEP = 200


@tool(policy=Policy.READ_ONLY)
def plan(ctx: ToolContext, steps: list[str], done: int = 0) -> str:
    """Show the person your plan for work of several steps; give the whole list again when it changes.

    steps: Short steps in order, 1 to 20.
    done: How many of them, from the first, are done.
    """
    if not 1 <= len(steps) <= MOST_STEPS or not 0 <= done <= len(steps):
        raise ToolRetry(
            f"{len(steps)} steps and done {done}; expected 1 to {MOST_STEPS}, and no more done."
        )
    long = next((step for step in steps if not step.strip() or len(step) > LONGEST_STEP), None)
    if long is not None:
        raise ToolRetry(f"The step {long[:40]!r} is empty or longer than {LONGEST_STEP} characters.")
    return f"Shown: {done} of {len(steps)} done."
