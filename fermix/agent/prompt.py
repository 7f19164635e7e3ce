"""What of a conversation a model is shown."""

from __future__ import annotations

from collections.abc import Sequence

from fermix.messages import AssistantMessage, ChatMessage, ToolMessage, UserMessage
from fermix.providers.port import ModelLimits

CUT = " […]"


def fit(messages: Sequence[ChatMessage], limits: ModelLimits, *, system: str) -> tuple[ChatMessage, ...]:
    """The latest messages that fit, beginning with a person's words.

    Call and result stay together, since the cut is only ever made before a UserMessage.
    """
    if limits.prompt_bytes is None and limits.takes_tools:
        first = next((i for i, message in enumerate(messages) if isinstance(message, UserMessage)), 0)
        return tuple(messages[first:])
    starts = [index for index, message in enumerate(messages) if isinstance(message, UserMessage)]
    if not limits.takes_tools:
        messages = [_without_tools(message) for message in messages]
    if not starts:
        return tuple(messages)
    chosen = list(messages[starts[0] :])
    if limits.prompt_bytes is None:
        return tuple(chosen)
    messages = [_bare(message) for message in messages]
    budget = limits.prompt_bytes - len(system.encode())
    for start in starts:
        chosen = list(messages[start:])
        if start == starts[-1] or sum(map(_size, chosen)) <= budget:
            break
    return tuple(_squeeze(chosen, budget))


def _without_tools(message: ChatMessage) -> ChatMessage:
    if isinstance(message, ToolMessage):
        return UserMessage(f"[{message.name} said: {message.text}]")
    if isinstance(message, AssistantMessage) and message.tool_calls:
        names = ", ".join(call.name for call in message.tool_calls)
        return AssistantMessage(message.text or f"[used {names}]")
    return message


def _bare(message: ChatMessage) -> ChatMessage:
    """Without what a small model would only take for the question: notes and pictures."""
    return UserMessage(message.text) if isinstance(message, UserMessage) else message


def _size(message: ChatMessage) -> int:
    return len(message.text.encode())


def _squeeze(messages: list[ChatMessage], budget: int) -> list[ChatMessage]:
    """The last user message cut at its end when even it alone is too long."""
    over = sum(map(_size, messages)) - max(budget, 64)
    first = messages[0]
    if over <= 0 or not isinstance(first, UserMessage):
        return messages
    keep = max(64, _size(first) - over - len(CUT.encode()))
    text = first.text.encode()[:keep].decode(errors="ignore")
    return [UserMessage(text + CUT), *messages[1:]]
