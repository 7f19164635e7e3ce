"""Every wire against servers that others wrote; run by show_01, or `pytest` with this file's name.

aimock (npm) speaks all four and answers from aimock.json beside this file; xllamacpp is llama.cpp's own
server with the built-in model.
"""

from __future__ import annotations

import re
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fermix.messages import AssistantMessage, Image, ToolCall, ToolMessage, UserMessage
from fermix.net.door import OwnerDoor
from fermix.providers.apis.wire import Route
from fermix.providers.build import APIS, load
from fermix.providers.client import HttpProvider
from fermix.providers.local_server import KEY_VARIABLE
from fermix.providers.port import (
    Called,
    Done,
    Failed,
    FailureKind,
    ModelLimits,
    ModelRequest,
    ReasoningDelta,
    StreamEvent,
    TextDelta,
    ToolSchema,
)
from fermix.secret import Secret
from fermix.tasks import Cancel, Deadline
from tests.shows.environment import node_environment

AIMOCK = ("@copilotkit/aimock@1.43.0",)
ANSWERS = Path(__file__).with_name("aimock.json")
START_TIMEOUT_S = 60
BASES = {"ollama_chat": ""}
"""What stands behind the address; `/v1` where nothing is said here."""
NOT_OLLAMA = [api for api in APIS if api != "ollama_chat"]
"""For what aimock's Ollama does unlike Ollama: no counts, `reasoning_content` instead of `thinking`, and
`done_reason` is always "stop"."""


@pytest.fixture(scope="module")
def aimock() -> Iterator[str]:
    """The address of a foreign server with our answers."""
    command = node_environment("aimock", AIMOCK) / "node_modules/.bin/llmock"
    options = ["-p", "0", "-f", str(ANSWERS), "--chunk-size", "5", "--validate-on-load"]
    with subprocess.Popen(
        ["node", str(command), *options], stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True
    ) as server:
        assert server.stdout is not None
        try:
            heard = next(
                found for line in server.stdout if (found := re.search(r"http://127\.0\.0\.1:\d+", line))
            )
            yield heard[0]
        finally:
            server.kill()


@pytest.fixture(scope="module")
def llama(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Secret]]:
    """Address and key of llama.cpp's server with the built-in model."""
    report = tmp_path_factory.mktemp("llama") / "port"
    key = secrets.token_hex(16)
    command = [sys.executable, "-m", "fermix", "_local-model", "--report", str(report), "--context", "1024"]
    with subprocess.Popen(command, env={"PATH": "/usr/bin:/bin", KEY_VARIABLE: key}) as server:
        try:
            until = time.monotonic() + START_TIMEOUT_S
            while not report.exists():
                assert server.poll() is None and time.monotonic() < until, "llama.cpp did not start"
                time.sleep(0.05)
            yield f"http://127.0.0.1:{report.read_text().strip()}/v1", Secret(key)
        finally:
            server.send_signal(signal.SIGTERM)


def ask(
    api: str, base: str, *messages: Any, key: Secret | None = None, tools: bool = True, **more: Any
) -> list[StreamEvent]:
    """The events of one question."""
    route = Route(provider="foreign", model="gpt-4o", limits=ModelLimits(sees_images=True))
    provider = HttpProvider(
        route, load(APIS[api]), OwnerDoor(base), key=lambda: key, idle_timeout_s=30, timeout_s=60
    )
    request = ModelRequest(
        system="You are brief.",
        messages=[UserMessage(each) if isinstance(each, str) else each for each in messages],
        tools=[
            ToolSchema(name, "Work with a file.", {"type": "object", "properties": {}})
            for name in (("file_read", "file_write") if tools else ())
        ],
        cancel=Cancel(),
        deadline=Deadline.after(60),
        longest_wait_s=0,
        **more,
    )
    return list(provider.stream(request))


def said(events: list[StreamEvent]) -> str:
    return "".join(event.text for event in events if isinstance(event, TextDelta))


def done(events: list[StreamEvent]) -> Done:
    assert isinstance(events[-1], Done), events[-1]
    return events[-1]


def failed(events: list[StreamEvent]) -> Failed:
    assert isinstance(events[-1], Failed), events[-1]
    return events[-1]


def base(aimock: str, api: str) -> str:
    return aimock + BASES.get(api, "/v1")


@pytest.mark.parametrize("api", APIS)
def test_aimock_says_something_in_pieces(aimock: str, api: str) -> None:
    events = ask(api, base(aimock, api), "say hello")

    assert said(events) == done(events).reply.text == "Grüße aus einer anderen Werkstatt, 世界!"
    assert done(events).stop_reason == "stop"
    assert [type(event) for event in events].count(Called) == 1


@pytest.mark.parametrize("api", NOT_OLLAMA)
def test_aimock_counts_what_it_took(aimock: str, api: str) -> None:
    usage = done(ask(api, base(aimock, api), "say hello")).usage

    assert (usage.input_tokens, usage.output_tokens) == (21, 9)


@pytest.mark.parametrize("api", NOT_OLLAMA)
def test_aimock_thinks_aloud(aimock: str, api: str) -> None:
    events = ask(api, base(aimock, api), "think")

    thought = "".join(event.text for event in events if isinstance(event, ReasoningDelta))
    assert (thought, said(events)) == ("six times seven", "42")


@pytest.mark.parametrize("api", APIS)
def test_aimock_calls_a_tool_and_goes_on_with_its_result(aimock: str, api: str) -> None:
    first = done(ask(api, base(aimock, api), "read one"))
    assert first.stop_reason == "tool_calls" and first.reply.text == "I look."
    (call,) = first.reply.tool_calls
    assert (call.name, call.arguments, call.broken) == ("file_read", {"path": "a.txt"}, None)

    result = ToolMessage(call.id, call.name, "done")
    assert said(ask(api, base(aimock, api), "read one", first.reply, result)) == "It says: done."


@pytest.mark.parametrize("api", APIS)
def test_aimock_calls_two_tools_at_once(aimock: str, api: str) -> None:
    calls = done(ask(api, base(aimock, api), "read two")).reply.tool_calls

    assert [(call.name, call.arguments) for call in calls] == [
        ("file_read", {"path": "a.txt"}),
        ("file_write", {"path": "b.txt", "text": 'é\n"x"'}),
    ]
    assert len({call.id for call in calls}) == 2


@pytest.mark.parametrize("api", APIS)
def test_aimock_calls_a_tool_without_arguments(aimock: str, api: str) -> None:
    (call,) = done(ask(api, base(aimock, api), "nothing to say")).reply.tool_calls

    assert (call.arguments, call.broken) == ({}, None)


@pytest.mark.parametrize("api", NOT_OLLAMA)
def test_aimock_stops_at_the_longest_answer(aimock: str, api: str) -> None:
    assert done(ask(api, base(aimock, api), "too long")).stop_reason == "length"


@pytest.mark.parametrize("api", APIS)
def test_aimock_is_shown_a_picture(aimock: str, api: str) -> None:
    message = UserMessage("what is this?", images=(Image("/w/a.png", "image/png"),))

    assert said(ask(api, base(aimock, api), message, images={"/w/a.png": b"\x89PNG"})) == "a picture"


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize(
    ("words", "kind"),
    [
        ("too many", FailureKind.RATE_LIMITED),
        ("wrong key", FailureKind.AUTH),
        ("over the window", FailureKind.CONTEXT_OVERFLOW),
    ],
)
def test_aimock_refuses(aimock: str, api: str, words: str, kind: FailureKind) -> None:
    assert failed(ask(api, base(aimock, api), words)).kind is kind


@pytest.mark.parametrize("api", APIS)
def test_aimock_breaks_off(aimock: str, api: str) -> None:
    events = ask(api, base(aimock, api), "break off")

    assert failed(events).kind is FailureKind.TRANSPORT
    assert "thirteen" not in said(events)


@pytest.mark.parametrize("api", APIS)
def test_aimock_is_slow(aimock: str, api: str) -> None:
    assert said(ask(api, base(aimock, api), "be slow")) == "late but whole"


@pytest.mark.parametrize("api", APIS)
def test_aimock_reads_a_conversation_with_every_kind_of_message(aimock: str, api: str) -> None:
    calls = (ToolCall("call_1", "file_read", {"path": "a"}), ToolCall("call_2", "file_read", {"path": "b"}))
    history = (
        UserMessage("look", note="[today]"),
        AssistantMessage("I look.", calls),
        ToolMessage("call_1", "file_read", "contents"),
        ToolMessage("call_2", "file_read", "gone", is_error=True),
        AssistantMessage("It says contents."),
    )
    assert said(ask(api, base(aimock, api), *history, "say hello")).startswith("Grüße")


def test_llama_answers_in_pieces_and_counts(llama: tuple[str, Secret]) -> None:
    address, key = llama
    events = ask("openai_chat", address, "Say hello.", key=key, tools=False, max_output_tokens=64)

    assert said(events) == done(events).reply.text != ""
    assert done(events).usage.input_tokens > 5 and done(events).usage.output_tokens > 0


def test_llama_stops_at_the_longest_answer(llama: tuple[str, Secret]) -> None:
    address, key = llama
    events = ask("openai_chat", address, "Tell a long story.", key=key, tools=False, max_output_tokens=8)

    assert (done(events).stop_reason, done(events).usage.output_tokens) == ("length", 8)


def test_llama_takes_results_of_tools(llama: tuple[str, Secret]) -> None:
    address, key = llama
    call = AssistantMessage("", (ToolCall("call_1", "file_read", {"path": "a"}),))
    result = ToolMessage("call_1", "file_read", "contents")

    assert done(ask("openai_chat", address, "look", call, result, key=key, max_output_tokens=8))


def test_llama_refuses_a_wrong_key(llama: tuple[str, Secret]) -> None:
    assert failed(ask("openai_chat", llama[0], "hello", key=Secret("no"))).kind is FailureKind.AUTH


def test_llama_refuses_what_does_not_fit(llama: tuple[str, Secret]) -> None:
    address, key = llama
    events = ask("openai_chat", address, "many words " * 2000, key=key, tools=False)

    assert failed(events).kind is FailureKind.CONTEXT_OVERFLOW
