"""The OpenAI chat-completions wire: the request, its headers and what an error response means.

Source: https://platform.openai.com/docs/api-reference/chat/create (fields of the request, images as
`image_url` parts, `reasoning_effort`, `prompt_cache_key`); https://openrouter.ai/docs (`cache_control` on a
part, for models of Anthropic; `reasoning_details`, sent back as they came).
"""

from __future__ import annotations

from typing import Any

import msgspec

from fermix.messages import AssistantMessage, ChatMessage, UserMessage
from fermix.providers.apis import failures
from fermix.providers.apis.history import paired, shown
from fermix.providers.apis.openai_stream import OpenAiStream
from fermix.providers.apis.tools import ToolNames, function_tools, names_of
from fermix.providers.apis.wire import Route, StreamDecoder, json_headers, longest_answer
from fermix.providers.port import ModelRequest
from fermix.secret import Secret


class OpenAiChat:
    """Speaks chat completions with any server that has them."""

    path = "/chat/completions"

    def headers(self, key: Secret | None) -> dict[str, str]:
        return json_headers(key, accept="text/event-stream")

    def encode(self, request: ModelRequest, route: Route) -> bytes:
        names = names_of(request.tools)
        body: dict[str, Any] = {"model": route.model, "stream": True}
        if route.quirks.usage_in_stream:
            body["stream_options"] = {"include_usage": True}
        if (most := longest_answer(request, route)) is not None:
            body[route.quirks.max_tokens_field] = most
        if request.effort in route.limits.efforts:
            if route.quirks.nests_effort:
                body["reasoning"] = {"effort": request.effort}
            else:
                body["reasoning_effort"] = request.effort
        if route.quirks.takes_cache_key and request.conversation_id:
            body["prompt_cache_key"] = request.conversation_id
        if request.tools:
            body["tools"] = function_tools(request.tools, names)
        messages: list[dict[str, Any]] = []
        if request.system:
            messages.append({"role": "system", "content": request.system})
        history = paired(
            request.messages, origin=origin_of(route), has_short_ids=route.quirks.has_short_ids
        )
        messages.extend(_message(message, names, request, route) for message in history)
        if route.quirks.marks_cache:
            _mark(messages)
        body["messages"] = messages
        return msgspec.json.encode(body)

    def decoder(self, request: ModelRequest, route: Route) -> StreamDecoder:
        names = names_of(request.tools)
        return OpenAiStream(route.provider, names.ours, origin_of(route))

    failure = staticmethod(failures.on_route)


API = OpenAiChat()


def origin_of(route: Route) -> str:
    """Whose native replies may be sent on this route."""
    return f"openai_chat:{route.provider}"


def _message(message: ChatMessage, names: ToolNames, request: ModelRequest, route: Route) -> dict[str, Any]:
    if isinstance(message, UserMessage):
        return {"role": "user", "content": _content(message, request, route)}
    if isinstance(message, AssistantMessage):
        details = {"reasoning_details": message.native.items} if message.native else {}
        if not message.tool_calls:
            return {"role": "assistant", "content": message.text, **details}
        return {
            "role": "assistant",
            "content": message.text or None,
            **details,
            # Left out above when empty: some servers refuse an empty list.
            "tool_calls": [
                {
                    "id": call.id,
                    "type": "function",
                    "function": {
                        "name": names.on_wire(call.name),
                        "arguments": msgspec.json.encode(call.arguments).decode(),
                    },
                }
                for call in message.tool_calls
            ],
        }
    return {"role": "tool", "tool_call_id": message.call_id, "content": message.text}


def _content(message: UserMessage, request: ModelRequest, route: Route) -> str | list[dict[str, Any]]:
    seen, text = shown(message, request, route)
    if not seen:
        return text
    images = [{"type": "image_url", "image_url": {"url": picture.url}} for picture in seen]
    return [*images, {"type": "text", "text": text}]


def _mark(messages: list[dict[str, Any]]) -> None:
    """Mark the instructions and the last message as the ends of what may be cached."""
    for message in (messages[0], messages[-1]):
        content = message["content"]
        parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
        if parts:
            message["content"] = [*parts[:-1], {**parts[-1], "cache_control": {"type": "ephemeral"}}]
