"""What of a conversation is never summed up: its first request, the plan, and what is still open."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from fermix.agent.plan import plan_of
from fermix.conversations.summaries import HEAD, Summary
from fermix.messages import ChatMessage, UserMessage

LONGEST_ITEM = 400
CUT = "\n[… {count} characters left out here …]\n"

_BOX = re.compile(r"^\s*[-*]\s*\[([ xX])\]\s*(\S.*)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Pins:
    """The verbatim parts."""

    first_request: str
    plan: tuple[str, ...]
    open_items: tuple[str, ...]


def has_summary(messages: Sequence[ChatMessage]) -> bool:
    """Whether the messages begin with those of a summary."""
    return bool(messages) and isinstance(messages[0], UserMessage) and messages[0].text.startswith(HEAD)


def pins_of(messages: Sequence[ChatMessage], before: Summary | None, *, space: int) -> Pins:
    """What must stay of these messages and the summary before them.

    A first request that takes more than an eighth of the space loses its middle; of too many items the
    oldest go.
    """
    first = before.first_request if before is not None else _first_request(messages)
    present = plan_of(messages)
    plan = tuple(present.words().splitlines()) if present is not None else before.plan if before else ()
    items = list(before.open_items if before is not None else ())
    for message in messages:
        if isinstance(message, UserMessage) and not message.text.startswith(HEAD):
            items = with_boxes(items, message.text)
    share = max(LONGEST_ITEM, space // 16)
    return Pins(
        shortened(first, max(LONGEST_ITEM, space // 8)), bounded(plan, share), bounded(items, share)
    )


def is_done(step: str) -> bool:
    """Whether a line of the plan says that it needs no more work."""
    return step.startswith("- [x]")


def with_boxes(items: list[str], text: str) -> list[str]:
    """The items, with those added that a person's checklist leaves open, less those it ticks."""
    for mark, words in _BOX.findall(text):
        item = words.strip()
        if mark == " " and item not in items:
            items = [*items, item]
        elif mark != " ":
            items = [each for each in items if each != item]
    return items


def bounded(items: Iterable[str], size_bytes: int) -> tuple[str, ...]:
    """The latest of them that fit, each on one line of bounded length."""
    kept: list[str] = []
    for item in reversed(list(items)):
        line = " ".join(item.split())
        line = line if len(line) <= LONGEST_ITEM else line[: LONGEST_ITEM - 1] + "…"
        size_bytes -= len(line.encode(errors="replace")) + 3
        if size_bytes < 0 and kept:
            break
        kept.append(line)
    return tuple(reversed(kept))


def shortened(text: str, size_bytes: int) -> str:
    """The text without its middle when it is longer than this."""
    encoded = text.encode(errors="replace")
    if len(encoded) <= size_bytes:
        return text
    half = max(16, (size_bytes - len(CUT) - 8) // 2)
    head, tail = encoded[:half].decode(errors="ignore"), encoded[-half:].decode(errors="ignore")
    return f"{head}{CUT.format(count=len(text) - len(head) - len(tail))}{tail}"


def _first_request(messages: Sequence[ChatMessage]) -> str:
    said = (message for message in messages if isinstance(message, UserMessage))
    first = next(said, None)
    return first.text if first is not None else ""
