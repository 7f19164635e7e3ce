"""The agent loop: model, tools, repeat. Policy, storage and delivery live elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from itertools import groupby, islice

from fermix.agent.composer import Composer
from fermix.agent.events import (
    AgentEvent,
    Notice,
    Phase,
    PhaseChanged,
    Replied,
    ToolCalled,
    ToolReplied,
    TurnEnded,
    TurnStatus,
)
from fermix.agent.pictures import Album
from fermix.agent.settings import AgentSettings
from fermix.agent.thinking import Keeper, PlainKeeper, Thinking
from fermix.capabilities.context import ToolContext
from fermix.capabilities.registry import Registry
from fermix.messages import AssistantMessage, ChatMessage, ToolCall, ToolMessage, Usage, UserMessage
from fermix.providers.port import (
    Called,
    Done,
    Failed,
    FailureKind,
    ModelLimits,
    ModelRequest,
    Provider,
    ReasoningDelta,
    Remark,
    Restarted,
    TextDelta,
    ToolSchema,
)
from fermix.tasks import Task, TaskGroup

SAME_FAILURE_LIMIT = 3
"""Calls that failed this often in a row with the same arguments end the turn."""

Invoke = Callable[[ToolCall, ToolContext], ToolMessage]


class Agent:
    """Runs turns; holds no state of any of them."""

    def __init__(
        self,
        provider: Provider,
        registry: Registry,
        *,
        invoke: Invoke,
        settings: AgentSettings,
        composer: Composer | None = None,
        album: Album | None = None,
        keeper: Keeper | None = None,
    ) -> None:
        """`composer` None gives the instructions fermix would have seeded, `album` None no pictures.

        `keeper` None shows models what fits and makes no room.
        """
        self.provider = provider
        self._keeper = keeper or PlainKeeper()
        self._album = album or Album(lambda images: {})
        self.composer = composer or Composer(settings)
        self._registry = registry
        self._invoke = invoke
        self._settings = settings
        self.has_noticed = False
        """Whether the provider's notice was given; whoever makes another agent of it hands this on."""

    def run(self, thinking: Thinking) -> Iterator[AgentEvent]:
        """Think and act until there is an answer; the last event is always one TurnEnded.

        Contract: whoever consumes the events stores each Replied and ToolReplied before asking
        for the next one, so no tool starts before the reply that asked for it is durable.
        Raises: Cancelled when the turn is stopped while a tool runs.
        """
        if not self.provider.limits.sees_images and _has_pictures(thinking.messages):
            yield Notice(f"{self.provider.model} does not see pictures; it is told their names.")
        for _ in range(self._settings.steps_per_turn):
            outcome = yield from self._ask(thinking, with_tools=True)
            if isinstance(outcome, Failed):
                yield _failed(outcome, thinking.usage)
                return
            if not outcome.tool_calls:
                yield from self._finish(thinking, outcome)
                return
            thinking.messages.append(outcome)
            yield Replied(outcome)
            yield from self._act(thinking, outcome.tool_calls)
            if (stuck := _repeated_failure(thinking.messages)) is not None:
                yield TurnEnded(TurnStatus.FAILED, stuck, thinking.usage, "tool_repeated")
                return
        yield from self._close(thinking)

    def _ask(
        self, thinking: Thinking, *, with_tools: bool
    ) -> Generator[AgentEvent, None, AssistantMessage | Failed]:
        """The model's whole reply, its deltas yielded on the way."""
        yield PhaseChanged(Phase.THINK)
        system = self.composer.system(self.provider.limits)
        tools = self._schemas(thinking) if with_tools and self.provider.limits.takes_tools else ()
        yield from self._keeper.prepared(thinking, self.provider, system=system, tools=tools)
        request = self._question(thinking, self.provider.limits, with_tools=with_tools)
        for event in self.provider.stream(request):
            if isinstance(event, TextDelta | ReasoningDelta | Restarted):
                yield event
            elif isinstance(event, Called):
                thinking.usage += event.call.usage
                self._keeper.heard(thinking, event.call)
                yield event
            elif isinstance(event, Remark):
                yield Notice(event.text)
            elif isinstance(event, Done):
                if event.stop_reason == "length":
                    yield Notice("The model's answer was cut: it reached the longest it may give.")
                return event.reply
            elif event.kind is FailureKind.IMAGE_UNSUPPORTED and request.images:
                self._album.refuse(request.images)
                yield Notice("The pictures were refused; the model is told their names instead.")
                return (yield from self._ask(thinking, with_tools=with_tools))
            elif event.kind is FailureKind.CONTEXT_OVERFLOW and (
                yield from self._keeper.overflowed(thinking, self.provider, system=system, tools=tools)
            ):
                return (yield from self._ask(thinking, with_tools=with_tools))
            else:
                return event
        return Failed(
            FailureKind.PROTOCOL, f"{self.provider.name} ended without an answer.", retryable=False
        )

    def _question(self, thinking: Thinking, limits: ModelLimits, *, with_tools: bool) -> ModelRequest:
        """What is asked of a model of these limits."""
        system = self.composer.system(limits)
        turn = thinking.context.turn
        messages = self._keeper.view(thinking.messages, limits, system=system)
        return ModelRequest(
            system=system,
            messages=messages,
            images=self._album.of(messages) if limits.sees_images else {},
            tools=self._schemas(thinking) if with_tools and limits.takes_tools else (),
            cancel=turn.cancel,
            deadline=turn.deadline,
            conversation_id=thinking.conversation_id,
            fitted=lambda other: self._question(thinking, other, with_tools=with_tools),
        )

    def _schemas(self, thinking: Thinking) -> tuple[ToolSchema, ...]:
        tools = self._registry.visible(thinking.context.turn.standing)
        return tuple(ToolSchema(tool.name, tool.description, tool.parameters) for tool in tools)

    def _finish(self, thinking: Thinking, reply: AssistantMessage) -> Iterator[AgentEvent]:
        """The final reply; an empty one is answered for, since a person must be told something."""
        if not reply.text.strip():
            reply = AssistantMessage("The model gave no answer to this. Ask again, perhaps in other words.")
            yield TextDelta(reply.text)
        if not self.has_noticed and (notice := self.provider.notice()):
            self.has_noticed = True
            yield Notice(notice)
        thinking.messages.append(reply)
        yield TurnEnded(TurnStatus.COMPLETED, reply.text, thinking.usage)

    def _close(self, thinking: Thinking) -> Iterator[AgentEvent]:
        """The way out when the steps are used up: one call without tools, reported as incomplete."""
        yield Notice(f"This turn used all of its {self._settings.steps_per_turn} model calls.")
        outcome = yield from self._ask(thinking, with_tools=False)
        if isinstance(outcome, Failed) and outcome.kind is FailureKind.CANCELLED:
            yield _failed(outcome, thinking.usage)
            return
        text = outcome.text if isinstance(outcome, AssistantMessage) else outcome.message
        ending = text or f"Stopped after {self._settings.steps_per_turn} model calls without an answer."
        yield TurnEnded(TurnStatus.FAILED, ending, thinking.usage, "steps_used_up")

    def _act(self, thinking: Thinking, calls: tuple[ToolCall, ...]) -> Iterator[AgentEvent]:
        """Run the calls in order; neighbours that only read run side by side, results stay in order."""
        yield PhaseChanged(Phase.ACT)
        for reads_only, neighbours in groupby(calls, lambda call: self._registry.reads_only(call.name)):
            batch = list(neighbours)
            if reads_only and len(batch) > 1:
                for call in batch:
                    yield ToolCalled(call)
                for result in self._side_by_side(batch, thinking.context):
                    thinking.messages.append(result)
                    yield ToolReplied(result)
                continue
            for call in batch:
                yield ToolCalled(call)
                result = self._invoke(call, thinking.context)
                thinking.messages.append(result)
                yield ToolReplied(result)

    def _side_by_side(self, calls: list[ToolCall], context: ToolContext) -> Iterator[ToolMessage]:
        group = TaskGroup(f"tools of {context.turn.id}")
        results: list[ToolMessage | None] = [None] * len(calls)

        def start(index: int, call: ToolCall) -> Task:
            def work() -> None:
                results[index] = self._invoke(call, context)

            return group.start(work, name=call.name)

        tasks = [start(index, call) for index, call in enumerate(calls)]
        try:
            for index, task in enumerate(tasks):
                task.join(context.turn.deadline.remaining_s())
                context.turn.cancel.check()
                yield results[index] or _too_late(calls[index])
        finally:
            group.stop(timeout_s=5.0)


def _has_pictures(messages: list[ChatMessage]) -> bool:
    """Whether pictures came with what a person said last."""
    said = next((message for message in reversed(messages) if isinstance(message, UserMessage)), None)
    return said is not None and bool(said.images)


def _too_late(call: ToolCall) -> ToolMessage:
    return ToolMessage(call.id, call.name, f"{call.name} did not come to an end in time.", is_error=True)


def _failed(failure: Failed, usage: Usage) -> TurnEnded:
    if failure.kind is FailureKind.CANCELLED:
        return TurnEnded(TurnStatus.CANCELLED, "Stopped.", usage, "cancelled")
    return TurnEnded(TurnStatus.FAILED, failure.message, usage, failure.kind.value)


def _repeated_failure(messages: list[ChatMessage]) -> str | None:
    """Words for the person when the last steps were the same calls failing again and again; else None."""
    asked = list(islice(_failed_steps(messages), SAME_FAILURE_LIMIT))
    if len(asked) < SAME_FAILURE_LIMIT or any(calls != asked[0] for calls in asked):
        return None
    name, said = asked[0][-1][0], messages[-1].text
    return f"Stopped: {name} failed {SAME_FAILURE_LIMIT} times in the same way. It said: {said}"


def _failed_steps(messages: list[ChatMessage]) -> Iterator[list[tuple[str, object, str | None]]]:
    """What each step asked for, latest first, as far back as every call failed; never past a turn."""
    for message in reversed(messages):
        if isinstance(message, AssistantMessage) and message.tool_calls:
            yield [(call.name, call.arguments, call.broken) for call in message.tool_calls]
        elif not isinstance(message, ToolMessage) or not message.is_error:
            return
