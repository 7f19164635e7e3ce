"""What owners and cleaners do to a home while the daemon runs, and what comes of it."""

from __future__ import annotations

import os
import resource
import signal
import sqlite3

import pytest

from fermix.errors import FermixError
from tests.bot import Bot, Model, collect, fresh_id, running, wait_for
from tests.states import rows

ECHO = {"rules": [{"when": "", "then": [{"say": "You said: {text}"}]}]}


def say_until_taken(bot: Bot, text: str) -> None:
    def is_taken() -> bool:
        try:
            return bot.say(text).text == f"You said: {text}"
        except FermixError:
            return False

    wait_for("a message to be taken", is_taken)


@pytest.mark.parametrize("harm", ["removed", "replaced by a backup"])
def test_database_that_was_taken_away_is_not_written_to_and_the_present_one_is_used(harm: str) -> None:
    with running(ECHO) as bot:
        bot.say("old")
        worker = bot.worker
        database = bot.home / "memory.db"
        if harm == "replaced by a backup":
            with sqlite3.connect(database) as present, sqlite3.connect(bot.root / "backup") as backup:
                present.backup(backup)
            present.close(), backup.close()
        for path in bot.home.glob("memory.db*"):
            path.unlink()
        if harm == "replaced by a backup":
            (bot.root / "backup").replace(database)

        with pytest.raises(FermixError) as refused:
            bot.say("lost")
        say_until_taken(bot, "new")

        assert refused.value.code == "store_gone"
        assert bot.worker == worker
        kept = ["old", "new"] if harm == "replaced by a backup" else ["new"]
        asked = "SELECT json_extract(body, '$.text') FROM messages WHERE role = 'user' ORDER BY position"
        assert [text for (text,) in rows(bot, asked)] == kept
        assert bot.status()["state"] == "ready"


def test_daemon_whose_socket_was_removed_is_reached_again() -> None:
    with running(ECHO) as bot:
        (bot.home / "daemon.sock").unlink()

        wait_for("the socket to be back", (bot.home / "daemon.sock").exists, 5.0)

        assert bot.say("hello").text == "You said: hello"


def test_home_that_was_moved_and_put_back_is_served_again() -> None:
    with running(ECHO) as bot:
        bot.say("before")
        bot.home.rename(bot.root / "elsewhere")
        with pytest.raises(FermixError):
            bot.say("nobody there")
        (bot.root / "elsewhere").rename(bot.home)

        say_until_taken(bot, "after")


def test_logs_go_on_after_their_folder_was_removed() -> None:
    with running(ECHO) as bot:
        for path in (bot.home / "logs").iterdir():
            path.unlink()
        (bot.home / "logs").rmdir()

        os.kill(bot.worker, signal.SIGUSR1)

        wait_for("the log to be back", (bot.home / "logs/fermix.log").exists)
        wait_for("the next lines", lambda: "Stacks of all greenlets" in bot.log_text())


def test_daemon_is_ready_again_once_the_database_is_free() -> None:
    model = Model(ECHO)
    bot = Bot(model, config="[database]\nbusy_timeout_ms = 100\n")
    try:
        bot.start()
        bot.say("before")
        with sqlite3.connect(bot.home / "memory.db", isolation_level=None) as other:
            other.execute("BEGIN IMMEDIATE")
            with pytest.raises(FermixError) as refused:
                bot.say("meanwhile")
            other.execute("ROLLBACK")
        other.close()

        assert refused.value.code == "store_busy"
        assert bot.say("after").text == "You said: after"
        assert bot.status()["state"] == "ready"
    finally:
        bot.close()
        model.close()


def test_running_turn_waits_for_a_disk_that_fails_and_ends_when_it_works_again() -> None:
    script = {"rules": [{"when": "", "then": [{"say": "You said: {text}", "first_delay_ms": 400}]}]}
    with running(script) as bot, bot.connect() as connection:
        bot.say("before")
        most = max(path.stat().st_size for path in bot.home.glob("memory.db*"))
        stream = iter(connection.stream("message", {"text": "meanwhile", "client_id": fresh_id()}, 30.0))
        wait_for("the turn to begin", lambda: next(stream).name == "phase_change")
        whole = resource.prlimit(bot.worker, resource.RLIMIT_FSIZE)
        resource.prlimit(bot.worker, resource.RLIMIT_FSIZE, (most, whole[1]))

        wait_for("the turn to wait", lambda: next(stream).name == "notice")
        with pytest.raises(FermixError) as refused:
            bot.say("refused", session="other")
        resource.prlimit(bot.worker, resource.RLIMIT_FSIZE, whole)

        assert refused.value.code == "store_failing"
        assert collect(stream).text == "You said: meanwhile"
        assert bot.say("after").text == "You said: after"
        assert bot.status()["state"] == "ready"
