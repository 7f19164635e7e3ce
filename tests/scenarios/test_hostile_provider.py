"""A provider that answers nonsense, never ends or breaks: one clear end, and the next one is good."""

from __future__ import annotations

import json
import socket
import threading
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress

import psutil
import pytest

from fermix.testing.model_script import without_note
from tests.bot import Bot, running

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"
MEMORY_MB = 30.0
"""What one bad answer may leave behind; the longest of them would take 130 MB if kept as it came."""


def event(value: object) -> bytes:
    return b"data: " + json.dumps(value).encode() + b"\n\n"


def said(text: str) -> bytes:
    return event({"choices": [{"index": 0, "delta": {"content": text}}]})


def called(**call: object) -> bytes:
    return event({"choices": [{"index": 0, "delta": {"tool_calls": [call]}}]})


END = event({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}) + b"data: [DONE]\n\n"
GOOD = HEAD + said("fine") + END


def answered(status: int, body: bytes, *more: str) -> bytes:
    lines = [
        f"HTTP/1.1 {status} Odd",
        "Content-Type: application/json",
        f"Content-Length: {len(body)}",
        *more,
    ]
    return "\r\n".join([*lines, "Connection: close", "", ""]).encode() + body


def forever(piece: bytes, head: bytes = HEAD) -> Iterator[bytes]:
    yield head
    while True:
        yield piece


def many_calls() -> Iterator[bytes]:
    yield HEAD
    for n in range(10_000):
        yield called(index=n, id=f"c{n}", function={"name": "current_time", "arguments": "{}"})
    yield END


def long_arguments() -> Iterator[bytes]:
    yield HEAD + called(index=0, id="a", function={"name": "file_write", "arguments": '{"path":"'})
    for _ in range(200):
        yield called(index=0, function={"arguments": "z" * 250_000})
    yield END


def bomb() -> bytes:
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    body = b"".join(packer.compress(bytes(1_000_000)) for _ in range(200)) + packer.flush()
    return answered(200, body, "Content-Encoding: gzip")


WRONG: dict[str, Callable[[], Iterator[bytes]]] = {
    "letters without end": lambda: forever(event({"choices": [{"delta": {"content": "x"}}]}) * 200),
    "comments without end": lambda: forever(b":\n" * 5000),
    "chunks that say nothing": lambda: forever(event({"choices": []}) * 500),
    "one endless token": lambda: forever(
        b"y" * 1_000_000, HEAD + b'data: {"choices":[{"delta":{"content":"'
    ),
    "ten thousand calls": many_calls,
    "arguments of 50 MB": long_arguments,
    "headers without end": lambda: forever(b"X-a: " + b"a" * 900 + b"\r\n", b"HTTP/1.1 200 OK\r\n"),
    "a packed bomb": lambda: iter([bomb()]),
    "depth": lambda: iter([HEAD, b'data: {"choices":[' + b'{"a":' * 200_000, b"\n\n", END]),
    "an error too deep": lambda: iter([HEAD, b'data: {"error":' + b"[" * 100_000, b"\n\n", END]),
    "no UTF-8": lambda: iter([HEAD, b'data: {"choices":[{"delta":{"content":"\xff"}}]}\n\n', END]),
    "wrong types": lambda: iter([HEAD, event({"choices": "no"}), END]),
    "half an answer": lambda: iter([HEAD, said("half")]),
    "400": lambda: iter([answered(400, b"[[[")]),
    "401": lambda: iter([answered(401, b"")]),
    "404": lambda: iter([answered(404, b"<html>" * 100_000)]),
    "429 for ages": lambda: iter([answered(429, b"{}", "Retry-After: 99999999999999999999")]),
    "a redirect": lambda: iter([answered(302, b"", "Location: http://127.0.0.1:1/")]),
    "999": lambda: iter([answered(999, b"null")]),
}
ODD: dict[str, Callable[[], Iterator[bytes]]] = {
    "counts no database holds": lambda: iter(
        [HEAD, said("fine"), event({"choices": [], "usage": {"prompt_tokens": 10**30}}), END]
    ),
    "a trickle": lambda: (GOOD[at : at + 1] for at in range(len(GOOD))),
    "a tool with an odd name": lambda: iter(
        [
            HEAD,
            called(index=0, id="i" * 100_000, function={"name": "x\0\n" * 30_000, "arguments": "{}"}),
            END,
        ]
    ),
    "arguments too deep": lambda: iter(
        [HEAD, called(index=0, id="a", function={"name": "shell", "arguments": "[" * 900}), END]
    ),
}
"""Odd, but there is an answer in it, in the end."""


class HostileModel:
    """Answers as the person's last words name it, and well once the model was told of a result."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.base_url = f"http://127.0.0.1:{self._listener.getsockname()[1]}/v1"
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join(5)

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                threading.Thread(target=self._answer, args=(client,), daemon=True).start()

    def _answer(self, client: socket.socket) -> None:
        with client, suppress(OSError):
            request = read_request(client)
            if request is None:  # the list of models
                for part in forever(b'{"id":"x"},' * 5000, HEAD + b'{"data":['):
                    client.sendall(part)
                return
            last = request["messages"][-1]
            parts = (
                {**WRONG, **ODD}.get(without_note(str(last["content"]))) if last["role"] == "user" else None
            )
            for part in parts() if parts else [GOOD]:
                client.sendall(part)


def read_request(client: socket.socket) -> dict[str, list[dict[str, object]]] | None:
    """The question; None for a request without one."""
    received = b""
    while b"\r\n\r\n" not in received:
        received += client.recv(65_536)
    head, _, body = received.partition(b"\r\n\r\n")
    if head.startswith(b"GET "):
        return None
    size = next(
        int(line.split(b":")[1]) for line in head.lower().split(b"\r\n") if b"content-length" in line
    )
    while len(body) < size:
        body += client.recv(65_536)
    return dict(json.loads(body))


@pytest.fixture(scope="module")
def bot() -> Iterator[Bot]:
    model = HostileModel()
    bot = Bot(model)
    try:
        bot.start()
        bot.say("hello")
        yield bot
    finally:
        bot.close()
        model.close()


@pytest.mark.parametrize("name", WRONG)
def test_bad_answer_fails_its_turn_with_words_and_nothing_else(bot: Bot, name: str) -> None:
    worker = psutil.Process(bot.worker)
    before = worker.memory_info().rss

    reply = bot.say(name, session=name)

    assert reply.result["status"] == "failed"
    assert reply.text.startswith("scripted"), reply.text
    assert len(reply.text) < 600
    assert reply.names.count("done") == 1
    assert bot.say("hello", session=name).text == "fine"
    assert bot.worker == worker.pid
    assert (worker.memory_info().rss - before) / 1e6 < MEMORY_MB


@pytest.mark.parametrize("name", ODD)
def test_odd_answer_that_can_be_used_is_used(bot: Bot, name: str) -> None:
    reply = bot.say(name, session=name)

    words, _, correction = reply.text.partition("\n\n**Correction** by fermix, from its own record:\n")
    assert (reply.result["status"], words) == ("completed", "fine")
    assert len(correction) < 500 and correction.isprintable()


def test_others_are_served_while_answers_stream_without_end(bot: Bot) -> None:
    def flood(number: int) -> None:
        bot.say("letters without end", session=f"flood {number}")

    floods = [threading.Thread(target=flood, args=(number,), daemon=True) for number in range(3)]
    for thread in floods:
        thread.start()

    while any(thread.is_alive() for thread in floods):
        assert bot.say("hello", session="bystander").text == "fine"


def test_many_bad_answers_leave_nothing_in_the_log_that_someone_must_repair(bot: Bot) -> None:
    assert "Traceback" not in bot.log_text()


def test_connection_that_is_reset_in_mid_answer_is_a_failure_with_words() -> None:
    step = {"say": "one two three", "chunks": 3, "cut_after": 2}
    with running(
        {"rules": [{"when": "cut", "then": [step]}, {"when": "", "then": [{"say": "fine"}]}]}
    ) as bot:
        assert bot.say("cut").result["error"]["code"] == "transport"
        assert bot.say("hello").text == "fine"
