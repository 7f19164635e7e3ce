"""A history as any provider accepts it: every call has its result, every id is unique."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from fermix.messages import AssistantMessage, ChatMessage, ToolCall, ToolMessage, UserMessage
from fermix.providers.apis.wire import Route
from fermix.providers.port import ModelRequest

_GOOD_ID = re.compile(r"[A-Za-z0-9_-]{1,40}")
_SHORT_ID = re.compile(r"[A-Za-z0-9]{9}")
_LOST_RESULT = "Interrupted: the outcome of this call is unknown."
_NONE: Mapping[str, bytes] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Picture:
    """An image as wires carry it."""

    media_type: str
    base64: str

    @property
    def url(self) -> str:
        return f"data:{self.media_type};base64,{self.base64}"


def user_text(message: UserMessage, images: Mapping[str, bytes] = _NONE, *, sees: bool = False) -> str:
    """The person's words, and beneath them what fermix tells the model about them.

    A picture that does not go with them is named, so that nobody describes what was never shown.
    """
    if not message.images:
        return f"{message.text}\n\n{message.note}" if message.note else message.text
    hidden = [image.path for image in message.images if not (sees and images.get(image.path))]
    lines = [f"[This picture is not shown to you: {path}]" for path in hidden]
    return "\n\n".join([message.text, *lines, *([message.note] if message.note else [])])


def pictures(message: UserMessage, images: Mapping[str, bytes], *, sees: bool) -> list[Picture]:
    """The message's images that are there, none for a model that does not see them."""
    found = ((image.media_type, images.get(image.path)) for image in message.images) if sees else ()
    return [Picture(kind, base64.b64encode(data).decode()) for kind, data in found if data]


def shown(message: UserMessage, request: ModelRequest, route: Route) -> tuple[list[Picture], str]:
    """What a model on this route is shown of a person's message: its pictures and its words."""
    sees = route.limits.sees_images
    found = pictures(message, request.images, sees=sees) if message.images else []
    return found, user_text(message, request.images, sees=sees)


def paired(
    messages: Sequence[ChatMessage], *, origin: str = "", has_short_ids: bool = False
) -> list[ChatMessage]:
    """The messages with each call answered right behind it, under an id used only once.

    A call without a result gets one that says so, a result without a call is left out, results
    come in the order of their calls. A reply's native form stays only where it came from `origin` and no
    id had to change. The same history always gives the same messages.
    """
    good_id = _SHORT_ID if has_short_ids else _GOOD_ID
    answered: list[ChatMessage] = []
    used: set[str] = set()
    at = 0
    while at < len(messages):
        message = messages[at]
        at += 1
        if isinstance(message, ToolMessage):
            continue
        if not isinstance(message, AssistantMessage) or not message.tool_calls:
            answered.append(_of_origin(message, origin))
            continue
        results: list[ToolMessage] = []
        while at < len(messages) and isinstance(follower := messages[at], ToolMessage):
            results.append(follower)
            at += 1
        calls = tuple(_renamed(call, used, good_id) for call in message.tool_calls)
        is_same = all(old.id == new.id for old, new in zip(message.tool_calls, calls, strict=True))
        native = message.native if is_same and _is_of(message, origin) else None
        answered.append(AssistantMessage(message.text, calls, message.reasoning, native))
        for old, new in zip(message.tool_calls, calls, strict=True):
            answered.append(_result(old, new.id, results))
    return answered


def _of_origin(message: ChatMessage, origin: str) -> ChatMessage:
    if not isinstance(message, AssistantMessage) or message.native is None or _is_of(message, origin):
        return message
    return AssistantMessage(message.text, message.tool_calls, message.reasoning)


def _is_of(message: AssistantMessage, origin: str) -> bool:
    return message.native is not None and message.native.origin == origin


def _renamed(call: ToolCall, used: set[str], good_id: re.Pattern[str]) -> ToolCall:
    id = call.id
    if id in used or not good_id.fullmatch(id):
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
