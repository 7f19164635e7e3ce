"""Processes that talk to the daemon: those it started itself, and those that leave too early."""

from __future__ import annotations

import sys

from tests.bot import CHECKOUT, Bot, Model, fresh_id, running, wait_for

ASK = """
import os, sys, time
from pathlib import Path
from fermix.ids import new_id
from fermix.ipc.client import Result, open_connection
connection = open_connection(Path(os.environ["FERMIX_HOME"]) / "daemon.sock", timeout_s=10.0)
params = {"text": "/whoami", "client_id": new_id(time.time_ns() // 1_000_000)}
for answer in connection.stream("message", params, 20.0):
    if isinstance(answer, Result):
        print(answer.data["text"])
"""


def whoami(prefix: str = "") -> dict[str, object]:
    """A model that lets the shell ask the daemon who is asking."""
    script = f"{prefix} env PYTHONPATH={CHECKOUT} {sys.executable} -c '{ASK}'"
    call = {"tool_calls": [{"name": "shell", "arguments": {"script": script}}]}
    return {"steps": [call, {"say": "done"}]}


def result_of(reply) -> str:
    return next(event.data["text"] for event in reply.events if event.name == "tool_result")


def test_process_of_a_turn_is_its_operator_unattended() -> None:
    with running(whoami()) as bot:
        assert "You are the operator (unattended) on channel local" in result_of(bot.say("who am I?"))
        assert "You are the operator (attended)" in bot.say("/whoami").text


def test_process_that_left_its_session_is_still_known_as_the_turns() -> None:
    with running(whoami("setsid -w")) as bot:
        assert "(unattended)" in result_of(bot.say("who am I?"))


def test_turn_of_a_client_that_left_at_once_is_answered_and_kept() -> None:
    with running(
        {"rules": [{"when": "", "then": [{"say": "You said: {text}", "first_delay_ms": 200}]}]}
    ) as bot:
        client_ids = [fresh_id() for _ in range(10)]
        for number, client_id in enumerate(client_ids):
            with bot.connect() as connection:
                params = {"text": f"m{number}", "client_id": client_id, "session": f"s{number}"}
                connection.stream("message", params, 10.0)

        wait_for("all to be worked on", lambda: bot.status()["turns"] == {"running": 0, "waiting": 0})
        for number, client_id in enumerate(client_ids):
            reply = bot.say(f"m{number}", client_id=client_id, session=f"s{number}")
            assert reply.text == f"You said: m{number}"


def test_known_secret_that_a_tool_prints_reaches_nobody() -> None:
    key = "sk-live-0123456789abcdef"
    script = "cat $FERMIX_HOME/secrets/mine; sleep 0.6; cat $FERMIX_HOME/secrets/mine"
    model = Model(
        {"steps": [{"tool_calls": [{"name": "shell", "arguments": {"script": script}}]}, {"say": "done"}]}
    )
    bot = Bot(model)
    try:
        config = bot.home / "config.toml"
        named = 'model = "scripted"\napi_key = "@secret:mine"\n'
        config.write_text(config.read_text().replace('model = "scripted"\n', named))
        (bot.home / "secrets").mkdir(mode=0o700)
        (bot.home / "secrets/mine").write_text(key)
        (bot.home / "secrets/mine").chmod(0o600)
        bot.start()

        reply = bot.say("show it")

        assert "progress" in reply.names and "***" in result_of(reply)
        assert key not in repr(reply)
        assert key not in repr([request["body"] for request in model.requests()])
        assert key not in bot.log_text()
        assert key.encode() not in b"".join(path.read_bytes() for path in bot.home.glob("memory.db*"))
    finally:
        bot.close()
        model.close()
