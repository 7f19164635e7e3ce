"""The model on this machine: an Ollama that can use tools first, else the built-in one."""

import dataclasses

import msgspec
import pytest

from fermix.clock import SystemClock
from fermix.providers.build import build
from fermix.providers.port import Done, Failed, FailureKind, ToolSchema
from fermix.providers.settings import LocalModelSettings, ProviderSettings
from fermix.providers.vendors.local import LocalProvider
from fermix.providers.vendors.vendor import Parts
from fermix.testing.model_script import Script
from fermix.testing.model_server import ModelServer

from .conftest import ask, end_of


class MovableClock(SystemClock):
    """Real time, moved forward by the test."""

    ahead_s = 0.0

    def monotonic_s(self) -> float:
        return super().monotonic_s() + self.ahead_s


def local(parts: Parts, server: ModelServer, model: str | None = None, **more: object) -> LocalProvider:
    url = server.base_url.removesuffix("/v1")
    provider = build(
        ProviderSettings(model=model),
        {},
        parts=dataclasses.replace(parts, local=LocalModelSettings(ollama_url=url), **more),
    )
    assert isinstance(provider, LocalProvider)
    return provider


def ollama(**models: list[str]) -> Script:
    return Script(ollama={name.replace("_", ":"): can for name, can in models.items()})


def test_the_first_ollama_model_with_tools_answers(parts: Parts) -> None:
    script = ollama(gemma_1b=["completion"], qwen_4b=["completion", "tools"], llama_8b=["tools"])
    with ModelServer({"say": "ok"}, script=script) as server:
        provider = local(parts, server)
        assert provider.limits.takes_tools and provider.limits.prompt_bytes is None
        assert (provider.name, provider.model, provider.notice()) == ("local", "qwen:4b", None)
        assert isinstance(end_of(provider.stream(ask(tools=(ToolSchema("t", "", {}),)))), Done)
        assert server.requests[0].path == "/api/chat"
        assert server.requests[0].body["options"] == {"num_ctx": parts.local.ollama_window_tokens}
        assert server.requests[0].body["model"] == "qwen:4b"
        assert [each["function"]["name"] for each in server.requests[0].body["tools"]] == ["t"]
        provider.stop(1)


@pytest.mark.parametrize(("wanted", "window"), [(16_384, 16_384), (2048, 2048), (262_144, 40_960)])
def test_window_of_a_found_ollama_is_the_one_the_setting_says(
    parts: Parts, wanted: int, window: int
) -> None:
    info = {"general.architecture": "qwen3", "qwen3.context_length": 40_960}
    script = ollama(qwen_4b=["tools", "vision"])
    script.facts = {"qwen:4b": {"model_info": info}}
    with ModelServer({"say": "ok"}, script=script) as server:
        settings = LocalModelSettings(
            ollama_url=server.base_url.removesuffix("/v1"), ollama_window_tokens=wanted
        )
        provider = build(ProviderSettings(), {}, parts=dataclasses.replace(parts, local=settings))
        assert (provider.limits.window_tokens, provider.limits.sees_images) == (window, True)
        assert isinstance(end_of(provider.stream(ask())), Done)
        assert server.requests[0].body["options"]["num_ctx"] == window
        provider.stop(1)


def test_the_model_the_owner_named_is_taken(parts: Parts) -> None:
    with ModelServer(script=ollama(qwen_4b=["tools"], llama_latest=["tools"])) as server:
        assert [local(parts, server, name).limits.takes_tools for name in ("llama", "llama:latest")] == [
            True
        ] * 2
        assert not local(parts, server, "nope").limits.takes_tools


@pytest.mark.parametrize("script", [ollama(gemma_1b=["completion"]), ollama(), Script()])
def test_without_a_model_that_takes_tools_the_built_in_one_answers(parts: Parts, script: Script) -> None:
    with ModelServer(script=script) as server:
        provider = local(parts, server)
        assert provider.limits == dataclasses.replace(
            provider.limits, takes_tools=False, prompt_bytes=1024, max_output_tokens=256
        )
        notice = provider.notice()
    assert notice and "small model built into fermix" in notice
    assert "    fermix setup\n" in notice


def test_an_ollama_started_later_is_found(parts: Parts) -> None:
    clock = MovableClock()
    with ModelServer() as server:
        provider = local(parts, server, clock=clock)
        assert not provider.limits.takes_tools
        server.script = ollama(qwen_4b=["tools"])
        assert not provider.limits.takes_tools
        clock.ahead_s = 31
        assert provider.limits.takes_tools


def test_an_ollama_that_went_away_is_not_asked_again(parts: Parts) -> None:
    with ModelServer(script=ollama(qwen_4b=["tools"])) as server:
        provider = local(parts, server)
        assert provider.limits.takes_tools
    failed = end_of(provider.stream(ask()))
    assert isinstance(failed, Failed)
    assert not provider.limits.takes_tools


def test_nonsense_at_the_ollama_address_is_no_ollama(parts: Parts) -> None:
    with ModelServer(script=ollama(qwen_4b=["tools"])) as server:
        server._facts = lambda what, body: msgspec.Raw(b'{"models": 7}')
        assert not local(parts, server).limits.takes_tools


def test_a_file_of_the_owners_is_not_called_the_built_in_model(parts: Parts) -> None:
    parts.home.models.mkdir()
    (parts.home.models / "own.gguf").touch()
    assert build(ProviderSettings(model="own"), {}, parts=parts).notice() is None


def test_a_helper_that_cannot_start_fails_the_request_and_says_why(parts: Parts) -> None:
    (parts.home.models).mkdir()
    (parts.home.models / "broken.gguf").write_bytes(b"this is no model")
    provider = build(ProviderSettings(model="broken"), {}, parts=parts)
    for _ in range(2):
        failed = end_of(provider.stream(ask()))
        assert isinstance(failed, Failed)
        assert (failed.kind, failed.retryable) == (FailureKind.PROVIDER_UNAVAILABLE, False)
        assert "could not be started" in failed.message and "did not load" in failed.message
    provider.stop(1)
