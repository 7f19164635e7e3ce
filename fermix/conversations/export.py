"""A conversation written out whole, as JSON or as Markdown, page by page."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

from fermix.conversations.records import Conversation, ConversationSummary, StoredMessage
from fermix.messages import AssistantMessage, ToolMessage, UserMessage

PAGE_CHARS = 512 * 1024
"""Size of a page, about; far below a frame of the control socket also where every sign is escaped."""
LONGEST_CHARS = 256 * 1024
"""Longest text of one message in an export: a page of one message fits a frame, whatever it says."""

_FENCE = re.compile(r"^ {0,3}(`{3,})", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportPage:
    """Some messages of a conversation, in order."""

    summary: ConversationSummary
    messages: list[StoredMessage]
    next_position: int | None
    """Where the next page begins (`after_position`); None when this is the last one."""


def conversation_facts(conversation: Conversation) -> dict[str, object]:
    """What a JSON export says of the conversation itself."""
    return {
        "session": conversation.key.chat_id,
        "title": conversation.title,
        "created_ms": conversation.created_ms,
        "updated_ms": conversation.updated_ms,
        "archived_ms": conversation.archived_ms,
    }


def message_facts(stored: StoredMessage) -> dict[str, object]:
    """One message with everything that was said, thought, called and returned."""
    message = stored.message
    facts: dict[str, object] = {
        "position": stored.position,
        "turn_id": stored.turn_id,
        "created_ms": stored.created_ms,
    }
    if isinstance(message, UserMessage):
        return {**facts, "role": "user", "text": _cut(message.text)}
    if isinstance(message, ToolMessage):
        return {
            **facts,
            "role": "tool",
            "text": _cut(message.text),
            "call_id": message.call_id,
            "name": message.name,
            "is_error": message.is_error,
        }
    calls: list[dict[str, object]] = [
        {"id": call.id, "name": call.name, "arguments": call.arguments} for call in message.tool_calls
    ]
    said = {"role": "assistant", "text": _cut(message.text), "reasoning": _cut(message.reasoning)}
    if len(json.dumps(calls)) > LONGEST_CHARS:
        calls = [
            {"id": call.id, "name": call.name, "arguments": {}, "is_cut": True}
            for call in message.tool_calls
        ]
    return {**facts, **said, "tool_calls": calls}


def conversation_markdown(conversation: Conversation) -> str:
    """The head of a Markdown export."""
    title = " ".join(conversation.title.split()) or conversation.key.chat_id
    return f"# {title}\n\nSession `{conversation.key.chat_id}`, begun {_moment(conversation.created_ms)}.\n"


def message_markdown(stored: StoredMessage) -> str:
    """One message under a heading of its own; what tools got and gave stands in code blocks."""
    return "\n".join(_lines(stored)) + "\n"


def _lines(stored: StoredMessage) -> Iterator[str]:
    message, when = stored.message, _moment(stored.created_ms)
    if isinstance(message, UserMessage):
        yield from ("", f"## You, {when}", "", _cut(message.text))
    elif isinstance(message, AssistantMessage):
        yield from ("", f"## fermix, {when}", "")
        if message.text:
            yield _cut(message.text)
        for call in message.tool_calls:
            arguments = json.dumps(call.arguments, ensure_ascii=False, indent=2)
            yield from ("", f"Calls `{call.name}`:", "", _fenced(_cut(arguments), "json"))
    else:
        failed = " (failed)" if message.is_error else ""
        yield from ("", f"### Result of `{message.name}`{failed}", "", _fenced(_cut(message.text), ""))


def _fenced(text: str, language: str) -> str:
    """A code block that no fence inside the text can end."""
    longest = max((len(found) for found in _FENCE.findall(text)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}{language}\n{text}\n{fence}"


def _cut(text: str) -> str:
    if len(text) <= LONGEST_CHARS:
        return text
    return f"{text[:LONGEST_CHARS]}… ({len(text) - LONGEST_CHARS} characters more)"


def _moment(milliseconds: int) -> str:
    return datetime.fromtimestamp(milliseconds / 1000, UTC).strftime("%Y-%m-%d %H:%M UTC")
