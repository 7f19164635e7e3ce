"""What goes out over the chat-completions wire."""

import re

import msgspec
import pytest

from fermix.messages import AssistantMessage, ToolCall, ToolMessage, UserMessage
from fermix.providers.apis.openai_chat import API
from fermix.providers.apis.wire import Quirks, Route
from fermix.providers.port import ModelLimits, ModelRequest, ToolSchema

from .conftest import ask

ROUTE = Route(provider="p", model="m")
TOOLS = (
    ToolSchema("file_read", "Reads.", {"type": "object", "properties": {"path": {"type": "string"}}}),
    ToolSchema("calendar.read", "Reads dates.", {"type": "object"}),
)


def sent(request: ModelRequest, route: Route = ROUTE) -> dict[str, object]:
    return msgspec.json.decode(API.encode(request, route))


def call(id: str, name: str = "file_read") -> ToolCall:
    return ToolCall(id=id, name=name, arguments={"path": "a"})


def test_the_same_request_gives_the_same_bytes() -> None:
    messages = (AssistantMessage("", (call("x"), call("x"))), ToolMessage("x", "file_read", "1"))
    assert API.encode(ask("hi", *messages, tools=TOOLS), ROUTE) == API.encode(
        ask("hi", *messages, tools=TOOLS), ROUTE
    )


def test_a_bare_question_carries_nothing_it_does_not_need() -> None:
    assert sent(ask("ping")) == {
        "model": "m",
        "stream": True,
        "stream_options": {"include_usage": True},
        "messages": [
            {"role": "system", "content": "You are fermix."},
            {"role": "user", "content": "ping"},
        ],
    }


@pytest.mark.parametrize("field", ["max_tokens", "max_completion_tokens"])
def test_the_longest_answer_is_sent_under_the_vendors_name(field: str) -> None:
    route = Route(
        provider="p",
        model="m",
        quirks=Quirks(max_tokens_field=field, usage_in_stream=False),
        limits=ModelLimits(max_output_tokens=50),
    )
    body = sent(ask(), route)
    assert body[field] == 50
    assert "stream_options" not in body


def test_tool_names_are_mapped_for_the_wire_and_back() -> None:
    body = sent(ask(tools=TOOLS))
    names = [tool["function"]["name"] for tool in body["tools"]]
    assert names == ["file_read", "calendar_read"]
    decoder = API.decoder(ask(tools=TOOLS), ROUTE)
    decoder.feed(
        b'data: {"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":'
        b'{"name":"calendar_read","arguments":"{}"}}]},"finish_reason":"tool_calls"}]}\n\n'
    )
    assert decoder.end().reply.tool_calls[0].name == "calendar.read"


@pytest.mark.parametrize("names", [["a b", "a/b", "a.b", "a_b"], ["x" * 80, "x" * 81], ["", "ü", "é"]])
def test_odd_tool_names_stay_apart_and_valid(names: list[str]) -> None:
    body = sent(ask(tools=tuple(ToolSchema(name, "", {}) for name in names)))
    mapped = [tool["function"]["name"] for tool in body["tools"]]
    assert len(set(mapped)) == len(names)
    assert all(re.fullmatch(r"[A-Za-z0-9_-]{1,64}", name) for name in mapped)


def test_an_assistant_message_without_calls_has_no_empty_list() -> None:
    assert "tool_calls" not in sent(ask("hi", AssistantMessage("hello")))["messages"][2]


def test_a_lost_result_is_made_up_for_and_a_stray_one_left_out() -> None:
    history = (
        AssistantMessage("", (call("a"), call("b"))),
        ToolMessage("a", "file_read", "A"),
        UserMessage("and now?"),
        ToolMessage("zz", "file_read", "stray"),
    )
    messages = sent(ask("hi", *history))["messages"]
    assert [message["role"] for message in messages] == [
        "system",
        "user",
        "assistant",
        "tool",
        "tool",
        "user",
    ]
    assert [message.get("tool_call_id") for message in messages[3:5]] == ["a", "b"]
    assert "unknown" in messages[4]["content"]


def test_ids_used_twice_are_told_apart_with_their_results() -> None:
    history = (
        AssistantMessage("", (call("call_1"),)),
        ToolMessage("call_1", "file_read", "first"),
        AssistantMessage("", (call("call_1"), call("call_1"))),
        ToolMessage("call_1", "file_read", "second"),
        ToolMessage("call_1", "file_read", "third"),
    )
    messages = sent(ask("hi", *history))["messages"]
    asked = [c["id"] for message in messages for c in message.get("tool_calls", ())]
    answered = {m["tool_call_id"]: m["content"] for m in messages if m["role"] == "tool"}
    assert len(set(asked)) == 3
    assert [answered[id] for id in asked] == ["first", "second", "third"]


@pytest.mark.parametrize("id", ["", "x" * 64, "call:1/ü"])
def test_ids_a_vendor_would_refuse_are_replaced(id: str) -> None:
    history = (AssistantMessage("", (call(id),)), ToolMessage(id, "file_read", "A"))
    messages = sent(ask("hi", *history))["messages"]
    wire_id = messages[2]["tool_calls"][0]["id"]
    assert re.fullmatch(r"[A-Za-z0-9_-]{1,40}", wire_id)
    assert messages[3]["tool_call_id"] == wire_id


def test_a_broken_call_goes_back_as_a_valid_object() -> None:
    broken = ToolCall(id="a", name="file_write", arguments={}, broken="The arguments must be an object.")
    message = sent(ask("hi", AssistantMessage("", (broken,))))["messages"][2]
    assert message["tool_calls"][0]["function"]["arguments"] == "{}"
