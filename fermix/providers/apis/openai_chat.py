"""The OpenAI chat-completions wire: the request, its headers and what an error response means.

Source: https://platform.openai.com/docs/api-reference/chat/create (fields of the request).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from fermix.messages import AssistantMessage, ChatMessage, UserMessage
from fermix.providers.apis import failures
from fermix.providers.apis.history import paired, wire_name, wire_names
from fermix.providers.apis.openai_stream import OpenAiStream
from fermix.providers.apis.wire import Route, StreamDecoder
from fermix.providers.port import Failed, ModelRequest
from fermix.secret import Secret


class OpenAiChat:
    """Speaks chat completions with any server that has them."""

    path = "/chat/completions"

    def headers(self, key: Secret | None) -> dict[str, str]:
        headers = {"Content-Type": "application/json", "Accept": "text/event-stream"}
        if key is not None:
            headers["Authorization"] = f"Bearer {key.reveal()}"
        return headers

    def encode(self, request: ModelRequest, route: Route) -> bytes:
        names = wire_names([tool.name for tool in request.tools])
        body: dict[str, Any] = {"model": route.model, "stream": True}
        if route.quirks.usage_in_stream:
            body["stream_options"] = {"include_usage": True}
        if route.limits.max_output_tokens is not None:
            body[route.quirks.max_tokens_field] = route.limits.max_output_tokens
        if request.tools:
            body["tools"] = [
                {
                    "type": "function",
                    "function": {
                        "name": names[tool.name],
                        "description": tool.description,
                        "parameters": tool.parameters,
                    },
                }
                for tool in request.tools
            ]
        messages: list[dict[str, Any]] = []
        if request.system:
            messages.append({"role": "system", "content": request.system})
        messages.extend(_message(message, names) for message in paired(request.messages))
        body["messages"] = messages
        return msgspec.json.encode(body)

    def decoder(self, request: ModelRequest, route: Route) -> StreamDecoder:
        names = wire_names([tool.name for tool in request.tools])
        return OpenAiStream(route.provider, {wire: name for name, wire in names.items()})

    def failure(
        self, status: int, headers: Mapping[str, str], body: bytes, *, route: Route, now_ms: int
    ) -> Failed:
        return failures.from_response(status, headers, body, provider=route.provider, now_ms=now_ms)


API = OpenAiChat()


def _message(message: ChatMessage, names: Mapping[str, str]) -> dict[str, Any]:
    if isinstance(message, UserMessage):
        return {"role": "user", "content": message.text}
    if isinstance(message, AssistantMessage):
        if not message.tool_calls:
            return {"role": "assistant", "content": message.text}
        return {
            "role": "assistant",
            "content": message.text or None,
            # Left out above when empty: some servers refuse an empty list.
            "tool_calls": [
                {
                    "id": call.id,
                    "type": "function",
                    "function": {
                        "name": names.get(call.name) or wire_name(call.name),
                        "arguments": msgspec.json.encode(call.arguments).decode(),
                    },
                }
                for call in message.tool_calls
            ],
        }
    return {"role": "tool", "tool_call_id": message.call_id, "content": message.text}
