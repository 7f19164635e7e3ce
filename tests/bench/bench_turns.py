"""What fermix adds to a model's own time, and what many conversations cost."""

from __future__ import annotations

import http.client
import socket
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import psutil

from fermix.ipc.client import Connection, Result
from tests.bench import Figure, percentile
from tests.bot import Bot, Model, fresh_id

TOOLS = 30
HISTORY = range(160, 241)
"""Messages a request has when its turn counts as one with 200 of them."""
TURNS = 1000
DIRECT_REQUESTS = 300
CONVERSATIONS = 1000


def measure() -> Iterator[Figure]:
    """Latency of turns, of tokens, of a thousand conversations; growth over a thousand turns."""
    yield from ping_size()
    yield from turn_overhead()
    yield from token_latency()
    yield from thousand_conversations()
    yield from growth()


def ping_size() -> Iterator[Figure]:
    """Bytes of the first request of a conversation, with the tools that ship."""
    model = Model({"rules": [{"when": "", "then": [{"say": "pong"}]}]})
    bot = Bot(model, argv=(sys.executable, "-m", "fermix", "run"))
    try:
        bot.start()
        bot.say("ping")
        size = len(msgspec.json.encode(model.requests()[0]["body"]))
    finally:
        bot.close()
        model.close()
    yield Figure("request bytes for a bare ping", size / 1000, 12, "kB")


def turn_overhead() -> Iterator[Figure]:
    """What a turn takes beyond the same request sent to the model without fermix in between.

    With fermix: client's send → request at the model, plus the model's last byte → `done` at the
    client. Without: the same two ways for the very bytes fermix sent, over a connection kept open.
    The history grows, is summed up at the upper end of `HISTORY`, and grows again; the turns that
    wait for a summary are left out.
    """
    model = Model({"rules": [{"when": "", "then": [{"say": "Fine, thank you. " * 8}]}]})
    bot = Bot(model, config=f"[agent]\nhistory_messages = {HISTORY.stop - 1}\n")
    try:
        bot.start("--tools", str(TOOLS))
        with bot.connect() as connection:
            times = [_timed_turn(connection, f"How are you, number {number}?") for number in range(TURNS)]
        asked = [request for request in model.requests() if "tools" in request["body"]]
        with_fermix = _milliseconds(asked, times)
        sizes = [len(request["body"]["messages"]) for request in asked]
        direct = _milliseconds(*_direct_requests(model, asked[_usual(sizes)]["body"]))
    finally:
        bot.close()
        model.close()
    bare = percentile(direct, 0.5)
    full = [
        took
        for took, size, before in zip(with_fermix[1:], sizes[1:], sizes, strict=False)
        if size in HISTORY and size > before
    ]
    assert len(full) >= TURNS // 4, f"only {len(full)} turns had {HISTORY.start} messages and more"
    yield Figure("turn overhead p50, 30 tools, 200 messages", percentile(full, 0.5) - bare, 3.0, "ms")
    yield Figure("turn overhead p99", percentile(full, 0.99) - bare, 15.0, "ms")
    early, late = percentile(with_fermix[:200], 0.5), percentile(with_fermix[-200:], 0.5)
    yield Figure("turn overhead, turns 801-1000 against 1-200", late / early, 1.5, "x")


def _milliseconds(requests: list[dict[str, Any]], times: list[tuple[int, int]]) -> list[float]:
    """Send → whole request at the model, plus its last byte → the end at the client."""
    return [
        (asked["received_ns"] - sent + ended - asked["last_byte_ns"]) / 1e6
        for asked, (sent, ended) in zip(requests, times, strict=True)
    ]


def _usual(sizes: list[int]) -> int:
    """Which of the requests has nearest to 200 messages."""
    middle = (HISTORY.start + HISTORY.stop) // 2
    return min(range(len(sizes)), key=lambda number: abs(sizes[number] - middle))


def _direct_requests(
    model: Model, request: dict[str, Any]
) -> tuple[list[dict[str, Any]], list[tuple[int, int]]]:
    """One request again and again without fermix: what the model saw of it, and our stamps."""
    body = msgspec.json.encode(request)
    connection = http.client.HTTPConnection("127.0.0.1", model.port, timeout=30)
    connection.connect()
    connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    times: list[tuple[int, int]] = []
    for _ in range(DIRECT_REQUESTS):
        sent = time.monotonic_ns()
        connection.request("POST", "/v1/chat/completions", body, {"Content-Type": "application/json"})
        connection.getresponse().read()
        times.append((sent, time.monotonic_ns()))
    connection.close()
    return model.requests()[-DIRECT_REQUESTS:], times


def _timed_turn(connection: Connection, text: str) -> tuple[int, int]:
    """Monotonic nanoseconds of the send and of the arrival of `done`."""
    sent = time.monotonic_ns()
    done, turn_id = 0, ""
    for answer in connection.stream("message", {"text": text, "client_id": fresh_id()}, 60.0):
        if isinstance(answer, Result):
            turn_id = answer.data["turn_id"]
        elif answer.name == "done":
            done = time.monotonic_ns()
    connection.call("ack", {"turn_id": turn_id}, 10.0)
    return sent, done


def token_latency() -> Iterator[Figure]:
    """Model's write of a piece → its arrival at the client; both stamps are of one clock."""
    pieces = 400
    model = Model(
        {"rules": [{"when": "", "then": [{"say": "word " * pieces, "chunks": pieces, "delay_ms": 5}]}]}
    )
    bot = Bot(model)
    arrived: list[int] = []
    try:
        bot.start()
        for _ in range(3):
            with bot.connect() as connection:
                for answer in connection.stream("message", {"text": "go", "client_id": fresh_id()}, 60.0):
                    if not isinstance(answer, Result) and answer.name == "text_delta":
                        arrived.append(time.monotonic_ns())
        sent = [stamp for request in model.requests() for stamp in request["chunks_ns"][:pieces]]
    finally:
        bot.close()
        model.close()
    late_ms = [(end - begin) / 1e6 for begin, end in zip(sent, arrived, strict=True)]
    yield Figure("streamed token to subscriber p99", percentile(late_ms, 0.99), 2.0, "ms")


def thousand_conversations() -> Iterator[Figure]:
    """One turn in each of 1,000 conversations at once, against a model that takes 500 ms."""
    model = Model({"rules": [{"when": "", "then": [{"say": "Fine.", "first_delay_ms": 500}]}]})
    bot = Bot(model, config="[gateway]\nrunning_turns = 1000\n[control]\nconnections = 1100\n")
    try:
        bot.start()
        process = psutil.Process(bot.worker)
        connections = [bot.connect() for _ in range(CONVERSATIONS)]
        peak = _Peak(process)
        began = time.monotonic()
        streams = [
            connection.stream(
                "message", {"text": "hello", "session": f"c{number}", "client_id": fresh_id()}, 60.0
            )
            for number, connection in enumerate(connections)
        ]
        for stream in streams:
            assert list(stream)[-1].data["status"] == "completed"
        wall_s = time.monotonic() - began
        yield Figure("1,000 conversations, wall", wall_s, 3.0, "s")
        yield Figure("1,000 conversations, peak memory", peak.stop() / 1e6, 250, "MB")
        for connection in connections:
            connection.close()
    finally:
        bot.close()
        model.close()


class _Peak(threading.Thread):
    """The largest resident size a process has while it is watched."""

    def __init__(self, process: psutil.Process) -> None:
        super().__init__(daemon=True)
        self._process = process
        self._ending = threading.Event()
        self._bytes = 0
        self.start()

    def run(self) -> None:
        while not self._ending.wait(0.05):
            self._bytes = max(self._bytes, self._process.memory_info().rss)

    def stop(self) -> int:
        self._ending.set()
        self.join(5.0)
        return self._bytes


def growth() -> Iterator[Figure]:
    """1,000 turns in 100 conversations after 200 that warm up."""
    model = Model({"rules": [{"when": "", "then": [{"say": "Fine, thank you. " * 8}]}]})
    bot = Bot(model)
    try:
        bot.start()
        with bot.connect() as connection:
            _talk(connection, 200)
            before = _footprint(bot.worker)
            _talk(connection, TURNS)
            after = _footprint(bot.worker)
    finally:
        bot.close()
        model.close()
    yield Figure("growth over 1,000 turns, memory", (after[0] - before[0]) / 1e6, 10, "MB")
    yield Figure("growth over 1,000 turns, file descriptors", after[1] - before[1], 0, "")
    yield Figure("growth over 1,000 turns, children", after[2] - before[2], 0, "")


def _talk(connection: Connection, turns: int) -> None:
    for number in range(turns):
        params = {"text": f"Hello {number}", "session": f"s{number % 100}", "client_id": fresh_id()}
        result = connection.call("message", params, 60.0)
        connection.call("ack", {"turn_id": result["turn_id"]}, 10.0)


def _footprint(pid: int) -> tuple[int, int, int]:
    """Resident bytes, open file descriptors, children."""
    process = psutil.Process(pid)
    return (
        process.memory_info().rss,
        len(list(Path(f"/proc/{pid}/fd").iterdir())),
        len(process.children(recursive=True)),
    )
