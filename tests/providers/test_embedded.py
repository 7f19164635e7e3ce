"""The real built-in model in its real helper process."""

import dataclasses
import os
import signal
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from fermix.providers.port import Called, Done, Failed, FailureKind, TextDelta
from fermix.providers.settings import LocalModelSettings
from fermix.providers.vendors.embedded import EmbeddedModel
from fermix.providers.vendors.vendor import Parts
from fermix.tasks import Cancel, TaskGroup, sleep

from .conftest import ask, end_of

pytestmark = pytest.mark.slow


@pytest.fixture
def embedded(parts: Parts) -> Iterator[EmbeddedModel]:
    settings = LocalModelSettings(ollama_url="", output_tokens=24, idle_minutes=0.05)
    model = EmbeddedModel("local", dataclasses.replace(parts, local=settings))
    yield model
    model.stop(5)


def helper_pid(parts: Parts) -> int:
    """The helper of this test's home."""
    report = f"--report={parts.home.models}/"
    return next(
        process.pid
        for process in psutil.process_iter(["cmdline"])
        if "_local-model" in (process.info["cmdline"] or ()) and report in " ".join(process.info["cmdline"])
    )


def test_it_answers_with_streamed_words_and_low_priority(embedded: EmbeddedModel, parts: Parts) -> None:
    began = time.monotonic()
    *deltas, called, done = embedded.stream(ask("Say hello."))
    assert isinstance(done, Done) and isinstance(called, Called)
    assert len(deltas) > 3 and all(isinstance(delta, TextDelta) for delta in deltas)
    assert 0 < done.usage.output_tokens <= 24
    assert time.monotonic() - began < 40
    pid = helper_pid(parts)
    assert os.getpriority(os.PRIO_PROCESS, pid) >= 10
    assert "FERMIX_LOCAL_MODEL_KEY" not in " ".join(psutil.Process(pid).cmdline())


def test_nobody_without_the_key_is_answered(embedded: EmbeddedModel, parts: Parts) -> None:
    list(embedded.stream(ask("Say hello.")))
    port = int(next(parts.home.models.glob("local-model-*.port")).read_text())
    request = urllib.request.Request(f"http://127.0.0.1:{port}/v1/chat/completions", b"{}")
    with pytest.raises(urllib.error.HTTPError, match="401"):
        urllib.request.urlopen(request, timeout=10)


def test_a_killed_helper_is_started_again_for_the_next_question(
    embedded: EmbeddedModel, parts: Parts
) -> None:
    list(embedded.stream(ask("Say hello.")))
    first = helper_pid(parts)
    os.kill(first, signal.SIGKILL)
    assert isinstance(end_of(embedded.stream(ask("Say hello."))), Done)
    assert helper_pid(parts) != first


def test_it_gives_its_memory_back_when_it_is_not_used(embedded: EmbeddedModel, parts: Parts) -> None:
    list(embedded.stream(ask("Say hello.")))
    pid = helper_pid(parts)
    deadline = time.monotonic() + 20
    while Path(f"/proc/{pid}").exists() and time.monotonic() < deadline:
        sleep(0.1)
    assert not Path(f"/proc/{pid}").exists()
    assert not embedded.is_running
    assert isinstance(end_of(embedded.stream(ask("Say hello."))), Done)


def test_a_cancel_while_it_loads_ends_the_turn_and_not_the_loading(embedded: EmbeddedModel) -> None:
    cancel, tasks = Cancel(), TaskGroup("test")
    tasks.start(lambda: (sleep(0.1), cancel.set("enough")))
    last = end_of(embedded.stream(ask("Say hello.", cancel=cancel)))
    assert isinstance(last, Failed)
    assert last.kind is FailureKind.CANCELLED
    assert isinstance(end_of(embedded.stream(ask("Say hello."))), Done)


def test_two_questions_at_once_share_one_process(embedded: EmbeddedModel) -> None:
    ends, tasks = [], TaskGroup("test")
    for _ in range(3):
        tasks.start(lambda: ends.append(end_of(embedded.stream(ask("Say hello.")))))
    assert tasks.join(60)
    assert [type(end) for end in ends] == [Done] * 3
