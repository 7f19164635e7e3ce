"""A provider over a real connection: keys, retries, time limits, cancelling."""

import logging
import time
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from fermix.daemon.sections import load_settings
from fermix.errors import ProviderError, SettingInvalid
from fermix.paths import Home
from fermix.providers.build import build, spec_of
from fermix.providers.port import Called, Done, Failed, FailureKind, Provider, Remark, TextDelta
from fermix.providers.settings import NamedProviderSettings, ProviderSettings
from fermix.providers.vendors.remote import route_of
from fermix.providers.vendors.vendor import Parts
from fermix.tasks import Cancel, TaskGroup, sleep
from fermix.testing.model_server import ModelServer

from .conftest import KEY, ask, end_of

Connect = Callable[..., Provider]


def test_the_key_goes_to_the_server_and_into_no_message(connect: Connect) -> None:
    with ModelServer({"say": "ok"}, {"status": 401}) as server:
        provider = connect(server.base_url, api_key="@secret:mine")
        assert isinstance(end_of(provider.stream(ask())), Done)
        failed = end_of(provider.stream(ask()))
        assert server.requests[0].authorization == f"Bearer {KEY}"
    assert isinstance(failed, Failed)
    assert KEY not in repr(failed) and KEY not in repr(vars(provider))


def test_a_missing_secret_fails_the_request_with_the_way_to_store_it(connect: Connect) -> None:
    with ModelServer({"say": "ok"}) as server:
        failed = end_of(connect(server.base_url, api_key="@secret:other").stream(ask()))
        assert not server.requests
    assert isinstance(failed, Failed)
    assert (failed.kind, failed.retryable) == (FailureKind.AUTH, False)
    assert failed.message.endswith(". Try: store it")


def test_text_is_yielded_while_the_rest_is_still_to_come(connect: Connect) -> None:
    with ModelServer({"say": "abc", "chunks": 3, "hang_after": 2}) as server:
        stream = connect(server.base_url).stream(ask())
        assert [next(stream), next(stream)] == [TextDelta("a"), TextDelta("b")]
        stream.close()
        server.will_say("next")
        assert isinstance(end_of(connect(server.base_url).stream(ask())), Done)


@pytest.mark.parametrize("step", [{"hang": True}, {"say": "ab", "chunks": 2, "hang_after": 1}])
def test_a_cancel_ends_the_stream_at_once(connect: Connect, step: dict[str, object]) -> None:
    cancel, tasks = Cancel(), TaskGroup("test")
    with ModelServer(step) as server:
        provider = connect(server.base_url)
        tasks.start(lambda: (sleep(0.2), cancel.set("enough")))
        began = time.monotonic()
        last = end_of(provider.stream(ask(cancel=cancel)))
        assert time.monotonic() - began < 2
    assert isinstance(last, Failed)
    assert last.kind is FailureKind.CANCELLED


def test_a_stall_before_any_word_is_asked_again_once(connect: Connect) -> None:
    with ModelServer(
        {"hang": True}, {"say": "ok"}, {"hang": True}, {"hang": True}, {"say": "no"}
    ) as server:
        provider = connect(server.base_url, idle_timeout_s=0.2)
        assert isinstance(end_of(provider.stream(ask())), Done)
        last = end_of(provider.stream(ask()))
        assert len(server.requests) == 4
    assert isinstance(last, Failed)
    assert last.kind is FailureKind.TIMEOUT


def test_a_stall_after_words_is_not_asked_again(connect: Connect) -> None:
    with ModelServer({"say": "abcd", "chunks": 4, "hang_after": 2}, {"say": "abcd"}) as server:
        events = list(connect(server.base_url, idle_timeout_s=0.2).stream(ask()))
        assert len(server.requests) == 1
    assert events[:2] == [TextDelta("a"), TextDelta("b")]
    assert isinstance(events[2], Called) and events[2].call.outcome == "timeout"
    assert isinstance(events[3], Failed)
    assert events[3].kind is FailureKind.TIMEOUT


def test_a_stream_that_only_trickles_is_ended_by_the_total_time(connect: Connect) -> None:
    with ModelServer({"say": "x" * 400, "chunks": 400, "delay_ms": 50}) as server:
        provider = connect(server.base_url, idle_timeout_s=1.0, timeout_s=1.0)
        began = time.monotonic()
        last = end_of(provider.stream(ask()))
        assert time.monotonic() - began < 5
    assert isinstance(last, Failed)
    assert (last.kind, last.retryable) == (FailureKind.TIMEOUT, False)


def test_nothing_listening_says_so_after_its_retries(connect: Connect) -> None:
    with ModelServer() as server:
        url = server.base_url
    last = end_of(connect(url).stream(ask()))
    assert isinstance(last, Failed)
    assert last.kind is FailureKind.PROVIDER_UNAVAILABLE
    assert "Cannot connect to" in last.message


def test_a_wait_longer_than_the_turn_has_left_is_not_begun(connect: Connect) -> None:
    with ModelServer({"status": 429, "retry_after": 15}, {"say": "late"}) as server:
        began = time.monotonic()
        last = end_of(connect(server.base_url).stream(ask(seconds=3)))
        assert time.monotonic() - began < 2
    assert isinstance(last, Failed)
    assert (last.kind, last.retry_after_s) == (FailureKind.RATE_LIMITED, 15.0)


def test_a_server_that_drops_the_beginning_is_reported(
    connect: Connect, caplog: pytest.LogCaptureFixture
) -> None:
    usage = {"prompt_tokens": 200, "completion_tokens": 1}
    steps = [{"say": "ok", "usage": usage}] * 2
    with ModelServer(*steps) as server, caplog.at_level(logging.WARNING):
        provider = connect(server.base_url)
        first = list(provider.stream(ask("x" * 20_000)))
        again = list(provider.stream(ask("x" * 20_000)))
    assert caplog.text.count("silently dropped the beginning") == 1
    assert ["dropped the beginning" in event.text for event in first if isinstance(event, Remark)] == [True]
    assert not any(isinstance(event, Remark) for event in again)


def test_text_that_is_no_text_fails_the_request_only(connect: Connect) -> None:
    with ModelServer({"say": "ok"}) as server:
        provider = connect(server.base_url)
        assert isinstance(end_of(provider.stream(ask("\ud800"))), Failed)
        assert isinstance(end_of(provider.stream(ask())), Done)


def test_a_connection_the_server_closed_meanwhile_is_replaced(connect: Connect) -> None:
    with ModelServer({"say": "one"}) as server:
        provider = connect(server.base_url)
        list(provider.stream(ask()))
        port = server.port
    with ModelServer({"say": "two"}, port=port):
        last = end_of(provider.stream(ask()))
    assert isinstance(last, Done)
    assert last.reply.text == "two"


@pytest.mark.parametrize(
    ("name", "table", "said"),
    [
        ("mime", None, "Did you mean 'mine'"),
        ("mine", NamedProviderSettings(), "no address"),
        ("mine", NamedProviderSettings(base_url="http://127.0.0.1:1/v1"), "no model"),
    ],
)
def test_a_provider_that_cannot_work_says_which_command_repairs_it(
    parts: Parts, name: str, table: NamedProviderSettings | None, said: str
) -> None:
    with pytest.raises(ProviderError, match=said) as raised:
        build(ProviderSettings(name=name), {"mine": table or NamedProviderSettings()}, parts=parts)
    assert raised.value.hint and raised.value.hint.startswith("fermix config set providers.")


def test_a_thousand_streams_at_once_all_end(connect: Connect) -> None:
    tasks, replies = TaskGroup("test"), []
    with ModelServer() as server:
        server.always({"say": "to {text}", "first_delay_ms": 300})
        provider = connect(server.base_url)
        for number in range(1000):
            tasks.start(lambda number=number: replies.append(end_of(provider.stream(ask(f"n{number}")))))
        assert tasks.join(60)
    assert {reply.reply.text for reply in replies} == {f"to n{number}" for number in range(1000)}


@pytest.mark.parametrize(
    ("base_url", "field"),
    [
        ("https://api.openai.com/v1", "max_completion_tokens"),
        ("http://127.0.0.1:8080/v1", "max_tokens"),
        ("https://api.openai.com.evil.example/v1", "max_tokens"),
    ],
)
def test_the_longest_answer_has_the_name_its_server_knows(base_url: str, field: str) -> None:
    table = NamedProviderSettings(base_url=base_url, max_output_tokens=7)
    host = urlsplit(base_url).hostname or ""
    route = route_of(spec_of("openai_compatible"), "mine", "m", table, host=host)
    assert route.quirks.max_tokens_field == field


@pytest.mark.parametrize("url", ["https://host/v1/chat/completions", "host/v1", "ftp://host"])
def test_a_base_address_that_cannot_work_is_refused_in_the_settings(url: str, tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text(f'[providers.mine]\nbase_url = "{url}"\n')
    tmp_path.chmod(0o700)
    with pytest.raises(SettingInvalid, match="base_url"):
        load_settings(Home(tmp_path), {})
