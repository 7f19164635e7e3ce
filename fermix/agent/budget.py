"""What a turn may take: looked at before every question, so that what is over is never asked."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from fermix.agent.settings import BudgetSettings
from fermix.agent.thinking import Thinking
from fermix.messages import AssistantMessage, ChatMessage, ToolMessage, Usage
from fermix.providers.port import Price, ToolSchema
from fermix.usage.spent import Spent

BYTES_PER_TOKEN = 4
"""About what tokenizers make of English, JSON and code."""
ANSWER_TOKENS = 300
"""What an answer is taken to need at the least."""
LEAST_TIME_S = 0.05
"""A question that has less time left than this is not asked."""
MICRO = 1_000_000


@dataclass(frozen=True, slots=True)
class Over:
    """Why the next question must not be asked."""

    code: str
    """`steps_used_up`, `time_used_up` or `budget_used_up`."""
    words: str


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
    limits = [("this turn", thinking.spent, settings.turn_tokens, settings.turn_usd)]
    if thinking.day is not None:
        spent = thinking.day.of_conversation(thinking.conversation_id)
        name = "this conversation today"
        limits.append((name, spent, settings.conversation_day_tokens, settings.conversation_day_usd))
    for whose, spent, most_tokens, most_usd in limits:
        if (why := _broken(whose, spent, tokens, cost, most_tokens, most_usd)) is not None:
            return Over("budget_used_up", why)
    return None


def over_at(
    provider: str, thinking: Thinking, settings: BudgetSettings, *, price: Price | None
) -> str | None:
    """Why a provider must not be asked any more today; None when it may be."""
    if thinking.day is None:
        return None
    spent = thinking.day.of_provider(provider)
    whose = f"{provider} today"
    tokens = thinking.estimate + ANSWER_TOKENS
    cost = price.cost(Usage(thinking.estimate, ANSWER_TOKENS)) if price is not None else None
    return _broken(whose, spent, tokens, cost, settings.provider_day_tokens, settings.provider_day_usd)


def estimated(messages: Sequence[ChatMessage], tools: Iterable[ToolSchema], system: str) -> int:
    """About how many tokens a question is."""
    size = len(system) + sum(map(_size, messages))
    return (size + sum(len(tool.description) * 3 for tool in tools)) // BYTES_PER_TOKEN


def _size(message: ChatMessage) -> int:
    if isinstance(message, AssistantMessage):
        return len(message.text) + sum(len(str(call.arguments)) for call in message.tool_calls)
    return len(message.text) + (0 if isinstance(message, ToolMessage) else len(message.note))


def _broken(
    whose: str, spent: Spent, tokens: int, cost: int | None, most_tokens: int, most_usd: float
) -> str | None:
    """In words, which of both limits what was spent and the next question break; 0 is no limit."""
    if most_tokens and (spent.tokens + tokens > most_tokens or spent.tokens >= most_tokens):
        return (
            f"the next question would go over the {most_tokens:,} tokens {whose} may take "
            f"({spent.tokens:,} are used)."
        )
    most = round(most_usd * MICRO)
    if most and (spent.priced_micro_usd + (cost or 0) > most or spent.priced_micro_usd >= most):
        used = spent.priced_micro_usd / MICRO
        return (
            f"the next question would go over the ${most_usd:g} {whose} may cost (${used:.4f} are spent)."
        )
    return None
