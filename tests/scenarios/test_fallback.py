"""A chat whose provider fails: the next one answers, and everybody is told what they need to know."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.bot import Bot, Model, Reply

ECHO = {"rules": [{"when": "", "then": [{"say": "You said: {text}", "chunks": 4}]}]}


def table(name: str, model: Model) -> str:
    return f'[providers.{name}]\nbase_url = "{model.base_url}"\nmodel = "{name}-1"\n'


@pytest.fixture
def pair() -> Iterator[Callable[[Any], tuple[Bot, Model, Model]]]:
    """A bot whose primary follows a script, with a provider behind it that echoes."""
    opened: list[Any] = []

    def make(script: Any) -> tuple[Bot, Model, Model]:
        first, second = Model(script), Model(ECHO)
        bot = Bot(first, config=table("second", second))
        opened.extend((bot, first, second))
        config = bot.home / "config.toml"
        config.write_text(
            config.read_text().replace('"scripted"\n', '"scripted"\nfallback = ["second"]\n', 1)
        )
        bot.start()
        return bot, first, second

    yield make
    for each in opened:
        each.close()


def notices(reply: Reply) -> list[str]:
    return [str(event.data["text"]) for event in reply.events if event.name == "notice"]


def test_a_provider_that_dies_in_its_answer_is_followed_by_the_next_and_both_are_billed(pair) -> None:
    bot, first, _ = pair({"default": {"say": "one two three four", "chunks": 8, "cut_after": 4}})

    reply = bot.say("hello")

    assert reply.text == "You said: hello"
    assert notices(reply) == ["scripted broke off; second answers instead."]
    at = reply.names.index("restarted")
    assert "text_delta" in reply.names[:at] and "text_delta" in reply.names[at:]
    after = "".join(e.data["text"] for e in reply.events[at:] if e.name == "text_delta")
    assert after == "You said: hello"
    with bot.connect() as connection:
        lines = connection.call("usage.report", {"by": "provider"}, 5.0)["lines"]
    assert {line["name"]: line["calls"] for line in lines} == {"scripted": 1, "second": 1}
    assert len(first.requests()) == 1


def test_a_provider_that_is_down_is_left_alone_after_a_while_and_status_says_so(pair) -> None:
    bot, first, _ = pair({"default": {"status": 503, "retry_after": 120}})

    assert [bot.say("one").text, bot.say("two").text] == ["You said: one", "You said: two"]

    assert len(first.requests()) == 1
    resting = bot.status()["providers"][0]
    assert (resting["name"], resting["state"]) == ("scripted", "open")
    assert 100 < resting["rest_s"] <= 120 and "503" in resting["reason"]
    assert bot.status()["provider"]["name"] == "second"


def test_steps_that_were_made_before_the_switch_are_told_again(pair) -> None:
    call = {"tool_calls": [{"name": "current_time", "arguments": {}}], "say": "I look."}
    broken = {"say": "half of it and more", "chunks": 8, "cut_after": 4}
    bot, _, _ = pair({"rules": [{"when": "", "then": [call, broken]}]})

    reply = bot.say("what time is it?")

    after = reply.names[reply.names.index("restarted") :]
    assert after.count("tool_result") == 1 and after[-1] == "done"
    assert reply.text.startswith("You said: ")
