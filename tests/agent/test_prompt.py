"""What of a conversation a model is shown."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fermix.agent.composer import Composer
from fermix.agent.prompt import fit
from fermix.agent.settings import AgentSettings
from fermix.messages import AssistantMessage, Image, ToolMessage, UserMessage
from fermix.providers.port import ModelLimits
from tests.fakes import call

WIDE = ModelLimits()
SMALL = ModelLimits(takes_tools=False, prompt_bytes=1024)


def turn(number: int, *, calls: int = 1, size: int = 10) -> list[object]:
    """A turn with a tool step."""
    ids = [f"{number}-{index}" for index in range(calls)]
    return [
        UserMessage(f"ask {number} " + "x" * size),
        AssistantMessage("", tool_calls=tuple(call("look", id=id) for id in ids)),
        *(ToolMessage(id, "look", "seen " * size) for id in ids),
        AssistantMessage(f"answer {number}"),
    ]


def size_of(messages) -> int:
    return sum(len(message.text.encode()) for message in messages)


def test_everything_is_shown_where_only_the_window_counts() -> None:
    messages = [*turn(1), *turn(2)]

    assert fit(messages, WIDE, system="s") == tuple(messages)


def test_history_that_was_cut_begins_with_a_persons_words() -> None:
    assert fit([*turn(1)[2:], *turn(2)], WIDE, system="s") == tuple(turn(2))


def test_turn_longer_than_the_history_is_shown_without_its_beginning() -> None:
    assert fit(turn(1)[1:], WIDE, system="s") == tuple(turn(1)[1:])


@given(
    sizes=st.lists(st.integers(0, 200), min_size=1, max_size=8),
    calls=st.integers(1, 4),
    budget=st.integers(100, 3000),
)
def test_call_and_result_are_never_split(sizes: list[int], calls: int, budget: int) -> None:
    messages = [
        message for number, size in enumerate(sizes) for message in turn(number, calls=calls, size=size)
    ]

    shown = fit(messages, ModelLimits(prompt_bytes=budget), system="s")

    asked = {
        one.id for message in shown if isinstance(message, AssistantMessage) for one in message.tool_calls
    }
    answered = {message.call_id for message in shown if isinstance(message, ToolMessage)}
    assert asked == answered
    assert isinstance(shown[0], UserMessage)


@pytest.mark.parametrize("text", ["short", "x" * 5000, "ü" * 5000, "🙂" * 5000])
def test_prompt_of_the_small_model_is_within_one_kilobyte(text: str) -> None:
    system = Composer(AgentSettings()).system(SMALL)
    history = [
        message
        for number in range(20)
        for message in (UserMessage(f"q{number}"), AssistantMessage("a" * 90))
    ]

    shown = fit([*history, UserMessage(text)], SMALL, system=system)

    assert len(system.encode()) + size_of(shown) <= 1024
    assert shown[-1].text.startswith(text[:50])


def test_cut_question_says_that_it_was_cut() -> None:
    assert fit([UserMessage("x" * 5000)], SMALL, system="s")[0].text.endswith(" […]")


def test_latest_exchange_is_kept_before_older_ones() -> None:
    old, new = [UserMessage("a" * 600), AssistantMessage("b" * 300)], [UserMessage("new")]

    assert fit([*old, *new], SMALL, system="s" * 200) == tuple(new)


@pytest.mark.parametrize("skip", [0, 1])
def test_model_without_tools_reads_past_calls_as_plain_words(skip: int) -> None:
    shown = fit(turn(1)[skip:], SMALL, system="s")

    assert not any(isinstance(message, ToolMessage) for message in shown)
    assert not any(isinstance(message, AssistantMessage) and message.tool_calls for message in shown)
    assert any("look" in message.text for message in shown)


def test_small_model_is_shown_the_persons_words_alone() -> None:
    asked = UserMessage("hi", "[Tue 2026-12-01 13:05 +01:00]", (Image("/p.png", "image/png"),))

    assert fit([asked], SMALL, system="s") == (UserMessage("hi"),)
    assert fit([asked], WIDE, system="s") == (asked,)
