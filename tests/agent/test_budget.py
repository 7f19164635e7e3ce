"""Budgets of a turn: what is over is never asked, and the person is told where it stands."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from pathlib import Path

import pytest

from fermix.agent.context.estimate import Estimator
from fermix.agent.context.keeper import ContextKeeper
from fermix.agent.events import AgentEvent, Notice, TurnEnded, TurnStatus
from fermix.agent.loop import Agent
from fermix.agent.settings import AgentSettings, BudgetSettings
from fermix.agent.thinking import Keeper, PlainKeeper, Thinking
from fermix.capabilities.registry import Registry
from fermix.clock import SystemClock
from fermix.messages import AssistantMessage, ToolMessage, Usage, UserMessage
from fermix.providers.chain import Chain
from fermix.providers.port import Failed, FailureKind, ModelLimits, Price, Provider, ToolSchema
from fermix.usage.spent import Spent
from tests.fakes import FakeModel, call, tool_context, turn_facts

PRICE = Price(input=10_000_000, output=10_000_000, cached=0, written=0, as_of="2026-12-01")


class Day:
    """A ledger with what was spent already."""

    def __init__(self, **spent: Spent) -> None:
        self.spent = spent

    def of_conversation(self, conversation_id: str) -> Spent:
        return self.spent.get("conversation", Spent())

    def of_provider(self, provider: str) -> Spent:
        return self.spent.get(provider, Spent())


def spent(tokens: int = 0, micro_usd: int = 0) -> Spent:
    return Spent(1, Usage(tokens, 0), micro_usd)


def turn(
    *models: FakeModel,
    day: Day | None = None,
    timeout_s: float = 30.0,
    keeper: Keeper | None = None,
    **budget: float,
) -> TurnEnded:
    chain = Chain(models, clock=SystemClock())
    *_, ended = events(chain, day=day, timeout_s=timeout_s, keeper=keeper, **budget)
    assert isinstance(ended, TurnEnded)
    return ended


def events(
    chain: Chain,
    *,
    day: Day | None = None,
    timeout_s: float = 30.0,
    keeper: Keeper | None = None,
    steered: Callable[[], Sequence[UserMessage]] = lambda: (),
    **budget: float,
) -> list[AgentEvent]:
    agent = Agent(
        chain,
        Registry(()),
        invoke=lambda call, context: ToolMessage(call.id, call.name, "done"),
        settings=AgentSettings(),
        budget=BudgetSettings(**budget),
        keeper=keeper,
    )
    context = tool_context(turn_facts(Path("/"), timeout_s=timeout_s))
    thinking = Thinking(context, [UserMessage("go on with the work")], conversation_id="c", day=day)
    thinking.steered = steered
    return list(agent.run(thinking))


def priced(*script: object) -> FakeModel:
    model = FakeModel(*script)
    model.price = PRICE
    return model


@pytest.mark.parametrize(
    ("budget", "day"),
    [
        ({"turn_tokens": 200}, Day()),
        ({"turn_usd": 0.001}, Day()),
        ({"conversation_day_tokens": 5000}, Day(conversation=spent(4_900))),
        ({"conversation_day_usd": 1.0}, Day(conversation=spent(0, 999_000))),
        ({"provider_day_tokens": 5000}, Day(fake=spent(5_000))),
        ({"provider_day_usd": 1.0}, Day(fake=spent(0, 1_000_000))),
    ],
)
def test_question_over_a_budget_is_not_asked(budget: dict[str, float], day: Day) -> None:
    model = priced("an answer")

    ended = turn(model, day=day, **budget)

    assert model.requests == []
    assert (ended.status, ended.error_code) == (TurnStatus.FAILED, "budget_used_up")
    assert "Nothing was done" in ended.text and "Left to do" in ended.text
    (setting,) = budget
    assert f"fermix config set budget.{setting} VALUE" in ended.text
    assert ("counts anew tomorrow" in ended.text) == ("_day_" in setting)
    assert "go on`" not in ended.text  # it would end in the same way


def test_question_within_all_budgets_is_asked() -> None:
    limits = {"turn_tokens": 9000, "turn_usd": 1.0, "conversation_day_usd": 1.0, "provider_day_usd": 1.0}

    assert turn(priced("an answer"), day=Day(), **limits).text == "an answer"


def test_budget_used_up_on_the_way_tells_what_was_done_and_what_of_the_plan_is_left() -> None:
    model = FakeModel(
        call("plan", steps=["look", "write it down"], done=1),
        lambda request: call("look", id=str(len(model.requests)), at=len(model.requests)),
    )

    ended = turn(model, turn_tokens=900)

    assert 2 <= len(model.requests) < 100
    assert "`look`" in ended.text and ": done" in ended.text
    assert "Left to do:\n- write it down" in ended.text
    assert ended.text.endswith("Say `go on` to continue from here.")


def test_provider_whose_day_is_spent_is_passed_over_for_the_next() -> None:
    first, second = FakeModel("from the first"), FakeModel("from the second")
    first.name, second.name = "one", "two"

    ended = turn(first, second, day=Day(one=spent(9_000)), provider_day_tokens=5_000)

    assert (ended.text, first.requests) == ("from the second", [])


def test_person_is_told_once_that_another_answers_for_one_whose_day_is_spent() -> None:
    first, second = FakeModel(), FakeModel("a", "b")
    first.name, second.name = "one", "two"
    chain, day = Chain((first, second), clock=SystemClock()), Day(one=spent(9_000))

    told = [
        [
            event.text
            for event in events(chain, day=day, provider_day_tokens=5_000)
            if isinstance(event, Notice)
        ]
        for _ in range(2)
    ]

    assert told == [["one has used up its budget of today; two answers instead."], []]


def test_price_of_the_first_does_not_bar_the_next() -> None:
    dear, cheap = priced("from the first"), FakeModel("from the second")
    dear.name, cheap.name = "dear", "cheap"

    ended = turn(dear, cheap, day=Day(dear=spent(0, 30_000)), provider_day_usd=0.001)

    assert (ended.text, dear.requests) == ("from the second", [])


def test_one_that_stands_in_is_not_asked_when_it_is_too_dear_for_the_turn() -> None:
    first = priced(Failed(FailureKind.QUOTA, "no credit", retryable=False))
    second = priced("from the dear one")
    first.name, second.name = "cheap", "dear"
    first.price = Price(input=1, output=1, cached=0, written=0, as_of="2026-12-01")

    ended = turn(first, second, day=Day(), turn_usd=0.001)

    assert (ended.status, second.requests) == (TurnStatus.FAILED, [])


def test_what_is_added_behind_the_end_of_a_budget_is_not_taken_up() -> None:
    taken: list[UserMessage] = []

    def steered() -> list[UserMessage]:
        taken.append(UserMessage("and this"))
        return taken[-1:]

    *_, ended = events(Chain([FakeModel("x")], clock=SystemClock()), steered=steered, turn_tokens=200)

    assert isinstance(ended, TurnEnded) and ended.error_code == "budget_used_up"
    assert taken == []


class DearKeeper(PlainKeeper):
    """Sums up before the first question, which takes all there is."""

    def prepared(
        self, thinking: Thinking, provider: Provider, *, system: str, tools: Sequence[ToolSchema]
    ) -> Generator[AgentEvent, None, None]:
        assert thinking.barred is not None and thinking.barred(provider.name, PRICE) is None
        thinking.spent += spent(9_000)
        assert "this turn" in (thinking.barred(provider.name, PRICE) or "")
        yield Notice("summed up")


def test_nothing_is_asked_any_more_when_the_summary_took_what_was_left() -> None:
    model = priced("an answer")

    ended = turn(model, day=Day(), turn_tokens=5_000, keeper=DearKeeper())

    assert (ended.error_code, model.requests) == ("budget_used_up", [])


def test_a_summary_is_counted_on_its_turn_and_asked_of_nobody_who_is_barred() -> None:
    model = FakeModel("Goal: to talk", limits=ModelLimits(window_tokens=4_096))
    model.price = PRICE
    keeper = ContextKeeper(Estimator(), threshold=0.85, history_messages=100)
    said = [UserMessage("words " * 200), AssistantMessage("more " * 200)] * 8
    context = tool_context(turn_facts(Path("/")))
    thinking = Thinking(context, [*said, UserMessage("go on")], conversation_id="c")
    thinking.barred = lambda name, price: None

    list(keeper.prepared(thinking, model, system="s", tools=()))

    assert [request.barred for request in model.requests] == [thinking.barred]
    assert thinking.spent.usage == Usage(10, 2)


def test_turn_that_has_no_time_left_asks_nothing() -> None:
    model = FakeModel("an answer")

    ended = turn(model, timeout_s=0.01)

    assert (model.requests, ended.error_code) == ([], "time_used_up")


def test_person_is_told_when_a_limit_of_money_cannot_count() -> None:
    model = FakeModel("an answer")
    model.price = None

    assert turn(model, turn_usd=0.001).text == "an answer"
