"""Every wire API against recorded answers, over a real connection: each stream ends exactly once."""

import json
from pathlib import Path

import pytest

from fermix.messages import UserMessage
from fermix.net.door import OwnerDoor
from fermix.providers.apis.wire import Route, WireApi
from fermix.providers.build import APIS, load
from fermix.providers.client import HttpProvider
from fermix.providers.port import Called, Done, Failed, ModelRequest, ReasoningDelta, TextDelta, ToolSchema
from fermix.tasks import Cancel, Deadline
from fermix.testing.model_server import ModelServer

CASSETTES = Path(__file__).parent.parent / "fixtures" / "providers"
REQUIRED = {"text", "tool_call", "abort", "overflow", "http_500", "empty"}


def recorded() -> list[tuple[str, str]]:
    return [(api, path.stem) for api in APIS for path in sorted((CASSETTES / api).glob("*.json"))]


def request() -> ModelRequest:
    tools = tuple(ToolSchema(name, "x", {"type": "object"}) for name in ("file_read", "file_write"))
    return ModelRequest(
        system="s", messages=(UserMessage("hi"),), tools=tools, cancel=Cancel(), deadline=Deadline.after(20)
    )


def provider(api: str, base_url: str) -> HttpProvider:
    wire = load(APIS[api])
    route = Route(provider="vendor", model="m")
    assert isinstance(wire.path, str)
    typed: WireApi = wire
    return HttpProvider(route, typed, OwnerDoor(base_url), key=lambda: None, idle_timeout_s=5, timeout_s=15)


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
    assert calls == expected.get("calls", [])
    if "usage" in expected:
        assert [
            last.usage.input_tokens, last.usage.output_tokens, last.usage.cached_tokens,
        ] == expected["usage"]  # fmt: skip
