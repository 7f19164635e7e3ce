"""What a turn gets by its message alone."""

from __future__ import annotations

import pytest

from fermix.agent.classify import Kind, Toolsets, choose_tools, classify
from fermix.messages import AssistantMessage, UserMessage
from fermix.providers.port import ModelLimits, ToolSchema
from fermix.tools import TOOLS

THINKING = ModelLimits(efforts=("low", "medium", "high"))


@pytest.mark.parametrize(
    ("text", "kind", "effort"),
    [
        ("hello!", Kind.SMALL_TALK, "low"),
        ("Danke schön", Kind.SMALL_TALK, "low"),
        ("Think hard: why does it fail?", Kind.HARD, "high"),
        ("yes", Kind.WORK, None),
        ("hello, write the report", Kind.WORK, None),
    ],
)
def test_message_decides_kind_and_effort(text: str, kind: Kind, effort: str | None) -> None:
    choice = classify([UserMessage(text)], steps=100)

    assert (choice.kind, choice.effort(THINKING)) == (kind, effort)
    assert choice.effort(ModelLimits()) is None


def test_thanks_in_a_long_conversation_do_not_cost_the_cache() -> None:
    history = [UserMessage("go"), AssistantMessage("done")] * 10

    assert classify([*history, UserMessage("thanks")], steps=100).effort(THINKING) is None


def test_small_window_gets_the_tools_its_words_name_and_keeps_them() -> None:
    toolsets, small = Toolsets(), ModelLimits(window_tokens=1200)

    first = toolsets.of("c", TOOLS, small, lambda: "run a shell script for me")
    later = toolsets.of("c", TOOLS, small, lambda: "what time is it")

    assert "shell" in [tool.name for tool in first]
    assert len(first) < len(TOOLS)
    assert later == first


def test_large_window_gets_all_tools_in_their_order() -> None:
    tools = [ToolSchema(tool.name, tool.description, tool.parameters) for tool in TOOLS]

    assert choose_tools(tools, ModelLimits(window_tokens=100_000), "hi") == tuple(tools)
