"""Fakes at the ports: a clock that is set, a model that follows a script, a channel that writes down."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from gevent.event import Event

from fermix.capabilities.context import ToolContext
from fermix.capabilities.turn import TurnFacts
from fermix.channels.port import Chunk, Delivery
from fermix.messages import AssistantMessage, ConversationKey, Inbound, ModelCall, ToolCall, Usage
from fermix.providers.port import (
    FREE,
    Called,
    Done,
    Failed,
    FailureKind,
    ModelLimits,
    ModelRequest,
    StreamEvent,
    TextDelta,
)
from fermix.tasks import Cancel, Deadline
from fermix.trust import OPERATOR_ATTENDED, Standing


class FakeClock:
    """Stands still until it is moved."""

    def __init__(self, ms: int = 1_700_000_000_000) -> None:
        self.ms = ms

    def now_ms(self) -> int:
        return self.ms

    def monotonic_s(self) -> float:
        return self.ms / 1000


class FakeModel:
    """Answers with the next entry of its script: words, calls, a failure, or a function of the request."""

    name = "fake"
    model = "fake-1"
    price = FREE

    def __init__(self, *script: object, limits: ModelLimits | None = None) -> None:
        self.script = list(script)
        self.requests: list[ModelRequest] = []
        self.limits = limits or ModelLimits()
        self.says_once: str | None = None

    def stream(self, request: ModelRequest) -> Iterator[StreamEvent]:
        self.requests.append(request)
        step = self.script.pop(0) if len(self.script) > 1 else self.script[0]
        if callable(step):
            step = step(request)
        if request.cancel.is_set():
            yield Failed(FailureKind.CANCELLED, "Stopped.", retryable=False)
        elif isinstance(step, Failed | Done):
            yield step
        elif isinstance(step, str):
            yield TextDelta(step)
            yield self.called()
            yield Done(AssistantMessage(step), Usage(10, 2), "stop")
        else:
            calls = step if isinstance(step, tuple) else (step,)
            yield self.called()
            yield Done(AssistantMessage("", tool_calls=calls), Usage(10, 2), "tool_calls")

    def called(self) -> Called:
        return Called(
            ModelCall(
                provider=self.name,
                model=self.model,
                usage=Usage(10, 2),
                is_estimated=False,
                cost_micro_usd=0,
                outcome="done",
                started_ms=0,
                ended_ms=0,
            )
        )

    def notice(self) -> str | None:
        return self.says_once

    def stop(self, timeout_s: float) -> None:
        pass


class FakeChannel:
    """Keeps what it was given; `answers` are raised or returned first, one for each send."""

    def __init__(self, name: str = "fake", *, can_tell_duplicates: bool = False, size: int = 10) -> None:
        self.name = name
        self.can_tell_duplicates = can_tell_duplicates
        self.size = size
        self.answers: list[Exception | Delivery] = []
        self.sent: list[Chunk] = []
        self.tried: list[Chunk] = []
        self.gate = Event()
        self.gate.set()

    @property
    def texts(self) -> list[str]:
        return [chunk.text for chunk in self.sent]

    def split(self, text: str) -> list[str]:
        return [text[start : start + self.size] for start in range(0, len(text), self.size)] or [""]

    def send(self, chunk: Chunk) -> Delivery:
        self.tried.append(chunk)
        assert self.gate.wait(10)
        answer = self.answers.pop(0) if self.answers else Delivery.SENT
        if isinstance(answer, Exception):
            raise answer
        self.sent.append(chunk)
        return answer


def call(name: str, *, id: str = "c1", **arguments: object) -> ToolCall:
    """A model's wish."""
    return ToolCall(id, name, arguments)


def inbound(
    text: str = "hello",
    *,
    id: str = "m1",
    chat: str = "main",
    channel: str = "local",
    sender: str = "uid 0",
    cwd: str | None = None,
) -> Inbound:
    """A message on its way in."""
    key = ConversationKey(channel, chat)
    return Inbound(key=key, platform_id=id, sender_id=sender, text=text, received_ms=1, cwd=cwd)


def turn_facts(
    cwd: Path,
    *,
    standing: Standing = OPERATOR_ATTENDED,
    file_root: Path | None = None,
    cancel: Cancel | None = None,
    timeout_s: float = 30.0,
) -> TurnFacts:
    """A turn that works in `cwd`."""
    return TurnFacts(
        id="turn-1",
        key=ConversationKey("local", "main"),
        standing=standing,
        cwd=cwd,
        file_root=file_root,
        deadline=Deadline.after(timeout_s),
        cancel=cancel or Cancel(),
    )


def tool_context(
    facts: TurnFacts, effects: object = None, progress: Callable[[str], None] = lambda text: None
) -> ToolContext:
    """A tool's world; `effects` None is for tools that have none."""
    return ToolContext(turn=facts, effects=effects, progress=progress, clock=FakeClock())
