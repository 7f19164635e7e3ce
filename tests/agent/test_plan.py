"""The list of steps a person sees."""

from __future__ import annotations

from fermix.agent.events import Planned
from fermix.agent.plan import Plan, plan_of
from fermix.cli.activity import plan_lines
from fermix.gateway.publish import publish
from fermix.gateway.watch import TurnLog
from fermix.ipc.client import Event
from fermix.messages import AssistantMessage, ToolMessage, UserMessage
from tests.fakes import call


def test_plan_that_was_shown_last_counts_and_a_refused_one_does_not() -> None:
    messages = [
        UserMessage("go"),
        AssistantMessage("", (call("plan", id="a", steps=["one", "two"], done=1),)),
        ToolMessage("a", "plan", "Shown."),
        AssistantMessage("", (call("plan", id="b", steps=[]),)),
        ToolMessage("b", "plan", "No steps.", is_error=True),
    ]

    plan = plan_of(messages)

    assert plan == Plan(("one", "two"), 1)
    assert (plan.left, plan.words()) == (("two",), "- [x] one\n- [ ] two")


def test_person_sees_the_steps_and_which_are_done() -> None:
    log = TurnLog("t")

    publish(log, Planned(Plan(("look", "write \x1b[31mred"), 1)))

    event = next(log.watch(0, 0.01))
    assert (event.name, event.data["steps"][0]) == ("plan", {"text": "look", "is_done": True})
    shown = plan_lines(Event(1, event.name, event.data), 40).splitlines()
    assert shown[0] == "✓ look" and "\x1b" not in shown[1]
