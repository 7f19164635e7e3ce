"""OpenAI's responses wire: the request, its headers and what an error response means.

Nothing is kept at the vendor (`store: false`), so reasoning comes back encrypted and is sent again with
the items it belongs to, in their order.

Source: https://platform.openai.com/docs/api-reference/responses/create (fields);
https://platform.openai.com/docs/guides/reasoning (`reasoning.encrypted_content`, items are kept together);
https://platform.openai.com/docs/guides/prompt-caching (`prompt_cache_key`); read 2026-12-01.
"""

from __future__ import annotations

from typing import Any

import msgspec

from fermix.messages import AssistantMessage, ChatMessage, UserMessage
from fermix.providers.apis import failures
from fermix.providers.apis.history import paired, shown
from fermix.providers.apis.responses_stream import ResponsesStream
from fermix.providers.apis.tools import ToolNames, names_of
from fermix.providers.apis.wire import Route, StreamDecoder, json_headers, longest_answer
from fermix.providers.port import ModelRequest
from fermix.secret import Secret


class OpenAiResponses:
    """Speaks responses with OpenAI and whoever copies it."""

    path = "/responses"

    def headers(self, key: Secret | None) -> dict[str, str]:
        return json_headers(key, accept="text/event-stream")

    def encode(self, request: ModelRequest, route: Route) -> bytes:
        names = names_of(request.tools)
        body: dict[str, Any] = {"model": route.model, "stream": True, "store": False}
        if request.system:
            body["instructions"] = request.system
        if (most := longest_answer(request, route)) is not None and route.quirks.takes_output_limit:
            body["max_output_tokens"] = most
        if route.limits.efforts:
            # Asked for only of models that reason: others refuse the question.
            body["include"] = ["reasoning.encrypted_content"]
            body["reasoning"] = {"summary": "auto"}
            if request.effort in route.limits.efforts:
                body["reasoning"]["effort"] = request.effort
        if route.quirks.takes_cache_key and request.conversation_id:
            body["prompt_cache_key"] = request.conversation_id
        if request.tools:
            body["tools"] = [
                {
                    "type": "function",
                    "name": names.on_wire(tool.name),
                    "description": tool.description,
                    "parameters": tool.parameters,
                    "strict": False,
                }
                for tool in request.tools
            ]
        history = paired(request.messages, origin=origin_of(route))
        body["input"] = [item for each in history for item in _items(each, request, route, names)]
        return msgspec.json.encode(body)

    def decoder(self, request: ModelRequest, route: Route) -> StreamDecoder:
        names = names_of(request.tools)
        return ResponsesStream(route.provider, names.ours, origin_of(route))

    failure = staticmethod(failures.on_route)


API = OpenAiResponses()


def origin_of(route: Route) -> str:
    """Whose reasoning items may be sent on this route."""
    return f"openai_responses:{route.provider}"


def _items(
    message: ChatMessage, request: ModelRequest, route: Route, names: ToolNames
) -> list[dict[str, Any]]:
    if isinstance(message, UserMessage):
        seen, text = shown(message, request, route)
        parts: list[dict[str, Any]] = [{"type": "input_image", "image_url": each.url} for each in seen]
        parts.append({"type": "input_text", "text": text})
        return [{"type": "message", "role": "user", "content": parts}]
    if not isinstance(message, AssistantMessage):
        return [{"type": "function_call_output", "call_id": message.call_id, "output": message.text}]
    if message.native is not None:
        return list(message.native.items)
    items: list[dict[str, Any]] = []
    if message.text:
        said = [{"type": "output_text", "text": message.text}]
        items.append({"type": "message", "role": "assistant", "content": said})
    items += [
        {
            "type": "function_call",
            "call_id": call.id,
            "name": names.on_wire(call.name),
            "arguments": msgspec.json.encode(call.arguments).decode(),
        }
        for call in message.tool_calls
    ]
    return items
