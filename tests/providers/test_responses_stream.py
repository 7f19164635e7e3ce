"""Ends and pieces of an answer on the responses wire that no recording has."""

import json
from typing import Any

import pytest

from fermix.providers.apis.responses_stream import ResponsesStream
from fermix.providers.port import Done, Failed, FailureKind, ReasoningDelta, TextDelta

CALL = {"type": "function_call", "call_id": "c1", "name": "file_read", "arguments": '{"path": "a"}'}


def played(*events: dict[str, Any]) -> tuple[list[Any], Done | Failed]:
    stream = ResponsesStream("vendor", {}, "openai_responses:vendor")
    deltas = [
        delta for event in events for delta in stream.feed(b"data: " + json.dumps(event).encode() + b"\n\n")
    ]
    return deltas, stream.end()


@pytest.mark.parametrize("status", ["cancelled", "in_progress", "queued"])
def test_an_answer_of_another_status_is_none(status: str) -> None:
    _, end = played(
        {"type": "response.output_text.delta", "delta": "half"},
        {"type": "response.completed", "response": {"status": status}},
    )
    assert isinstance(end, Failed) and end.kind is FailureKind.TRANSPORT


def test_json_that_is_no_answer_is_none() -> None:
    stream = ResponsesStream("vendor", {}, "openai_responses:vendor")
    stream.whole(b'{"detail": "moved"}')

    assert isinstance(stream.end(), Failed)


def test_the_name_of_the_last_event_stands_for_a_missing_status() -> None:
    for response in ({}, {"response": {"output": [CALL]}}):
        _, end = played({"type": "response.completed", **response})
        assert isinstance(end, Done)
    assert [call.arguments for call in end.reply.tool_calls] == [{"path": "a"}]

    _, end = played({"type": "response.incomplete", "response": {"output": [CALL]}})
    assert isinstance(end, Done) and end.stop_reason == "length"
    assert end.reply.tool_calls[0].broken


def test_a_call_told_three_times_is_made_once() -> None:
    _, end = played(
        {"type": "response.output_item.added", "output_index": 0, "item": {**CALL, "arguments": ""}},
        {"type": "response.function_call_arguments.delta", "output_index": 0, "delta": CALL["arguments"]},
        {
            "type": "response.function_call_arguments.done",
            "output_index": 0,
            "arguments": CALL["arguments"],
        },
        {"type": "response.output_item.done", "output_index": 0, "item": CALL},
        {"type": "response.completed", "response": {"status": "completed", "output": [CALL]}},
    )
    assert isinstance(end, Done)
    assert [(call.id, call.arguments) for call in end.reply.tool_calls] == [("c1", {"path": "a"})]


def test_parts_of_a_summary_stay_apart() -> None:
    summary = [
        {"type": "response.reasoning_summary_part.added", "summary_index": 0},
        {"type": "response.reasoning_summary_text.delta", "delta": "First."},
        {"type": "response.reasoning_summary_part.added", "summary_index": 1},
        {"type": "response.reasoning_summary_text.delta", "delta": "Then."},
    ]
    deltas, end = played(
        *summary,
        {"type": "response.output_text.delta", "delta": "So."},
        {"type": "response.completed", "response": {"status": "completed"}},
    )
    assert isinstance(end, Done) and end.reply.reasoning == "First.\n\nThen."
    assert "".join(each.text for each in deltas if isinstance(each, ReasoningDelta)) == "First.\n\nThen."
    assert [each.text for each in deltas if isinstance(each, TextDelta)] == ["So."]


def test_an_answer_that_failed_is_counted() -> None:
    stream = ResponsesStream("vendor", {}, "openai_responses:vendor")
    failed = {"status": "failed", "error": {"code": "server_error", "message": "boom"}}
    event = {"type": "response.failed", "response": {**failed, "usage": {"input_tokens": 7}}}

    (end,) = stream.feed(b"data: " + json.dumps(event).encode() + b"\n\n")

    assert isinstance(end, Failed) and end.retryable
    assert stream.usage is not None and stream.usage.input_tokens == 7
