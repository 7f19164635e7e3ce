"""Requests and providers for tests."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from fermix.auth.oauth.keeper import SignIns
from fermix.clock import SystemClock
from fermix.errors import SecretMissing
from fermix.messages import ChatMessage, UserMessage
from fermix.paths import Home
from fermix.process import GroupLedger, Helper
from fermix.providers.build import build
from fermix.providers.port import Done, Failed, ModelRequest, Provider, StreamEvent, ToolSchema
from fermix.providers.settings import LocalModelSettings, NamedProviderSettings, ProviderSettings
from fermix.providers.vendors.vendor import Parts
from fermix.secret import Secret
from fermix.tasks import Cancel, Deadline, ThreadPool

KEY = "sk-very-secret-0123456789"


def ask(
    text: str = "hi",
    *more: ChatMessage,
    tools: tuple[ToolSchema, ...] = (),
    cancel: Cancel | None = None,
    seconds: float = 30,
) -> ModelRequest:
    """A request whose first message is a person's `text`."""
    return ModelRequest(
        system="You are fermix.",
        messages=(UserMessage(text), *more),
        tools=tools,
        cancel=cancel or Cancel(),
        deadline=Deadline.after(seconds),
    )


def end_of(events: Iterator[StreamEvent]) -> Done | Failed:
    """The last event."""
    last = list(events)[-1]
    assert isinstance(last, Done | Failed)
    return last


def secret(reference: str) -> Secret:
    """A store with one key."""
    if reference == "@secret:mine":
        return Secret(KEY)
    raise SecretMissing(f"No secret named {reference!r}.", hint="store it")


def no_sign_ins() -> SignIns:
    raise AssertionError("nobody signs in here")


@pytest.fixture
def parts(tmp_path: Path) -> Parts:
    """What vendors need, in a home of their own; no Ollama is looked for."""
    ledger = GroupLedger(tmp_path / "run.groups")
    return Parts(
        secret=secret,
        home=Home(tmp_path),
        environment=os.environ,
        start_helper=lambda spec: Helper(spec, ledger),
        pool=ThreadPool(1),
        local=LocalModelSettings(ollama_url=""),
        clock=SystemClock(),
        sign_ins=no_sign_ins,
    )


@pytest.fixture
def connect(parts: Parts) -> Iterator[Callable[..., Provider]]:
    """A provider named `mine` at a base address; stopped for the test."""
    made: list[Provider] = []

    def make(base_url: str, **settings: object) -> Provider:
        table = NamedProviderSettings(**{"model": "m", **settings}, base_url=base_url)
        made.append(build(ProviderSettings(name="mine"), {"mine": table}, parts=parts))
        return made[-1]

    yield make
    for provider in made:
        provider.stop(1)
