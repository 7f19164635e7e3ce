"""`usage.report` on the control socket: what turns of a real daemon took."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from fermix.errors import FermixError
from tests.bot import Bot, running


@pytest.fixture(scope="module")
def bot() -> Iterator[Bot]:
    with running({"default": {"say": "ok"}}) as bot:
        yield bot


def report(bot: Bot, **params: object) -> dict[str, object]:
    with bot.connect() as connection:
        return connection.call("usage.report", params, 10.0)


def test_turns_are_reported_by_model_and_by_session(bot: Bot) -> None:
    bot.say("hello", session="one")
    bot.say("hello", session="two")

    by_model = report(bot, by="model")
    of_one = report(bot, by="conversation", session="one")

    assert by_model["total"]["calls"] == 2
    assert [line["calls"] for line in by_model["lines"]] == [2]
    assert [line["name"] for line in of_one["lines"]] == ["local:one"]
    assert of_one["total"]["calls"] == 1
    assert of_one["total"]["input_tokens"] > 0
    assert report(bot, since_ms=1 << 50)["lines"] == []


@pytest.mark.parametrize(
    "params", [{"by": "hour"}, {"limit": 0}, {"since_ms": -1}, {"session": " x"}, {"session": "on"}]
)
def test_what_cannot_be_reported_is_refused(bot: Bot, params: dict[str, object]) -> None:
    with pytest.raises(FermixError):
        report(bot, **params)
