"""A turn on OpenAI's wire: whole, streamed, told again after a crash."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import pytest

from fermix.gateway.watch import TurnEvent
from fermix.web.v1.answer import Told, chunks, whole

USAGE = {"input_tokens": 10, "output_tokens": 4, "cached_tokens": 3}


def answer() -> Told:
    return Told(turn_id="T1", session="main", created_s=7)


def said(text: str) -> TurnEvent:
    return TurnEvent(1, "text_delta", {"text": text})


def named(name: str, /, **data: object) -> TurnEvent:
    return TurnEvent(1, name, data)


def ended(text: str, status: str = "completed", **more: object) -> TurnEvent:
    return TurnEvent(9, "done", {"status": status, "text": text, "usage": USAGE, **more})


def streamed(*events: TurnEvent | None, usage: bool = False) -> list[Any]:
    """What a client reads: JSON objects, and text for the rest."""
    pieces = b"".join(chunks(answer(), events, includes_usage=usage)).decode().split("\n\n")
    assert pieces.pop() == ""
    return [json.loads(piece[6:]) if piece.startswith("data: {") else piece for piece in pieces]


def words(items: Iterable[Any]) -> str:
    return "".join(
        choice["delta"].get("content", "")
        for item in items
        if isinstance(item, dict)
        for choice in item.get("choices", ())
    )


def test_stream_begins_with_the_role_and_ends_with_stop_and_done() -> None:
    items = streamed(named("phase_change", phase="think"), said("Hel"), said("lo"), ended("Hello"))

    assert items[0]["choices"][0]["delta"] == {"role": "assistant", "content": ""}
    assert items[0]["fermix"] == {"turn_id": "T1", "session": "main", "notice": None}
    assert [item["choices"][0]["delta"] for item in items[1:3]] == [{"content": "Hel"}, {"content": "lo"}]
    assert items[3]["choices"][0] == {
        "delta": {},
        "finish_reason": "stop",
        "index": 0,
        "logprobs": None,
    }
    assert items[4:] == ["data: [DONE]"]
    assert {item["id"] for item in items[:4]} == {"chatcmpl-T1"}
    assert "usage" not in items[1]


def test_usage_comes_in_a_chunk_of_its_own_when_asked_for() -> None:
    items = streamed(said("Hello"), ended("Hello"), usage=True)

    assert [item["usage"] for item in items[:-2]] == [None] * 3
    assert items[-2]["choices"] == []
    assert items[-2]["usage"] == {
        "prompt_tokens": 10,
        "completion_tokens": 4,
        "total_tokens": 14,
        "prompt_tokens_details": {"cached_tokens": 3},
    }


def test_silence_is_a_comment() -> None:
    assert streamed(None, ended("x"))[1] == ": working"


def test_words_before_and_after_a_tool_are_paragraphs() -> None:
    items = streamed(
        said("Let me look."),
        named("tool_call_start", call_id="1", name="shell"),
        named("tool_result", call_id="1", name="shell", text="5", is_error=False),
        said("It is 5."),
        ended("It is 5."),
    )

    assert words(items) == "Let me look.\n\nIt is 5."


def test_answer_that_was_never_streamed_comes_at_the_end() -> None:
    assert words(streamed(ended("Commands: …"))) == "Commands: …"


def test_what_the_final_text_says_beyond_the_stream_is_added() -> None:
    assert words(streamed(said("Hel"), ended("Hello"))) == "Hello"


def test_correction_is_appended() -> None:
    items = streamed(said("Two."), named("correction", text="Correction: three."), ended("Two."))

    assert words(items) == "Two.\n\nCorrection: three."


def test_notices_of_the_turn_stand_in_the_last_chunk() -> None:
    items = streamed(said("x"), named("notice", text="It was cut."), ended("x"))

    assert items[-2]["fermix"]["notice"] == "It was cut."


@pytest.mark.parametrize(
    "again",
    [
        ["Hello wor", "ld, how are you?"],
        ["H", "ello world, how are you?"],
        ["Hello world, how are you?"],
        ["Hello ", "world", ", how are you?"],
    ],
)
def test_turn_that_is_told_again_goes_on_where_it_was_cut(again: list[str]) -> None:
    items = streamed(
        said("Hello "),
        said("world"),
        named("restarted"),
        *map(said, again),
        ended("Hello world, how are you?"),
    )

    assert words(items) == "Hello world, how are you?"
    assert items[-1] == "data: [DONE]"


def test_steps_that_are_told_again_are_compared_with_their_gaps() -> None:
    before = [said("Looking."), named("tool_call_start", call_id="1", name="x"), said("It")]
    again = [said("Looking."), named("tool_call_start", call_id="1", name="x"), said("It is 5.")]

    items = streamed(*before, named("restarted"), *again, ended("It is 5."))

    assert words(items) == "Looking.\n\nIt is 5."


def test_restart_before_any_word_is_not_noticed() -> None:
    items = streamed(named("restarted"), said("Hello"), ended("Hello"))

    assert words(items) == "Hello"


@pytest.mark.parametrize("again", [["Good morning"], ["Hello", " moon"], ["Hel"], []])
def test_turn_that_is_told_differently_ends_with_an_error(again: list[str]) -> None:
    items = streamed(
        said("Hello world"), named("restarted"), *map(said, again), ended("".join(again) or "x")
    )

    assert words(items) == "Hello world"
    assert items[-1]["error"]["code"] == "answer_begun_anew"


@pytest.mark.parametrize(
    ("status", "code", "number"),
    [("failed", "auth", 502), ("cancelled", "cancelled", 409), ("interrupted", "interrupted", 500)],
)
def test_turn_that_did_not_complete_is_an_error(status: str, code: str, number: int) -> None:
    ending = ended("No key.", status, error={"code": code, "message": "No key.", "hint": None})

    items = streamed(said("He"), ending)
    answered, body = whole(answer(), ending.data)

    assert (items[-1]["error"]["code"], items[-1]["error"]["message"]) == (code, "No key.")
    assert (answered, json.loads(body)["error"]["code"]) == (number, code)


def test_whole_answer_has_words_tokens_and_what_fermix_adds() -> None:
    told = answer()
    told.notices.append("Ignored: tools.")

    status, body = whole(told, ended("Hello").data)

    assert status == 200
    assert json.loads(body) == {
        "id": "chatcmpl-T1",
        "object": "chat.completion",
        "created": 7,
        "model": "fermix",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": "Hello", "refusal": None},
                "finish_reason": "stop",
                "logprobs": None,
            }
        ],
        "usage": {
            "prompt_tokens": 10,
            "completion_tokens": 4,
            "total_tokens": 14,
            "prompt_tokens_details": {"cached_tokens": 3},
        },
        "fermix": {"turn_id": "T1", "session": "main", "notice": "Ignored: tools."},
    }
