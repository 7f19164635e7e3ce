"""Every kind of hostile HTTP request, once, on a whole daemon: refused in words, and nothing done."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.bot import Bot, running
from tests.shows.operations.hostile_http import Hostile, Target, attack, book_of, send_a_gigabyte
from tests.states import rows


@pytest.fixture(scope="module")
def bot() -> Iterator[Bot]:
    config = "failed_tokens_per_minute = 10000\n"
    with running({"rules": [{"when": "", "then": [{"say": "fine"}]}]}, config=config, full=True) as made:
        yield made


def test_every_one_is_refused_in_words_and_leaves_nothing(bot: Bot) -> None:
    target = Target(bot.address, bot.token)
    worker = bot.worker

    def answer(hostile: Hostile) -> str:
        return f"{hostile.name}: {attack(target, hostile)}"

    assert [told for told in map(answer, book_of(target)) if "FAILED" in told] == []
    assert bot.worker == worker
    assert rows(bot, "SELECT count(*) FROM inbox") == [(0,)]
    assert " ERROR " not in bot.log_text()


def test_body_without_an_end_is_refused_long_before_it(bot: Bot) -> None:
    told, sent_mb = send_a_gigabyte(Target(bot.address, bot.token))

    assert told == "413 body_too_large"
    assert sent_mb < 100
