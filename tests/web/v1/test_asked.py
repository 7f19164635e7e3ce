"""What a chat completions request asks for, and how it is refused."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from fermix.ids import is_id
from fermix.messages import AssistantMessage, Pin, UserMessage
from fermix.web.bodies import decode
from fermix.web.refusals import Refused
from fermix.web.v1 import asked
from fermix.web.v1.failure import shape
from fermix.web.v1.wire import ChatRequest

PNG = "data:image/png;base64," + base64.b64encode(b"\x89PNG picture").decode()


def read(*messages: dict[str, Any], header: str | None = None, **more: Any) -> asked.Asked:
    body = json.dumps({"model": "fermix", "messages": list(messages), **more}).encode()
    return asked.understand(decode(body, ChatRequest), session=header)


def user(content: Any) -> dict[str, Any]:
    return {"role": "user", "content": content}


def refused(body: bytes) -> tuple[str, str | None, str]:
    """Code, part and words of the refusal."""
    with pytest.raises(Refused) as refusal:
        asked.understand(decode(body, ChatRequest), session=None)
    error = shape(refusal.value).error
    return error.code or "", error.param, error.message


def test_last_user_message_is_answered_and_the_earlier_ones_are_its_history() -> None:
    found = read(
        user("one"), {"role": "assistant", "content": "1"}, user([{"type": "text", "text": "two"}])
    )

    assert found.words == "two"
    assert found.earlier == (UserMessage("one"), AssistantMessage("1"))
    assert (found.session, found.notice, found.is_stream, found.files) == (None, None, False, ())


def test_instructions_of_the_program_stand_in_front_of_the_words() -> None:
    found = read(
        {"role": "system", "content": "Rhyme."},
        {"role": "developer", "content": [{"type": "text", "text": "Be short."}]},
        user("hello"),
    )

    assert found.words == "Instructions of the calling program:\nRhyme.\n\nBe short.\n\nThe message:\nhello"
    assert found.earlier == ()


@pytest.mark.parametrize("more", [{"header": "trip"}, {"metadata": {"session": "trip", "other": "x"}}])
def test_named_session_keeps_its_own_history_and_says_so(more: dict[str, Any]) -> None:
    found = read(user("one"), {"role": "assistant", "content": "1"}, user("two"), **more)

    assert (found.session, found.words, found.earlier) == ("trip", "two", ())
    assert "earlier messages of the request were ignored" in (found.notice or "")


def test_files_come_along_with_the_words_and_get_names() -> None:
    pdf = "data:application/pdf;base64," + base64.b64encode(b"%PDF").decode()

    found = read(
        user(
            [
                {"type": "text", "text": "look"},
                {"type": "image_url", "image_url": {"url": PNG, "detail": "low"}},
                {"type": "file", "file": {"file_data": pdf, "filename": "bill.pdf"}},
            ]
        )
    )

    assert found.words == "look"
    assert found.files == (
        asked.File("image-1.png", "image/png", b"\x89PNG picture"),
        asked.File("bill.pdf", "application/pdf", b"%PDF"),
    )


def test_picture_alone_is_a_message() -> None:
    assert read(user([{"type": "image_url", "image_url": {"url": PNG}}])).words == ""


def test_files_of_earlier_messages_are_only_marked() -> None:
    found = read(user([{"type": "image_url", "image_url": {"url": PNG}}]), user("and now?"))

    assert found.earlier == (UserMessage(asked.NOT_TEXT),)


def test_what_has_no_use_here_is_ignored_with_a_notice_or_silently() -> None:
    found = read(
        user("hello"),
        tools=[{"type": "function"}],
        max_tokens=5,
        temperature=0.3,
        user="me",
        seed=1,
        store=True,
        stream=True,
        stream_options={"include_usage": True},
    )

    assert found.notice == "Ignored: tools, max_tokens; fermix acts with its own tools and limits."
    assert (found.is_stream, found.includes_usage) == (True, True)


def test_null_is_as_good_as_nothing() -> None:
    found = read(user("hello"), tools=None, n=None, stream=None, stream_options=None, metadata=None)

    assert (found.notice, found.is_stream) == (None, False)


def test_tool_results_and_what_follows_the_words_are_ignored_with_a_notice() -> None:
    found = read(
        user("one"),
        {"role": "assistant", "content": None, "tool_calls": []},
        {"role": "tool", "tool_call_id": "c", "content": "42"},
        user("two"),
        {"role": "assistant", "content": "The answer is"},
    )

    assert (found.words, found.earlier) == ("two", (UserMessage("one"),))
    assert "Tool results" in (found.notice or "") and "after the last one" in (found.notice or "")


def test_only_the_latest_of_a_long_history_is_taken_over() -> None:
    found = read(*[user(str(number)) for number in range(500)])

    assert len(found.earlier) == asked.MOST_EARLIER
    assert found.earlier[-1] == UserMessage("498")


@pytest.mark.parametrize(
    ("body", "code", "param", "words"),
    [
        (b"", "json_invalid", None, "no JSON"),
        (b"{", "json_invalid", None, "no JSON"),
        (b"\xff", "json_invalid", None, "JSON"),
        (b"[]", "invalid_value", None, "Expected `object`"),
        (b'{"x":' + b"[" * 100_000, "json_invalid", None, "JSON"),
        (b"{}", "missing_required_parameter", "model", "model is missing"),
        (
            b'{"model":"fermix"}',
            "missing_required_parameter",
            "messages",
            "messages is missing",
        ),
        (b'{"model":"fermix","messages":[]}', "invalid_value", "messages", "length >= 1"),
        (b'{"model":"fermix","messages":[{}]}', "missing_required_parameter", "messages[0].role", "role"),
        (
            b'{"model":"fermix","messages":[{"role":"king","content":"x"}]}',
            "invalid_value",
            "messages[0].role",
            "'king'",
        ),
        (
            b'{"model":"fermix","messages":[{"role":"user","content":7}]}',
            "invalid_value",
            "messages[0].content",
            "got `int`",
        ),
        (
            b'{"model":"fermix","messages":[{"role":"user","content":[{"type":"input_audio"}]}]}',
            "invalid_value",
            "messages[0].content[0].type",
            "'input_audio'",
        ),
        (
            b'{"model":"fermix","messages":[{"role":"user","content":" "}]}',
            "invalid_value",
            "messages[0].content",
            "empty",
        ),
        (
            b'{"model":"fermix","messages":[{"role":"system","content":"x"}]}',
            "invalid_value",
            "messages",
            "role 'user'",
        ),
    ],
)
def test_unreadable_request_is_refused_by_its_part(
    body: bytes, code: str, param: str | None, words: str
) -> None:
    told = refused(body)

    assert told[:2] == (code, param)
    assert words in told[2]


@pytest.mark.parametrize(
    ("more", "code", "param"),
    [
        ({"model": "gpt-4o"}, "model_not_found", "model"),
        ({"n": 2}, "unsupported_value", "n"),
        ({"n": 0}, "invalid_value", "n"),
        ({"response_format": {"type": "json_schema"}}, "unsupported_value", "response_format.type"),
        ({"response_format": {"type": "json_object"}}, "unsupported_value", "response_format.type"),
        ({"stream": "yes"}, "invalid_value", "stream"),
    ],
)
def test_what_cannot_be_given_is_refused(more: dict[str, Any], code: str, param: str) -> None:
    body = {"model": "fermix", "messages": [user("hello")], **more}

    assert refused(json.dumps(body).encode())[:2] == (code, param)


@pytest.mark.parametrize(
    ("url", "code"),
    [
        ("http://127.0.0.1:9/x.png", "unsupported_value"),
        ("https://example.org/x.png", "unsupported_value"),
        ("file:///etc/passwd", "unsupported_value"),
        ("data:image/png,raw", "unsupported_value"),
        ("data:image/png;base64,???", "invalid_value"),
        ("data:image/png;base64,", "invalid_value"),
        ("", "unsupported_value"),
    ],
)
def test_image_that_is_not_in_the_request_is_refused_unfetched(url: str, code: str) -> None:
    content = [{"type": "image_url", "image_url": {"url": url}}]
    body = json.dumps({"model": "fermix", "messages": [user(content)]}).encode()

    assert refused(body)[:2] == (code, "messages[0].content[0].image_url.url")


@pytest.mark.parametrize(
    "media", ["../../etc;base64", "a/../../b;base64", ";base64", "image/svg+xml;base64"]
)
def test_media_type_never_makes_a_path(media: str) -> None:
    found = read(user([{"type": "image_url", "image_url": {"url": f"data:{media},QUJD"}}]))

    assert "/" not in found.files[0].name and not found.files[0].name.startswith(".")


def test_same_key_is_the_same_message_within_its_session() -> None:
    first = asked.client_id("order 7", session=None)

    assert is_id(first)
    assert asked.client_id("order 7", session=None) == first
    assert asked.client_id("order 7", session="main") != first
    assert asked.client_id("order 8", session=None) != first


def test_two_different_sessions_are_refused_and_the_same_one_twice_is_not() -> None:
    with pytest.raises(Refused, match=r"metadata\.session 'other'"):
        read(user("hello"), header="trip", metadata={"session": "other"})

    assert read(user("hello"), header="trip", metadata={"session": "trip"}).session == "trip"


def test_a_model_of_a_provider_and_its_effort_are_a_pin_on_this_answer() -> None:
    assert read(user("hi")).pin is None
    assert read(user("hi"), model="openrouter/a/b", reasoning_effort="high").pin == Pin(
        "openrouter", "a/b", "high"
    )
