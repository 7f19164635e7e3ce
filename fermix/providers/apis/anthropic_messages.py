"""Anthropic's messages wire: the request, its headers and what an error response means.

Source: https://platform.claude.com/docs/en/api/messages (fields, `max_tokens` is required, text blocks must
not be blank, results of tools begin the user message behind their calls);
https://platform.claude.com/docs/en/build-with-claude/prompt-caching (at most four `cache_control` marks);
https://platform.claude.com/docs/en/build-with-claude/adaptive-thinking and /effort (`thinking`,
`output_config.effort`); read 2026-12-01.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from fermix.messages import AssistantMessage, ChatMessage, ToolMessage, UserMessage
from fermix.providers.apis import failures
from fermix.providers.apis.anthropic_stream import AnthropicStream
from fermix.providers.apis.history import paired, pictures, user_text, wire_name, wire_names
from fermix.providers.apis.wire import Route, StreamDecoder, longest_answer
from fermix.providers.port import Failed, ModelRequest
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
        names = wire_names([tool.name for tool in request.tools])
        body: dict[str, Any] = {
            "model": route.model,
            "max_tokens": longest_answer(request, route) or USUAL_OUTPUT_TOKENS,
            "stream": True,
        }
        if request.effort in route.limits.efforts:
            body["thinking"] = {"type": "adaptive"}
            body["output_config"] = {"effort": request.effort}
        if request.tools:
            body["tools"] = [
                {
                    "name": names[tool.name],
                    "description": tool.description,
                    "input_schema": tool.parameters,
                }
                for tool in request.tools
            ]
            body["tools"][-1] |= _MARK
        if request.system:
            body["system"] = [{"type": "text", "text": request.system, **_MARK}]
        body["messages"] = _messages(request, route, names)
        return msgspec.json.encode(body)

    def decoder(self, request: ModelRequest, route: Route) -> StreamDecoder:
        names = wire_names([tool.name for tool in request.tools])
        return AnthropicStream(
            route.provider, {wire: name for name, wire in names.items()}, origin_of(route)
        )

    def failure(
        self, status: int, headers: Mapping[str, str], body: bytes, *, route: Route, now_ms: int
    ) -> Failed:
        return failures.from_response(status, headers, body, provider=route.provider, now_ms=now_ms)


API = AnthropicMessages()


def origin_of(route: Route) -> str:
    """Whose thinking blocks may be sent on this route."""
    return f"anthropic_messages:{route.provider}"


def _messages(request: ModelRequest, route: Route, names: Mapping[str, str]) -> list[dict[str, Any]]:
    """The history as turns that alternate, the last block marked as the end of what may be cached."""
    messages: list[dict[str, Any]] = []
    for message in paired(request.messages, origin=origin_of(route)):
        role = "assistant" if isinstance(message, AssistantMessage) else "user"
        blocks = _blocks(message, request, route, names)
        if not blocks:
            continue
        if messages and messages[-1]["role"] == role:
            messages[-1]["content"] += blocks
        else:
            messages.append({"role": role, "content": blocks})
    if messages and messages[-1]["role"] == "user":
        last = messages[-1]["content"]
        last[-1] = {**last[-1], **_MARK}
    return messages


def _blocks(
    message: ChatMessage, request: ModelRequest, route: Route, names: Mapping[str, str]
) -> list[dict[str, Any]]:
    if isinstance(message, UserMessage):
        shown = pictures(message, request.images, sees=route.limits.sees_images)
        images = [
            {
                "type": "image",
                "source": {"type": "base64", "media_type": each.media_type, "data": each.base64},
            }
            for each in shown
        ]
        return [*images, *_text(user_text(message, request.images, sees=route.limits.sees_images))]
    if isinstance(message, ToolMessage):
        result = {"type": "tool_result", "tool_use_id": message.call_id, "content": message.text}
        return [{**result, "is_error": True} if message.is_error else result]
    if message.native is not None:
        return list(message.native.items)
    calls = [
        {
            "type": "tool_use",
            "id": call.id,
            "name": names.get(call.name) or wire_name(call.name),
            "input": call.arguments,
        }
        for call in message.tool_calls
    ]
    return [*_text(message.text), *calls]


def _text(text: str) -> list[dict[str, Any]]:
    return [{"type": "text", "text": text}] if text.strip() else []
