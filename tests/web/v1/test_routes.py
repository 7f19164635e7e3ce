"""`/v1` over HTTP: chats whole and streamed, whose conversation they are, and how refusals are told."""

from __future__ import annotations

import base64
import json
from typing import Any

import gevent
import pytest

from fermix.errors import Draining, QueueFull, StoreFull
from fermix.ids import is_id
from fermix.messages import AssistantMessage, UserMessage
from fermix.web.health import DaemonState
from tests.web.service import USAGE, Reply, Service, read_all, read_until, until

HELLO = [{"role": "user", "content": "hello"}]


def chat(
    service: Service, messages: Any = HELLO, headers: dict[str, str] | None = None, **more: Any
) -> Reply:
    body = {"model": "fermix", "messages": messages, **more}
    return service.send("POST", "/v1/chat/completions", body, headers=headers)


def data(reply: Reply) -> list[Any]:
    """The data of each event; comments are left out."""
    lines = [block[6:] for block in reply.body.decode().split("\n\n") if block.startswith("data: ")]
    return [json.loads(line) if line != "[DONE]" else line for line in lines]


def test_one_model_is_there(service: Service) -> None:
    listed = service.send("GET", "/v1/models").json

    assert [model["id"] for model in listed["data"]] == ["fermix"]
    assert service.send("GET", "/v1/models/fermix").json == listed["data"][0]
    missing = service.send("GET", "/v1/models/gpt-4o")
    assert (missing.status, missing.code) == (404, "model_not_found")


def test_chat_is_answered_whole_in_a_conversation_of_its_own(service: Service) -> None:
    answer = chat(service)

    assert answer.status == 200
    assert answer.json["choices"][0]["message"]["content"] == "Hello."
    (words,) = service.desk.words
    assert (words.text, words.session) == ("hello", f"v1-{words.client_id}")
    assert answer.json["fermix"]["session"] == words.session
    assert service.desk.archived == [words.session]
    assert service.desk.senders == ["http api-token"]
    assert service.desk.is_delivered == [answer.json["fermix"]["turn_id"]]


def test_chat_is_answered_as_a_stream(service: Service) -> None:
    answer = chat(service, stream=True, stream_options={"include_usage": True})

    assert answer.headers["content-type"] == "text/event-stream"
    *chunks, usage, end = data(answer)
    assert "".join(chunk["choices"][0]["delta"].get("content", "") for chunk in chunks) == "Hello."
    assert usage["usage"]["total_tokens"] == 5
    assert end == "[DONE]"
    until(lambda: service.desk.is_delivered)
    assert len(service.desk.archived) == 1


def test_earlier_messages_begin_the_conversation(service: Service) -> None:
    chat(service, [*HELLO, {"role": "assistant", "content": "Hi."}, {"role": "user", "content": "again"}])

    (words,) = service.desk.words
    assert service.desk.seeded == [(words.session, (UserMessage("hello"), AssistantMessage("Hi.")))]
    assert words.text == "again"


@pytest.mark.parametrize(
    "named", [{"headers": {"X-Fermix-Session": "trip"}}, {"metadata": {"session": "trip"}}]
)
def test_named_session_goes_on_and_stays_in_the_list(service: Service, named: dict[str, Any]) -> None:
    answer = chat(service, [*HELLO, *HELLO], **named)

    assert (service.desk.words[0].session, service.desk.seeded, service.desk.archived) == ("trip", [], [])
    assert "keeps its own history" in answer.headers["x-fermix-notice"]
    assert answer.json["fermix"]["notice"] == answer.headers["x-fermix-notice"]


def test_same_key_is_one_message_and_other_words_under_it_are_refused(service: Service) -> None:
    key = {"Idempotency-Key": "order 7"}
    first, second = chat(service, headers=key), chat(service, headers=key)
    other = chat(service, [{"role": "user", "content": "something else"}], headers=key)

    assert first.json["id"] == second.json["id"]
    assert len(service.desk.words) == 1 and is_id(service.desk.words[0].client_id)
    assert (other.status, other.code) == (409, "idempotency_key_reused")


def test_files_are_uploaded_once_and_come_along(service: Service) -> None:
    picture = base64.b64encode(b"\x89PNG" * 400_000).decode()
    content = [{"type": "image_url", "image_url": {"url": f"data:image/png;base64,{picture}"}}]
    messages = [{"role": "user", "content": content}]

    for _ in range(2):
        chat(service, messages, headers={"Idempotency-Key": "one"})

    (upload,) = service.desk.words[0].attachments
    assert (upload.name, upload.media_type) == ("image-1.png", "image/png")
    assert service.desk.uploads == {upload.blob_id: b"\x89PNG" * 400_000}


def test_failed_turn_is_an_error_that_asks_not_to_be_tried_again(service: Service) -> None:
    service.desk.script = None
    asking = gevent.spawn(chat, service)
    until(lambda: service.desk.words)
    error = {"code": "auth", "message": "No key.", "hint": None}
    service.desk.last.publish("done", status="failed", text="No key.", usage=USAGE, error=error)

    answer = asking.get(timeout=10)

    assert (answer.status, answer.code, answer.headers["x-should-retry"]) == (502, "auth", "false")


def test_stream_that_ends_with_other_words_than_were_sent_delivers_nothing(service: Service) -> None:
    service.desk.script = [("text_delta", {"text": "Hullo!"}), ("restarted", {})]

    answer = chat(service, stream=True)

    assert data(answer)[-1]["error"]["code"] == "answer_begun_anew"
    assert service.send("GET", "/v1/models").status == 200  # whatever follows the last byte is done by now
    assert service.desk.is_delivered == []


def test_silence_is_filled_with_comments(service: Service) -> None:
    service.set(keep_alive_s=0.05)
    service.desk.script = None
    link = service.connect()
    body = {"model": "fermix", "messages": HELLO, "stream": True}
    link.sendall(service.request("POST", "/v1/chat/completions", body))

    read_until(link, b": working\n\n")
    service.desk.finish(service.desk.last)

    assert b"[DONE]" in read_all(link)


@pytest.mark.parametrize("is_stream", [True, False])
@pytest.mark.parametrize(
    ("headers", "is_stopped"),
    [({}, True), ({"Idempotency-Key": "k"}, False), ({"X-Fermix-Session": "trip"}, False)],
)
def test_turn_whose_client_left_is_stopped_unless_it_can_be_found_again(
    service: Service, headers: dict[str, str], is_stopped: bool, is_stream: bool
) -> None:
    service.desk.script = None
    link = service.connect()
    body = {"model": "fermix", "messages": HELLO, "stream": is_stream}
    link.sendall(service.request("POST", "/v1/chat/completions", body, headers=headers))
    until(lambda: service.desk.words)
    turn_id = service.desk.last.turn_id

    link.close()
    until(lambda: service.desk.cancelled == [turn_id] if is_stopped else free_again(service))

    assert service.desk.cancelled == ([turn_id] if is_stopped else [])


def free_again(service: Service) -> bool:
    """Whether the one place for an answer is free, so that the request before was let go of."""
    service.set(streams=1)
    service.desk.script = [("text_delta", {"text": "Hello."})]
    return chat(service).status == 200


def test_every_place_is_given_back(service: Service) -> None:
    service.set(streams=1)

    for body in ({"stream": True}, {}, {"n": 2}, {"stream": True}, {}):
        assert chat(service, **body).status in (200, 400)


@pytest.mark.parametrize(
    ("error", "status", "kind"),
    [
        (QueueFull("Too many."), 429, "rate_limit_error"),
        (Draining("Stopping."), 503, "server_error"),
        (StoreFull("Full."), 503, "server_error"),
    ],
)
def test_refusals_have_openai_s_shape(service: Service, error: Exception, status: int, kind: str) -> None:
    def refuse(*words: object, **more: object) -> None:
        raise error

    service.desk.submit = refuse

    answer = chat(service, stream=True)

    assert answer.status == status
    assert answer.json["error"]["type"] == kind
    assert set(answer.json["error"]) == {"message", "type", "code", "param"}
    assert answer.headers["retry-after"]


@pytest.mark.parametrize(
    ("method", "path", "token", "headers", "status", "kind"),
    [
        ("GET", "/v1/models", None, {}, 401, "authentication_error"),
        ("GET", "/v1/models", "wrong", {}, 401, "authentication_error"),
        ("GET", "/v1/models", "", {"Host": "evil.example"}, 403, "permission_error"),
        ("GET", "/v1/models", "", {"Origin": "https://evil.example"}, 403, "permission_error"),
        ("GET", "/v1/embeddings", "", {}, 404, "not_found_error"),
        ("DELETE", "/v1/models", "", {}, 405, "invalid_request_error"),
        ("POST", "/v1/chat/completions", "", {}, 415, "invalid_request_error"),
        (
            "POST",
            "/v1/chat/completions",
            "",
            {"Content-Type": "application/json", "X-Fermix-Session": "\u00e9"},
            411,
            "invalid_request_error",
        ),
    ],
)
def test_what_is_refused_at_the_door_has_openai_s_shape_too(
    service: Service,
    method: str,
    path: str,
    token: str | None,
    headers: dict[str, str],
    status: int,
    kind: str,
) -> None:
    answer = service.send(method, path, token=token, headers=headers)

    assert (answer.status, answer.json["error"]["type"]) == (status, kind)
    assert set(answer.json["error"]) == {"message", "type", "code", "param"}


@pytest.mark.parametrize(
    ("name", "value"), [("X-Fermix-Session", "\u00e9"), ("Idempotency-Key", "k" * 256)]
)
def test_header_that_is_no_plain_text_is_refused_by_name(service: Service, name: str, value: str) -> None:
    answer = chat(service, headers={name: value})

    assert (answer.status, answer.json["error"]["param"]) == (400, name)
    assert service.desk.words == []


def test_part_of_the_body_that_is_wrong_is_named(service: Service) -> None:
    answer = chat(service, [{"role": "user", "content": 7}])

    assert (answer.status, answer.json["error"]["param"]) == (400, "messages[0].content")


def test_daemon_that_starts_says_so(service: Service) -> None:
    service.daemon.status = DaemonState.STARTING

    answer = chat(service)

    assert (answer.status, answer.code) == (503, "not_ready")
