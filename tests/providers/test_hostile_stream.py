"""Whatever a server sends, a stream ends in one clear way."""

import gc
import json
import tracemalloc
from typing import Any

import msgspec
import psutil
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fermix.errors import Unreadable
from fermix.providers.apis.openai_chat import API
from fermix.providers.apis.wire import TOKENS_LIMIT, Route
from fermix.providers.port import Done, Failed, ReasoningDelta, StreamEvent, TextDelta

from .conftest import ask

UNHURRIED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
ROUTE = Route(provider="p", model="m")

values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False)
    | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)
calls = st.fixed_dictionaries(
    {},
    optional={
        "index": st.integers(-1, 3) | values,
        "id": st.sampled_from(["a", "b", ""]) | values,
        "function": st.fixed_dictionaries(
            {}, optional={"name": st.sampled_from(["t", "u"]) | values, "arguments": st.text() | values}
        ),
    },
)
choices = st.fixed_dictionaries(
    {},
    optional={
        "index": st.sampled_from([0, 1, None]),
        "delta": st.fixed_dictionaries(
            {}, optional={"content": st.text() | values, "tool_calls": st.lists(calls, max_size=3) | values}
        ),
        "finish_reason": st.sampled_from(
            ["stop", "length", "tool_calls", "content_filter", "error", None, "odd"]
        ),
    },
)
chunks = st.fixed_dictionaries(
    {}, optional={"choices": st.lists(choices, max_size=2) | values, "usage": values, "error": values}
)


def read(pieces: list[bytes]) -> list[StreamEvent]:
    """What the decoder makes of a body; Unreadable counts as an end."""
    decoder = API.decoder(ask(), ROUTE)
    events: list[StreamEvent] = []
    try:
        for piece in pieces:
            events.extend(decoder.feed(piece))
            if events and isinstance(events[-1], Failed):
                return events
        return [*events, decoder.end()]
    except Unreadable as error:
        assert len(error.message) < 1000
        return events


def check(events: list[StreamEvent]) -> None:
    assert sum(isinstance(event, Done | Failed) for event in events) <= 1
    assert all(isinstance(event, TextDelta | ReasoningDelta) for event in events[:-1])
    if events and isinstance(events[-1], Done):
        reply = events[-1].reply
        assert len({call.id for call in reply.tool_calls}) == len(reply.tool_calls)
        assert msgspec.json.decode(msgspec.json.encode(reply), type=type(reply)) == reply


@UNHURRIED
@given(st.lists(st.binary(max_size=60), max_size=6))
def test_random_bytes_end_in_one_way(pieces: list[bytes]) -> None:
    check(read(pieces))


@UNHURRIED
@given(st.lists(chunks, max_size=5), st.booleans())
def test_odd_chunks_end_in_one_way(odd: list[dict[str, Any]], is_marked: bool) -> None:
    pieces = [b"data: " + msgspec.json.encode(chunk) + b"\n\n" for chunk in odd]
    check(read([*pieces, b"data: [DONE]\n\n"] if is_marked else pieces))


def test_an_error_event_that_is_not_json_is_still_an_error() -> None:
    (failed,) = read([b"event: error\ndata: we are overloaded\n\n"])
    assert isinstance(failed, Failed)
    assert failed.retryable and "we are overloaded" in failed.message


def test_ten_thousand_bad_streams_leave_no_memory_behind() -> None:
    bad = [
        b"data: " + b"[" * 5000 + b"\n\n",
        b'data: {"choices":[{"delta":{"content":7}}]}\n\n',
        b"data: " + b"x" * 50_000,
        b"\xff\xfe" * 1000 + b"\n\n",
        b'data: {"choices":[{"delta":{"tool_calls":[{"function":{"arguments":"'
        + b"{" * 9000
        + b'"}}]}}]}\n\n',
    ]
    for _ in range(200):
        for piece in bad:
            read([piece])
    gc.collect()
    before = psutil.Process().memory_info().rss
    for _ in range(2000):
        for piece in bad:
            read([piece])
    gc.collect()
    assert psutil.Process().memory_info().rss - before < 10_000_000


def test_letters_take_hardly_more_memory_than_the_text_they_make() -> None:
    decoder = API.decoder(ask(), ROUTE)
    letters = msgspec.json.encode({"choices": [{"delta": {"content": "x"}}]})
    decoder.feed(b"data: " + letters + b"\n\n")
    tracemalloc.start()
    try:
        for _ in range(500):
            decoder.feed((b"data: " + letters + b"\n\n") * 200)
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert held < 1_000_000


@pytest.mark.parametrize("text", ["a\r\nb\rc\n", "\u2028é\U0001f600", "\0"])
def test_text_is_kept_as_it_came(text: str) -> None:
    chunk = {"choices": [{"delta": {"content": text, "reasoning": text}, "finish_reason": "stop"}]}

    *_, done = read([b"data: " + msgspec.json.encode(chunk) + b"\n\n"])

    assert isinstance(done, Done)
    assert (done.reply.text, done.reply.reasoning) == (text, text)


def test_counts_beyond_belief_are_cut_to_what_can_be_added_up_and_stored() -> None:
    usage = {"prompt_tokens": 10**30, "completion_tokens": -1}
    chunk = {"choices": [{"delta": {"content": "hi"}, "finish_reason": "stop"}], "usage": usage}

    *_, done = read([b"data: " + json.dumps(chunk).encode() + b"\n\n"])

    assert isinstance(done, Done)
    assert (done.usage.input_tokens, done.usage.output_tokens) == (TOKENS_LIMIT, 0)
