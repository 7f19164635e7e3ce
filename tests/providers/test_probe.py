"""One small question to a provider, and one word for what would have to be corrected."""

import socket
from collections.abc import Callable, Iterator
from typing import Any

import gevent
import msgspec
import pytest
from gevent.pywsgi import WSGIServer

from fermix.clock import SystemClock
from fermix.errors import Cancelled
from fermix.providers.model_names import nearest, pick
from fermix.providers.probe import Candidate, ProbeResult, ProbeStatus, probe
from fermix.secret import Secret
from fermix.tasks import Cancel, Deadline
from fermix.testing.model_script import Script, Step
from fermix.testing.model_server import ModelServer
from tests.bot import CHECKOUT

KEY = "sk-good-0123456789"
VENDOR_ANSWERS = msgspec.json.decode(
    (CHECKOUT / "tests/fixtures/providers/vendor_errors.json").read_bytes()
)


def ask(base_url: str, *, key: str | None = None, seconds: float = 20, **more: Any) -> ProbeResult:
    candidate = Candidate(
        name="mine",
        base_url=base_url,
        key=Secret(key) if key is not None else None,
        **{"model": None, **more},
    )
    return probe(candidate, cancel=Cancel(), deadline=Deadline.after(seconds), clock=SystemClock())


@pytest.fixture
def serve() -> Iterator[Callable[..., ModelServer]]:
    """A model server that answers by a script."""
    servers: list[ModelServer] = []

    def start(**script: Any) -> ModelServer:
        servers.append(ModelServer(script=Script(**{"default": Step(say="ok"), **script})))
        servers[-1].start()
        return servers[-1]

    yield start
    for server in servers:
        server.stop()


@pytest.fixture
def web() -> Iterator[Callable[..., str]]:
    """A server with one answer for everything; its base address."""
    servers: list[WSGIServer] = []

    def start(status: str, content_type: str, body: bytes, **headers: str) -> str:
        def application(environ: dict[str, Any], respond: Any) -> list[bytes]:
            respond(status, [("Content-Type", content_type), *headers.items()])
            return [body]

        servers.append(WSGIServer(("127.0.0.1", 0), application, log=None))
        servers[-1].start()
        return f"http://127.0.0.1:{servers[-1].server_port}/v1"

    yield start
    for server in servers:
        server.stop(timeout=0)


def test_good_provider_answers_with_the_preferred_model(serve: Callable[..., ModelServer]) -> None:
    server = serve(models=["embed-1", "small", "big"], keys=[KEY])

    result = ask(server.base_url, key=KEY, preferred=("huge", "big"))

    assert (result.status, result.model, result.takes_tools) == (ProbeStatus.OK, "big", True)
    assert result.models == ("embed-1", "small", "big")
    assert result.hint is None
    assert [request.body["messages"][-1]["role"] for request in server.requests] == ["user"]


def test_without_a_preference_a_model_that_can_chat_is_asked(serve: Callable[..., ModelServer]) -> None:
    assert ask(serve(models=["text-embed-1", "small"]).base_url).model == "small"


@pytest.mark.parametrize("key", ["sk-wrong", None])
@pytest.mark.parametrize("model", [None, "big"])
def test_wrong_key_is_told(serve: Callable[..., ModelServer], key: str | None, model: str | None) -> None:
    result = ask(serve(models=["big"], keys=[KEY]).base_url, key=key, model=model)

    assert result.status is ProbeStatus.AUTH
    assert "Incorrect API key" in result.message
    assert "key" in (result.hint or "")


@pytest.mark.parametrize("key", ["", "sk one", "sk-one\nX-Other: header", "sk-\u201cquoted\u201d"])
def test_key_that_fits_in_no_header_is_never_sent(serve: Callable[..., ModelServer], key: str) -> None:
    server = serve()

    assert ask(server.base_url, key=key, model="m").status is ProbeStatus.AUTH
    assert server.requests == []


def test_unknown_model_is_told_with_the_nearest_names(serve: Callable[..., ModelServer]) -> None:
    server = serve(models=["anthropic/claude-sonnet-9", "openai/gpt-9", "openai/gpt-9-mini"])

    result = ask(server.base_url, model="gpt-9-min")

    assert (result.status, result.model) == (ProbeStatus.MODEL_UNKNOWN, "gpt-9-min")
    assert result.hint == "It has: openai/gpt-9-mini, openai/gpt-9"


def test_server_that_lists_no_models_is_asked_for_the_named_one(serve: Callable[..., ModelServer]) -> None:
    server = serve(is_listing=False, models=["big"])

    assert ask(server.base_url, model="big").status is ProbeStatus.OK
    assert ask(server.base_url, preferred=("big",)).model == "big"
    nameless = ask(server.base_url)
    assert nameless.status is ProbeStatus.MODEL_UNKNOWN
    assert "does not say which models" in nameless.message


def test_model_that_refuses_tools_is_good_without(serve: Callable[..., ModelServer]) -> None:
    refusal = Step(status=400, error={"message": "registry/gemma:2b does not support tools"})

    result = ask(serve(steps=[refusal]).base_url, model="gemma:2b")

    assert (result.status, result.takes_tools) == (ProbeStatus.OK, False)


@pytest.mark.parametrize("answer", VENDOR_ANSWERS, ids=lambda answer: answer["name"])
def test_what_vendors_answer_becomes_one_word(
    serve: Callable[..., ModelServer], answer: dict[str, Any]
) -> None:
    body = answer["body"]
    error = body.get("error", body) if isinstance(body.get("error"), dict) else body
    server = serve(default=Step(status=answer["status"], error=error))

    result = ask(server.base_url, model="m", key=KEY)

    expected = {"invalid_request": "address" if answer["status"] == 404 else "failed"}
    assert result.status == expected.get(answer["kind"], answer["kind"])
    assert result.hint


def test_nothing_at_the_address_is_told() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        result = ask(f"http://127.0.0.1:{unused.getsockname()[1]}/v1")

    assert result.status is ProbeStatus.ADDRESS
    assert "Connection refused" in result.message


@pytest.mark.parametrize("url", ["host/v1", "ftp://host/v1", "http://user:word@host/v1", "http://"])
def test_what_is_no_address_is_told(url: str) -> None:
    assert ask(url, model="m").status is ProbeStatus.ADDRESS


def test_plain_http_behind_an_https_address_is_told(web: Callable[..., str]) -> None:
    result = ask(web("200 OK", "text/plain", b"hi").replace("http:", "https:"), model="m")

    assert result.status is ProbeStatus.ADDRESS
    assert "No safe connection" in result.message


@pytest.mark.parametrize(
    "answer",
    [
        ("200 OK", "text/html", b"<html>Welcome</html>"),
        ("404 Not Found", "text/html", b"<html>nginx</html>"),
        ("404 Not Found", "text/plain", b"404 page not found"),
        ("405 Method Not Allowed", "text/html", b""),
        ("200 OK", "application/json", b'{"hello": "world"}'),
    ],
)
@pytest.mark.parametrize("model", ["m", None])
def test_what_is_no_model_server_is_told(
    web: Callable[..., str], answer: tuple[str, str, bytes], model: str | None
) -> None:
    result = ask(web(*answer), model=model)

    nameless = model is None and not answer[0].startswith("200")
    assert result.status is (ProbeStatus.MODEL_UNKNOWN if nameless else ProbeStatus.ADDRESS)


def test_redirect_is_not_followed_with_the_key(
    web: Callable[..., str], serve: Callable[..., ModelServer]
) -> None:
    other = serve()

    result = ask(web("301 Moved", "text/html", b"", Location=other.base_url), model="m", key=KEY)

    assert result.status is ProbeStatus.ADDRESS
    assert other.requests == []


def test_server_that_says_nothing_runs_out_of_time(serve: Callable[..., ModelServer]) -> None:
    assert (
        ask(serve(default=Step(hang=True)).base_url, model="m", seconds=0.3).status is ProbeStatus.TIMEOUT
    )


def test_probe_ends_when_it_is_cancelled(serve: Callable[..., ModelServer]) -> None:
    cancel = Cancel()
    candidate = Candidate(name="mine", base_url=serve(default=Step(hang=True)).base_url, model="m")
    gevent.spawn_later(0.1, cancel.set, "the person left")

    with pytest.raises(Cancelled):
        probe(candidate, cancel=cancel, deadline=Deadline.after(20), clock=SystemClock())


def test_answer_that_goes_on_for_ever_is_not_waited_for(serve: Callable[..., ModelServer]) -> None:
    server = serve(default=Step(say="o" * 100, chunks=100, hang_after=2))

    assert ask(server.base_url, model="m").status is ProbeStatus.OK


@pytest.mark.parametrize("body", [b"", b"{", b'{"data": 7}', b'{"data": [{"id": 7}]}', b"[" * 5000])
def test_nonsense_instead_of_a_list_is_told(web: Callable[..., str], body: bytes) -> None:
    assert ask(web("200 OK", "application/json", body)).status is ProbeStatus.ADDRESS


def test_at_most_200_names_are_kept_and_none_that_steers_a_terminal(
    serve: Callable[..., ModelServer],
) -> None:
    names = ask(serve(models=["\x1b[31mred", *(f"m{number}" for number in range(500))]).base_url).models

    assert len(names) == 200
    assert names[0] == "m0"


def test_a_dated_name_counts_as_its_preferred_beginning() -> None:
    models = ["gpt-9-mini", "gpt-9-2026-01-01", "gpt-9-2026-05-01", "gpt-8"]

    assert pick(models, ("gpt-9", "gpt-8")) == "gpt-8"
    assert pick(models, ("gpt-9",)) == "gpt-9-2026-05-01"
    assert pick([], ("gpt-9",)) == "gpt-9"
    assert pick(["text-embed"], ()) is None


def test_nearest_names_look_past_the_vendors_prefix() -> None:
    models = ["anthropic/claude-sonnet-4.6", "openai/gpt-9", "mistral/large"]

    assert nearest("claude-sonnet-4-6", models)[0] == "anthropic/claude-sonnet-4.6"
    assert nearest("zzz", models) == []
