"""What a turn may take: looked at before every question, so that what is over is never asked."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from fermix.agent.settings import BudgetSettings
from fermix.agent.thinking import Thinking
from fermix.messages import AssistantMessage, ChatMessage, ToolMessage, Usage
from fermix.providers.port import BYTES_PER_TOKEN, Price, ToolSchema
from fermix.usage.spent import Spent
from fermix.usage.words import MICRO

ANSWER_TOKENS = 300
"""What an answer is taken to need at the least."""
LEAST_TIME_S = 0.05
"""A question that has less time left than this is not asked."""


@dataclass(frozen=True, slots=True)
class Over:
    """Why the next question must not be asked."""

    code: str
    """`steps_used_up`, `time_used_up` or `budget_used_up`."""
    words: str
    setting: str = ""
    """Whose limit it is; empty where it is none of `[budget]`."""

    def way_on(self, has_acted: bool) -> str:
        """What the person can do; `has_acted` says whether this turn came anywhere."""
        raised = f"`fermix config set {self.setting} VALUE` and `fermix reload`"
        if "_day_" in self.setting:
            return f"It counts anew tomorrow. To go on today, raise the limit: {raised}."
        if self.setting and not has_acted:
            return f"The limit is too low for this question. To raise it: {raised}."
        return "Say `go on` to continue from here."


def over(
    thinking: Thinking, settings: BudgetSettings, *, steps: int, price: Price | None, estimate: int
) -> Over | None:
    """The first limit the next question would break; None when it may be asked.

    `estimate`: tokens of the question. Money counts only where the price is known.
    """
    if thinking.steps >= steps:
        return Over("steps_used_up", f"this turn used all of its {steps} model calls.")
    left_s = thinking.context.turn.deadline.remaining_s()
    if left_s < LEAST_TIME_S:
        return Over("time_used_up", "the time one turn may take is over.")
    tokens = estimate + ANSWER_TOKENS
    cost = price.cost(Usage(estimate, ANSWER_TOKENS)) if price is not None else None
    return _over_own(thinking, settings, tokens, cost)


def over_at(
    provider: str, thinking: Thinking, settings: BudgetSettings, *, price: Price | None
) -> Over | None:
    """Why a provider of this price must not be asked; None when it may be.

    The turn and the conversation count again: one that stands in may be dearer.
    """
    tokens = thinking.estimate + ANSWER_TOKENS
    cost = price.cost(Usage(thinking.estimate, ANSWER_TOKENS)) if price is not None else None
    if (own := _over_own(thinking, settings, tokens, cost)) is not None or thinking.day is None:
        return own
    spent = thinking.day.of_provider(provider)
    most = settings.provider_day_tokens, settings.provider_day_usd
    return _Limits("provider_day", provider, *most).broken(spent, tokens, cost)


def _over_own(thinking: Thinking, settings: BudgetSettings, tokens: int, cost: int | None) -> Over | None:
    """Which limit of the turn or its conversation the next question breaks."""
    turn = _Limits("turn", "this turn", settings.turn_tokens, settings.turn_usd)
    broken = turn.broken(thinking.spent, tokens, cost)
    if broken is None and thinking.day is not None:
        spent = thinking.day.of_conversation(thinking.conversation_id)
        most = settings.conversation_day_tokens, settings.conversation_day_usd
        broken = _Limits("conversation_day", "this conversation", *most).broken(spent, tokens, cost)
    return broken


def estimated(messages: Sequence[ChatMessage], tools: Iterable[ToolSchema], system: str) -> int:
    """About how many tokens a question is."""
    size = len(system) + sum(map(_size, messages))
    return (size + sum(len(tool.description) * 3 for tool in tools)) // BYTES_PER_TOKEN


def _size(message: ChatMessage) -> int:
    if isinstance(message, AssistantMessage):
        return len(message.text) + sum(len(str(call.arguments)) for call in message.tool_calls)
    return len(message.text) + (0 if isinstance(message, ToolMessage) else len(message.note))


@dataclass(frozen=True, slots=True)
class _Limits:
    """A limit of tokens and one of money; 0 is no limit."""

    setting: str
    """What both names in `[budget]` begin with."""
    whose: str
    tokens: int
    usd: float

    def broken(self, spent: Spent, tokens: int, cost: int | None) -> Over | None:
        """Which of both what was spent and the next question break."""
        today = " today" if self.setting.endswith("_day") else ""
        if self.tokens and (spent.tokens + tokens > self.tokens or spent.tokens >= self.tokens):
            most, used = f"{self.tokens:,} tokens {self.whose} may take", f"{spent.tokens:,} are used"
            return self._over(most + today, used, "tokens")
        most_micro = round(self.usd * MICRO)
        money = spent.priced_micro_usd
        if most_micro and (money + (cost or 0) > most_micro or money >= most_micro):
            used = f"${money / MICRO:.4f} are spent"
            return self._over(f"${self.usd:g} {self.whose} may cost{today}", used, "usd")
        return None

    def _over(self, most: str, used: str, unit: str) -> Over:
        words = f"the next question would go over the {most} ({used})."
        return Over("budget_used_up", words, f"budget.{self.setting}_{unit}")
