"""A message that names its model: that one answers it, alone; the others are as before."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from fermix.errors import FermixError
from fermix.ids import new_id
from tests.bot import Bot, Model

ECHO = {"default": {"say": "You said: {text}"}}


@dataclass
class House:
    bot: Bot
    first: Model
    second: Model

    def say(self, text: str, **more: Any) -> dict[str, Any]:
        params = {"text": text, "client_id": new_id(1), **more}
        with self.bot.connect() as connection:
            return connection.call("message", params, 20.0)


@pytest.fixture
def house() -> Iterator[House]:
    first, second = Model(ECHO), Model({"default": {"say": "second"}})
    table = (
        f'[providers.second]\nbase_url = "{second.base_url}"\nmodel = "second-1"\neffort = "high"\n'
        f'[providers.down]\nbase_url = "http://127.0.0.1:9"\nmodel = "none"\n'
    )
    bot = Bot(first, config=table)
    bot.start()
    yield House(bot, first, second)
    for each in (bot, first, second):
        each.close()


def test_one_message_is_answered_by_the_model_it_names_and_the_next_as_before(house: House) -> None:
    assert house.say("hi", model="second/other-2", effort="high")["text"] == "second"
    assert house.say("hi", model="second")["text"] == "second"
    assert house.say("hi")["text"] == "You said: hi"

    asked = [request["body"] for request in house.second.requests()]
    assert [body["model"] for body in asked] == ["other-2", "second-1"]
    assert asked[0]["reasoning_effort"] == "high"


def test_a_pinned_model_that_is_down_is_not_replaced_by_another(house: House) -> None:
    result = house.say("hi", model="down")

    assert result["status"] == "failed" and "127.0.0.1" in result["text"]
    assert house.first.requests() == []


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"model": "secnd/x"}, "Did you mean 'second'?"),
        ({"model": "second", "effort": "utmost"}, "expected one of high"),
        ({"effort": "high"}, "it knows no levels of thinking"),
        ({"model": "/x"}, "No provider stands before '/x'"),
    ],
)
def test_a_model_that_cannot_be_had_is_refused_before_anything_is_accepted(
    house: House, more: dict[str, str], words: str
) -> None:
    with pytest.raises(FermixError, match=words.replace("?", "[?]")) as refusal:
        house.say("hi", **more)

    assert (refusal.value.code, refusal.value.exit_status) == ("model_refused", 2)
    assert house.bot.say("still here").text == "You said: still here"


def test_the_command_line_names_a_model_for_one_question(house: House) -> None:
    command = [sys.executable, "-m", "fermix", "ask", "--model", "second", "--effort", "high", "hi"]
    done = subprocess.run(
        command, env=house.bot.environment(), capture_output=True, text=True, timeout=30, check=False
    )

    assert (done.returncode, done.stdout) == (0, "second\n"), done.stderr
