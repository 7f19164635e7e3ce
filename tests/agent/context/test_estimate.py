"""The estimate of tokens follows what providers count."""

from __future__ import annotations

import pytest

from fermix.agent.context.estimate import UNKNOWN, Estimator, size_of
from fermix.agent.context.room import LEAST_BYTES, result_limit, room_of
from fermix.messages import AssistantMessage, Image, NativeReply, ToolCall, UserMessage
from fermix.providers.port import ModelLimits, ToolSchema


def test_first_count_is_taken_as_it_is_and_a_stricter_one_at_once() -> None:
    estimator = Estimator()
    assert estimator.bytes_per_token("m") == UNKNOWN

    estimator.learn("m", 40_000, 10_000)
    assert estimator.bytes_per_token("m") == 4.0
    estimator.learn("m", 20_000, 10_000)
    assert estimator.bytes_per_token("m") == 2.0
    estimator.learn("m", 40_000, 10_000)
    assert estimator.bytes_per_token("m") == 2.0
    for _ in range(60):
        estimator.learn("m", 40_000, 10_000)
    assert estimator.bytes_per_token("m") == 3.75
    assert estimator.bytes_per_token("other") == UNKNOWN


@pytest.mark.parametrize(("size", "tokens"), [(40_000, 2_051), (1_000, 250), (40_000, 0), (40_000, 90_000)])
def test_counts_that_cannot_be_of_the_whole_request_change_nothing(size, tokens) -> None:
    estimator = Estimator()

    estimator.learn("m", size, tokens)

    assert estimator.bytes_per_token("m") == UNKNOWN


def test_all_that_is_sent_of_a_message_counts() -> None:
    plain = size_of(UserMessage("abc"))
    assert size_of(UserMessage("äöü")) == plain + 3
    assert size_of(UserMessage("abc", "[note]")) > plain
    assert size_of(UserMessage("abc", images=(Image("a.png", "image/png"),))) > plain + 1_000
    call = ToolCall("c1", "shell", {"script": "x" * 500})
    assert size_of(AssistantMessage("", (call,))) > 500
    native = NativeReply("anthropic_messages:a", [{"type": "thinking", "thinking": "y" * 900}])
    assert size_of(AssistantMessage("", native=native)) > 900


def test_room_leaves_the_answer_its_place_and_is_due_before_it_is_full() -> None:
    limits = ModelLimits(window_tokens=8_000, max_output_tokens=500)

    room = room_of(limits, "m", fixed_bytes=5_000, threshold=0.85, estimator=Estimator())

    assert room is not None
    assert room.space == int(7_500 * UNKNOWN) - 5_000
    assert room.due == int(6_800 * UNKNOWN) - 5_000


def test_unknown_window_has_no_bound_until_a_provider_refuses() -> None:
    estimator = Estimator()
    limits = ModelLimits()
    assert room_of(limits, "m", fixed_bytes=0, threshold=0.85, estimator=estimator) is None

    estimator.refused("m", 100_000)
    estimator.refused("m", 200_000)

    room = room_of(limits, "m", fixed_bytes=10_000, threshold=0.85, estimator=estimator)
    assert room is not None and room.space == 60_000


def test_tool_result_takes_an_eighth_of_the_window_and_no_more_than_the_setting() -> None:
    assert result_limit(ModelLimits(), 65_536) == 65_536
    assert result_limit(ModelLimits(window_tokens=128_000), 65_536) == 56_000
    assert result_limit(ModelLimits(window_tokens=1_000_000), 65_536) == 65_536
    assert result_limit(ModelLimits(window_tokens=100), 65_536) == LEAST_BYTES


def test_schemas_are_measured_once_and_again_when_they_change() -> None:
    estimator = Estimator()
    one = ToolSchema("shell", "Run.", {"type": "object"})

    assert estimator.tools_size([one, one]) == 2 * estimator.tools_size([one])
    longer = ToolSchema("shell", "Run it.", {"type": "object"})
    assert estimator.tools_size([longer]) == estimator.tools_size([one]) + 3
