"""Methods about sessions: the conversations of people at this machine."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from fermix.daemon.desk import Desk
from fermix.daemon.methods.access import operators
from fermix.ipc.server import Call, Method
from fermix.messages import UserMessage

LISTED_TEXT = 4_000
"""Characters of each message shown when a session is taken up again."""
LAST_TEXT = 200
"""Characters of the last message in a list of sessions."""


class ListParams(msgspec.Struct):
    """`sessions.list`."""

    limit: int = 50


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
            "sessions.messages": operators(HistoryParams, self._history),
        }

    def _list(self, params: ListParams, call: Call) -> Mapping[str, object]:
        return {
            "sessions": [
                {
                    "session": summary.conversation.key.chat_id,
                    "title": summary.conversation.title,
                    "updated_ms": summary.conversation.updated_ms,
                    "message_count": summary.message_count,
                    "last_text": (summary.last_text or "")[:LAST_TEXT],
                }
                for summary in self._desk.sessions(params.limit)
            ]
        }

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
