"""A session is deleted and the daemon killed in the middle: all of it is there, or none of it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from fermix.errors import FermixError
from tests.bot import Bot, Model, wait_for

SAID = "mandragora"


@pytest.fixture
def bot(tmp_path: Path) -> Iterator[Bot]:
    model = Model({"rules": [{"when": "", "then": [{"say": "You said: {text}"}]}]})
    made = Bot(model)
    yield made
    made.close()
    model.close()


def words_on_disk(bot: Bot) -> bool:
    return any(SAID.encode() in path.read_bytes() for path in bot.home.rglob("*") if path.is_file())


@pytest.mark.parametrize(
    ("state", "is_gone"),
    [("erase.intended", False), ("erase.committed", True), ("erase.removed", True), ("erase.wiped", True)],
)
def test_kill_in_the_middle_leaves_all_or_nothing(
    bot: Bot, tmp_path: Path, state: str, is_gone: bool
) -> None:
    marks = tmp_path / "marks"
    marks.mkdir()
    bot.start("--stop-at", state, "--marks", str(marks))
    for number in range(5):
        bot.say(f"{SAID} {number}", session="garden")
    bot.say("rosemary", session="kept")
    with bot.connect() as connection, contextlib.suppress(FermixError):
        connection.stream("sessions.delete", {"session": "garden"}, 10.0)
        wait_for(f"the daemon to stop at {state}", lambda: any(marks.iterdir()))
        bot.kill(bot.arbiter, bot.worker)

    bot.start()

    with bot.connect() as connection:
        listed = connection.call("sessions.list", {}, 10.0)["sessions"]
        counts = {each["session"]: each["message_count"] for each in listed}
        assert counts == ({"kept": 2} if is_gone else {"kept": 2, "garden": 10})
        if not is_gone:
            assert connection.call("sessions.delete", {"session": "garden"}, 30.0)["messages"] == 10
    wait_for("the words to be gone", lambda: not words_on_disk(bot))
    wait_for("the list to be done", lambda: not list((bot.home / "removals").iterdir()))
    assert bot.say("hello", session="garden").text == "You said: hello"
