"""Every wire API against recorded answers and a scripted server, over a real connection.

Each stream ends exactly once. Recordings follow the vendors' documentation, see the heads of `apis/`.
"""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fermix.errors import Unreadable
from fermix.messages import AssistantMessage, Image, NativeReply, ToolCall, ToolMessage, UserMessage
from fermix.net.door import OwnerDoor
from fermix.providers.apis.wire import Quirks, Route, WireApi
from fermix.providers.build import APIS, load
from fermix.providers.client import HttpProvider
from fermix.providers.port import (
    Called,
    Done,
    Failed,
    FailureKind,
    ModelLimits,
    ModelRequest,
    Price,
    ReasoningDelta,
    Remark,
    StreamEvent,
    TextDelta,
    ToolSchema,
)
from fermix.tasks import Cancel, Deadline, TaskGroup, sleep
from fermix.testing.model_server import ModelServer

CASSETTES = Path(__file__).parent.parent / "fixtures" / "providers"
STATUSES = {f"http_{status}" for status in (400, 401, 403, 404, 408, 409, 429, 500, 502, 503, 529)}
REQUIRED = STATUSES | {
    *("text", "tool_call", "parallel_calls", "reasoning", "abort", "overflow", "empty"),
    *("error_in_stream", "not_streamed", "not_json", "web_page"),
}
PRICE = Price(input=2_000_000, output=10_000_000, cached=200_000, written=2_500_000, as_of="2026-12-01")


def recorded() -> list[tuple[str, str]]:
    return [(api, path.stem) for api in APIS for path in sorted((CASSETTES / api).glob("*.json"))]


def request(*messages: Any, **more: Any) -> ModelRequest:
    tools = tuple(ToolSchema(name, "x", {"type": "object"}) for name in ("file_read", "file_write"))
    return ModelRequest(
        system="s",
        messages=messages or (UserMessage("hi"),),
        tools=tools,
        cancel=more.pop("cancel", None) or Cancel(),
        deadline=Deadline.after(20),
        **more,
    )


def wire_of(api: str) -> WireApi:
    wire = load(APIS[api])
    assert isinstance(wire.path, str)
    return wire


def provider(api: str, base_url: str, *, idle_s: float = 5, **limits: Any) -> HttpProvider:
    route = Route(provider="vendor", model="m", limits=ModelLimits(**limits), price=PRICE)
    return HttpProvider(
        route, wire_of(api), OwnerDoor(base_url), key=lambda: None, idle_timeout_s=idle_s, timeout_s=15
    )


def asked(
    api: str, *steps: dict[str, Any], of: ModelRequest, **more: Any
) -> tuple[list[StreamEvent], list]:
    """The events of one question, and the bodies the server saw."""
    with ModelServer(*steps) as server:
        events = list(provider(api, server.base_url, **more).stream(of))
        return events, [seen.body for seen in server.requests]


def text_of(events: list[StreamEvent]) -> str:
    return "".join(event.text for event in events if isinstance(event, TextDelta))


@pytest.mark.parametrize("api", APIS)
def test_every_api_has_the_recordings_that_matter(api: str) -> None:
    assert {path.stem for path in (CASSETTES / api).glob("*.json")} >= REQUIRED


@pytest.mark.parametrize(("api", "cassette"), recorded())
def test_a_stream_ends_exactly_once_and_as_recorded(api: str, cassette: str) -> None:
    tape = json.loads((CASSETTES / api / f"{cassette}.json").read_text())
    expected = tape["expect"]
    with ModelServer(*tape["answers"]) as server:
        said = list(provider(api, server.base_url).stream(request()))
        asked = len(server.requests)

    *deltas, last = [event for event in said if not isinstance(event, Called)]
    assert isinstance(last, Done | Failed)
    assert all(isinstance(delta, TextDelta | ReasoningDelta) for delta in deltas)
    shown = "".join(delta.text for delta in deltas if isinstance(delta, TextDelta))
    assert asked == expected.get("requests", 1)
    if isinstance(last, Failed):
        assert (last.kind, shown, last.retryable) == (
            expected["failed"], expected["shown"], expected["retryable"],
        )  # fmt: skip
        assert last.message
        return
    assert (last.reply.text, last.stop_reason) == (expected["text"], expected["stop_reason"])
    assert shown == last.reply.text
    assert last.reply.reasoning == expected.get("reasoning", "")
    calls = [[c.id, c.name, c.arguments, c.broken is not None] for c in last.reply.tool_calls]
    wanted = expected.get("calls", [])
    assert [call[1:] for call in calls] == [call[1:] for call in wanted]
    assert all(id == call[0] or call[0] == "*" for (id, *_), call in zip(calls, wanted, strict=True))
    assert len({call[0] for call in calls}) == len(calls)
    assert (last.reply.native.items if last.reply.native else None) == expected.get("native")
    if "usage" in expected:
        assert [
            last.usage.input_tokens, last.usage.output_tokens, last.usage.cached_tokens,
        ] == expected["usage"]  # fmt: skip


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("cassette", ["text", "tool_call", "parallel_calls", "reasoning"])
@pytest.mark.parametrize("size", [1, 7])
def test_cuts_anywhere_in_the_bytes_change_nothing(api: str, cassette: str, size: int) -> None:
    tape = json.loads((CASSETTES / api / f"{cassette}.json").read_text())
    body = "".join(tape["answers"][0]["raw"]).encode()
    decoder = wire_of(api).decoder(request(), Route(provider="vendor", model="m"))

    events = [event for at in range(0, len(body), size) for event in decoder.feed(body[at : at + size])]
    end = decoder.end()

    assert isinstance(end, Done)
    assert text_of(events) == end.reply.text == tape["expect"]["text"]
    assert [call.arguments for call in end.reply.tool_calls] == [
        call[2] for call in tape["expect"].get("calls", [])
    ]


@pytest.mark.parametrize("api", APIS)
def test_an_answer_is_billed_with_what_the_vendor_counted(api: str) -> None:
    details = {"cached_tokens": 40, "cache_write_tokens": 20}
    usage = {"prompt_tokens": 100, "completion_tokens": 10, "prompt_tokens_details": details}
    events, _ = asked(api, {"say": "hello", "chunks": 3, "usage": usage}, of=request())

    called, done = events[-2:]
    assert isinstance(called, Called) and isinstance(done, Done)
    assert called.call.usage == done.usage and not called.call.is_estimated
    assert (done.usage.input_tokens, done.usage.output_tokens) == (100, 10)
    if api != "ollama_chat":  # which has no cache that costs
        assert (done.usage.cached_tokens, done.usage.written_tokens) == (40, 20)
    assert called.call.cost_micro_usd == PRICE.cost(done.usage)


@pytest.mark.parametrize("api", APIS)
def test_a_cut_answer_is_a_failure_that_is_billed(api: str) -> None:
    events, bodies = asked(api, {"say": "one two three", "chunks": 9, "cut_after": 5}, of=request())

    *_, called, failed = events
    assert isinstance(called, Called) and isinstance(failed, Failed)
    assert (failed.kind, called.call.outcome) == (FailureKind.TRANSPORT, "transport")
    assert called.call.usage.input_tokens > 0 and called.call.cost_micro_usd
    assert len(bodies) == 1  # words were shown, so it is not asked again here


@pytest.mark.parametrize("api", APIS)
def test_silence_in_the_middle_is_a_failure_and_before_the_first_word_asked_again_once(api: str) -> None:
    middle, _ = asked(api, {"say": "a b c d e f", "chunks": 9, "hang_after": 5}, of=request(), idle_s=0.2)
    assert isinstance(middle[-1], Failed) and middle[-1].kind is FailureKind.TIMEOUT

    events, bodies = asked(api, {"hang": True}, {"say": "late"}, of=request(), idle_s=0.2)
    assert text_of(events) == "late" and len(bodies) == 2


@pytest.mark.parametrize("api", APIS)
def test_a_slow_first_byte_is_waited_for(api: str) -> None:
    events, _ = asked(api, {"say": "slow", "first_delay_ms": 300}, of=request(), idle_s=2)

    assert text_of(events) == "slow" and isinstance(events[-1], Done)


@pytest.mark.parametrize("api", APIS)
def test_a_cancelled_question_ends_at_once(api: str) -> None:
    cancel, group = Cancel(), TaskGroup("test")
    with ModelServer({"say": "a b c", "chunks": 5, "hang_after": 3}) as server:
        group.start(lambda: (sleep(0.2), cancel.set("by the test")), name="cancel")
        events = list(provider(api, server.base_url).stream(request(cancel=cancel)))
    group.stop(1.0)

    assert isinstance(events[-1], Failed) and events[-1].kind is FailureKind.CANCELLED


@pytest.mark.parametrize("api", APIS)
def test_a_conversation_with_tools_arrives_as_it_was_and_the_same_again(api: str) -> None:
    call = ToolCall("call_1", "file_read", {"path": "a.txt"})
    history = (
        UserMessage("look", note="[today]"),
        AssistantMessage("I look.", (call,)),
        ToolMessage("call_1", "file_read", "contents"),
        AssistantMessage("It says contents."),
        UserMessage("thanks"),
    )
    _, first = asked(api, {"say": "ok"}, of=request(*history))
    _, again = asked(api, {"say": "ok"}, of=request(*history))

    assert first == again
    told = json.dumps(first[0])
    order = ["look", "[today]", "I look.", "file_read", "a.txt", "contents", "It says", "thanks"]
    places = [told.index(words, told.index("look")) for words in order]
    assert places == sorted(places)


@pytest.mark.parametrize("api", APIS)
def test_an_image_is_shown_to_a_model_that_sees_and_to_no_other(api: str) -> None:
    message = UserMessage("what is this?", images=(Image("/w/a.png", "image/png"),))
    of = request(message, images={"/w/a.png": b"picture"})

    _, seen = asked(api, {"say": "a cat"}, of=of, sees_images=True)
    _, blind = asked(api, {"say": "nothing"}, of=of)
    _, gone = asked(api, {"say": "nothing"}, of=request(message), sees_images=True)

    assert "cGljdHVyZQ==" in json.dumps(seen[0]) and "/w/a.png" not in json.dumps(seen[0])
    for body in (blind[0], gone[0]):
        told = json.dumps(body)
        assert "cGljdHVyZQ==" not in told and "what is this?" in told
        assert "not shown to you: /w/a.png" in told


@pytest.mark.parametrize("api", APIS)
def test_the_longest_answer_is_never_more_than_the_model_gives(api: str) -> None:
    _, clamped = asked(api, {"say": "ok"}, of=request(max_output_tokens=20_000), max_output_tokens=16_384)
    _, wanted = asked(api, {"say": "ok"}, of=request(max_output_tokens=100), max_output_tokens=16_384)

    assert "16384" in json.dumps(clamped[0]) and "20000" not in json.dumps(clamped[0])
    assert ": 100" in json.dumps(wanted[0])


@pytest.mark.parametrize("api", APIS)
def test_effort_is_asked_for_where_the_model_has_such_a_level(api: str) -> None:
    _, asked_for = asked(api, {"say": "ok"}, of=request(effort="low"), efforts=("low", "high"))
    _, unknown = asked(api, {"say": "ok"}, of=request(effort="low"))

    assert '"low"' in json.dumps(asked_for[0])
    assert '"low"' not in json.dumps(unknown[0])


@pytest.mark.parametrize("api", ["openai_chat", "openai_responses", "anthropic_messages"])
def test_native_thinking_goes_back_unchanged_to_who_said_it_and_to_no_other(api: str) -> None:
    item = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAA"}
    if api == "anthropic_messages":
        item = {"type": "thinking", "thinking": "", "signature": "gAAA"}
    own = (UserMessage("a"), AssistantMessage("b", native=NativeReply(f"{api}:vendor", [item])))
    other = (UserMessage("a"), AssistantMessage("b", native=NativeReply(f"{api}:another", [item])))

    _, back = asked(api, {"say": "ok"}, of=request(*own, UserMessage("c")))
    _, left_out = asked(api, {"say": "ok"}, of=request(*other, UserMessage("c")))

    assert json.dumps(item) in json.dumps(back[0])
    assert "gAAA" not in json.dumps(left_out[0])


@pytest.mark.parametrize(
    ("api", "cassette"),
    [
        ("openai_responses", "reasoning"),
        ("openai_responses", "reasoning_in_order"),
        ("anthropic_messages", "reasoning"),
        ("anthropic_messages", "reasoning_hidden"),
        ("openai_chat", "reasoning_details"),
    ],
)
def test_a_reply_with_thinking_is_part_of_the_next_question_as_it_was_said(api: str, cassette: str) -> None:
    tape = json.loads((CASSETTES / api / f"{cassette}.json").read_text())
    events, _ = asked(api, *tape["answers"], of=request(UserMessage("a")))
    done = events[-1]
    assert isinstance(done, Done)
    results = [ToolMessage(call.id, call.name, "ok") for call in done.reply.tool_calls]
    history = (UserMessage("a"), done.reply, *results, UserMessage("b"))

    _, bodies = asked(api, {"say": "ok"}, of=request(*history))

    items = tape["expect"]["native"]
    if api == "openai_responses":
        assert bodies[0]["input"][1 : 1 + len(items)] == items
    elif api == "anthropic_messages":
        assert bodies[0]["messages"][1]["content"] == items
    else:
        assert bodies[0]["messages"][2]["reasoning_details"] == items


@pytest.mark.parametrize("api", APIS)
def test_a_call_whose_result_was_lost_is_answered_in_every_request(api: str) -> None:
    calls = (ToolCall("call_1", "file_read", {}), ToolCall("call_2", "file_read", {}))
    history = (
        UserMessage("a"),
        AssistantMessage("", calls),
        ToolMessage("call_1", "file_read", "contents"),
        UserMessage("b"),
    )
    _, first = asked(api, {"say": "ok"}, of=request(*history))
    _, later = asked(api, {"say": "ok"}, of=request(*history, AssistantMessage("ok"), UserMessage("c")))

    for body in (first[0], later[0]):
        assert json.dumps(body).count("outcome of this call is unknown") == 1
    key = "input" if api == "openai_responses" else "messages"
    kept = len(first[0][key]) - 1  # the last one carries the mark of what may be cached
    assert later[0][key][:kept] == first[0][key][:kept]


@pytest.mark.parametrize("api", APIS)
def test_a_line_without_end_is_not_kept_for_ever(api: str) -> None:
    decoder = wire_of(api).decoder(request(), Route(provider="vendor", model="m"))

    with pytest.raises(Unreadable):
        for _ in range(100):
            decoder.feed(b"x" * 100_000)


def test_results_of_tools_begin_the_message_behind_their_calls() -> None:
    calls = (ToolCall("c1", "file_read", {}), ToolCall("c2", "file_read", {}))
    history = (UserMessage("a"), AssistantMessage("b", calls), ToolMessage("c2", "file_read", "2"))
    _, bodies = asked("anthropic_messages", {"say": "ok"}, of=request(*history, UserMessage("c")))

    messages = bodies[0]["messages"]
    assert [message["role"] for message in messages] == ["user", "assistant", "user"]
    assert [block["type"] for block in messages[1]["content"]] == ["text", "tool_use", "tool_use"]
    assert [block["type"] for block in messages[2]["content"]] == ["tool_result", "tool_result", "text"]


def test_ends_of_what_may_be_cached_are_marked() -> None:
    _, bodies = asked("anthropic_messages", {"say": "ok"}, of=request())
    body = bodies[0]
    mark = {"type": "ephemeral"}
    assert body["system"][-1]["cache_control"] == body["tools"][-1]["cache_control"] == mark
    assert body["messages"][-1]["content"][-1]["cache_control"] == mark
    assert json.dumps(body).count("cache_control") <= 4


def test_an_ollama_is_asked_for_the_window_it_is_to_serve() -> None:
    _, bodies = asked("ollama_chat", {"say": "ok"}, of=request(), window_tokens=16_384)
    assert bodies[0]["options"]["num_ctx"] == 16_384


def test_ids_of_calls_are_short_where_a_vendor_wants_them_so() -> None:
    history = (
        UserMessage("a"),
        AssistantMessage("", (ToolCall("call_PTLP8xhu3uwZk4l3nlnrrJha", "file_read", {}),)),
        ToolMessage("call_PTLP8xhu3uwZk4l3nlnrrJha", "file_read", "x"),
    )
    route = Route(provider="vendor", model="m", quirks=Quirks(has_short_ids=True))
    body = json.loads(wire_of("openai_chat").encode(request(*history), route))

    ids = [body["messages"][2]["tool_calls"][0]["id"], body["messages"][3]["tool_call_id"]]
    assert ids[0] == ids[1] and len(ids[0]) == 9 and ids[0].isalnum()


@pytest.mark.parametrize("change", ["nothing", "a summary", "a shortened result", "other instructions"])
def test_thinking_goes_back_only_where_all_before_it_is_as_it_was(change: str) -> None:
    api = "anthropic_messages"
    tape = json.loads((CASSETTES / api / "reasoning.json").read_text())
    call = ToolCall("c1", "file_read", {})
    history = (UserMessage("a"), AssistantMessage("", (call,)), ToolMessage("c1", "file_read", "long"))
    events, _ = asked(api, *tape["answers"], of=request(*history))
    done = events[-1]
    assert isinstance(done, Done)
    answered = (done.reply, *(ToolMessage(call.id, call.name, "ok") for call in done.reply.tool_calls))
    then = {
        "a summary": (UserMessage("what was said"), *answered),
        "a shortened result": (*history[:2], ToolMessage("c1", "file_read", "l..."), *answered),
    }.get(change, (*history, *answered))
    of = request(*then, UserMessage("b"))
    if change == "other instructions":
        of = replace(of, system="new")

    _, bodies = asked(api, {"say": "ok"}, of=of)

    sent = json.dumps(bodies[0]["messages"])
    assert ("signature" in sent) is (change == "nothing")
    assert done.reply.text in sent and all(call.id in sent for call in done.reply.tool_calls)


def test_blocks_that_share_a_number_are_told_apart() -> None:
    blocks = [
        event
        for text in ("one ", "two")
        for event in (
            {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
            {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}},
        )
    ]
    end = {"type": "message_delta", "delta": {"stop_reason": "end_turn"}}
    body = b"".join(b"data: " + json.dumps(event).encode() + b"\n\n" for event in [*blocks, end])
    decoder = wire_of("anthropic_messages").decoder(request(), Route(provider="vendor", model="m"))

    events = decoder.feed(body)
    done = decoder.end()

    assert isinstance(done, Done)
    assert text_of(list(events)) == done.reply.text == "one two"


def test_an_ollama_is_to_refuse_what_does_not_fit_instead_of_dropping_it() -> None:
    _, bodies = asked("ollama_chat", {"say": "ok"}, of=request())
    assert bodies[0]["truncate"] is False and bodies[0]["shift"] is False


def test_a_cut_answer_is_billed_with_the_words_that_came_where_they_were_not_counted_yet() -> None:
    start = {"type": "message_start", "message": {"usage": {"input_tokens": 90, "output_tokens": 1}}}
    block = {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}
    said = {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "x" * 400}}
    raw = [f"data: {json.dumps(event)}\n\n" for event in (start, block, said)]
    events, _ = asked("anthropic_messages", {"raw": raw}, of=request())

    called, failed = events[-2:]
    assert isinstance(called, Called) and isinstance(failed, Failed)
    assert (called.call.usage.input_tokens, called.call.usage.output_tokens) == (90, 100)
    assert called.call.is_estimated


def test_a_picture_counts_for_no_text_a_server_might_have_dropped() -> None:
    message = UserMessage("what is this?", images=(Image("/w/a.png", "image/png"),))
    of = request(message, images={"/w/a.png": b"p" * 30_000})
    events, _ = asked(
        "ollama_chat", {"say": "a cat", "usage": {"prompt_tokens": 800}}, of=of, sees_images=True
    )

    assert not any(isinstance(event, Remark) for event in events)


def test_a_call_that_an_ollama_model_writes_down_is_made() -> None:
    written = '{"name": "file_read", "arguments": {"path": "a.txt"}}'
    events, _ = asked("ollama_chat", {"say": written, "chunks": 4}, of=request())

    done = events[-1]
    assert isinstance(done, Done) and (done.stop_reason, done.reply.text) == ("tool_calls", "")
    assert [(call.name, call.arguments) for call in done.reply.tool_calls] == [
        ("file_read", {"path": "a.txt"})
    ]
