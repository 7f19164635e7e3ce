"""The scripted model's other tongues: one STEP told on each wire, and what was asked on it.

Chat completions stand in `model_script`; here are responses, messages and Ollama's chat.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

Counts = dict[str, Any]
"""As chat completions have them: `prompt_tokens`, `completion_tokens`, `prompt_tokens_details`."""


def wire_of(path: str) -> str | None:
    """Which wire a request to this path speaks; None when it is no question to a model."""
    endings = {
        "/chat/completions": "openai_chat",
        "/responses": "openai_responses",
        "/messages": "anthropic_messages",
        "/api/chat": "ollama_chat",
    }
    return next((wire for ending, wire in endings.items() if path.partition("?")[0].endswith(ending)), None)


def content_type(wire: str) -> str:
    """Of a streamed answer."""
    return "application/x-ndjson" if wire == "ollama_chat" else "text/event-stream"


def as_chat(wire: str, request: dict[str, Any]) -> dict[str, Any]:
    """The request's model and messages in the shape of chat completions."""
    if wire == "openai_responses":
        return {"model": request.get("model"), "messages": _responses_messages(request.get("input") or [])}
    if wire == "anthropic_messages":
        return {"model": request.get("model"), "messages": _anthropic_messages(request["messages"])}
    return request


def refused(wire: str, error: Any) -> Any:
    """An error's body in the wire's own shape."""
    if wire == "ollama_chat":
        return {"error": error.get("message", "") if isinstance(error, dict) else error}
    if wire == "anthropic_messages" and isinstance(error, dict):
        return {"type": "error", "error": {"type": error.get("type") or "api_error", **error}}
    return {"error": error}


def told(
    wire: str, *, pieces: Sequence[str], thinking: str, calls: Sequence[Any], counts: Counts, reason: str
) -> list[bytes]:
    """The stream's pieces; `calls` are (id, name, arguments as JSON), `reason` as in chat completions."""
    tell = {
        "openai_responses": _tell_responses,
        "anthropic_messages": _tell_anthropic,
        "ollama_chat": _tell_ollama,
    }[wire]
    return tell(pieces, thinking, calls, counts, reason)


def text_of(content: Any) -> str:
    """The words of a message, whether they stand alone or among other parts."""
    if isinstance(content, str):
        return content
    parts = [part for part in content or () if isinstance(part, dict)]
    return "".join(str(part.get("text") or "") for part in parts)


def _responses_messages(items: Any) -> list[dict[str, Any]]:
    """Items of one reply stand side by side; results of tools stand between replies."""
    if isinstance(items, str):
        return [{"role": "user", "content": items}]
    messages: list[dict[str, Any]] = []
    for item in items:
        if item.get("role") == "user":
            messages.append({"role": "user", "content": text_of(item.get("content"))})
        elif item.get("type") == "function_call_output":
            messages.append({"role": "tool", "content": str(item.get("output"))})
        elif not messages or messages[-1]["role"] != "assistant":
            messages.append({"role": "assistant", "content": text_of(item.get("content"))})
    return messages


def _anthropic_messages(given: list[dict[str, Any]]) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = []
    for message in given:
        content = message["content"]
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        results = [block for block in blocks if block.get("type") == "tool_result"]
        messages += [{"role": "tool", "content": text_of(block.get("content"))} for block in results]
        if len(results) < len(blocks):
            messages.append({"role": message["role"], "content": text_of(blocks)})
    return messages


def _event(name: str, **value: Any) -> bytes:
    return f"event: {name}\ndata: ".encode() + msgspec.json.encode({"type": name, **value}) + b"\n\n"


def _tell_responses(
    pieces: Sequence[str], thinking: str, calls: Sequence[Any], counts: Counts, reason: str
) -> list[bytes]:
    items: list[dict[str, Any]] = []
    sent = [_event("response.created", response={"id": "resp_1", "status": "in_progress"})]
    if thinking:
        summary = [{"type": "summary_text", "text": thinking}]
        items.append(
            {"type": "reasoning", "id": "rs_1", "summary": summary, "encrypted_content": "c2VhbGVk"}
        )
        sent.append(_event("response.reasoning_summary_text.delta", output_index=0, delta=thinking))
        sent.append(_event("response.output_item.done", output_index=0, item=items[0]))
    if pieces:
        index = len(items)
        sent += [_event("response.output_text.delta", output_index=index, delta=piece) for piece in pieces]
        said = [{"type": "output_text", "text": "".join(pieces), "annotations": []}]
        items.append({"type": "message", "id": "msg_1", "role": "assistant", "content": said})
        sent.append(_event("response.output_item.done", output_index=index, item=items[index]))
    for id, name, arguments in calls:
        index = len(items)
        call = {"type": "function_call", "id": f"fc_{index}", "call_id": id, "name": name}
        sent.append(
            _event("response.output_item.added", output_index=index, item={**call, "arguments": ""})
        )
        half = len(arguments) // 2
        sent += [
            _event("response.function_call_arguments.delta", output_index=index, delta=part)
            for part in (arguments[:half], arguments[half:])
        ]
        items.append({**call, "arguments": arguments})
        sent.append(_event("response.output_item.done", output_index=index, item=items[index]))
    status = "incomplete" if reason == "length" else "completed"
    why = {"incomplete_details": {"reason": "max_output_tokens"}} if reason == "length" else {}
    used = {
        "input_tokens": counts.get("prompt_tokens", 0),
        "output_tokens": counts.get("completion_tokens", 0),
        "input_tokens_details": counts.get("prompt_tokens_details") or {},
        "output_tokens_details": counts.get("completion_tokens_details") or {},
    }
    last = {"id": "resp_1", "status": status, "output": items, "usage": used, **why}
    return [*sent, _event(f"response.{status}", response=last)]


def _tell_anthropic(
    pieces: Sequence[str], thinking: str, calls: Sequence[Any], counts: Counts, reason: str
) -> list[bytes]:
    details = counts.get("prompt_tokens_details") or {}
    cached, written = details.get("cached_tokens", 0), details.get("cache_write_tokens", 0)
    used = {
        "input_tokens": counts.get("prompt_tokens", 0) - cached - written,
        "cache_read_input_tokens": cached,
        "cache_creation_input_tokens": written,
        "output_tokens": 1,
    }
    sent = [
        _event("message_start", message={"id": "msg_1", "role": "assistant", "content": [], "usage": used})
    ]
    sent.append(_event("ping"))
    blocks: list[tuple[dict[str, Any], list[dict[str, Any]]]] = []
    if thinking:
        deltas = [
            {"type": "thinking_delta", "thinking": thinking},
            {"type": "signature_delta", "signature": "c2lnbmVk"},
        ]
        blocks.append(({"type": "thinking", "thinking": "", "signature": ""}, deltas))
    if pieces:
        blocks.append(
            ({"type": "text", "text": ""}, [{"type": "text_delta", "text": piece} for piece in pieces])
        )
    for id, name, arguments in calls:
        half = len(arguments) // 2
        parts = [
            {"type": "input_json_delta", "partial_json": part}
            for part in (arguments[:half], arguments[half:])
        ]
        blocks.append(({"type": "tool_use", "id": id, "name": name, "input": {}}, parts))
    for index, (block, deltas) in enumerate(blocks):
        sent.append(_event("content_block_start", index=index, content_block=block))
        sent += [_event("content_block_delta", index=index, delta=delta) for delta in deltas]
        sent.append(_event("content_block_stop", index=index))
    why = {"stop": "end_turn", "tool_calls": "tool_use", "length": "max_tokens"}.get(reason, reason)
    end = {"output_tokens": counts.get("completion_tokens", 0)}
    sent.append(_event("message_delta", delta={"stop_reason": why, "stop_sequence": None}, usage=end))
    return [*sent, _event("message_stop")]


def _tell_ollama(
    pieces: Sequence[str], thinking: str, calls: Sequence[Any], counts: Counts, reason: str
) -> list[bytes]:
    def line(message: dict[str, Any], **more: Any) -> bytes:
        said = {"model": "scripted", "message": {"role": "assistant", "content": "", **message}}
        return msgspec.json.encode({**said, "done": False, **more}) + b"\n"

    sent = [line({"thinking": thinking})] if thinking else []
    sent += [line({"content": piece}) for piece in pieces]
    for _id, name, arguments in calls:
        given = msgspec.json.decode(arguments)
        sent.append(line({"tool_calls": [{"function": {"name": name, "arguments": given}}]}))
    why = "length" if reason == "length" else "stop"
    read, said = counts.get("prompt_tokens", 0), counts.get("completion_tokens", 0)
    return [*sent, line({}, done=True, done_reason=why, prompt_eval_count=read, eval_count=said)]
