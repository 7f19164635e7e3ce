"""Ollama's own chat wire, on which the size of the window that is asked for is the one that is served.

Source: https://docs.ollama.com/api/chat (fields, `options.num_ctx`, `options.num_predict`, `think`,
`images` as base64, `tool_name` of results); https://docs.ollama.com/context-length (without `num_ctx` the
server takes its own window); https://github.com/ollama/ollama/pull/17944 (`truncate`, `shift`: whether
what does not fit is dropped instead of refused); read 2026-12-01.
"""

from __future__ import annotations

from typing import Any

import msgspec

from fermix.messages import AssistantMessage, ChatMessage, UserMessage
from fermix.providers.apis import failures
from fermix.providers.apis.history import paired, shown
from fermix.providers.apis.ollama_stream import OllamaStream
from fermix.providers.apis.tools import ToolNames, function_tools, names_of
from fermix.providers.apis.wire import Route, StreamDecoder, json_headers, longest_answer
from fermix.providers.port import ModelRequest
from fermix.secret import Secret


class OllamaChat:
    """Speaks with an Ollama; the base is its address without `/v1`."""

    path = "/api/chat"

    def headers(self, key: Secret | None) -> dict[str, str]:
        return json_headers(key, accept="application/x-ndjson")

    def encode(self, request: ModelRequest, route: Route) -> bytes:
        names = names_of(request.tools)
        # Too long a request is to be refused, so that it can be shortened with care: by itself the server
        # drops its beginning and says nothing. Older ones do not know the fields and do so still.
        body: dict[str, Any] = {"model": route.model, "stream": True, "truncate": False, "shift": False}
        options: dict[str, int] = {}
        if route.limits.window_tokens is not None:
            options["num_ctx"] = route.limits.window_tokens
        if (most := longest_answer(request, route)) is not None:
            options["num_predict"] = most
        if options:
            body["options"] = options
        if request.effort in route.limits.efforts:
            body["think"] = request.effort
        if request.tools:
            body["tools"] = function_tools(request.tools, names)
        messages: list[dict[str, Any]] = []
        if request.system:
            messages.append({"role": "system", "content": request.system})
        messages.extend(_message(each, request, route, names) for each in paired(request.messages))
        body["messages"] = messages
        return msgspec.json.encode(body)

    def decoder(self, request: ModelRequest, route: Route) -> StreamDecoder:
        names = names_of(request.tools)
        return OllamaStream(route.provider, names.ours)

    failure = staticmethod(failures.on_route)


API = OllamaChat()


def _message(message: ChatMessage, request: ModelRequest, route: Route, names: ToolNames) -> dict[str, Any]:
    if isinstance(message, UserMessage):
        seen, text = shown(message, request, route)
        said = {"role": "user", "content": text}
        return {**said, "images": [picture.base64 for picture in seen]} if seen else said
    if isinstance(message, AssistantMessage):
        said = {"role": "assistant", "content": message.text}
        if not message.tool_calls:
            return said
        # No ids on this wire: calls and results are told apart by their order alone.
        calls = [
            {
                "function": {
                    "name": names.on_wire(call.name),
                    "arguments": call.arguments,
                }
            }
            for call in message.tool_calls
        ]
        return {**said, "tool_calls": calls}
    name = names.on_wire(message.name)
    return {"role": "tool", "tool_name": name, "content": message.text}
