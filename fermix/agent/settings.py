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
        1000,
        "About how many messages of a conversation a model is shown; older ones are summed up.",
        unit="messages",
        minimum=2,
    )
    compaction_threshold: float = setting(
        0.85,
        "Share of the model's window from which on the older part of a conversation is summed up.",
        unit="of the window",
        minimum=0.2,
        maximum=0.95,
    )
    tool_result_limit_bytes: int = setting(
        65_536,
        "Longest tool result a model is shown; the middle of a longer one is left out.",
        unit="bytes",
        minimum=1024,
    )
    instructions: str = setting("", "Text added to the instructions every model is given.")


@section("budget")
@dataclass(frozen=True)
class BudgetSettings:
    """[budget] section: checked before every call to a model; 0 is no limit."""

    turn_tokens: int = setting(
        0, "Tokens one turn may take, read and written; 0 is no limit.", unit="tokens", minimum=0
    )
    turn_usd: float = setting(0.0, "What one turn may cost; 0 is no limit.", unit="USD", minimum=0)
    conversation_day_tokens: int = setting(
        0, "Tokens one conversation may take in a day; 0 is no limit.", unit="tokens", minimum=0
    )
    conversation_day_usd: float = setting(
        0.0, "What one conversation may cost in a day; 0 is no limit.", unit="USD", minimum=0
    )
    provider_day_tokens: int = setting(
        0,
        "Tokens one provider may take in a day, before the next in the chain is asked; 0 is no limit.",
        unit="tokens",
        minimum=0,
    )
    provider_day_usd: float = setting(
        0.0,
        "What one provider may cost in a day, before the next in the chain is asked; 0 is no limit.",
        unit="USD",
        minimum=0,
    )

    @property
    def counts_money(self) -> bool:
        """Whether any limit is one of money."""
        return bool(self.turn_usd or self.conversation_day_usd or self.provider_day_usd)

    @property
    def counts(self) -> bool:
        """Whether any limit must be reckoned with before a question."""
        return any(
            (self.turn_tokens, self.conversation_day_tokens, self.provider_day_tokens, self.counts_money)
        )
