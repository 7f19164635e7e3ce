"""Keeps what a model is shown within its window: sums up what is old, and shortens where that fails."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Generator, Sequence
from dataclasses import dataclass

import msgspec

from fermix.agent.context.cutting import TAIL_SHARE, cut, last_said, shown
from fermix.agent.context.estimate import Estimator, size_of, sizes_of
from fermix.agent.context.pins import has_summary, pins_of
from fermix.agent.context.room import Room, room_of
from fermix.agent.context.summarising import Refused, checked, instructions, transcript
from fermix.agent.events import AgentEvent, Called, Compacted, Notice
from fermix.agent.prompt import fit
from fermix.agent.thinking import Thinking
from fermix.conversations.summaries import Summary
from fermix.messages import ChatMessage, ModelCall, UserMessage
from fermix.providers.port import Done, Failed, FailureKind, ModelLimits, ModelRequest, Provider, ToolSchema
from fermix.usage.spent import Spent

SUMMARY_S = 60.0
"""Longest a summary may take; a person waits for it."""
PURPOSE = "summary"
"""What its calls are billed under."""
REDUCTIONS = 3
"""How often one question that a provider called too long is made shorter."""
KNOWN_CONVERSATIONS = 512
NEVER_SUMS_UP = "{model} is shown the latest of a conversation only; nothing is summed up for it."
GROWN = 1.2
"""How much larger a history must be before a summary that failed is tried again."""


@dataclass(slots=True)
class _State:
    """What is remembered of one conversation."""

    failed_at: int = 0
    """Size of the history when its summary failed last; 0 when it did not."""
    is_told_short: bool = False
    """Whether the person knows that the model is shown the latest only."""


class ContextKeeper:
    """See `Keeper`; holds a little of each conversation it saw lately and nothing that must not be lost."""

    def __init__(
        self,
        estimator: Estimator,
        *,
        threshold: float,
        history_messages: int,
        summary_s: float = SUMMARY_S,
    ) -> None:
        """`threshold` is the share of the window from which on it is time to sum up."""
        self._estimator = estimator
        self._threshold = threshold
        self._history_messages = history_messages
        self._summary_s = summary_s
        self._models: dict[ModelLimits, str] = {}
        self._fixed: dict[ModelLimits, int] = {}
        self._states: OrderedDict[str, _State] = OrderedDict()
        self._measured: tuple[Sequence[ChatMessage], int, int] | None = None
        """The messages measured last, how many they were and their size: shown at once, most often."""

    def prepared(
        self, thinking: Thinking, provider: Provider, *, system: str, tools: Sequence[ToolSchema]
    ) -> Generator[AgentEvent, None, None]:
        """Before each question: compact `thinking.messages` in place when it is time, and tell of it."""
        room = self._room(provider, system, tools)
        sizes = sizes_of(thinking.messages)
        if room is not None:
            state = self._state(thinking.conversation_id)
            size = sum(sizes)
            is_wanted, thinking.wants_room = thinking.wants_room, False
            is_due = size > room.due or len(sizes) > self._history_messages
            if is_wanted or (is_due and size >= state.failed_at * GROWN):
                yield from self._sum_up(thinking, provider, room, state, sizes, is_wanted=is_wanted)
                size = sum(sizes_of(thinking.messages))
            yield from self._tell(thinking, provider, room, state, size)
        else:
            if thinking.wants_room:
                thinking.wants_room = False
                yield Notice(NEVER_SUMS_UP.format(model=provider.model))
            size = sum(sizes)
        self._measured = (thinking.messages, len(thinking.messages), size)
        shown_bytes = size if room is None else min(size, room.space)
        thinking.asked_bytes = self._fixed.get(provider.limits, 0) + shown_bytes

    def view(
        self, messages: Sequence[ChatMessage], limits: ModelLimits, *, system: str
    ) -> tuple[ChatMessage, ...]:
        """What a model of these limits is shown."""
        fitting = fit(messages, limits, system=system)
        if limits.prompt_bytes is not None:
            return fitting
        fixed = self._fixed.get(limits)
        if fixed is None:  # one further on in a chain: its instructions and tools are those of the first
            fixed = max([len(system.encode()), *self._fixed.values()])
        room = self._room_of(limits, self._models.get(limits, ""), fixed)
        if room is None or self._fits(messages, fitting, room):
            return fitting
        return shown(fitting, room.space)

    def overflowed(
        self, thinking: Thinking, provider: Provider, *, system: str, tools: Sequence[ToolSchema]
    ) -> Generator[AgentEvent, None, bool]:
        """After a provider said the question is too long: whether it is shorter now, and worth a try."""
        if provider.limits.prompt_bytes is not None or thinking.overflows >= REDUCTIONS:
            return False
        before = thinking.asked_bytes
        thinking.overflows += 1
        self._estimator.refused(provider.model, before)
        room = self._room(provider, system, tools)
        assert room is not None  # there is a ceiling now
        size = sum(sizes_of(shown(thinking.messages, room.space)))
        if self._fixed[provider.limits] + size >= before:
            return False  # instructions and tools alone are too long, or one call that cannot be cut
        if thinking.overflows == 1:
            yield Notice(f"{provider.model} found the question too long; it is shortened and asked again.")
        return True

    def heard(self, thinking: Thinking, call: ModelCall) -> None:
        """What the provider counted for the question that was asked last."""
        if call.outcome == "done" and not call.is_estimated and call.model in self._models.values():
            self._estimator.learn(call.model, thinking.asked_bytes, call.usage.input_tokens)

    def _fits(self, messages: Sequence[ChatMessage], fitting: Sequence[ChatMessage], room: Room) -> bool:
        """Whether these are what was measured last, whole, and small enough."""
        if self._measured is None or len(fitting) != len(messages):
            return False
        measured, count, size = self._measured
        return measured is messages and count == len(messages) and size <= room.space

    def _sum_up(
        self,
        thinking: Thinking,
        provider: Provider,
        room: Room,
        state: _State,
        sizes: Sequence[int],
        *,
        is_wanted: bool,
    ) -> Generator[AgentEvent, None, None]:
        messages = thinking.messages
        tail_bytes = int(min(room.space, sum(sizes)) * TAIL_SHARE)
        place = cut(messages, sizes, tail_bytes=tail_bytes)
        if place is None:
            if is_wanted:
                yield Notice("There is nothing to sum up yet.")
            return
        covered, kept = messages[:place], tuple(messages[place:])
        before = thinking.summary if has_summary(messages) else None
        pins = pins_of(covered, before, space=room.space)
        replaced = sum(sizes[:place])
        text_bytes = room.space // 8
        answer = yield from self._ask(thinking, provider, covered, room, text_bytes)
        outcome: Summary | Refused
        if isinstance(answer, Refused):
            outcome = answer
        else:
            outcome = checked(answer, pins, covered, size_bytes=text_bytes, replaced_bytes=replaced)
        if isinstance(outcome, Refused):
            state.failed_at = sum(sizes)
            yield Compacted(None, ())
            yield Notice(f"The summary of older messages {outcome.why}; they are kept as they are.")
            return
        said = last_said(messages)
        request = messages[said] if place > said else None
        shown_before = len(before.shown()) if before is not None else 0
        count = place - shown_before + (before.messages if before is not None else 0)
        assert request is None or isinstance(request, UserMessage)
        summary = msgspec.structs.replace(outcome, request=request, messages=count)
        made = [*summary.shown(), *kept]
        if sum(sizes_of(made)) >= sum(sizes):
            state.failed_at = sum(sizes)
            yield Compacted(None, ())
            yield Notice("The summary of older messages saved nothing; they are kept as they are.")
            return
        yield Compacted(summary, kept)
        thinking.messages[:] = made
        thinking.summary = summary
        state.failed_at, state.is_told_short = 0, False
        yield Notice(f"{place} older messages were summed up to make room; nothing of them is deleted.")

    def _ask(
        self,
        thinking: Thinking,
        provider: Provider,
        covered: Sequence[ChatMessage],
        room: Room,
        text_bytes: int,
    ) -> Generator[AgentEvent, None, str | Refused]:
        """The model's summary, its calls told of and its words not."""
        turn = thinking.context.turn
        request = ModelRequest(
            system=instructions(text_bytes),
            messages=(UserMessage(transcript(covered, room.space * 3 // 4)),),
            tools=(),
            cancel=turn.cancel,
            deadline=turn.deadline.sooner(self._summary_s),
            longest_wait_s=min(10.0, self._summary_s),
            barred=thinking.barred,
        )
        for event in provider.stream(request):
            if isinstance(event, Called):
                thinking.usage += event.call.usage
                thinking.spent += Spent.of(event.call)
                yield Called(msgspec.structs.replace(event.call, purpose=PURPOSE))
            elif isinstance(event, Done):
                if event.reply.tool_calls:
                    return Refused("asked for tools")
                if event.stop_reason == "length":
                    return Refused("did not come to its end")
                return event.reply.text
            elif isinstance(event, Failed):
                if event.kind is FailureKind.CANCELLED:
                    turn.cancel.check()
                if event.kind is FailureKind.TIMEOUT:
                    return Refused("took too long")
                return Refused(f"failed ({' '.join(event.message.split())})")
        return Refused("failed (no answer)")

    def _tell(
        self, thinking: Thinking, provider: Provider, room: Room, state: _State, size: int
    ) -> Generator[AgentEvent, None, None]:
        """Say once that not everything is shown."""
        messages = thinking.messages
        if size <= room.space:
            state.is_told_short = False
            return
        said = last_said(messages)
        if said == len(messages) - 1 and size_of(messages[said]) > room.space * 5 // 8:
            yield Notice(
                f"Your message is longer than {provider.model} can take; its middle is left out for it. "
                "Send long text as a file."
            )
        elif not state.is_told_short:
            state.is_told_short = True
            yield Notice(
                f"{provider.model} is shown only the latest of this conversation; the rest is kept."
            )

    def _room(self, provider: Provider, system: str, tools: Sequence[ToolSchema]) -> Room | None:
        limits = provider.limits
        if limits.prompt_bytes is not None:
            return None
        fixed = len(system.encode()) + self._estimator.tools_size(tools)
        if len(self._models) > KNOWN_CONVERSATIONS:
            self._models.clear()
            self._fixed.clear()
        self._models[limits] = provider.model
        self._fixed[limits] = fixed
        return self._room_of(limits, provider.model, fixed)

    def _room_of(self, limits: ModelLimits, model: str, fixed: int) -> Room | None:
        return room_of(
            limits, model, fixed_bytes=fixed, threshold=self._threshold, estimator=self._estimator
        )

    def _state(self, conversation_id: str) -> _State:
        state = self._states.setdefault(conversation_id, _State())
        self._states.move_to_end(conversation_id)
        if len(self._states) > KNOWN_CONVERSATIONS:
            self._states.popitem(last=False)
        return state
