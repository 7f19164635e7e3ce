"""The agent loop against a scripted model and tools of the test's own."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from gevent.event import Event

from fermix.agent.events import Notice, Replied, ToolCalled, ToolReplied, TurnEnded, TurnStatus
from fermix.agent.loop import Agent
from fermix.agent.settings import AgentSettings
from fermix.agent.thinking import Thinking
from fermix.capabilities.context import ToolContext
from fermix.capabilities.invoke import invoke
from fermix.capabilities.registry import Registry
from fermix.capabilities.tool import Tool, tool
from fermix.errors import Cancelled, ToolFailed
from fermix.messages import AssistantMessage, ToolMessage, Usage, UserMessage
from fermix.providers.port import Done, Failed, FailureKind, ModelLimits, TextDelta
from fermix.tasks import Cancel, sleep
from fermix.trust import GUEST_ATTENDED, OPERATOR_ATTENDED, Policy
from tests.fakes import FakeModel, call, tool_context, turn_facts

ENDED_OTHERWISE = (FailureKind.CANCELLED, FailureKind.BUDGET)


class Desk:
    """An agent, its tools and what they did."""

    def __init__(self, *script: object, settings: AgentSettings | None = None, **model: object) -> None:
        self.ran: list[str] = []
        self.hooks: dict[str, Callable[[], None]] = {}
        self.cancel = Cancel()
        self.model = FakeModel(*script, **model)
        self.settings = settings or AgentSettings()
        self.standing = OPERATOR_ATTENDED

    def tools(self) -> tuple[Tool, ...]:
        def act(word: str) -> str:
            self.hooks.get(word, lambda: None)()
            self.ran.append(word)
            if word.startswith("bad"):
                raise ToolFailed("it is broken")
            return f"did {word}"

        @tool(policy=Policy.READ_ONLY)
        def look(ctx: ToolContext, word: str) -> str:
            """Look.

            word: At what.
            """
            return act(word)

        @tool(policy=Policy.EXEC)
        def do(ctx: ToolContext, word: str) -> str:
            """Do.

            word: What.
            """
            return act(word)

        return look, do

    def start(self, *history: object):
        registry = Registry(self.tools())
        run = partial(invoke, registry=registry, redact=str, result_limit_bytes=10_000)
        agent = Agent(self.model, registry, invoke=run, settings=self.settings)
        facts = turn_facts(Path("/"), standing=self.standing, cancel=self.cancel)
        self.thinking = Thinking(tool_context(facts), [*history, UserMessage("go")])
        return agent.run(self.thinking)

    def run(self, *history: object) -> list[object]:
        return list(self.start(*history))


def of_kind(events: list[object], kind: type) -> list:
    return [event for event in events if isinstance(event, kind)]


def test_answer_ends_the_turn_with_its_text_and_usage() -> None:
    events = Desk("hello").run()

    assert of_kind(events, TextDelta) == [TextDelta("hello")]
    assert events[-1] == TurnEnded(TurnStatus.COMPLETED, "hello", Usage(10, 2))


def test_tool_runs_between_two_model_calls_and_usage_adds_up() -> None:
    desk = Desk(call("do", word="it"), "done")

    events = desk.run()

    assert desk.ran == ["it"]
    assert of_kind(events, ToolReplied) == [ToolReplied(ToolMessage("c1", "do", "did it"))]
    assert desk.model.requests[1].messages[-1] == ToolMessage("c1", "do", "did it")
    assert events[-1] == TurnEnded(TurnStatus.COMPLETED, "done", Usage(20, 4))


@pytest.mark.parametrize(
    "calls", [(call("do", word="a"),), (call("look", word="a"), call("look", id="c2", word="b"))]
)
def test_no_tool_runs_before_the_consumer_asks_on_after_the_reply(calls) -> None:
    desk = Desk(calls, "done")
    events = desk.start()

    while not isinstance(next(events), Replied):
        pass
    sleep(0.01)

    assert desk.ran == []
    list(events)
    assert len(desk.ran) == len(calls)


def test_no_next_tool_runs_before_the_consumer_has_the_result_of_the_one_before() -> None:
    desk = Desk((call("do", word="a"), call("do", id="c2", word="b")), "done")
    events = desk.start()

    while not isinstance(next(events), ToolReplied):
        pass

    assert desk.ran == ["a"]
    list(events)
    assert desk.ran == ["a", "b"]


def test_reading_calls_run_side_by_side_and_answer_in_order() -> None:
    second_ran = Event()
    desk = Desk((call("look", word="a"), call("look", id="c2", word="b")), "done")
    desk.hooks = {"a": lambda: second_ran.wait(5), "b": second_ran.set}

    events = desk.run()

    assert desk.ran == ["b", "a"]
    assert [event.result.text for event in of_kind(events, ToolReplied)] == ["did a", "did b"]
    assert [type(event) for event in events if isinstance(event, ToolCalled | ToolReplied)] == [
        ToolCalled,
        ToolCalled,
        ToolReplied,
        ToolReplied,
    ]


def test_acting_call_between_reading_ones_waits_and_is_waited_for() -> None:
    calls = (call("look", word="a"), call("do", id="c2", word="b"), call("look", id="c3", word="c"))
    desk = Desk(calls, "done")
    desk.hooks = {"a": lambda: sleep(0.02)}

    desk.run()

    assert desk.ran == ["a", "b", "c"]


def test_step_limit_ends_with_what_was_done_and_asks_nothing_more() -> None:
    steps = iter(range(9))
    desk = Desk(lambda request: call("do", word=str(next(steps))), settings=AgentSettings(steps_per_turn=3))

    ended = desk.run()[-1]

    assert desk.ran == ["0", "1", "2"]
    assert len(desk.model.requests) == 3
    assert (ended.status, ended.error_code) == (TurnStatus.FAILED, "steps_used_up")
    assert "all of its 3 model calls" in ended.text
    assert "`do` 2: done" in ended.text and "Left to do" in ended.text


@pytest.mark.parametrize("said", ["", "  \n"])
def test_empty_answer_is_answered_for(said: str) -> None:
    events = Desk(said).run()

    assert "gave no answer" in events[-1].text
    assert events[-1].text in [event.text for event in of_kind(events, TextDelta)]


@pytest.mark.parametrize("kind", [kind for kind in FailureKind if kind not in ENDED_OTHERWISE])
def test_failure_of_the_model_ends_the_turn_with_its_words_and_code(kind: FailureKind) -> None:
    ended = Desk(Failed(kind, "The key is wrong.", retryable=False)).run()[-1]

    assert (ended.status, ended.text, ended.error_code) == (
        TurnStatus.FAILED,
        "The key is wrong.",
        kind.value,
    )


def test_cancelled_model_call_is_a_stop() -> None:
    ended = Desk(Failed(FailureKind.CANCELLED, "gone", retryable=False)).run()[-1]

    assert (ended.status, ended.error_code) == (TurnStatus.CANCELLED, "cancelled")


def test_stream_without_an_end_is_a_failure() -> None:
    desk = Desk("never")
    desk.model.stream = lambda request: iter([TextDelta("half")])

    assert desk.run()[-1].error_code == "protocol"


def test_cut_answer_is_said_to_be_cut() -> None:
    events = Desk(Done(AssistantMessage("half an ans"), Usage(), "length")).run()

    assert events[-1].text == "half an ans"
    assert "cut" in of_kind(events, Notice)[0].text


def test_call_that_fails_three_times_in_the_same_way_ends_the_turn() -> None:
    desk = Desk(call("do", word="bad"))

    ended = desk.run()[-1]

    assert desk.ran == ["bad"] * 3
    assert ended.error_code == "tool_repeated"
    assert "do failed 3 times" in ended.text and "it is broken" in ended.text


def test_same_failing_calls_together_three_times_end_the_turn_too() -> None:
    desk = Desk((call("do", word="bad1"), call("do", id="c2", word="bad2")))

    assert desk.run()[-1].error_code == "tool_repeated"
    assert desk.ran == ["bad1", "bad2"] * 3


def test_call_that_fails_beside_one_that_works_is_not_stuck() -> None:
    both = (call("do", word="bad"), call("do", id="c2", word="good"))

    assert Desk(both, both, both, "done").run()[-1].text == "done"


def test_failing_calls_that_differ_do_not_end_the_turn() -> None:
    words = ["bad1", "bad2", "bad1", "bad2", "bad1"]

    assert Desk(*(call("do", word=word) for word in words), "gave up").run()[-1].text == "gave up"


def test_failures_of_an_earlier_turn_do_not_count() -> None:
    failed = [
        message
        for id in ("a", "b")
        for message in (
            AssistantMessage("", tool_calls=(call("do", id=id, word="bad"),)),
            ToolMessage(id, "do", "it is broken", is_error=True),
        )
    ]
    history = [UserMessage("before"), *failed, AssistantMessage("gave up")]

    assert Desk(call("do", word="bad"), "sorry").run(*history)[-1].text == "sorry"


def test_stop_while_a_tool_runs_is_raised() -> None:
    desk = Desk(call("do", word="a"), "never")
    desk.hooks = {"a": lambda: (desk.cancel.set("by /stop"), desk.cancel.check())}

    with pytest.raises(Cancelled):
        desk.run()


def test_stop_while_tools_run_side_by_side_ends_them() -> None:
    desk = Desk((call("look", word="a"), call("look", id="c2", word="b")), "never")
    desk.hooks = {"a": lambda: desk.cancel.set("by /stop"), "b": lambda: sleep(30)}

    with pytest.raises(Cancelled):
        desk.run()
    assert "b" not in desk.ran


def test_calls_with_the_same_id_each_get_a_result() -> None:
    desk = Desk((call("do", word="a"), call("do", word="b")), "done")

    events = desk.run()

    assert [event.result.text for event in of_kind(events, ToolReplied)] == ["did a", "did b"]


def test_guest_is_offered_reading_tools_only_and_refused_the_others() -> None:
    desk = Desk(call("do", word="a"), "ok")
    desk.standing = GUEST_ATTENDED

    events = desk.run()

    assert [schema.name for schema in desk.model.requests[0].tools] == ["look"]
    assert of_kind(events, ToolReplied)[0].result.is_error and desk.ran == []


def test_model_without_tools_is_offered_none() -> None:
    desk = Desk("hi", limits=ModelLimits(takes_tools=False))

    desk.run()

    assert desk.model.requests[0].tools == ()


def test_notice_of_the_provider_is_given_once() -> None:
    desk = Desk("hi")
    desk.model.says_once = "A small model answers."
    registry = Registry(())
    agent = Agent(desk.model, registry, invoke=lambda *_: None, settings=desk.settings)
    thinking = [Thinking(tool_context(turn_facts(Path("/"))), [UserMessage("go")]) for _ in range(2)]

    notices = [of_kind(list(agent.run(one)), Notice) for one in thinking]

    assert notices == [[Notice("A small model answers.")], []]


def test_owner_instructions_are_added_to_every_request() -> None:
    desk = Desk("hi", settings=AgentSettings(instructions="Speak like a pirate."))

    desk.run()

    assert desk.model.requests[0].system.split("\n\n").count("Speak like a pirate.") == 1
