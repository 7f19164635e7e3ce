"""Where a conversation may be cut: before a person's words, or in their last turn before a whole step.

A tool call and its results are never parted.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from fermix.agent.context.estimate import size_of, sizes_of
from fermix.agent.context.pins import has_summary, pins_of, shortened
from fermix.conversations.summaries import Summary
from fermix.messages import AssistantMessage, ChatMessage, ToolMessage, UserMessage

SUMMARY_LENGTH = 2
"""Messages that a summary is shown as, the person's repeated words not counted."""
LEAST_TEXT = 160
TAIL_SHARE = 0.3
"""Of the room, what the latest messages may take behind a new summary."""


def last_said(messages: Sequence[ChatMessage]) -> int:
    """Where the person's latest words stand; 0 when there are none."""
    for index in range(len(messages) - 1, -1, -1):
        if isinstance(messages[index], UserMessage):
            return index
    return 0


def places(messages: Sequence[ChatMessage]) -> list[int]:
    """Indexes a request may begin at; not the first step of the last turn."""
    said = last_said(messages)
    return [
        index
        for index, message in enumerate(messages)
        if isinstance(message, UserMessage) or (index > said + 1 and isinstance(message, AssistantMessage))
    ]


def cut(messages: Sequence[ChatMessage], sizes: Sequence[int], *, tail_bytes: int) -> int | None:
    """Where the kept end begins: as early as `tail_bytes` allow; None when nothing worth it is before."""
    first = SUMMARY_LENGTH if has_summary(messages) else 0
    chosen = None
    left = sum(sizes)
    at = 0
    for place in places(messages):
        left -= sum(sizes[at:place])
        at = place
        if place > first:
            chosen = place
            if left <= tail_bytes:
                break
    # One message is not worth it; its like comes again with the next step.
    return chosen if chosen is not None and chosen > first + 1 else None


def shown(messages: Sequence[ChatMessage], space: int) -> tuple[ChatMessage, ...]:
    """What is shown of messages that may be too many: all of them, or the latest behind what is pinned.

    The same messages always give the same; a few more at the end seldom move the beginning.
    """
    sizes = sizes_of(messages)
    if sum(sizes) <= space:
        return tuple(messages)
    budget = space - space * 3 // 8
    start = _start(messages, sizes, budget)
    if has_summary(messages):
        start = max(start, SUMMARY_LENGTH)
    said = last_said(messages)
    head = _head(messages, start, space)
    if start > said:
        head.append(_clipped(messages[said], budget // 4))
    rest = list(messages[start:])
    return (*head, *_within(rest, max(LEAST_TEXT, space - sum(sizes_of(head)))))


def _start(messages: Sequence[ChatMessage], sizes: Sequence[int], budget: int) -> int:
    """As if the messages had come one by one, and half were left out each time they did not fit."""
    allowed = places(messages)
    start, size = (allowed[0] if allowed else 0), 0
    at = start
    ends = [*allowed[1:], len(messages)]
    for end in ends:
        size += sum(sizes[at:end])
        at = end
        if size <= budget:
            continue
        later = [place for place in allowed if start < place < end]
        for place in later:
            size -= sum(sizes[start:place])
            start = place
            if size <= budget // 2:
                break
    return start


def _head(messages: Sequence[ChatMessage], start: int, space: int) -> list[ChatMessage]:
    """What stands in front: the summary there is, or the pinned parts of what is left out."""
    if has_summary(messages):
        first = messages[0]
        assert isinstance(first, UserMessage)
        left_out = start - SUMMARY_LENGTH
        words = f"\n\n{left_out} messages after these are left out here." if left_out else ""
        return [UserMessage(shortened(first.text, space // 2) + words), messages[1]]
    if start == 0:
        return []
    pins = pins_of(messages[:start], None, space=space)
    return Summary(
        first_request=pins.first_request,
        text="",
        plan=pins.plan,
        open_items=pins.open_items,
        messages=start,
    ).shown()


def _within(messages: list[ChatMessage], space: int) -> list[ChatMessage]:
    """The messages with their longest texts clipped, evenly, until all of them fit."""
    limit = space // 2
    clipped = messages
    while sum(sizes_of(clipped)) > space and limit >= LEAST_TEXT:
        clipped = [_clipped(message, limit) for message in messages]
        limit //= 2
    return clipped


def _clipped(message: ChatMessage, size_bytes: int) -> ChatMessage:
    """The message with a text of at most about this size; calls stay whole."""
    if size_of(message) <= size_bytes:
        return message
    if isinstance(message, ToolMessage):
        return msgspec.structs.replace(message, text=shortened(message.text, size_bytes))
    if isinstance(message, UserMessage):
        return UserMessage(shortened(message.text, size_bytes), message.note, message.images)
    return AssistantMessage(shortened(message.text, size_bytes), message.tool_calls)
