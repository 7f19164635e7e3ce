"""Ollama's answer: one JSON object a line becomes deltas and one end.

Source: https://docs.ollama.com/api/streaming and https://docs.ollama.com/api/chat (`message.thinking`,
whole tool calls, `done_reason`, `prompt_eval_count`, `eval_count`, `{"error"}` in a 200); read 2026-12-01.
"""

from __future__ import annotations

from io import StringIO
from typing import Any

import msgspec

from fermix.errors import Unreadable
from fermix.messages import AssistantMessage, Usage
from fermix.providers.apis import failures
from fermix.providers.apis.tool_calls import ToolCallAssembler, written_call
from fermix.providers.apis.wire import (
    EVENT_LIMIT_BYTES,
    add_text,
    broken_off,
    number,
    stop_reason,
    tokens,
    unreadable,
)
from fermix.providers.port import Done, Failed, ReasoningDelta, StreamEvent, TextDelta


class _Function(msgspec.Struct):
    name: str | None = None
    arguments: dict[str, Any] | list[Any] | str | None = None


class _Call(msgspec.Struct):
    id: str | None = None
    function: _Function | None = None


class _Message(msgspec.Struct):
    content: str | None = None
    thinking: str | None = None
    tool_calls: list[_Call] | None = None


class _Line(msgspec.Struct):
    message: _Message | None = None
    done: bool = False
    done_reason: str | None = None
    prompt_eval_count: Any = None
    eval_count: Any = None
    """Any: an odd count must not cost the answer."""
    error: Any = None
    """Any: read by `failures`."""


_DECODER = msgspec.json.Decoder(_Line)


class OllamaStream:
    """One answer; see `StreamDecoder`."""

    def __init__(self, provider: str, names: dict[str, str]) -> None:
        """`names` maps tool names on the wire to ours."""
        self.is_over = False
        self.usage: Usage | None = None
        self.cost_micro_usd: int | None = None
        self._provider = provider
        self._names = names
        self._rest = bytearray()
        self._text = StringIO()
        self._thinking = StringIO()
        self._calls = ToolCallAssembler()
        self._count = 0
        self._done_reason = ""

    @property
    def is_finished(self) -> bool:
        return self.is_over

    def feed(self, data: bytes) -> list[StreamEvent]:
        self._rest += data
        if len(self._rest) > EVENT_LIMIT_BYTES:
            raise Unreadable(f"A line of the stream is longer than {EVENT_LIMIT_BYTES} bytes.")
        if b"\n" not in data:
            return []
        *lines, self._rest = self._rest.split(b"\n")
        return self._take(lines)

    def whole(self, body: bytes) -> list[StreamEvent]:
        return self._take(body.split(b"\n"))

    def end(self) -> Done | Failed:
        rest, self._rest = self._rest, bytearray()
        last = self._take([rest])
        if last and isinstance(last[-1], Failed):
            return last[-1]
        if not self.is_over:
            return broken_off(self._provider)
        was_cut = self._done_reason == "length"
        calls = self._calls.calls(was_cut=was_cut, names=self._names)
        text = self._text.getvalue()
        if not calls and not was_cut and (written := written_call(text, self._names)) is not None:
            text, calls = "", (written,)
        reply = AssistantMessage(text, calls, self._thinking.getvalue())
        return Done(reply, self.usage or Usage(), stop_reason(was_cut=was_cut, has_calls=bool(calls)))

    def _take(self, lines: list[bytes] | list[bytearray]) -> list[StreamEvent]:
        deltas: list[StreamEvent] = []
        for line in lines:
            if self.is_over or not line.strip():
                continue
            try:
                said = _DECODER.decode(line)
            except (msgspec.DecodeError, RecursionError) as error:
                raise unreadable(bytes(line), error) from error
            if said.error is not None:
                deltas.append(failures.from_event(said.error, provider=self._provider))
                break
            self._message(said.message or _Message(), deltas)
            if number(said.prompt_eval_count) is not None or number(said.eval_count) is not None:
                self.usage = Usage(tokens(said.prompt_eval_count), tokens(said.eval_count))
            if said.done:
                self.is_over, self._done_reason = True, said.done_reason or "stop"
        return deltas

    def _message(self, message: _Message, deltas: list[StreamEvent]) -> None:
        if message.thinking:
            add_text(self._thinking, message.thinking)
            deltas.append(ReasoningDelta(message.thinking))
        if message.content:
            add_text(self._text, message.content)
            deltas.append(TextDelta(message.content))
        for call in message.tool_calls or ():
            function = call.function or _Function()
            given = function.arguments
            text = given if isinstance(given, str) else msgspec.json.encode(given or {}).decode()
            # Each is whole, so each gets a number of its own.
            self._calls.add(self._count, call.id or "", function.name or "", text)
            self._count += 1
