"""OpenAI with a ChatGPT subscription: what is sent, and what becomes of a token that is refused."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace

import gevent
import pytest

from fermix.auth.oauth import login
from fermix.auth.oauth.issuer import Issuer
from fermix.auth.oauth.keeper import SignIns
from fermix.clock import SystemClock
from fermix.errors import UsageError
from fermix.providers.apis.wire import Route
from fermix.providers.build import build
from fermix.providers.port import Done, Failed, FailureKind, Provider
from fermix.providers.settings import NamedProviderSettings, ProviderSettings
from fermix.providers.sign_in import issuer_of
from fermix.providers.vendors.openai_codex import SIGN_IN, SPEC, CodexWire
from fermix.providers.vendors.vendor import Parts
from fermix.secret import Secret
from fermix.tasks import Cancel, Deadline, ThreadPool
from fermix.testing.model_server import ModelServer
from tests.auth.issuer import ACCOUNT
from tests.auth.issuer import Issuer as FakeIssuer

from .conftest import ask, end_of

NAME = "openai_codex"


@pytest.fixture
def fake() -> Iterator[FakeIssuer]:
    with FakeIssuer() as made:
        made.is_agreed = True
        yield made


@pytest.fixture
def sign_ins(parts: Parts) -> Iterator[SignIns]:
    pool = ThreadPool(2)
    made = SignIns(parts.home, clock=SystemClock(), pool=pool, know=lambda secret: None)
    yield made
    made.stop(1)
    pool.stop()


@pytest.fixture
def codex(parts: Parts, fake: FakeIssuer, sign_ins: SignIns) -> Iterator[Callable[[str], Provider]]:
    """A provider that asks this server, and its sign-in at the fake issuer."""
    made: list[Provider] = []

    def make(base_url: str) -> Provider:
        table = NamedProviderSettings(base_url=base_url, sign_in_url=fake.url, model="gpt-5.4")
        around = replace(parts, sign_ins=lambda: sign_ins)
        made.append(build(ProviderSettings(name=NAME), {NAME: table}, parts=around))
        return made[-1]

    yield make
    for each in made:
        each.stop(1)


@pytest.fixture
def sign_in(fake: FakeIssuer, sign_ins: SignIns) -> Callable[[], Secret]:
    """Signs in; the access token."""

    def make() -> Secret:
        issuer = Issuer(SIGN_IN.at(fake.url), SystemClock())
        made = login.with_code(
            issuer, show=lambda url, code: None, cancel=Cancel(), deadline=Deadline.after(10)
        )
        sign_ins.put(NAME, made, issuer)
        return made.access

    return make


def test_the_token_and_its_account_go_along_and_no_output_limit(codex, sign_in) -> None:
    token = sign_in()
    with ModelServer({"say": "hello"}) as server:
        done = end_of(codex(server.base_url).stream(replace(ask(), system="", max_output_tokens=9)))
    asked = server.requests[0]
    assert isinstance(done, Done) and done.reply.text == "hello"
    assert asked.path.endswith("/responses")
    assert asked.authorization == f"Bearer {token.reveal()}"
    assert asked.body["store"] is False and asked.body["instructions"]
    assert "max_output_tokens" not in asked.body
    wire = CodexWire()
    wire.account_id = ACCOUNT
    assert wire.headers(token)["ChatGPT-Account-ID"] == ACCOUNT
    assert wire.headers(token)["originator"] == "fermix"


def test_a_refused_token_is_renewed_once_and_the_question_asked_again(codex, sign_in, fake) -> None:
    old = sign_in()
    with ModelServer({"status": 401}, {"say": "hello"}) as server:
        done = end_of(codex(server.base_url).stream(ask()))
        assert isinstance(done, Done)
        first, second = (each.authorization for each in server.requests)
    assert first == f"Bearer {old.reveal()}" != second
    assert fake.refreshes == 1


def test_a_token_refused_twice_is_told(codex, sign_in, fake) -> None:
    sign_in()
    with ModelServer({"status": 401}, {"status": 401}, {"say": "no"}) as server:
        failed = end_of(codex(server.base_url).stream(ask()))
        assert len(server.requests) == 2
    assert isinstance(failed, Failed) and failed.kind is FailureKind.AUTH
    assert fake.refreshes == 1


def test_nobody_signed_in_and_a_sign_in_that_ended_say_the_way_back(codex, sign_in, fake) -> None:
    with ModelServer({"status": 401}) as server:
        provider = codex(server.base_url)
        missing = end_of(provider.stream(ask()))
        assert not server.requests
        sign_in()
        fake.forget_all()
        ended = end_of(provider.stream(ask()))
    for failed in (missing, ended):
        assert isinstance(failed, Failed)
        assert (failed.kind, failed.retryable) == (FailureKind.AUTH, False)
        assert failed.message.endswith("fermix auth login openai_codex")


def test_an_issuer_without_time_is_no_wrong_key(codex, sign_in, fake) -> None:
    sign_in()
    fake.trouble.statuses = [503]
    with ModelServer({"status": 401}) as server:
        failed = end_of(codex(server.base_url).stream(ask()))
    assert isinstance(failed, Failed)
    assert (failed.kind, failed.retryable) == (FailureKind.PROVIDER_UNAVAILABLE, True)


def test_a_stop_while_the_token_is_renewed_ends_the_question_at_once(codex, sign_in, fake) -> None:
    sign_in()
    fake.may_answer.clear()
    cancel = Cancel()
    with ModelServer({"status": 401}) as server:
        stream = codex(server.base_url).stream(ask(cancel=cancel))
        gevent.spawn(lambda: (fake.entered.wait(10), cancel.set("enough")))
        began = time.monotonic()
        failed = end_of(stream)
    fake.may_answer.set()
    assert isinstance(failed, Failed) and failed.kind is FailureKind.CANCELLED
    assert time.monotonic() - began < 2


def test_when_a_subscription_has_had_its_share_its_own_time_counts(codex) -> None:
    # Source: https://github.com/openai/codex/issues/4172 (the body), read 2026-12-01
    body = b'{"error":{"type":"usage_limit_reached","message":"x","resets_at":1,"resets_in_seconds":13872}}'
    failed = CodexWire().failure(429, {}, body, route=Route(provider=NAME, model="m"), now_ms=0)
    assert (failed.kind, failed.retry_after_s) == (FailureKind.RATE_LIMITED, 13872.0)
    plain = CodexWire().failure(429, {}, b"[]", route=Route(provider=NAME, model="m"), now_ms=0)
    assert plain.retry_after_s is None


def test_where_one_signs_in_is_known_by_the_vendor() -> None:
    tables = {
        "work": NamedProviderSettings(vendor=NAME, sign_in_url="http://127.0.0.1:1"),
        "openai": NamedProviderSettings(),
    }
    assert issuer_of(NAME, {}, SystemClock()).origin == "https://auth.openai.com:443"
    assert issuer_of("work", tables, SystemClock()).origin == "http://127.0.0.1:1"
    with pytest.raises(UsageError, match=r"sign in to 'openai'.*openai_codex, work"):
        issuer_of("openai", tables, SystemClock())
    assert SPEC.base_url == "https://chatgpt.com/backend-api/codex"
