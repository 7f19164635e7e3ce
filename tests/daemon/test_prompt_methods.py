"""`prompt.size` is what the model is really sent, and the owner's files are in it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.bot import Bot, Model


@pytest.fixture(scope="module")
def model() -> Iterator[Model]:
    made = Model({"default": {"say": "pong"}})
    yield made
    made.close()


@pytest.fixture(scope="module")
def bot(model: Model) -> Iterator[Bot]:
    made = Bot(model)
    made.start()
    yield made
    made.close()


def size(bot: Bot) -> dict[str, Any]:
    with bot.connect() as connection:
        return connection.call("prompt.size", {}, 10.0)


def sent(bot: Bot, model: Model, session: str) -> dict[str, Any]:
    bot.say("ping", session=session)
    return dict(model.requests()[-1]["body"])


def test_bare_ping_is_what_was_weighed_and_small(bot: Bot, model: Model) -> None:
    body = sent(bot, model, "first")
    weighed = size(bot)

    length = len(json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode())
    assert length <= 12 * 1024
    assert abs(weighed["total_bytes"] - length) < 100  # what one vendor's wire has and another has not
    names = [part["name"] for part in weighed["parts"] if part["kind"] == "tool"]
    assert names == [tool["function"]["name"] for tool in body["tools"]]
    assert weighed["problems"] == []


def test_owners_words_reach_the_model_after_a_reload_and_not_before(bot: Bot, model: Model) -> None:
    before = sent(bot, model, "second")["messages"][0]["content"]
    persona = bot.home / "bootstrap/main/PERSONA.md"
    persona.write_text("<!-- mine -->\nSpeak like a pirate.\n")
    unread = sent(bot, model, "third")["messages"][0]["content"]
    with bot.connect() as connection:
        first, second = (connection.call("reload", {}, 20.0) for _ in range(2))
    read = sent(bot, model, "fourth")["messages"][0]["content"]

    assert (first["also"], first["unchanged"]) == (["Your files of instructions were read anew."], False)
    assert (second["also"], second["unchanged"]) == ([], True)
    assert unread == before
    assert "Speak like a pirate." in read
    assert "mine" not in read
    assert persona.read_text().startswith("<!-- mine -->")


def test_file_that_cannot_be_read_is_named_and_answers_go_on(bot: Bot, model: Model) -> None:
    rules = bot.home / "bootstrap/main/RULES.md"
    kept = rules.read_bytes()
    rules.write_bytes(b"\xff\xfe")
    try:
        with bot.connect() as connection:
            connection.call("reload", {}, 20.0)
        assert "Never invent results." in sent(bot, model, "fifth")["messages"][0]["content"]
        (problem,) = size(bot)["problems"]
    finally:
        rules.write_bytes(kept)

    assert str(rules) in problem
    assert str(rules) in bot.log_text()
