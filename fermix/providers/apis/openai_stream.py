"""The OpenAI chat-completions answer: chunks of a stream become deltas and one end.

Source: https://platform.openai.com/docs/api-reference/chat/streaming (chunk object, `[DONE]`);
https://openrouter.ai/docs/use-cases/usage-accounting (`cost`, `cache_write_tokens`), read 2026-12-01.
"""

from __future__ import annotations

from io import StringIO
from typing import Any

import msgspec

from fermix.messages import AssistantMessage, NativeReply, Usage
from fermix.providers.apis import failures
from fermix.providers.apis.details import Details
from fermix.providers.apis.sse import SseEvent, SseParser
from fermix.providers.apis.tool_calls import ToolCallAssembler
from fermix.providers.apis.wire import (
    add_text,
    broken_off,
    micro_usd,
    part,
    stop_reason,
    unreadable,
    usage_of,
)
from fermix.providers.port import Done, Failed, FailureKind, ReasoningDelta, StreamEvent, TextDelta


class _Function(msgspec.Struct):
    name: str | None = None
    arguments: str | dict[str, Any] | list[Any] | None = None
    """Text by the protocol; some servers send the object itself."""


class _ToolCall(msgspec.Struct):
    index: int | None = None
    id: str | int | None = None
    function: _Function | None = None


class _Delta(msgspec.Struct):
    content: str | list[dict[str, Any]] | None = None
    """Text, or parts of it as Mistral's thinking models send them."""
    reasoning_details: list[dict[str, Any]] | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    refusal: str | None = None
    tool_calls: list[_ToolCall] | None = None


class _Choice(msgspec.Struct):
    index: int | None = None
    delta: _Delta | None = None
    message: _Delta | None = None
    """In place of `delta` when the answer is not streamed."""
    finish_reason: str | None = None


class _Chunk(msgspec.Struct):
    choices: list[_Choice] | None = None
    usage: Any = None
    """Any: whatever it holds must not cost the answer; its `cost` is in USD."""
    error: Any = None
    """Any: an object, a text or a number, as the server likes; read by `failures`."""


_DECODER = msgspec.json.Decoder(_Chunk)


class OpenAiStream:
    """One answer; see `StreamDecoder`."""

    def __init__(self, provider: str, names: dict[str, str], origin: str) -> None:
        """`names` maps tool names on the wire to ours; `origin` is for what is sent back natively."""
        self.is_over = False
        self._provider = provider
        self._names = names
        self._origin = origin
        self._details = Details()
        self._events = SseParser()
        # Not lists of pieces: a server that sends letters would make them forty times the text.
        self._text = StringIO()
        self._reasoning = StringIO()
        self._calls = ToolCallAssembler()
        self.usage: Usage | None = None
        self.cost_micro_usd: int | None = None
        self._finish_reason: str | None = None

    @property
    def is_finished(self) -> bool:
        return self.is_over or self._finish_reason is not None

    def feed(self, data: bytes) -> list[StreamEvent]:
        return self._take(self._events.feed(data))

    def whole(self, body: bytes) -> list[StreamEvent]:
        deltas = self._take([SseEvent("", body)])
        self.is_over = True
        return deltas

    def end(self) -> Done | Failed:
        last = self._take(self._events.end())
        if last and isinstance(last[-1], Failed):
            return last[-1]
        has_answer = bool(self._text.tell() or self._calls)
        if self._finish_reason is None and not (self.is_over and has_answer):
            return broken_off(self._provider)
        if self._finish_reason == "content_filter":
            message = f"{self._provider} withheld the answer under its content rules."
            return Failed(FailureKind.CONTENT_REFUSED, message, retryable=False)
        if self._finish_reason == "error":
            return failures.from_event("", provider=self._provider)
        was_cut = self._finish_reason == "length"
        calls = self._calls.calls(was_cut=was_cut, names=self._names)
        details = self._details.whole()
        native = NativeReply(self._origin, details) if details else None
        reply = AssistantMessage(self._text.getvalue(), calls, self._reasoning.getvalue(), native)
        return Done(reply, self.usage or Usage(), stop_reason(was_cut=was_cut, has_calls=bool(calls)))

    def _take(self, events: list[SseEvent]) -> list[StreamEvent]:
        deltas: list[StreamEvent] = []
        for event in events:
            if self.is_over:
                break
            if event.data.strip() == b"[DONE]":
                self.is_over = True
                break
            if event.name == "error":
                deltas.append(failures.from_event(failures.decoded(event.data), provider=self._provider))
                break
            chunk = self._decoded(event)
            if chunk.error is not None:
                deltas.append(failures.from_event(chunk.error, provider=self._provider))
                break
            if chunk.usage is not None:
                counted = usage_of(chunk.usage, asked="prompt_tokens", said="completion_tokens")
                self.usage = counted or self.usage
                self.cost_micro_usd = micro_usd(part(chunk.usage, "cost"))
            for choice in chunk.choices or ():
                if choice.index in (None, 0):
                    self._choice(choice, deltas)
        return deltas

    def _choice(self, choice: _Choice, deltas: list[StreamEvent]) -> None:
        delta = choice.delta or choice.message
        if delta is not None:
            said, thought = _parts(delta.content)
            thinking = delta.reasoning_content or delta.reasoning or thought
            if thinking:
                add_text(self._reasoning, thinking)
                deltas.append(ReasoningDelta(thinking))
            for detail in delta.reasoning_details or ():
                self._details.add(detail)
            text = said or delta.refusal
            if text:
                add_text(self._text, text)
                deltas.append(TextDelta(text))
            for call in delta.tool_calls or ():
                self._tool_call(call)
        if choice.finish_reason:
            self._finish_reason = choice.finish_reason

    def _tool_call(self, call: _ToolCall) -> None:
        function = call.function or _Function()
        arguments = function.arguments
        if not isinstance(arguments, str):
            arguments = "" if arguments is None else msgspec.json.encode(arguments).decode()
        id = "" if call.id is None else str(call.id)
        self._calls.add(call.index, id, function.name or "", arguments)

    def _decoded(self, event: SseEvent) -> _Chunk:
        try:
            return _DECODER.decode(event.data)
        except (msgspec.DecodeError, RecursionError) as error:
            raise unreadable(event.data, error) from error


def _parts(content: str | list[dict[str, Any]] | None) -> tuple[str, str]:
    """What is said and what is thought in a delta's content.

    Source: https://docs.mistral.ai/capabilities/reasoning (`{"type": "thinking", "thinking": [parts]}`).
    """
    if not isinstance(content, list):
        return content or "", ""
    said, thought = [], []
    for each in content:
        if each.get("type") == "thinking":
            inner = each.get("thinking")
            pieces = inner if isinstance(inner, list) else [{"text": inner}]
            thought += [str(piece.get("text") or "") for piece in pieces if isinstance(piece, dict)]
        else:
            said.append(str(each.get("text") or ""))
    return "".join(said), "".join(thought)
