"""The agent loop: model, tools, repeat. Policy, storage and delivery live elsewhere."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence

from fermix.agent.acting import Hands, Invoke
from fermix.agent.budget import Over, estimated, over, over_at
from fermix.agent.classify import Choice, Toolsets, classify
from fermix.agent.composer import Composer
from fermix.agent.events import (
    AgentEvent,
    Corrected,
    Notice,
    Phase,
    PhaseChanged,
    Planned,
    Replied,
    TurnEnded,
    TurnStatus,
)
from fermix.agent.outcome import Outcome, outcomes_of
from fermix.agent.pictures import Album
from fermix.agent.plan import TOOL, plan_of
from fermix.agent.settings import AgentSettings, BudgetSettings
from fermix.agent.summing import summed_up
from fermix.agent.thinking import Keeper, PlainKeeper, Thinking
from fermix.agent.verify import correction
from fermix.capabilities.registry import Registry
from fermix.messages import AssistantMessage, ChatMessage, ToolCall, ToolMessage, UserMessage
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
from fermix.usage.spent import Spent


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
        budget: BudgetSettings | None = None,
        toolsets: Toolsets | None = None,
    ) -> None:
        """`composer` None gives the instructions fermix would have seeded, `album` None no pictures.

        `keeper` None shows models what fits and makes no room, `budget` None sets no limit but the steps;
        `toolsets` are those of the agent before it, so that conversations keep their tools.
        """
        self.provider = provider
        self._keeper = keeper or PlainKeeper()
        self._album = album or Album(lambda images: {})
        self.composer = composer or Composer(settings)
        self._registry = registry
        self._hands = Hands(registry, invoke)
        self._budget = budget or BudgetSettings()
        self.toolsets = toolsets or Toolsets()
        self._settings = settings
        self.has_noticed = False
        """Whether the provider's notice was given; whoever makes another agent of it hands this on."""

    def run(self, thinking: Thinking) -> Iterator[AgentEvent]:
        """Think and act until there is an answer; the last event is always one TurnEnded.

        Contract: whoever consumes the events stores each Replied and ToolReplied before asking
        for the next one, so no tool starts before the reply that asked for it is durable.
        Raises: Cancelled when the turn is stopped while a tool runs.
        """
        thinking.barred = lambda name, price: (
            why.words if (why := over_at(name, thinking, self._budget, price=price)) else None
        )
        choice = yield from self._look_at(thinking)
        while True:
            # Looked at before anything is taken up: what a person adds behind the end gets its own turn.
            limit = self._over(thinking, choice)
            if limit is None and (added := thinking.steered()):
                thinking.messages += added
                limit = self._over(thinking, choice)
            if limit is not None:
                yield from self._stop(thinking, limit)
                return
            outcome = yield from self._ask(thinking)
            if isinstance(outcome, Failed):
                yield from self._fail(thinking, outcome)
                return
            if not outcome.tool_calls:
                yield from self._finish(thinking, outcome)
                return
            thinking.messages.append(outcome)
            thinking.said = outcome.text.strip() or thinking.said
            yield Replied(outcome)
            if (stuck := (yield from self._act(thinking, outcome.tool_calls))) is not None:
                yield from self._stop(thinking, Over("tool_repeated", stuck))
                return

    def _look_at(self, thinking: Thinking) -> Generator[AgentEvent, None, Choice]:
        """What came, and what it gets; told only where that is not the usual."""
        limits = self.provider.limits
        thinking.outcomes = [self._outcome(*pair) for pair in outcomes_of(thinking.messages)]
        if thinking.outcomes:
            count = len(thinking.outcomes)
            yield PhaseChanged(Phase.PERCEIVE, f"goes on after {count} tool results of an earlier life")
        if _has_pictures(thinking.messages):
            shown = "are shown" if limits.sees_images else "are told by their names"
            yield PhaseChanged(Phase.PERCEIVE, f"pictures came, which {shown}")
            if not limits.sees_images:
                yield Notice(f"{self.provider.model} does not see pictures; it is told their names.")
        if self._budget.counts_money and self.provider.price is None:
            yield Notice(f"What {self.provider.model} costs is not known: limits of money do not count it.")
        choice = thinking.choice = classify(thinking.messages, steps=self._settings.steps_per_turn)
        if words := choice.words(limits):
            yield PhaseChanged(Phase.CLASSIFY, words)
        return choice

    def _over(self, thinking: Thinking, choice: Choice) -> Over | None:
        """Why the next question must not be asked; None when it may be."""
        estimate = 0
        if self._budget.counts:
            system = self.composer.system(self.provider.limits)
            estimate = estimated(thinking.messages, self._schemas(thinking, self.provider.limits), system)
        thinking.estimate = estimate
        price = self.provider.price
        return over(thinking, self._budget, steps=choice.steps, price=price, estimate=estimate)

    def _over_next(self, thinking: Thinking) -> Failed | None:
        """Why nothing more may be asked within this step, after a call that did not answer it."""
        why = self.provider.name, self.provider.price
        barred = thinking.barred(*why) if thinking.barred is not None else None
        return Failed(FailureKind.BUDGET, barred, retryable=False) if barred is not None else None

    def tidied(self, thinking: Thinking) -> Iterator[AgentEvent]:
        """After an answer was delivered: sum up what the next question would have no room for."""
        limits = self.provider.limits
        if thinking.choice is None or self._over(thinking, thinking.choice) is not None:
            return
        yield from self._keeper.prepared(
            thinking,
            self.provider,
            system=self.composer.system(limits),
            tools=self._schemas(thinking, limits),
        )

    def _ask(self, thinking: Thinking) -> Generator[AgentEvent, None, AssistantMessage | Failed]:
        """The model's whole reply, its deltas yielded on the way."""
        thinking.steps += 1
        yield PhaseChanged(Phase.REASON, f"step {thinking.steps}: asks {self.provider.model}")
        limits = self.provider.limits
        system, tools = self.composer.system(limits), self._schemas(thinking, limits)
        before = thinking.spent
        yield from self._keeper.prepared(thinking, self.provider, system=system, tools=tools)
        if thinking.spent is not before and (limit := self._over_next(thinking)) is not None:
            return limit
        request = self._question(thinking, limits)
        for event in self.provider.stream(request):
            if isinstance(event, TextDelta | ReasoningDelta | Restarted):
                yield event
            elif isinstance(event, Called):
                thinking.usage += event.call.usage
                thinking.spent += Spent.of(event.call)
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
                return self._over_next(thinking) or (yield from self._ask(thinking))
            elif event.kind is FailureKind.CONTEXT_OVERFLOW and (
                yield from self._keeper.overflowed(thinking, self.provider, system=system, tools=tools)
            ):
                return self._over_next(thinking) or (yield from self._ask(thinking))
            else:
                return event
        return Failed(
            FailureKind.PROTOCOL, f"{self.provider.name} ended without an answer.", retryable=False
        )

    def _question(self, thinking: Thinking, limits: ModelLimits) -> ModelRequest:
        """What is asked of a model of these limits."""
        system = self.composer.system(limits)
        turn = thinking.context.turn
        messages = self._keeper.view(thinking.messages, limits, system=system)
        return ModelRequest(
            system=system,
            messages=messages,
            images=self._album.of(messages) if limits.sees_images else {},
            tools=self._schemas(thinking, limits),
            cancel=turn.cancel,
            deadline=turn.deadline,
            effort=thinking.choice.effort(limits) if thinking.choice else None,
            conversation_id=thinking.conversation_id,
            fitted=lambda other: self._question(thinking, other),
            barred=thinking.barred,
        )

    def _schemas(self, thinking: Thinking, limits: ModelLimits) -> tuple[ToolSchema, ...]:
        if not limits.takes_tools:
            return ()
        tools = self._registry.visible(thinking.context.turn.standing)
        return self.toolsets.of(
            thinking.conversation_id, tools, limits, lambda: _last_words(thinking.messages)
        )

    def _act(
        self, thinking: Thinking, calls: tuple[ToolCall, ...]
    ) -> Generator[AgentEvent, None, str | None]:
        """Run the calls of one step; why the turn goes in circles, None when it does not."""
        yield PhaseChanged(Phase.ACT, "runs " + ", ".join(call.name for call in calls))
        heard: list[ToolMessage] = []

        def hear(call: ToolCall, result: ToolMessage) -> ToolMessage:
            heard.append(result)
            thinking.outcomes.append(self._outcome(call, result))
            if (hint := thinking.detector.heard(call, result)) is not None:
                text = f"{result.text}\n[fermix: {hint}]"
                result = ToolMessage(call.id, call.name, text, result.is_error, result.result_id)
            thinking.messages.append(result)
            return result

        yield from self._hands.run(calls, thinking.context, hear)
        if any(result.name == TOOL and not result.is_error for result in heard) and (
            plan := plan_of(thinking.messages)
        ):
            yield PhaseChanged(Phase.PLAN, f"{plan.done} of {len(plan.steps)} steps done")
            yield Planned(plan)
        return thinking.detector.step(heard)

    def _outcome(self, call: ToolCall, result: ToolMessage) -> Outcome:
        return Outcome(call, result, acts=not self._registry.reads_only(call.name))

    def _finish(self, thinking: Thinking, reply: AssistantMessage) -> Iterator[AgentEvent]:
        """The final reply; an empty one is answered for, since a person must be told something."""
        text = reply.text
        if not text.strip():
            text = "The model gave no answer to this. Ask again, perhaps in other words."
            yield PhaseChanged(Phase.SYNTHESIZE, "the model gave no answer")
            yield TextDelta(text)
        elif (added := self._correction(thinking, text)) is not None:
            yield PhaseChanged(Phase.VERIFY, "the record contradicts the answer")
            yield Corrected(added)
            text = f"{text.rstrip()}\n\n{added}"
        if not self.has_noticed and (notice := self.provider.notice()):
            self.has_noticed = True
            yield Notice(notice)
        thinking.messages.append(reply if text == reply.text else AssistantMessage(text))
        yield TurnEnded(TurnStatus.COMPLETED, text, thinking.usage)

    def _correction(self, thinking: Thinking, text: str) -> str | None:
        """What the record adds to the final words."""
        before = (message for message in thinking.messages if isinstance(message, ToolMessage))
        has_acted = any(not self._registry.reads_only(message.name) for message in before)
        plan = plan_of([AssistantMessage("", tuple(one.call for one in thinking.outcomes))])
        return correction(text, thinking.outcomes, plan, has_acted=has_acted)

    def _stop(self, thinking: Thinking, limit: Over) -> Iterator[AgentEvent]:
        """The way out where no question may be asked any more: what was done and what is left."""
        yield PhaseChanged(Phase.SYNTHESIZE, limit.code)
        plan = plan_of(thinking.messages)
        way_on = limit.way_on(has_acted=bool(thinking.outcomes))
        text = summed_up(limit.words, thinking.outcomes, plan, thinking.said, way_on=way_on)
        yield TurnEnded(TurnStatus.FAILED, text, thinking.usage, limit.code)

    def _fail(self, thinking: Thinking, failed: Failed) -> Iterator[AgentEvent]:
        """The way out where a question was not answered."""
        if failed.kind is FailureKind.CANCELLED:
            yield TurnEnded(TurnStatus.CANCELLED, "Stopped.", thinking.usage, "cancelled")
        elif failed.kind is FailureKind.BUDGET:
            asked = self.provider
            why = over_at(asked.name, thinking, self._budget, price=asked.price)
            yield from self._stop(thinking, why or Over("budget_used_up", failed.message))
        elif thinking.outcomes and thinking.context.turn.deadline.is_over():
            yield from self._stop(thinking, Over(failed.kind.value, failed.message))
        else:
            yield TurnEnded(TurnStatus.FAILED, failed.message, thinking.usage, failed.kind.value)


def _last_words(messages: Sequence[ChatMessage]) -> str:
    said = next((message for message in reversed(messages) if isinstance(message, UserMessage)), None)
    return said.text if said is not None else ""


def _has_pictures(messages: Sequence[ChatMessage]) -> bool:
    """Whether pictures came with what a person said last."""
    said = next((message for message in reversed(messages) if isinstance(message, UserMessage)), None)
    return said is not None and bool(said.images)
