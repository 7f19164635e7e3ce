"""What watchers are told, by name and field."""

from __future__ import annotations

import pytest

from fermix.agent.events import (
    Notice,
    Phase,
    PhaseChanged,
    ReasoningDelta,
    Replied,
    TextDelta,
    ToolCalled,
    ToolReplied,
    TurnEnded,
    TurnStatus,
)
from fermix.conversations import StoredMessage
from fermix.gateway.publish import PROGRESS_LENGTH, ProgressLine, publish, publish_steps
from fermix.gateway.watch import TurnLog
from fermix.messages import AssistantMessage, ToolMessage, Usage, UserMessage
from tests.fakes import FakeClock, call

CALL = call("look", word="a")
TOKENS = {"input_tokens": 1, "output_tokens": 2, "cached_tokens": 3, "cost_micro_usd": 0}


def told(log: TurnLog) -> list[tuple[str, dict[str, object]]]:
    log.publish("done")
    return [(event.name, event.data) for event in log.follow(0)][:-1]


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        (TextDelta("a"), [("text_delta", {"text": "a"})]),
        (ReasoningDelta("a"), [("reasoning_delta", {"text": "a"})]),
        (
            PhaseChanged(Phase.ACT, "runs look"),
            [("phase_change", {"phase": "act", "decision": "runs look"})],
        ),
        (Notice("a"), [("notice", {"text": "a"})]),
        (Replied(AssistantMessage("said already")), []),
        (
            Replied(AssistantMessage("", tool_calls=(CALL,))),
            [("tool_call_start", {"call_id": "c1", "name": "look"})],
        ),
        (
            ToolCalled(CALL),
            [("tool_call_complete", {"call_id": "c1", "name": "look", "arguments": {"word": "a"}})],
        ),
        (
            ToolReplied(ToolMessage("c1", "look", "seen", is_error=True)),
            [("tool_result", {"call_id": "c1", "name": "look", "text": "seen", "is_error": True})],
        ),
    ],
)
def test_event_is_published_under_its_name_on_the_wire(event, expected) -> None:
    log = TurnLog("t")
    publish(log, event)

    assert told(log) == expected


@pytest.mark.parametrize(
    ("ended", "expected"),
    [
        (
            TurnEnded(TurnStatus.COMPLETED, "a", Usage(1, 2, 3)),
            {"status": "completed", "text": "a", "usage": TOKENS},
        ),
        (
            TurnEnded(TurnStatus.FAILED, "a", Usage(1, 2, 3), "auth"),
            {
                "status": "failed",
                "text": "a",
                "usage": TOKENS,
                "error": {"code": "auth", "message": "a", "hint": None},
            },
        ),
    ],
)
def test_end_carries_an_error_only_when_there_was_one(
    ended: TurnEnded, expected: dict[str, object]
) -> None:
    log = TurnLog("t")
    publish(log, ended)

    assert log.is_over and log.ending == expected


def test_steps_are_told_whole_to_those_who_follow_into_the_next_life() -> None:
    log = TurnLog("t")
    messages = [
        UserMessage("please"),
        AssistantMessage("let me look", tool_calls=(CALL,)),
        ToolMessage("c1", "look", "seen"),
        AssistantMessage(""),
    ]
    steps = [
        StoredMessage(
            id="i", conversation_id="c", turn_id="t", position=number, message=message, created_ms=0
        )
        for number, message in enumerate(messages)
    ]
    publish_steps(log, steps)

    assert [name for name, _ in told(log)] == [
        "text_delta",
        "tool_call_start",
        "tool_call_complete",
        "tool_result",
    ]


def test_progress_shows_the_latest_line_and_no_oftener_than_a_person_reads() -> None:
    log, clock = TurnLog("t"), FakeClock()
    line = ProgressLine(log, clock)

    for text in ("one\ntwo\n", "three\n", "  \n"):
        line(text)
    clock.ms += 600
    line("\n")
    line("x" * 1000)
    clock.ms += 100
    line("too soon")

    assert told(log) == [("progress", {"text": "two"}), ("progress", {"text": "x" * PROGRESS_LENGTH})]
