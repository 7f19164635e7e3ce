"""Whatever a server sends on the wires with events of their own, a stream ends in one clear way."""

from typing import Any, cast

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fermix.errors import Unreadable
from fermix.providers.apis.wire import TOKENS_LIMIT, Route, StreamDecoder, WireApi
from fermix.providers.build import APIS, load
from fermix.providers.port import Done, Failed, StreamEvent, TextDelta

from .conftest import ask

UNHURRIED = settings(deadline=None, max_examples=150, suppress_health_check=[HealthCheck.too_slow])
ROUTE = Route(provider="p", model="m")

odd = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=4), inner, max_size=2),
    max_leaves=4,
)


def some(**fields: Any) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({}, optional=fields)


blocks = some(
    type=st.sampled_from(["text", "thinking", "redacted_thinking", "tool_use", "odd"]),
    text=st.text(max_size=4) | odd,
    thinking=st.text(max_size=4),
    signature=st.text(max_size=4),
    data=st.text(max_size=4),
    id=st.sampled_from(["a", "b", ""]) | odd,
    name=st.sampled_from(["t", "u", ""]),
    input=odd,
)
deltas = some(
    text=st.text(max_size=4),
    thinking=st.text(max_size=4),
    signature=st.text(max_size=4) | odd,
    partial_json=st.sampled_from(["{", '"k":1', "}", ""]) | odd,
    stop_reason=st.sampled_from(["end_turn", "tool_use", "max_tokens", "refusal", "odd"]),
)
ANTHROPIC = some(
    type=st.sampled_from(
        ["message_start", "content_block_start", "content_block_delta", "message_delta"] * 3
        + ["content_block_stop", "message_stop", "ping", "error", "odd"]
    ),
    index=st.integers(-1, 3) | odd,
    message=some(usage=some(input_tokens=st.integers(-5, 10**15), output_tokens=odd)) | odd,
    content_block=blocks,
    delta=deltas,
    usage=some(output_tokens=st.integers(-5, 10**15), cache_read_input_tokens=st.integers(-5, 10**15)),
)
functions = some(name=st.sampled_from(["t", "u", ""]) | odd, arguments=odd)
OLLAMA = some(
    message=some(
        content=st.text(max_size=4) | odd,
        thinking=st.text(max_size=4),
        tool_calls=st.lists(some(id=odd, function=functions), max_size=2),
    )
    | odd,
    done=st.booleans() | odd,
    done_reason=st.sampled_from(["stop", "length", "load", "odd"]),
    prompt_eval_count=st.integers(-5, 10**15) | odd,
    eval_count=st.integers(-5, 10**15),
    error=st.none() | odd,
)


def decoder_of(api: str) -> StreamDecoder:
    wire = load(APIS[api])
    return cast(WireApi, wire).decoder(ask(), ROUTE)


def read(api: str, pieces: list[bytes]) -> tuple[list[StreamEvent], Done | Failed | None]:
    """The deltas and what the stream came to; None when it could not be read."""
    decoder = decoder_of(api)
    events: list[StreamEvent] = []
    try:
        for piece in pieces:
            events += decoder.feed(piece)
            if events and isinstance(events[-1], Failed):
                return events[:-1], events[-1]
        return events, decoder.end()
    except Unreadable:
        return events, None


def check(events: list[StreamEvent], end: Done | Failed | None) -> None:
    if not isinstance(end, Done):
        return
    assert "".join(event.text for event in events if isinstance(event, TextDelta)) == end.reply.text
    ids = [call.id for call in end.reply.tool_calls]
    assert len(set(ids)) == len(ids) and all(ids)
    assert all(0 <= count <= 3 * TOKENS_LIMIT for count in msgspec.structs.astuple(end.usage))
    if end.reply.native is not None:
        msgspec.json.encode(end.reply.native)
        kept = [item["id"] for item in end.reply.native.items if item["type"] == "tool_use"]
        assert kept == ids


@UNHURRIED
@given(st.lists(ANTHROPIC, max_size=12))
def test_any_events_of_messages_end_in_one_way(events: list[dict[str, Any]]) -> None:
    check(
        *read("anthropic_messages", [b"data: " + msgspec.json.encode(event) + b"\n\n" for event in events])
    )


@UNHURRIED
@given(st.lists(OLLAMA, max_size=8))
def test_any_lines_of_an_ollama_end_in_one_way(lines: list[dict[str, Any]]) -> None:
    check(*read("ollama_chat", [msgspec.json.encode(line) + b"\n" for line in lines]))


@UNHURRIED
@given(st.lists(st.binary(max_size=40), max_size=6))
@pytest.mark.parametrize("api", APIS)
def test_any_bytes_end_in_one_way(api: str, pieces: list[bytes]) -> None:
    check(*read(api, pieces))


def test_deltas_of_blocks_that_were_never_begun_are_bounded() -> None:
    decoder = decoder_of("anthropic_messages")
    with pytest.raises(Unreadable):
        for index in range(2_000):
            event = {"type": "content_block_delta", "index": index, "delta": {"text": "x"}}
            decoder.feed(b"data: " + msgspec.json.encode(event) + b"\n\n")


def test_a_signature_without_end_is_not_kept_for_ever() -> None:
    decoder = decoder_of("anthropic_messages")
    event = {"type": "content_block_delta", "index": 0, "delta": {"signature": "x" * 100_000}}
    with pytest.raises(Unreadable):
        for _ in range(100):
            decoder.feed(b"data: " + msgspec.json.encode(event) + b"\n\n")


def test_an_error_event_of_messages_that_is_not_json_is_still_an_error() -> None:
    _, failed = read("anthropic_messages", [b"event: error\ndata: we are overloaded\n\n"])
    assert isinstance(failed, Failed)
    assert failed.retryable and "we are overloaded" in failed.message


WITH_COUNT = {
    "openai_chat": (
        '{{"choices": [{{"delta": {{"content": "hi"}}, "finish_reason": "stop"}}],'
        ' "usage": {{"prompt_tokens": {count}, "completion_tokens": 1, "prompt_tokens_details": {count},'
        ' "cost": {count}}}}}'
    ),
    "openai_responses": (
        '{{"type": "response.completed", "response": {{"status": "completed", "output": [{{"type":'
        ' "message", "content": [{{"type": "output_text", "text": "hi"}}]}}],'
        ' "usage": {{"input_tokens": {count}, "output_tokens": 1, "input_tokens_details": {count}}}}}}}'
    ),
    "anthropic_messages": (
        '{{"type": "message_start", "message": {{"usage": {{"input_tokens": {count},'
        ' "output_tokens": 1}}}}}}\n\n'
        'data: {{"type": "content_block_delta", "delta": {{"text": "hi"}}}}\n\n'
        'data: {{"type": "message_delta", "delta": {{"stop_reason": "end_turn"}}, "usage": {count}}}'
    ),
    "ollama_chat": (
        '{{"message": {{"content": "hi"}}, "done": true, "prompt_eval_count": {count}, "eval_count": 1}}'
    ),
}


@pytest.mark.parametrize(
    ("count", "tokens"),
    [
        ("12.0", 12),
        ("12.7", 12),
        ('"17"', 17),
        ("1e3", 1000),
        ("true", 0),
        ("[]", 0),
        ("{}", 0),
        ('"many"', 0),
    ],
)
@pytest.mark.parametrize("api", APIS)
def test_an_odd_count_does_not_cost_the_answer(api: str, count: str, tokens: int) -> None:
    said = WITH_COUNT[api].format(count=count)
    body = f"{said}\n" if api == "ollama_chat" else f"data: {said}\n\n"

    _, end = read(api, [body.encode()])

    assert isinstance(end, Done) and end.reply.text == "hi"
    assert (end.usage.input_tokens, end.usage.output_tokens) == (tokens, 1)


@pytest.mark.parametrize("api", APIS)
def test_counts_without_a_number_count_as_none(api: str) -> None:
    decoder = decoder_of(api)
    said = (
        WITH_COUNT[api].format(count="null").replace('_tokens": 1', '_tokens": []').replace(": 1}", ": []}")
    )
    decoder.feed(f"{said}\n".encode() if api == "ollama_chat" else f"data: {said}\n\n".encode())

    assert decoder.usage is None
