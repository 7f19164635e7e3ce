"""Anthropic's messages wire: the request, its headers and what an error response means.

Source: https://platform.claude.com/docs/en/api/messages (fields, `max_tokens` is required, text blocks must
not be blank, results of tools begin the user message behind their calls);
https://platform.claude.com/docs/en/build-with-claude/prompt-caching (at most four `cache_control` marks);
https://platform.claude.com/docs/en/build-with-claude/adaptive-thinking and /effort (`thinking`,
`output_config.effort`); https://platform.claude.com/docs/en/build-with-claude/preserved-thinking (a
thinking block is refused once anything before it has changed); read 2026-12-01.
"""

from __future__ import annotations

import hashlib
from typing import Any, Protocol

import msgspec

from fermix.messages import AssistantMessage, ChatMessage, ToolMessage, UserMessage
from fermix.providers.apis import failures
from fermix.providers.apis.anthropic_stream import AnthropicStream
from fermix.providers.apis.history import paired, shown
from fermix.providers.apis.tools import ToolNames, names_of
from fermix.providers.apis.wire import Route, StreamDecoder, longest_answer
from fermix.providers.port import ModelRequest
from fermix.secret import Secret

VERSION = "2023-06-01"
USUAL_OUTPUT_TOKENS = 8192
"""Asked for where the model's own limit is not known; every model of the last years gives as much."""
_MARK = {"cache_control": {"type": "ephemeral"}}


class AnthropicMessages:
    """Speaks messages with Anthropic and whoever copies it."""

    path = "/messages"

    def headers(self, key: Secret | None) -> dict[str, str]:
        headers = {
            "Content-Type": "application/json",
            "Accept": "text/event-stream",
            "anthropic-version": VERSION,
        }
        if key is not None:
            headers["x-api-key"] = key.reveal()
        return headers

    def encode(self, request: ModelRequest, route: Route) -> bytes:
        names = names_of(request.tools)
        tools = _tools(request, names)
        body: dict[str, Any] = {
            "model": route.model,
            "max_tokens": longest_answer(request, route) or USUAL_OUTPUT_TOKENS,
            "stream": True,
        }
        if request.effort in route.limits.efforts:
            body["thinking"] = {"type": "adaptive"}
            body["output_config"] = {"effort": request.effort}
        if tools:
            body["tools"] = [*tools[:-1], tools[-1] | _MARK]
        if request.system:
            body["system"] = [{"type": "text", "text": request.system, **_MARK}]
        has_native = any(
            isinstance(each, AssistantMessage) and each.native is not None for each in request.messages
        )
        told = _told(request, tools) if has_native else None
        body["messages"] = messages = _messages(request, route, names, told)
        if messages and messages[-1]["role"] == "user":
            last = messages[-1]["content"]
            last[-1] = last[-1] | _MARK
        return msgspec.json.encode(body)

    def decoder(self, request: ModelRequest, route: Route) -> StreamDecoder:
        names = names_of(request.tools)

        def asked() -> str:
            told = _told(request, _tools(request, names))
            _messages(request, route, names, told)
            return _mark(told)

        return AnthropicStream(route.provider, names.ours, origin_of(route), asked)

    failure = staticmethod(failures.on_route)


API = AnthropicMessages()


def origin_of(route: Route) -> str:
    """Whose thinking blocks may be sent on this route."""
    return f"anthropic_messages:{route.provider}"


class _Hash(Protocol):
    def update(self, data: bytes, /) -> None: ...

    def hexdigest(self) -> str: ...


def _told(request: ModelRequest, tools: list[dict[str, Any]]) -> _Hash:
    """Of what stands before the messages; `_messages` goes on with it."""
    return hashlib.sha256(msgspec.json.encode([request.system, tools]))


def _mark(told: _Hash) -> str:
    return told.hexdigest()[:32]


def _tools(request: ModelRequest, names: ToolNames) -> list[dict[str, Any]]:
    return [
        {"name": names.on_wire(tool.name), "description": tool.description, "input_schema": tool.parameters}
        for tool in request.tools
    ]


def _messages(
    request: ModelRequest, route: Route, names: ToolNames, told: _Hash | None
) -> list[dict[str, Any]]:
    """The history as turns that alternate.

    Thinking goes back only where `told` shows that all before it is as it was; summaries, shortened
    results and new instructions change that. None when there is no thinking to send back.
    """
    messages: list[dict[str, Any]] = []
    for message in paired(request.messages, origin=origin_of(route)):
        role = "assistant" if isinstance(message, AssistantMessage) else "user"
        blocks = _blocks(message, request, route, names, told)
        if not blocks:
            continue
        if told is not None:
            told.update(msgspec.json.encode([role, blocks]))
        if messages and messages[-1]["role"] == role:
            messages[-1]["content"] += blocks
        else:
            messages.append({"role": role, "content": blocks})
    return messages


def _blocks(
    message: ChatMessage, request: ModelRequest, route: Route, names: ToolNames, told: _Hash | None
) -> list[dict[str, Any]]:
    if isinstance(message, UserMessage):
        seen, text = shown(message, request, route)
        images = [
            {
                "type": "image",
                "source": {"type": "base64", "media_type": each.media_type, "data": each.base64},
            }
            for each in seen
        ]
        return [*images, *_text(text)]
    if isinstance(message, ToolMessage):
        result = {"type": "tool_result", "tool_use_id": message.call_id, "content": message.text}
        return [{**result, "is_error": True} if message.is_error else result]
    native = message.native
    if native is not None and (told is None or native.asked in ("", _mark(told))):
        return list(native.items)
    calls = [
        {
            "type": "tool_use",
            "id": call.id,
            "name": names.on_wire(call.name),
            "input": call.arguments,
        }
        for call in message.tool_calls
    ]
    return [*_text(message.text), *calls]


def _text(text: str) -> list[dict[str, Any]]:
    return [{"type": "text", "text": text}] if text.strip() else []
