"""What a chat completions request asks of fermix, told from its wire form."""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import msgspec

from fermix.ids import ulid_of
from fermix.messages import AssistantMessage, ChatMessage, Pin, UserMessage, pin_of
from fermix.web.v1 import wire
from fermix.web.v1.failure import PartRefused

MOST_EARLIER = 200
"""Earlier messages that are taken over; older ones would not be read by the model anyway."""
SESSION_LENGTH = 64
SESSION_PREFIX = "v1-"
"""Conversations of requests that name none."""
NOT_TEXT = "[a file of an earlier message, not kept]"


@dataclass(frozen=True, slots=True)
class File:
    """A file that came inside the request."""

    name: str
    media_type: str
    body: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One request."""

    words: str
    files: tuple[File, ...]
    earlier: tuple[ChatMessage, ...]
    """What was said before, as the calling program tells it; empty when the session knows it."""
    session: str | None
    """The session to continue; None for a conversation of the request's own."""
    model: str
    """As the request names it."""
    pin: Pin | None
    """The model that is to answer; None leaves it to the settings."""
    is_stream: bool
    includes_usage: bool
    notice: str | None
    """What of the request is ignored; None when nothing is."""


def understand(request: wire.ChatRequest, *, session: str | None) -> Asked:
    """The request in our own values; `session` is the one its header names, None when none does.

    Raises: PartRefused with what was expected.
    """
    _check(request)
    named = _session(request, session)
    last = _last_of_person(request.messages)
    asked_by_program = "\n\n".join(_instructions(request.messages))
    words, files = _person_said(request.messages[last], last)
    if not words.strip() and not files:
        raise PartRefused(
            "invalid_value",
            "The last user message is empty; expected words or a file.",
            param=f"messages[{last}].content",
        )
    if asked_by_program:
        words = f"Instructions of the calling program:\n{asked_by_program}\n\nThe message:\n{words}"
    earlier = () if named else tuple(_earlier(request.messages[:last]))[-MOST_EARLIER:]
    return Asked(
        words=words,
        files=files,
        earlier=earlier,
        session=named,
        model=request.model,
        pin=pin_of(None if request.model == wire.MODEL else request.model, request.reasoning_effort),
        is_stream=bool(request.stream),
        includes_usage=bool(request.stream_options and request.stream_options.include_usage),
        notice=_notice(request, last, is_named=named is not None),
    )


def client_id(key: str, *, session: str | None) -> str:
    """The message's id for an Idempotency-Key: the same key in the same session, the same message."""
    return ulid_of(hashlib.sha256(f"{session or ''}\0{key}".encode()).digest())


def _check(request: wire.ChatRequest) -> None:
    """Refuse what cannot be given and whose absence would mislead."""
    if request.model != wire.MODEL and not all(request.model.partition("/")):
        raise PartRefused(
            "model_not_found",
            f"No model {request.model[:80]!r} here; expected {wire.MODEL!r} or 'PROVIDER/MODEL'.",
            param="model",
            status=404,
        )
    if (request.n or 1) > 1:
        raise PartRefused(
            "unsupported_value",
            f"n is {request.n}; fermix acts for its owner and so answers once: expected 1.",
            param="n",
        )
    if request.response_format is not None and request.response_format.type != "text":
        raise PartRefused(
            "unsupported_value",
            f"response_format {request.response_format.type[:40]!r} cannot be promised; expected 'text'.",
            param="response_format.type",
        )


def _session(request: wire.ChatRequest, header: str | None) -> str | None:
    """The session the request names; None when it names none."""
    told = request.metadata.session if request.metadata is not None else None
    if told is not None and header is not None and told != header:
        raise PartRefused(
            "invalid_value",
            f"The header names the session {header!r}, metadata.session {told[:64]!r}; expected one.",
            param="metadata.session",
            status=409,
        )
    return header if header is not None else told


def _last_of_person(messages: list[wire.Message]) -> int:
    for index in range(len(messages) - 1, -1, -1):
        if isinstance(messages[index], wire.PersonMessage):
            return index
    raise PartRefused(
        "invalid_value",
        "messages holds no message of the role 'user'; its last one is what is answered.",
        param="messages",
    )


def _instructions(messages: Iterable[wire.Message]) -> Iterator[str]:
    for message in messages:
        if isinstance(message, wire.SystemMessage | wire.DeveloperMessage):
            text = _text(message.content)
            if text.strip():
                yield text


def _earlier(messages: Iterable[wire.Message]) -> Iterator[ChatMessage]:
    for message in messages:
        if not isinstance(message, wire.PersonMessage | wire.ModelMessage):
            continue
        text = _text(message.content)
        if text.strip():
            yield UserMessage(text) if isinstance(message, wire.PersonMessage) else AssistantMessage(text)


def _text(content: str | Iterable[msgspec.Struct] | None) -> str:
    """The words of a message; its files only as a mark."""
    if content is None or isinstance(content, str):
        return content or ""
    return "\n".join(_part_text(part) for part in content)


def _part_text(part: msgspec.Struct) -> str:
    match part:
        case wire.TextPart(text=text):
            return text
        case wire.RefusalPart(refusal=text):
            return text
        case _:
            return NOT_TEXT


def _person_said(message: wire.Message, index: int) -> tuple[str, tuple[File, ...]]:
    """Words and files of the message that is answered."""
    content = message.content
    if content is None or isinstance(content, str):
        return content or "", ()
    words: list[str] = []
    files: list[File] = []
    for number, part in enumerate(content):
        place = f"messages[{index}].content[{number}]"
        match part:
            case wire.ImagePart(image_url=image):
                files.append(_file(image.url, None, place=f"{place}.image_url.url", number=len(files) + 1))
            case wire.FilePart(file=file):
                files.append(
                    _file(
                        file.file_data,
                        file.filename,
                        place=f"{place}.file.file_data",
                        number=len(files) + 1,
                    )
                )
            case _:
                words.append(_part_text(part))
    return "\n".join(words), tuple(files)


def _file(url: str, name: str | None, *, place: str, number: int) -> File:
    """The file in a data URL.

    Source: https://www.rfc-editor.org/rfc/rfc2397 (data:[type][;base64],data).
    """
    head, comma, data = url.partition(",")
    media_type, _, encoding = head.removeprefix("data:").rpartition(";")
    if not head.startswith("data:") or not comma or encoding != "base64":
        raise PartRefused(
            "unsupported_value",
            f"{place}: {url[:60]!r} cannot be taken; expected the file itself as data:TYPE;base64,DATA. "
            "fermix fetches no addresses for a caller.",
            param=place,
        )
    try:
        body = base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError) as error:
        raise PartRefused("invalid_value", f"{place}: not base64: {error}.", param=place) from error
    if not body:
        raise PartRefused("invalid_value", f"{place}: the file is empty.", param=place)
    plain = media_type.partition(";")[0].lower()
    kind, _, form = plain.partition("/")
    stem, ending = (re.sub(r"[^a-z0-9].*", "", text) for text in (kind, form))
    return File(
        name or f"{stem or 'file'}-{number}.{ending or 'bin'}", plain or "application/octet-stream", body
    )


def _notice(request: wire.ChatRequest, last: int, *, is_named: bool) -> str | None:
    """One line, plain ASCII: it also goes into a header."""
    said = []
    if ignored := [name for name in wire.IGNORED if getattr(request, name)]:
        said.append(f"Ignored: {', '.join(ignored)}; fermix acts with its own tools and limits.")
    others = [message for message in request.messages if not isinstance(message, _INSTRUCTING)]
    if is_named and len(others) > 1:
        said.append("The session keeps its own history; earlier messages of the request were ignored.")
    elif any(isinstance(message, wire.ToolResult | wire.FunctionResult) for message in others):
        said.append("Tool results of the calling program were ignored.")
    if any(not isinstance(message, _INSTRUCTING) for message in request.messages[last + 1 :]):
        said.append("Messages after the last one of the user were ignored.")
    return " ".join(said) or None


_INSTRUCTING = (wire.SystemMessage, wire.DeveloperMessage)
