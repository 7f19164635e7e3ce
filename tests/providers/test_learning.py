"""What a vendor's own list says of a model counts from the question after it was read on."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from fermix.messages import Usage
from fermix.providers.build import build
from fermix.providers.learned import Kept, Learned, keep, recall
from fermix.providers.model_lists import read_listed, read_shown
from fermix.providers.port import Done, ModelLimits, Price, Provider
from fermix.providers.settings import NamedProviderSettings, ProviderSettings
from fermix.providers.vendors.learning import SAFE_WINDOW_TOKENS, LearningProvider
from fermix.providers.vendors.vendor import Parts
from fermix.testing.model_script import Script, Step
from fermix.testing.model_server import ModelServer

from .conftest import ask, end_of
from .test_local import MovableClock

TODAY = "2026-12-01"
OPENROUTER = {
    "context_length": 400_000,
    "top_provider": {"context_length": 200_000, "max_completion_tokens": 64_000},
    "architecture": {"input_modalities": ["text", "image"]},
    "supported_parameters": ["tools", "max_tokens"],
    "pricing": {
        "prompt": "0.000003",
        "completion": "0.000015",
        "input_cache_read": "0.0000003",
        "input_cache_write": "0.00000375",
    },
}


def listed(entry: dict[str, Any]) -> Learned | None:
    body = {"data": [{"id": "another"}, {"id": 7}, "nonsense", {"id": "m", **entry}]}
    return read_listed(msgspec.json.encode(body), "m", today=TODAY)


def test_a_router_tells_window_sight_tools_and_price() -> None:
    learned = listed(OPENROUTER)

    assert learned is not None
    price = Price(input=3_000_000, output=15_000_000, cached=300_000, written=3_750_000, as_of=TODAY)
    assert learned.price == price
    assert (learned.window_tokens, learned.max_output_tokens) == (200_000, 64_000)
    assert (learned.sees_images, learned.takes_tools) == (True, True)
    # 1,000 fresh, 500 read from the cache, 100 answered: 3000 + 150 + 1500 micro-USD.
    assert price.cost(Usage(1500, 100, cached_tokens=500)) == 4650


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        (
            {"max_context_length": 131_072, "capabilities": {"vision": True, "function_calling": False}},
            Learned(window_tokens=131_072, sees_images=True, takes_tools=False),
        ),
        (
            {
                "max_input_tokens": 1_000_000,
                "max_tokens": 128_000,
                "capabilities": {
                    "image_input": {"supported": True},
                    "effort": {
                        "supported": True,
                        "low": {"supported": True},
                        "high": {"supported": True},
                        "max": {"supported": False},
                    },
                },
            },
            Learned(
                window_tokens=1_000_000,
                max_output_tokens=128_000,
                sees_images=True,
                efforts=("low", "high"),
            ),
        ),
        ({"max_model_len": 8192}, Learned(window_tokens=8192)),
        ({"capabilities": ["completion"], "context_length": -3}, Learned()),
        ({"pricing": {"prompt": "-1", "completion": "-1"}}, Learned()),
        ({"pricing": {"prompt": "dear", "completion": "1e999"}}, Learned()),
        ({}, Learned()),
    ],
)
def test_each_vendor_is_read_in_its_own_words(entry: dict[str, Any], expected: Learned) -> None:
    assert listed(entry) == expected


@pytest.mark.parametrize("body", [b"", b"[]", b'{"data": 7}', b'{"data": [{"id": "n", "max_tokens": 9}]}'])
def test_what_is_no_list_teaches_nothing(body: bytes) -> None:
    assert read_listed(body, "m", today=TODAY) is None


def test_a_model_is_found_under_its_other_name() -> None:
    body = b'{"data": [{"id": "m-2612", "aliases": ["m-latest"], "max_context_length": 900}]}'

    assert read_listed(body, "m-latest", today=TODAY) == Learned(window_tokens=900)


@pytest.mark.parametrize(
    ("fact", "learned"),
    [
        ({"max_tokens": "x"}, Learned(window_tokens=8192)),
        ({"max_tokens": 900.0}, Learned(window_tokens=8192, max_output_tokens=900)),
        ({"max_tokens": "900"}, Learned(window_tokens=8192, max_output_tokens=900)),
        ({"top_provider": {"context_length": 1}}, Learned(window_tokens=8192)),
        ({"top_provider": {"context_length": [9]}}, Learned(window_tokens=8192)),
        ({"pricing": {"prompt": [1], "completion": {}}}, Learned(window_tokens=8192)),
        ({"pricing": {"prompt": "-1", "completion": "1e400"}}, Learned(window_tokens=8192)),
        ({"aliases": [7, None]}, Learned(window_tokens=8192)),
    ],
)
def test_an_odd_fact_does_not_cost_the_others(fact: dict[str, Any], learned: Learned) -> None:
    body = {"data": [{"id": "m", "context_length": 8192, **fact}]}

    assert read_listed(msgspec.json.encode(body), "m", today=TODAY) == learned


def test_an_ollama_tells_window_sight_and_levels_of_thinking() -> None:
    shown = {
        "capabilities": ["completion", "vision", "thinking"],
        "model_info": {"general.architecture": "qwen3", "qwen3.context_length": 40_960},
        "thinking": {"values": [False, "low", "high"], "default": "low"},
    }

    assert read_shown(msgspec.json.encode(shown)) == Learned(
        window_tokens=40_960, sees_images=True, takes_tools=False, efforts=("low", "high")
    )
    assert read_shown(b"{}") is None


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer(script=Script(default=Step(say="ok"), models=["m"], facts={"m": OPENROUTER})) as made:
        yield made


def made(parts: Parts, vendor: str, url: str, **table: Any) -> LearningProvider:
    settings = NamedProviderSettings(vendor=vendor, base_url=url, **{"model": "m", **table})
    provider: Provider = build(ProviderSettings(name="mine"), {"mine": settings}, parts=parts)
    assert isinstance(provider, LearningProvider)
    return provider


def asked(provider: LearningProvider) -> None:
    """One question, and the list read behind it."""
    assert isinstance(end_of(provider.stream(ask())), Done)
    assert provider._tasks.join(5)


def test_the_list_is_read_behind_the_first_question_and_kept(parts: Parts, server: ModelServer) -> None:
    provider = made(parts, "openrouter", server.base_url)
    assert (provider.limits.window_tokens, provider.price) == (SAFE_WINDOW_TOKENS, None)

    asked(provider)

    assert (provider.limits.window_tokens, provider.limits.max_output_tokens) == (200_000, 64_000)
    assert provider.limits.sees_images and provider.price is not None
    again = made(parts, "openrouter", server.base_url)
    assert (again.limits, again.price) == (provider.limits, provider.price)
    other = made(parts, "openrouter", server.base_url, model="n")
    assert other.limits.window_tokens == SAFE_WINDOW_TOKENS


def test_the_list_is_read_once_a_day(parts: Parts, server: ModelServer) -> None:
    clock = MovableDay()
    provider = made(dataclasses.replace(parts, clock=clock), "openrouter", server.base_url)
    asked(provider)
    server.script.facts = {"m": {"context_length": 5_000}}

    asked(provider)
    assert provider.limits.window_tokens == 200_000
    clock.ahead_s = 24 * 3600 + 1
    asked(provider)
    assert provider.limits.window_tokens == 5_000


class MovableDay(MovableClock):
    """Both clocks are moved."""

    def now_ms(self) -> int:
        return super().now_ms() + int(self.ahead_s * 1000)


def test_what_the_owner_says_counts_before_what_the_list_says(parts: Parts, server: ModelServer) -> None:
    table = {"window_tokens": 4096, "max_output_tokens": 100, "sees_images": False, "takes_tools": False}
    provider = made(parts, "openrouter", server.base_url, **table)

    asked(provider)

    assert provider.limits == ModelLimits(window_tokens=4096, max_output_tokens=100, takes_tools=False)


def test_an_unknown_model_is_told_once_its_list_was_asked(parts: Parts, server: ModelServer) -> None:
    server.script.facts = {}
    provider = made(parts, "openrouter", server.base_url)
    assert provider.notice() is None

    asked(provider)

    notice = provider.notice()
    assert notice and "'m' of mine" in notice and "32,768 tokens" in notice
    assert "fermix config set providers.mine.window_tokens" in notice
    server.script.facts = {"m": OPENROUTER}
    known = made(parts, "openrouter", server.base_url + "/", window_tokens=9000)
    asked(known)
    assert known.notice() is None


def test_a_list_that_cannot_be_had_is_asked_for_again_after_a_while(parts: Parts) -> None:
    clock = MovableDay()
    provider = made(dataclasses.replace(parts, clock=clock), "mistral", "http://127.0.0.1:9/v1")
    tried = []
    for clock.ahead_s in (0, 300, 601):
        end_of(provider.stream(ask(seconds=1)))
        assert provider._tasks.join(5)
        tried.append(provider._tried_s)

    assert tried[0] == tried[1] != tried[2]
    assert "32,768" in (provider.notice() or "")
    provider.stop(1)


def test_an_ollama_is_asked_for_no_more_than_the_model_has(parts: Parts) -> None:
    script = Script(
        default=Step(say="ok"),
        ollama={"m": ["tools"]},
        facts={"m": {"model_info": {"general.architecture": "a", "a.context_length": 8192}}},
    )
    with ModelServer(script=script) as server:
        provider = made(parts, "ollama", server.base_url)
        assert provider.limits.window_tokens == 16_384
        asked(provider)
        asked(provider)

        assert [each.body["options"]["num_ctx"] for each in server.requests] == [16_384, 8192]
        assert provider.limits.takes_tools and provider.notice() is None
        chosen = made(parts, "ollama", server.base_url, window_tokens=4096)
        asked(chosen)
        assert server.requests[-1].body["options"]["num_ctx"] == 4096


def test_a_file_of_facts_that_cannot_be_read_is_passed_over(parts: Parts) -> None:
    keep(parts.home, "mine", Kept(Learned(window_tokens=7), 1), base_url="u", model="m")
    path = parts.home.models / "mine.facts.json"
    assert recall(parts.home, "mine", base_url="u", model="m") == Kept(Learned(window_tokens=7), 1)
    assert path.stat().st_mode & 0o777 == 0o600
    for text in (
        "",
        "[]",
        "{}",
        path.read_text().replace("7", '"x"').replace('"efforts": []', '"efforts": 7'),
    ):
        path.write_text(text)
        assert recall(parts.home, "mine", base_url="u", model="m") is None
