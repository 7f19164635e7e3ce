"""The answer on OpenAI's responses wire: output items on their way become deltas and one end.

Source: https://platform.openai.com/docs/api-reference/responses-streaming (events; the last one is
`response.completed`, `response.incomplete` or `response.failed`, there is no `[DONE]`); read 2026-12-01.
"""

from __future__ import annotations

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
    stop_reason,
    unreadable,
    usage_of,
)
from fermix.providers.port import Done, Failed, FailureKind, ReasoningDelta, StreamEvent, TextDelta

_SAYING = frozenset({"response.output_text.delta", "response.refusal.delta"})
_THINKING = frozenset({"response.reasoning_summary_text.delta", "response.reasoning_text.delta"})


ENDINGS = frozenset({"completed", "incomplete"})
"""Statuses of an answer; another one, or none, is not the end of any."""


class _Incomplete(msgspec.Struct):
    reason: str | None = None


class _Response(msgspec.Struct):
    status: str | None = None
    output: list[dict[str, Any]] | None = None
    usage: Any = None
    """Any: whatever it holds must not cost the answer."""
    incomplete_details: _Incomplete | None = None
    error: Any = None
    """Any: read by `failures`."""


class _Event(msgspec.Struct):
    type: str = ""
    output_index: int | None = None
    delta: Any = None
    """Any: text in the events that are read, something else in others."""
    item: dict[str, Any] | None = None
    response: _Response | None = None
    error: Any = None
    message: str | None = None
    code: str | None = None


_EVENTS = msgspec.json.Decoder(_Event)
_WHOLE = msgspec.json.Decoder(_Response)


class ResponsesStream:
    """One answer; see `StreamDecoder`."""

    def __init__(self, provider: str, names: dict[str, str], origin: str) -> None:
        """`names` maps tool names on the wire to ours; `origin` marks what is sent back natively."""
        self.usage: Usage | None = None
        self.cost_micro_usd: int | None = None
        self._provider = provider
        self._names = names
        self._origin = origin
        self._events = SseParser()
        self._text = StringIO()
        self._thinking = StringIO()
        self._calls = ToolCallAssembler()
        self._items: dict[int, dict[str, Any]] = {}
        self._begun: set[int] = set()
        """Output indexes of the calls whose arguments come in pieces."""
        self._last: _Response | None = None

    @property
    def is_over(self) -> bool:
        return self._last is not None

    @property
    def is_finished(self) -> bool:
        return self.is_over

    def feed(self, data: bytes) -> list[StreamEvent]:
        return self._take(self._events.feed(data))

    def whole(self, body: bytes) -> list[StreamEvent]:
        try:
            response = _WHOLE.decode(body)
        except (msgspec.DecodeError, RecursionError) as error:
            raise unreadable(body, error) from error
        deltas: list[StreamEvent] = []
        self._finish(response, deltas)
        return deltas

    def end(self) -> Done | Failed:
        last = self._take(self._events.end())
        if last and isinstance(last[-1], Failed):
            return last[-1]
        if self._last is None or self._last.status not in ENDINGS:
            return broken_off(self._provider)
        reason = self._last.incomplete_details.reason if self._last.incomplete_details else None
        if reason == "content_filter":
            message = f"{self._provider} withheld the answer under its content rules."
            return Failed(FailureKind.CONTENT_REFUSED, message, retryable=False)
        was_cut = self._last.status == "incomplete" or reason is not None
        calls = self._calls.calls(was_cut=was_cut, names=self._names)
        native = None if was_cut else self._native(calls)
        reply = AssistantMessage(self._text.getvalue(), calls, self._thinking.getvalue(), native)
        return Done(reply, self.usage or Usage(), stop_reason(was_cut=was_cut, has_calls=bool(calls)))

    def _native(self, calls: tuple[ToolCall, ...]) -> NativeReply | None:
        """All items in their order when there is reasoning among them, which is wanted back unchanged.

        None when it came unsealed: the vendor keeps nothing, so it would not find such an item by its id.
        Source: https://github.com/can1357/oh-my-pi/pull/50 (404 for reasoning without `encrypted_content`).
        """
        items = [self._items[index] for index in sorted(self._items)]
        asked = [item.get("call_id") for item in items if item.get("type") == "function_call"]
        reasoning = [item for item in items if item.get("type") == "reasoning"]
        is_sealed = bool(reasoning) and all(item.get("encrypted_content") for item in reasoning)
        if not is_sealed or asked != [call.id for call in calls] or any(call.broken for call in calls):
            return None
        kept = ("reasoning", "message", "function_call")
        return NativeReply(self._origin, [item for item in items if item.get("type") in kept])

    def _take(self, events: list[SseEvent]) -> list[StreamEvent]:
        deltas: list[StreamEvent] = []
        for sent in events:
            if self.is_over or sent.data.strip() == b"[DONE]":
                break
            try:
                event = _EVENTS.decode(sent.data)
            except (msgspec.DecodeError, RecursionError) as error:
                raise unreadable(sent.data, error) from error
            if event.type == "error" or sent.name == "error" or event.error is not None:
                told = event.error or {"message": event.message or "", "code": event.code or ""}
                deltas.append(failures.from_event(told, provider=self._provider))
                break
            self._event(event, deltas)
            if deltas and isinstance(deltas[-1], Failed):
                break
        return deltas

    def _event(self, event: _Event, deltas: list[StreamEvent]) -> None:
        index = event.output_index or 0
        piece = event.delta if isinstance(event.delta, str) else ""
        if event.type in _SAYING:
            self._say(piece, deltas)
        elif event.type in _THINKING:
            self._think(piece, deltas)
        elif event.type == "response.reasoning_summary_part.added" and self._thinking.tell():
            self._think("\n\n", deltas)
        elif event.type == "response.output_item.added" and event.item is not None:
            self._add_call(index, event.item)
        elif event.type == "response.function_call_arguments.delta":
            self._calls.add(index, "", "", piece)
            self._begun.add(index)
        elif event.type == "response.output_item.done" and event.item is not None:
            self._item(index, event.item)
        elif event.type in ("response.completed", "response.incomplete", "response.failed"):
            response = event.response or _Response()
            response.status = response.status or event.type.removeprefix("response.")
            self._finish(response, deltas)

    def _add_call(self, index: int, item: dict[str, Any]) -> None:
        if item.get("type") == "function_call":
            self._calls.add(index, str(item.get("call_id") or ""), str(item.get("name") or ""), "")

    def _item(self, index: int, item: dict[str, Any]) -> None:
        """A whole item; the arguments of a call that came without pieces are in it."""
        if len(self._items) >= BLOCKS_LIMIT:
            raise Unreadable(f"The answer has more than {BLOCKS_LIMIT} items.")
        self._items[index] = item
        if item.get("type") == "function_call" and index not in self._begun:
            self._add_call(index, item)
            self._calls.add(index, "", "", str(item.get("arguments") or ""))
            self._begun.add(index)

    def _finish(self, response: _Response, deltas: list[StreamEvent]) -> None:
        self.usage = usage_of(response.usage, asked="input_tokens", said="output_tokens")
        if response.status == "failed" or response.error is not None:
            deltas.append(failures.from_event(response.error or "", provider=self._provider))
            return
        for index, item in enumerate(response.output or ()):
            if index not in self._items:
                self._item(index, item)
        if not self._text.tell():
            self._say(_said(response.output or []), deltas)
        self._last = response

    def _say(self, text: str, deltas: list[StreamEvent]) -> None:
        if text:
            add_text(self._text, text)
            deltas.append(TextDelta(text))

    def _think(self, text: str, deltas: list[StreamEvent]) -> None:
        if text:
            add_text(self._thinking, text)
            deltas.append(ReasoningDelta(text))


def _said(output: list[dict[str, Any]]) -> str:
    """The visible text of a whole answer."""
    parts = [
        part
        for item in output
        if item.get("type") == "message" and isinstance(item.get("content"), list)
        for part in item["content"]
        if isinstance(part, dict)
    ]
    return "".join(str(part.get("text") or part.get("refusal") or "") for part in parts)
