"""`/sessions`: the conversations of people at this machine, the same as on the command line."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal

import msgspec

from fermix.conversations import ConversationSummary, ExportPage
from fermix.conversations.export import (
    conversation_facts,
    conversation_markdown,
    message_facts,
    message_markdown,
)
from fermix.errors import FermixError, UsageError
from fermix.messages import UserMessage
from fermix.web.routes import JSON, Call, Route, Stream
from fermix.web.schema import Title
from fermix.web.turns import Cancelled

PAGE_MESSAGES = 500
MARKDOWN = "text/markdown; charset=utf-8"


class Session(msgspec.Struct):
    """One session."""

    session: str
    title: str
    created_ms: int
    updated_ms: int
    archived_ms: int | None
    """When it was put away; null while it is in use."""
    message_count: int
    last_text: str
    """The beginning of what was said last."""


class Sessions(msgspec.Struct):
    """The last used first."""

    sessions: list[Session]


class SessionMessage(msgspec.Struct):
    """What somebody said."""

    role: str
    """`user` or `assistant`."""
    text: str
    created_ms: int


class Messages(msgspec.Struct):
    """Oldest first."""

    messages: list[SessionMessage]


class Change(msgspec.Struct, forbid_unknown_fields=True):
    """What becomes different; what is left out stays."""

    title: Title | msgspec.UnsetType = msgspec.UNSET
    archived: bool | msgspec.UnsetType = msgspec.UNSET


class Deleted(msgspec.Struct):
    """What is gone for good."""

    session: str
    messages: int
    files: int


class ListQuery(msgspec.Struct, forbid_unknown_fields=True):
    """Parameters of a list of sessions."""

    limit: Annotated[int, msgspec.Meta(ge=1, le=1000)] = 50
    archived: bool = False
    """Those put away instead of those in use."""


class MessagesQuery(msgspec.Struct, forbid_unknown_fields=True):
    """Parameters of a session's messages."""

    limit: Annotated[int, msgspec.Meta(ge=1, le=200)] = 50


class ExportQuery(msgspec.Struct, forbid_unknown_fields=True):
    """Parameters of an export."""

    format: Literal["json", "markdown"] = "json"


def _list(call: Call) -> object:
    found = call.desk().sessions(call.query.limit, is_archived=call.query.archived)
    return Sessions([_session(each) for each in found])


def _show(call: Call) -> object:
    return _session(call.desk().session(call.path["name"]))


def _messages(call: Call) -> object:
    name = call.path["name"]
    call.desk().session(name)  # an unknown name is told from a session nobody has spoken in
    return Messages(
        [
            SessionMessage(
                "user" if isinstance(each.message, UserMessage) else "assistant",
                each.message.text,
                each.created_ms,
            )
            for each in call.desk().messages(name, call.query.limit)
        ]
    )


def _change(call: Call) -> object:
    desk, name, change = call.desk(), call.path["name"], call.body
    if change.title is msgspec.UNSET and change.archived is msgspec.UNSET:
        raise UsageError("Nothing to change; expected title, archived or both.")
    session = desk.session(name)
    if change.title is not msgspec.UNSET:
        session = desk.retitle(name, change.title)
    if change.archived is not msgspec.UNSET:
        session = desk.archive(name, is_archived=change.archived)
    return _session(session)


def _export(call: Call) -> object:
    first = call.desk().export(call.path["name"], 0, PAGE_MESSAGES)
    if call.query.format == "markdown":
        return Stream(_markdown(call, first), media_type=MARKDOWN)
    return Stream(_json(call, first), media_type=JSON)


def _delete(call: Call) -> object:
    name = call.path["name"]
    erased = call.desk().delete(name)
    return Deleted(name, erased.messages, erased.files)


def _cancel(call: Call) -> object:
    return Cancelled(call.desk().cancel_session(call.path["name"]))


def _session(summary: ConversationSummary) -> Session:
    conversation = summary.conversation
    return Session(
        session=conversation.key.chat_id,
        title=conversation.title,
        created_ms=conversation.created_ms,
        updated_ms=conversation.updated_ms,
        archived_ms=conversation.archived_ms,
        message_count=summary.message_count,
        last_text=summary.last_text,
    )


def _pages(call: Call, first: ExportPage) -> Iterator[ExportPage]:
    """Every page. Raises: ConnectionAbortedError when the session was deleted meanwhile, or the token taken
    back: what was sent so far must not look whole."""
    page, name = first, call.path["name"]
    while True:
        if page.summary.conversation.id != first.summary.conversation.id:
            raise ConnectionAbortedError(f"the session {name!r} was deleted while it was exported")
        yield page
        if page.next_position is None:
            return
        try:
            call.check()
            page = call.desk().export(name, page.next_position, PAGE_MESSAGES)
        except FermixError as error:
            raise ConnectionAbortedError(error.message) from error


def _markdown(call: Call, first: ExportPage) -> Iterator[bytes]:
    yield conversation_markdown(first.summary.conversation).encode()
    for page in _pages(call, first):
        yield "".join(map(message_markdown, page.messages)).encode()


def _json(call: Call, first: ExportPage) -> Iterator[bytes]:
    head = msgspec.json.encode(conversation_facts(first.summary.conversation))
    yield head[:-1] + b',"messages":['
    between = b""
    for page in _pages(call, first):
        told = [msgspec.json.encode(message_facts(stored)) for stored in page.messages]
        if told:
            yield between + b",".join(told)
            between = b","
    yield b"]}"


ROUTES = (
    Route(
        method="GET",
        path="/sessions",
        summary="The sessions in use, or those put away, the last used first.",
        answer=_list,
        query=ListQuery,
        response=Sessions,
        errors=(400, 503),
        tag="sessions",
    ),
    Route(
        method="GET",
        path="/sessions/{name}",
        summary="One session.",
        answer=_show,
        response=Session,
        errors=(400, 404, 503),
        tag="sessions",
    ),
    Route(
        method="PATCH",
        path="/sessions/{name}",
        summary="Give a session a title, put it away or take it back.",
        answer=_change,
        request=Change,
        response=Session,
        errors=(400, 404, 408, 411, 413, 415, 503),
        tag="sessions",
    ),
    Route(
        method="DELETE",
        path="/sessions/{name}",
        summary="Delete a session for good, with every word and file in it.",
        answer=_delete,
        response=Deleted,
        errors=(400, 404, 409, 503),
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
        method="GET",
        path="/sessions/{name}/export",
        summary="Everything in a session, tool calls and results too, as JSON or Markdown.",
        answer=_export,
        query=ExportQuery,
        media_types=(JSON, "text/markdown"),
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
