"""Anthropic's answer: content blocks that are begun, filled and ended become deltas and one end.

Source: https://platform.claude.com/docs/en/build-with-claude/streaming (events, `ping`, `error` inside a
200); https://platform.claude.com/docs/en/build-with-claude/handling-stop-reasons; read 2026-12-01.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from io import StringIO
from typing import Any

import msgspec

from fermix.errors import Unreadable
from fermix.messages import AssistantMessage, NativeReply, ToolCall, Usage
from fermix.providers.apis import failures
from fermix.providers.apis.sse import SseEvent, SseParser
from fermix.providers.apis.tool_calls import ToolCallAssembler
from fermix.providers.apis.wire import (
    BLOCKS_LIMIT,
    add_text,
    broken_off,
    number,
    part,
    stop_reason,
    tokens,
    unreadable,
)
from fermix.providers.port import Done, Failed, FailureKind, ReasoningDelta, StreamEvent, TextDelta

_COUNTS = ("input_tokens", "output_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
CUT_REASONS = frozenset({"max_tokens", "model_context_window_exceeded"})


class _Block(msgspec.Struct):
    type: str = ""
    text: str | None = None
    thinking: str | None = None
    signature: str | None = None
    data: str | None = None
    id: str | None = None
    name: str | None = None
    input: dict[str, Any] | None = None


class _Delta(msgspec.Struct):
    type: str = ""
    text: str | None = None
    thinking: str | None = None
    signature: str | None = None
    partial_json: str | None = None
    stop_reason: str | None = None


class _Message(msgspec.Struct):
    content: list[_Block] | None = None
    usage: Any = None
    """Any: an odd count must not cost the answer."""
    stop_reason: str | None = None


class _Event(msgspec.Struct):
    type: str = ""
    index: int | None = None
    message: _Message | None = None
    content_block: _Block | None = None
    delta: _Delta | None = None
    usage: Any = None
    """Any: an odd count must not cost the answer."""
    error: Any = None
    """Any: read by `failures`."""


_EVENTS = msgspec.json.Decoder(_Event)


class _Whole(_Message):
    """The answer to a request that was not streamed after all."""

    type: str = ""
    error: Any = None


_WHOLE = msgspec.json.Decoder(_Whole)


@dataclass(slots=True)
class _Open:
    """A content block on its way."""

    type: str
    text: StringIO = field(default_factory=StringIO)
    signature: StringIO = field(default_factory=StringIO)
    data: str = ""
    id: str = ""


class AnthropicStream:
    """One answer; see `StreamDecoder`."""

    def __init__(self, provider: str, names: dict[str, str], origin: str, asked: Callable[[], str]) -> None:
        """`names` maps tool names on the wire to ours; `origin` and `asked` are marks of `NativeReply`."""
        self.is_over = False
        self.cost_micro_usd: int | None = None
        self._provider = provider
        self._names = names
        self._origin = origin
        self._asked = asked
        self._events = SseParser()
        self._blocks: list[_Open] = []
        self._places: dict[int, int] = {}
        self._calls = ToolCallAssembler()
        self._counted: dict[str, int] = {}
        self._stop_reason: str | None = None

    @property
    def is_finished(self) -> bool:
        return self.is_over or self._stop_reason is not None

    @property
    def usage(self) -> Usage | None:
        counted = self._counted
        if "input_tokens" not in counted and "output_tokens" not in counted:
            return None
        cached = counted.get("cache_read_input_tokens", 0)
        written = counted.get("cache_creation_input_tokens", 0)
        return Usage(
            input_tokens=counted.get("input_tokens", 0) + cached + written,
            output_tokens=counted.get("output_tokens", 0),
            cached_tokens=cached,
            written_tokens=written,
        )

    def feed(self, data: bytes) -> list[StreamEvent]:
        return self._take(self._events.feed(data))

    def whole(self, body: bytes) -> list[StreamEvent]:
        try:
            message = _WHOLE.decode(body)
        except (msgspec.DecodeError, RecursionError) as error:
            raise unreadable(body, error) from error
        self.is_over = True
        if message.error is not None:
            return [failures.from_event(message.error, provider=self._provider)]
        deltas: list[StreamEvent] = []
        for index, block in enumerate(message.content or ()):
            self._begin(index, block, deltas)
        self._count(message.usage)
        self._stop_reason = message.stop_reason
        return deltas

    def end(self) -> Done | Failed:
        last = self._take(self._events.end())
        if last and isinstance(last[-1], Failed):
            return last[-1]
        if self._stop_reason is None:
            return broken_off(self._provider)
        if self._stop_reason == "refusal":
            message = f"{self._provider} withheld the answer under its content rules."
            return Failed(FailureKind.CONTENT_REFUSED, message, retryable=False)
        was_cut = self._stop_reason in CUT_REASONS
        calls = self._calls.calls(was_cut=was_cut, names=self._names)
        reply = AssistantMessage(
            self._joined("text"), calls, self._joined("thinking"), None if was_cut else self._native(calls)
        )
        return Done(reply, self.usage or Usage(), stop_reason(was_cut=was_cut, has_calls=bool(calls)))

    def _joined(self, kind: str) -> str:
        return "".join(block.text.getvalue() for block in self._blocks if block.type == kind)

    def _native(self, calls: tuple[ToolCall, ...]) -> NativeReply | None:
        """All blocks in their order when there is thinking among them, which is wanted back unchanged."""
        if not any(block.type in ("thinking", "redacted_thinking") for block in self._blocks):
            return None
        wire = {ours: name for name, ours in self._names.items()}
        wanted = {call.id: call for call in calls}
        items: list[dict[str, Any]] = []
        for block in self._blocks:
            text = block.text.getvalue()
            if block.type == "thinking":
                # Also when empty: the field is required. Source: R092 of the case list.
                items.append(
                    {"type": "thinking", "thinking": text, "signature": block.signature.getvalue()}
                )
            elif block.type == "redacted_thinking":
                items.append({"type": "redacted_thinking", "data": block.data})
            elif block.type == "text" and text.strip():
                items.append({"type": "text", "text": text})
            elif block.type == "tool_use" and block.id in wanted:
                call = wanted.pop(block.id)
                name = wire.get(call.name, call.name)
                items.append({"type": "tool_use", "id": call.id, "name": name, "input": call.arguments})
        return None if wanted else NativeReply(self._origin, items, self._asked())

    def _take(self, events: list[SseEvent]) -> list[StreamEvent]:
        deltas: list[StreamEvent] = []
        for sent in events:
            if self.is_over:
                break
            if sent.name == "error":
                deltas.append(failures.from_event(failures.decoded(sent.data), provider=self._provider))
                break
            try:
                event = _EVENTS.decode(sent.data)
            except (msgspec.DecodeError, RecursionError) as error:
                raise unreadable(sent.data, error) from error
            if event.type == "error" or event.error is not None:
                deltas.append(failures.from_event(event.error, provider=self._provider))
                break
            self._event(event, deltas)
        return deltas

    def _event(self, event: _Event, deltas: list[StreamEvent]) -> None:
        if event.type == "message_start" and event.message is not None:
            self._count(event.message.usage)
        elif event.type == "content_block_start" and event.content_block is not None:
            self._begin(event.index or 0, event.content_block, deltas)
        elif event.type == "content_block_delta" and event.delta is not None:
            self._fill(event.index or 0, event.delta, deltas)
        elif event.type == "message_delta":
            self._count(event.usage)
            if event.delta is not None and event.delta.stop_reason:
                self._stop_reason = event.delta.stop_reason
        elif event.type == "message_stop":
            self.is_over = True

    def _count(self, usage: object) -> None:
        """Take the counts that came; later ones are of the whole answer so far."""
        for name in _COUNTS:
            if number(told := part(usage, name)) is not None:
                self._counted[name] = tokens(told)

    def _begin(self, index: int, block: _Block, deltas: list[StreamEvent]) -> None:
        place = self._add(index, _Open(block.type, data=block.data or "", id=block.id or ""))
        if block.type == "tool_use":
            given = msgspec.json.encode(block.input).decode() if block.input else ""
            self._calls.add(place, block.id or "", block.name or "", given)
        self._fill(index, _Delta("", block.text, block.thinking, block.signature), deltas)

    def _add(self, index: int, block: _Open) -> int:
        """Where the block stands; one whose index was used before is another block, not the same."""
        if len(self._blocks) >= BLOCKS_LIMIT:
            raise Unreadable(f"The answer has more than {BLOCKS_LIMIT} blocks.")
        self._blocks.append(block)
        self._places[index] = len(self._blocks) - 1
        return self._places[index]

    def _fill(self, index: int, delta: _Delta, deltas: list[StreamEvent]) -> None:
        place = self._places.get(index)
        if place is None:
            # A delta of a block that was never begun.
            kind = "thinking" if delta.thinking or delta.signature else "text"
            place = self._add(index, _Open("tool_use" if delta.partial_json is not None else kind))
        block = self._blocks[place]
        if delta.text and block.type == "text":
            add_text(block.text, delta.text)
            deltas.append(TextDelta(delta.text))
        if delta.thinking and block.type == "thinking":
            add_text(block.text, delta.thinking)
            deltas.append(ReasoningDelta(delta.thinking))
        if delta.signature:
            add_text(block.signature, delta.signature)
        if delta.partial_json:
            self._calls.add(place, "", "", delta.partial_json)
