"""Methods about sessions: the conversations of people at this machine."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

import msgspec

from fermix.conversations import ConversationSummary
from fermix.conversations.export import (
    conversation_facts,
    conversation_markdown,
    message_facts,
    message_markdown,
)
from fermix.daemon.desk import Desk
from fermix.daemon.methods.access import operators, persons
from fermix.ipc.server import Call, Method
from fermix.messages import UserMessage

LISTED_TEXT = 4_000
"""Characters of each message shown when a session is taken up again."""
LAST_POSITION = 1 << 53


class ListParams(msgspec.Struct):
    """`sessions.list`: those in use, or those put away."""

    limit: int = 50
    is_archived: bool = False


class NameParams(msgspec.Struct):
    """`sessions.get` and `sessions.delete`."""

    session: str


class TitleParams(msgspec.Struct):
    """`sessions.title`."""

    session: str
    title: str


class ArchiveParams(msgspec.Struct):
    """`sessions.archive`: put away, or taken back."""

    session: str
    is_archived: bool = True


class ExportParams(msgspec.Struct):
    """`sessions.export`: the messages behind a position, as JSON values or as one piece of Markdown."""

    session: str
    after_position: Annotated[int, msgspec.Meta(ge=0, le=LAST_POSITION)] = 0
    limit: int = 500
    format: Literal["json", "markdown"] = "json"


class HistoryParams(msgspec.Struct):
    """`sessions.messages`: the last messages of a session."""

    session: str
    limit: int = 20


class SessionMethods:
    """Answers them from the desk."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    def methods(self) -> dict[str, Method]:
        """Method name → what it takes and what answers it."""
        return {
            "sessions.list": operators(ListParams, self._list),
            "sessions.get": operators(NameParams, self._get),
            "sessions.messages": operators(HistoryParams, self._history),
            "sessions.title": operators(TitleParams, self._title),
            "sessions.archive": operators(ArchiveParams, self._archive),
            "sessions.export": operators(ExportParams, self._export),
            "sessions.delete": persons(NameParams, self._delete),
        }

    def _list(self, params: ListParams, call: Call) -> Mapping[str, object]:
        found = self._desk.sessions(params.limit, is_archived=params.is_archived)
        return {"sessions": [_line(summary) for summary in found]}

    def _get(self, params: NameParams, call: Call) -> Mapping[str, object]:
        return _line(self._desk.session(params.session))

    def _title(self, params: TitleParams, call: Call) -> Mapping[str, object]:
        return _line(self._desk.retitle(params.session, params.title))

    def _archive(self, params: ArchiveParams, call: Call) -> Mapping[str, object]:
        return _line(self._desk.archive(params.session, is_archived=params.is_archived))

    def _export(self, params: ExportParams, call: Call) -> Mapping[str, object]:
        page = self._desk.export(params.session, params.after_position, params.limit)
        conversation = page.summary.conversation
        told: dict[str, object] = {
            "conversation_id": conversation.id,
            "next_position": page.next_position,
            "message_count": page.summary.message_count,
        }
        if params.format == "json":
            return {
                **told,
                "head": conversation_facts(conversation),
                "messages": [message_facts(stored) for stored in page.messages],
            }
        return {
            **told,
            "head": conversation_markdown(conversation),
            "text": "".join(map(message_markdown, page.messages)),
        }

    def _delete(self, params: NameParams, call: Call) -> Mapping[str, object]:
        erased = self._desk.delete(params.session)
        return {"session": params.session, "messages": erased.messages, "files": erased.files}

    def _history(self, params: HistoryParams, call: Call) -> Mapping[str, object]:
        return {
            "messages": [
                {
                    "role": "user" if isinstance(stored.message, UserMessage) else "assistant",
                    "text": stored.message.text[:LISTED_TEXT],
                    "created_ms": stored.created_ms,
                }
                for stored in self._desk.messages(params.session, params.limit)
            ]
        }


def _line(summary: ConversationSummary) -> dict[str, object]:
    return {
        "session": summary.conversation.key.chat_id,
        "title": summary.conversation.title,
        "created_ms": summary.conversation.created_ms,
        "updated_ms": summary.conversation.updated_ms,
        "archived_ms": summary.conversation.archived_ms,
        "message_count": summary.message_count,
        "last_text": summary.last_text,
    }
