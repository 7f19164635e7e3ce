"""A history as any provider accepts it: every call has its result, every id is unique."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence

from fermix.messages import AssistantMessage, ChatMessage, ToolCall, ToolMessage

_GOOD_ID = re.compile(r"[A-Za-z0-9_-]{1,40}")
_GOOD_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_LOST_RESULT = "Interrupted: the outcome of this call is unknown."


def paired(messages: Sequence[ChatMessage]) -> list[ChatMessage]:
    """The messages with each call answered right behind it, under an id used only once.

    A call without a result gets one that says so, a result without a call is left out, results
    come in the order of their calls. The same history always gives the same messages.
    """
    answered: list[ChatMessage] = []
    used: set[str] = set()
    at = 0
    while at < len(messages):
        message = messages[at]
        at += 1
        if isinstance(message, ToolMessage):
            continue
        if not isinstance(message, AssistantMessage) or not message.tool_calls:
            answered.append(message)
            continue
        results: list[ToolMessage] = []
        while at < len(messages) and isinstance(follower := messages[at], ToolMessage):
            results.append(follower)
            at += 1
        calls = tuple(_renamed(call, used) for call in message.tool_calls)
        answered.append(AssistantMessage(message.text, calls, message.reasoning))
        for old, new in zip(message.tool_calls, calls, strict=True):
            answered.append(_result(old, new.id, results))
    return answered


def _renamed(call: ToolCall, used: set[str]) -> ToolCall:
    id = call.id
    if id in used or not _GOOD_ID.fullmatch(id):
        # Counted, not random: the bytes of a request must not change from one step to the next.
        id = f"c{hashlib.sha256(f'{len(used)} {call.id}'.encode()).hexdigest()[:8]}"
    used.add(id)
    return ToolCall(id=id, name=call.name, arguments=call.arguments, broken=call.broken)


def _result(call: ToolCall, id: str, results: list[ToolMessage]) -> ToolMessage:
    for position, result in enumerate(results):
        if result.call_id == call.id:
            del results[position]
            return ToolMessage(id, result.name, result.text, result.is_error)
    return ToolMessage(id, call.name, _LOST_RESULT, is_error=True)


def wire_names(names: Sequence[str]) -> dict[str, str]:
    """Our tool names -> names of at most 64 letters, digits, `_` and `-`, each used only once."""
    mapped = {name: name for name in names if _GOOD_NAME.fullmatch(name)}
    taken = set(mapped)
    for name in names:
        if name not in mapped:
            mark = hashlib.sha256(name.encode()).hexdigest()[:6]
            stem = re.sub(r"[^A-Za-z0-9_-]+", "_", name)
            is_free = 0 < len(stem) <= 64 and stem not in taken
            mapped[name] = stem if is_free else f"{stem[:57]}_{mark}"
            taken.add(mapped[name])
    return mapped


def wire_name(name: str) -> str:
    """A name from history for a tool that is no longer offered."""
    return next(iter(wire_names([name]).values()))
