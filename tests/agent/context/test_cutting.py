"""What is shown of a conversation that does not fit, and where it may be cut."""

from __future__ import annotations

import itertools
import time

import pytest

from fermix.agent.context.cutting import cut, shown
from fermix.agent.context.estimate import size_of, sizes_of
from fermix.conversations.summaries import Summary
from fermix.messages import AssistantMessage, ToolCall, ToolMessage, UserMessage


def step(number: int, size: int = 100, results: int = 1):
    calls = tuple(ToolCall(f"c{number}-{each}", "shell", {"n": number}) for each in range(results))
    return [
        AssistantMessage("", calls),
        *(ToolMessage(call.id, "shell", "x" * size) for call in calls),
    ]


def turn(number: int, size: int = 100, steps: int = 1):
    messages = [UserMessage(f"request {number}")]
    for each in range(steps):
        messages += step(number * 100 + each, size)
    return [*messages, AssistantMessage(f"answer {number}")]


def conversation(turns: int, size: int = 100):
    return [message for number in range(turns) for message in turn(number, size)]


def are_whole(messages) -> bool:
    """Whether each result stands behind the reply that asked for it, and each call has one."""
    open_calls: list[str] = []
    for message in messages:
        if isinstance(message, ToolMessage):
            if message.call_id not in open_calls:
                return False
            open_calls.remove(message.call_id)
        elif open_calls:
            return False
        elif isinstance(message, AssistantMessage):
            open_calls = [call.id for call in message.tool_calls]
    return not open_calls


def test_what_fits_is_shown_as_it_is() -> None:
    messages = conversation(5)

    assert shown(messages, sum(sizes_of(messages))) == tuple(messages)


@pytest.mark.parametrize("space", [2_000, 3_000, 5_000, 9_000])
@pytest.mark.parametrize("turns", [10, 31, 64])
def test_too_many_messages_are_left_out_whole_and_the_first_request_stays(turns, space) -> None:
    messages = conversation(turns, size=200)

    view = shown(messages, space)

    assert sum(sizes_of(view)) <= space
    assert are_whole(view)
    assert "request 0" in view[0].text
    assert view[-1] == messages[-1]


def test_beginning_moves_seldom_while_a_conversation_grows() -> None:
    messages = conversation(200, size=200)
    starts = []
    for end in range(4, len(messages) + 1, 4):
        view = shown(messages[:end], 6_000)
        starts.append(view[0].text + view[min(2, len(view) - 1)].text)

    moves = sum(before != after for before, after in itertools.pairwise(starts))
    assert moves < len(starts) / 4


def test_request_of_a_long_turn_is_repeated_where_its_first_steps_are_left_out() -> None:
    messages = [*conversation(2), UserMessage("the one to remember")]
    for number in range(60):
        messages += step(900 + number, 300)

    view = shown(messages, 5_000)

    assert sum(sizes_of(view)) <= 5_000
    assert are_whole(view)
    assert any(message.text == "the one to remember" for message in view)


def test_one_message_larger_than_the_window_loses_its_middle() -> None:
    messages = [UserMessage("begin " + "x" * 100_000 + " end")]

    (only,) = shown(messages, 5_000)

    assert size_of(only) <= 5_000
    assert only.text.startswith("begin ") and only.text.endswith(" end")


def test_many_large_results_of_one_step_are_clipped_until_they_fit() -> None:
    messages = [UserMessage("go"), *step(1, 50_000, results=6)]

    view = shown(messages, 8_000)

    assert sum(sizes_of(view)) <= 8_000
    assert are_whole(view)
    assert [type(message) for message in view] == [type(message) for message in messages]


def test_cut_keeps_as_much_as_the_tail_may_take() -> None:
    messages = conversation(20)
    sizes = sizes_of(messages)

    place = cut(messages, sizes, tail_bytes=sum(sizes[-9:]))

    assert place == len(messages) - 8
    assert isinstance(messages[place], UserMessage)


def test_cut_goes_into_the_last_turn_only_between_its_steps() -> None:
    messages = [UserMessage("go")]
    for number in range(20):
        messages += step(number, 200, results=2)

    place = cut(messages, sizes_of(messages), tail_bytes=1_500)

    assert place is not None and isinstance(messages[place], AssistantMessage)
    assert are_whole(messages[place:])


def test_nothing_is_cut_where_only_a_summary_stands_before() -> None:
    summary = Summary(first_request="first", text="some", messages=9)
    messages = [*summary.shown(), UserMessage("go"), *step(1, 9_000)]

    assert cut(messages, sizes_of(messages), tail_bytes=1_000) is None


def test_summary_stays_in_front_when_more_must_be_left_out() -> None:
    summary = Summary(first_request="first", text="some", messages=9)
    messages = [*summary.shown(), *conversation(40, 200)]

    view = shown(messages, 5_000)

    assert "First request:\nfirst" in view[0].text
    assert sum(sizes_of(view)) <= 5_000 and are_whole(view)


def test_ten_thousand_messages_are_measured_within_five_milliseconds() -> None:
    messages = conversation(2_500)
    took = []
    for _ in range(7):
        began = time.perf_counter()
        sum(sizes_of(messages))
        took.append(time.perf_counter() - began)

    assert len(messages) == 10_000
    assert min(took) < 0.005 * 3  # the figure of the quiet machine stands in the shows
