"""What a summary says of itself when one comes on top of another."""

from __future__ import annotations

from pathlib import Path

from fermix.agent.context.estimate import Estimator
from fermix.agent.context.keeper import ContextKeeper
from fermix.agent.events import Compacted
from fermix.agent.thinking import Thinking
from fermix.messages import AssistantMessage, ChatMessage, UserMessage
from fermix.providers.port import ModelLimits
from tests.fakes import FakeModel, tool_context, turn_facts


def test_a_second_summary_in_one_turn_counts_each_stored_message_once() -> None:
    model = FakeModel("Goal: to talk", "Goal: to talk", limits=ModelLimits(window_tokens=100_000))
    keeper = ContextKeeper(Estimator(), threshold=0.85, history_messages=1000)
    steps: list[ChatMessage] = [AssistantMessage("more " * 200)] * 12
    context = tool_context(turn_facts(Path("/")))
    thinking = Thinking(context, [UserMessage("words"), *steps], conversation_id="c", wants_room=True)
    stored = len(thinking.messages)

    for _ in range(2):
        events = list(keeper.prepared(thinking, model, system="s", tools=()))
        compacted = next(event for event in events if isinstance(event, Compacted))
        assert compacted.summary is not None
        assert compacted.summary.request is not None
        assert compacted.summary.messages == stored - len(compacted.kept)
        thinking.messages += steps
        stored += len(steps)
        thinking.wants_room = True
