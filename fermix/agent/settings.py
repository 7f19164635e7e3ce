"""What the owner can say about the agent."""

from __future__ import annotations

from dataclasses import dataclass

from fermix.config import section, setting

OWNER_NAME_CHARS = 80


def _refused_name(name: str) -> str | None:
    """What was expected instead of `name`; None when it is a good one."""
    if name == "" or (name.isprintable() and name == name.strip() and len(name) <= OWNER_NAME_CHARS):
        return None
    return f"a name on one line, at most {OWNER_NAME_CHARS} characters"


@section("agent")
@dataclass(frozen=True)
class AgentSettings:
    """[agent] section."""

    owner_name: str = setting("", "What the agent calls its owner.", check=_refused_name)
    steps_per_turn: int = setting(
        100, "Model calls one turn may make before it is told to come to an end.", unit="calls", minimum=1
    )
    history_messages: int = setting(
        200, "About how many messages of a conversation a model is shown.", unit="messages", minimum=2
    )
    tool_result_limit_bytes: int = setting(
        65_536,
        "Longest tool result a model is shown; the middle of a longer one is left out.",
        unit="bytes",
        minimum=1024,
    )
    instructions: str = setting("", "Text added to the instructions every model is given.")
