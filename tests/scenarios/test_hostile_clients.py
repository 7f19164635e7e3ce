"""Clients that never read, never leave, change their mind or do everything at once."""

from __future__ import annotations

import json
import random
import socket
import struct
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack

import psutil
import pytest

from fermix.errors import FermixError
from tests.bot import Bot, collect, fresh_id, running, wait_for
from tests.sequences import check_histories
from tests.states import rows

CANCELS = 60
SCRIPT = {
    "rules": [
        {"when": "flood", "then": [{"say": "z" * 1_000_000, "chunks": 4000}]},
        {"when": "hang", "then": [{"hang": True}]},
        {
            "when": "work",
            "then": [
                {"tool_calls": [{"name": "shell", "arguments": {"script": "sleep 0.03; echo hi"}}]},
                {"say": "worked", "chunks": 3, "delay_ms": 10},
            ],
        },
        {"when": "", "then": [{"say": "You said: {text}"}]},
    ]
}


@pytest.fixture(scope="module")
def bot() -> Iterator[Bot]:
    with running(SCRIPT) as bot:
        yield bot


def raw(bot: Bot, *requests: dict[str, object]) -> socket.socket:
    """A connection with these requests sent, and nothing read."""
    client = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    client.settimeout(20)
    client.connect(str(bot.home / "daemon.sock"))
    for number, request in enumerate(requests, 1):
        payload = json.dumps({"v": 1, "id": number, **request}).encode()
        client.sendall(struct.pack(">I", len(payload)) + payload)
    return client


def message(text: str, session: str) -> dict[str, object]:
    return {"method": "message", "params": {"text": text, "session": session, "client_id": fresh_id()}}


def is_quiet(bot: Bot) -> bool:
    return bot.status()["turns"] == {"running": 0, "waiting": 0}


def test_reader_that_never_reads_costs_bounded_memory_and_nobody_else_anything(bot: Bot) -> None:
    worker = psutil.Process(bot.worker)
    before = worker.memory_info().rss

    with raw(bot, *(message("flood", f"flood {n}") for n in range(6))):
        wait_for("the flood to begin", lambda: not is_quiet(bot))
        began = time.monotonic()
        while not is_quiet(bot):
            assert bot.say("hello").text == "You said: hello"
        assert time.monotonic() - began < 30

    assert (worker.memory_info().rss - before) / 1e6 < 80


def test_turns_cancelled_at_random_moments_end_once_and_leave_a_good_conversation(bot: Bot) -> None:
    dice, ends = random.Random(3), Counter()
    for number in range(CANCELS):
        with bot.connect() as connection, bot.connect() as other:
            params = {"text": "work", "client_id": fresh_id(), "session": f"c{number % 3}"}
            stream = iter(connection.stream("message", params, 20.0))
            turn_id = next(stream).data["turn_id"]
            time.sleep(dice.random() * 0.12)
            other.call("cancel", {"turn_id": turn_id}, 10.0)
            reply = collect(stream)
            other.call("ack", {"turn_id": turn_id}, 10.0)
        assert reply.names.count("done") == 1
        ends[reply.result["status"]] += 1

    assert set(ends) == {"cancelled", "completed"}
    for number in range(3):
        assert bot.say("hello", session=f"c{number}").text == "You said: hello"
    check_histories(bot)


def test_one_message_sent_over_many_connections_at_once_is_one_message(bot: Bot) -> None:
    client_id, turns = fresh_id(), set()

    def send() -> None:
        turns.add(bot.say("same", client_id=client_id, session="same").result["turn_id"])

    senders = [threading.Thread(target=send, daemon=True) for _ in range(30)]
    for sender in senders:
        sender.start()
    for sender in senders:
        sender.join(30)

    assert len(turns) == 1
    assert rows(bot, f"SELECT count(*) FROM inbox WHERE platform_id = '{client_id}'") == [(1,)]


def test_more_idle_clients_than_places_do_not_keep_anyone_out(bot: Bot) -> None:
    files = psutil.Process(bot.worker).num_fds()
    with ExitStack() as stack:
        for _ in range(400):
            stack.enter_context(bot.connect())
        assert bot.say("hello").text == "You said: hello"

    wait_for("the places to be free", lambda: psutil.Process(bot.worker).num_fds() <= files + 10)


def test_full_conversation_refuses_more_and_the_others_do_not_notice(bot: Bot) -> None:
    refused = Counter()
    for number in range(260):
        try:
            with bot.connect() as connection:
                params = {
                    "text": "hang" if number == 0 else "wait",
                    "client_id": fresh_id(),
                    "session": "q",
                }
                connection.stream("message", params, 10.0).read(10.0)
        except FermixError as error:
            refused[error.code] += 1

    assert set(refused) == {"queue_full"}
    assert 50 <= refused["queue_full"] <= 60
    assert bot.say("hello").text == "You said: hello"
    with bot.connect() as connection:
        assert connection.call("cancel", {"session": "q"}, 10.0) == {"cancelled": 1}
    wait_for("the rest to be answered", lambda: is_quiet(bot))


@pytest.mark.parametrize(
    ("method", "params", "code"),
    [
        ("resume", {"turn_id": "nope"}, "usage"),
        ("resume", {"turn_id": fresh_id()}, "usage"),
        ("resume", {"turn_id": fresh_id(), "after_seq": 2**53 + 1}, "invalid_params"),
        ("resume", {"turn_id": fresh_id(), "after_seq": -1}, "invalid_params"),
        ("blob", {"blob_id": "../../config.toml", "data": ""}, "usage"),
        ("blob", {"blob_id": fresh_id(), "data": ""}, "upload_unknown"),
        ("blob", {"data": "aa=="[:3]}, "invalid_params"),
        ("sessions.messages", {"session": "x" * 500}, "usage"),
    ],
)
def test_request_about_nothing_is_refused_by_name(bot: Bot, method: str, params: dict, code: str) -> None:
    with bot.connect() as connection, pytest.raises(FermixError) as refused:
        connection.call(method, params, 10.0)

    assert refused.value.code == code


def test_word_of_a_reader_counts_only_after_the_end_and_only_once(bot: Bot) -> None:
    with bot.connect() as connection, bot.connect() as other:
        params = {"text": "work", "client_id": fresh_id(), "session": "early"}
        stream = iter(connection.stream("message", params, 20.0))
        turn_id = next(stream).data["turn_id"]

        assert other.call("ack", {"turn_id": turn_id}, 10.0) == {"delivered": False}
        collect(stream)
        assert other.call("ack", {"turn_id": turn_id}, 10.0) == {"delivered": True}
        assert other.call("ack", {"turn_id": turn_id}, 10.0) == {"delivered": False}
