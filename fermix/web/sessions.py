"""`/sessions`: the conversations of people at this machine, the same as on the command line."""

from __future__ import annotations

from typing import Annotated

import msgspec

from fermix.messages import UserMessage
from fermix.web.routes import Call, Route
from fermix.web.turns import Cancelled

LAST_TEXT = 200


class SessionSummary(msgspec.Struct):
    """One session in a list."""

    session: str
    title: str
    created_ms: int
    updated_ms: int
    message_count: int
    last_text: str


class Sessions(msgspec.Struct):
    """The last used first."""

    sessions: list[SessionSummary]


class SessionMessage(msgspec.Struct):
    """What somebody said."""

    role: str
    text: str
    created_ms: int


class Messages(msgspec.Struct):
    """Oldest first."""

    messages: list[SessionMessage]


class ListQuery(msgspec.Struct, forbid_unknown_fields=True):
    """Parameters of a list of sessions."""

    limit: Annotated[int, msgspec.Meta(ge=1, le=1000)] = 50


class MessagesQuery(msgspec.Struct, forbid_unknown_fields=True):
    """Parameters of a session's messages."""

    limit: Annotated[int, msgspec.Meta(ge=1, le=200)] = 50


def _list(call: Call) -> object:
    return Sessions(
        [
            SessionSummary(
                each.conversation.key.chat_id,
                each.conversation.title,
                each.conversation.created_ms,
                each.conversation.updated_ms,
                each.message_count,
                (each.last_text or "")[:LAST_TEXT],
            )
            for each in call.desk().sessions(call.query.limit)
        ]
    )


def _messages(call: Call) -> object:
    return Messages(
        [
            SessionMessage(
                "user" if isinstance(each.message, UserMessage) else "assistant",
                each.message.text,
                each.created_ms,
            )
            for each in call.desk().messages(call.path["name"], call.query.limit)
        ]
    )


def _cancel(call: Call) -> object:
    return Cancelled(call.desk().cancel_session(call.path["name"]))


ROUTES = (
    Route(
        method="GET",
        path="/sessions",
        summary="The sessions in use, the last used first.",
        answer=_list,
        query=ListQuery,
        response=Sessions,
        errors=(400, 503),
        tag="sessions",
    ),
    Route(
        method="GET",
        path="/sessions/{name}/messages",
        summary="What was said last in a session, oldest first.",
        answer=_messages,
        query=MessagesQuery,
        response=Messages,
        errors=(400, 404, 503),
        tag="sessions",
    ),
    Route(
        method="POST",
        path="/sessions/{name}/cancel",
        summary="Stop what runs in a session.",
        answer=_cancel,
        response=Cancelled,
        errors=(400, 503),
        tag="sessions",
    ),
)
