"""Every vendor against a scripted server: made from settings, it asks, calls tools, tells troubles."""

from dataclasses import replace
from typing import Any

import pytest

from fermix.messages import AssistantMessage, ToolCall, ToolMessage, UserMessage
from fermix.net.address import parse_base
from fermix.providers.build import build, spec_of
from fermix.providers.port import (
    Called,
    Done,
    Failed,
    FailureKind,
    ModelRequest,
    StreamEvent,
    TextDelta,
    ToolSchema,
)
from fermix.providers.settings import (
    VENDOR_NAMES,
    NamedProviderSettings,
    ProviderSettings,
)
from fermix.providers.vendors.vendor import Parts
from fermix.secret import Secret
from fermix.tasks import Cancel, Deadline
from fermix.testing.model_script import Script
from fermix.testing.model_server import ModelServer, Recorded
from tests.providers import conftest

SIGNED_IN = frozenset({"openai_codex"})
"""Has no key; tested with its sign-in."""
KEYED = [name for name in VENDOR_NAMES if name not in SIGNED_IN]
HISTORY = (
    UserMessage("look"),
    AssistantMessage("", (ToolCall("call_PTLP8xhu3uwZk4l3nlnrrJha", "file_read", {}),)),
    ToolMessage("call_PTLP8xhu3uwZk4l3nlnrrJha", "file_read", "contents"),
    UserMessage("thanks"),
)


usual_parts = conftest.parts


@pytest.fixture
def parts(usual_parts: Parts) -> Parts:
    return replace(usual_parts, secret=lambda reference: Secret(f"value of {reference}"))


def ask(
    vendor: str, parts: Parts, server: ModelServer, *messages: Any, model: str = "a-model", effort: str = ""
) -> list[StreamEvent]:
    """The events of one question, asked as an owner's settings would have it."""
    table = NamedProviderSettings(
        vendor=vendor, base_url=server.base_url, api_key="@secret:key", model=model, effort=effort
    )
    provider = build(ProviderSettings(name="mine"), {"mine": table}, parts=parts)
    try:
        request = ModelRequest(
            system="s",
            messages=messages or HISTORY,
            tools=(ToolSchema("file_read", "x", {"type": "object"}),),
            cancel=Cancel(),
            deadline=Deadline.after(20),
            longest_wait_s=0,
            max_output_tokens=1000,
            conversation_id="01CONVERSATION",
        )
        return list(provider.stream(request))
    finally:
        provider.stop(1.0)


def seen(vendor: str, parts: Parts, *messages: Any, model: str = "a-model") -> Recorded:
    """What a question looked like to the server."""
    with ModelServer({"say": "ok"}) as server:
        assert isinstance(ask(vendor, parts, server, *messages, model=model)[-1], Done)
        return server.requests[0]


@pytest.mark.parametrize("vendor", VENDOR_NAMES)
def test_a_vendors_own_address_is_safe(vendor: str) -> None:
    base = spec_of(vendor).base_url

    if base is not None:
        address = parse_base(base)
        assert address.scheme == "https" or address.host == "127.0.0.1"


@pytest.mark.parametrize("vendor", KEYED)
def test_a_vendor_answers_and_shows_its_key(vendor: str, parts: Parts) -> None:
    with ModelServer({"say": "good day", "chunks": 3}) as server:
        events = ask(vendor, parts, server)
        request = server.requests[0]

    assert "".join(event.text for event in events if isinstance(event, TextDelta)) == "good day"
    assert isinstance(events[-1], Done)
    assert request.authorization == "Bearer value of @secret:key"
    assert request.body["model"] == "a-model"


@pytest.mark.parametrize("vendor", KEYED)
def test_a_vendor_calls_several_tools_and_takes_their_results(vendor: str, parts: Parts) -> None:
    calls = [{"name": "file_read", "arguments": {"path": name}} for name in ("a", "b")]
    with ModelServer({"tool_calls": calls}, {"say": "both read"}) as server:
        first = ask(vendor, parts, server, UserMessage("look"))[-1]
        assert isinstance(first, Done)
        results = [ToolMessage(call.id, call.name, "ok") for call in first.reply.tool_calls]
        last = ask(vendor, parts, server, UserMessage("look"), first.reply, *results)[-1]

    assert [call.arguments for call in first.reply.tool_calls] == [{"path": "a"}, {"path": "b"}]
    assert isinstance(last, Done) and last.reply.text == "both read"


@pytest.mark.parametrize("vendor", KEYED)
def test_a_vendor_tells_a_wrong_key_an_unknown_model_and_no_credit_apart(vendor: str, parts: Parts) -> None:
    empty = {"message": "You exceeded your current quota.", "code": "insufficient_quota"}
    kinds = []
    for script in (
        Script(keys=["another"]),
        Script(models=["another"]),
        Script(),
    ):
        with ModelServer({"status": 429, "error": empty}, script=script) as server:
            end = ask(vendor, parts, server)[-1]
        assert isinstance(end, Failed)
        kinds.append(end.kind)

    assert kinds == [FailureKind.AUTH, FailureKind.MODEL_UNKNOWN, FailureKind.QUOTA]


@pytest.mark.parametrize("vendor", KEYED)
def test_a_cut_answer_of_a_vendor_is_no_answer(vendor: str, parts: Parts) -> None:
    with ModelServer({"say": "one two three", "chunks": 9, "cut_after": 5}) as server:
        end = ask(vendor, parts, server)[-1]

    assert isinstance(end, Failed) and end.kind is FailureKind.TRANSPORT


def test_mistral_gets_short_ids_and_no_question_for_counts(parts: Parts) -> None:
    body = seen("mistral", parts).body

    id = body["messages"][2]["tool_calls"][0]["id"]
    assert len(id) == 9 and id == body["messages"][3]["tool_call_id"]
    assert "stream_options" not in body


def test_openai_keeps_nothing_and_finds_its_cache(parts: Parts) -> None:
    body = seen("openai", parts).body

    assert (body["store"], body["prompt_cache_key"], body["max_output_tokens"]) == (
        False, "01CONVERSATION", 1000,
    )  # fmt: skip


def test_openrouter_marks_the_cache_for_models_of_anthropic_only(parts: Parts) -> None:
    marked = seen("openrouter", parts, model="anthropic/claude-sonnet-5").body
    plain = seen("openrouter", parts, model="x-ai/grok-4.5").body

    assert marked["messages"][0]["content"][-1]["cache_control"] == {"type": "ephemeral"}
    assert "cache_control" not in str(plain)


def test_openrouter_tells_what_an_answer_costs_and_is_asked_for_thinking_in_its_own_way(
    parts: Parts,
) -> None:
    usage = {"prompt_tokens": 100, "completion_tokens": 10, "cost": 0.0021}
    with ModelServer({"say": "ok", "usage": usage}) as server:
        *_, called, _ = ask("openrouter", parts, server, effort="high")
        body = server.requests[0].body

    assert isinstance(called, Called) and called.call.cost_micro_usd == 2100
    assert body["reasoning"] == {"effort": "high"} and "reasoning_effort" not in body


def test_an_ollama_is_asked_on_its_own_wire_also_under_the_address_of_the_other(parts: Parts) -> None:
    request = seen("ollama", parts)

    assert request.path == "/api/chat"
    assert request.body["options"]["num_ctx"] >= 8192
