"""What it takes to compose the instructions, and to look whether a long conversation still fits."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from fermix.agent.bootstrap import Bootstrap
from fermix.agent.composer import Composer
from fermix.agent.context.estimate import Estimator
from fermix.agent.context.keeper import ContextKeeper
from fermix.agent.settings import AgentSettings
from fermix.agent.thinking import Thinking
from fermix.messages import AssistantMessage, ChatMessage, ToolCall, ToolMessage, UserMessage
from fermix.providers.port import ModelLimits
from tests.bench import Figure, median_ms
from tests.fakes import FakeModel, tool_context, turn_facts

HUGE = ModelLimits(window_tokens=20_000_000)


def measure() -> Iterator[Figure]:
    """Composer, and the check before each question at 200 and at 10,000 messages."""
    settings = AgentSettings(owner_name="Ada", instructions="Be brief. " * 50)
    words = Bootstrap(rules="A rule of the owner. " * 400)

    def compose() -> str:
        return Composer(settings, words, workspace="/home/ada/.fermix/workspace").system(HUGE)

    yield Figure("composing the instructions", median_ms(compose), 2, "ms")
    for count, target in ((200, 0.5), (10_000, 5)):
        yield Figure(f"check before a question, {count:,} messages", _check_ms(count), target, "ms")


def _check_ms(count: int) -> float:
    """Measuring the conversation, deciding, and giving what is shown of it."""
    keeper = ContextKeeper(Estimator(), threshold=0.85, history_messages=2 * count)
    model = FakeModel("hi", limits=HUGE)
    thinking = Thinking(tool_context(turn_facts(Path("/"))), _conversation(count), conversation_id="c")
    system = "You are fermix. " * 200

    def check() -> None:
        assert not list(keeper.prepared(thinking, model, system=system, tools=()))
        assert len(keeper.view(thinking.messages, HUGE, system=system)) == count

    return median_ms(check)


def _conversation(count: int) -> list[ChatMessage]:
    messages: list[ChatMessage] = []
    for number in range(count // 4):
        call = ToolCall(f"c{number}", "shell", {"script": "ls -la /srv/site", "timeout_s": 10})
        messages += [
            UserMessage(f"what the person said, number {number}", "[Monday, 2026-12-01 10:00, in a chat]"),
            AssistantMessage("", (call,)),
            ToolMessage(call.id, "shell", "what the command printed " * 20),
            AssistantMessage("an answer of the model " * 8),
        ]
    return messages
