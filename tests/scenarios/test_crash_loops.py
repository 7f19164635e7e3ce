"""Work that takes the daemon down again and again costs itself, and nobody else anything."""

from __future__ import annotations

import threading
from collections import Counter
from contextlib import closing
from pathlib import Path

from fermix.errors import FermixError
from fermix.ipc.client import Result
from fermix.ipc.following import TurnWatch
from tests.bot import Bot, fresh_id, running, wait_for
from tests.sequences import HONEST, check_histories
from tests.states import rows, words_of

KILL = "kill -9 $(cut -d' ' -f4 /proc/$PPID/stat); sleep 5"
"""Of a command: the worker, which is the parent of its monitor."""
OFTEN = "[runtime]\nrestarts = 1000\ndrain_s = 1.0\n"


def shell(script: str) -> dict[str, object]:
    return {"tool_calls": [{"name": "shell", "arguments": {"script": script, "timeout_s": 8}}]}


def ask(bot: Bot, text: str, session: str = "main") -> str:
    """The answer, however often the daemon goes away meanwhile."""
    message = {"text": text, "session": session, "client_id": fresh_id()}
    with closing(TurnWatch(bot.connect, message, patience_s=60.0)) as watch:
        while True:
            answer = watch.read(60.0)
            assert answer is not None, f"{text}: silence"
            if isinstance(answer, Result):
                wait_for("the acknowledgement to be taken", lambda: acknowledged(watch))
                return str(answer.data["text"])


def acknowledged(watch: TurnWatch) -> bool:
    try:
        watch.acknowledge()
    except FermixError:
        return False
    return True


def test_message_that_kills_the_worker_each_time_is_closed_and_others_are_answered(tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    deadly = shell(f"echo ran >> {notes}; {KILL}")
    script = {
        "rules": [
            {"when": "deadly", "then": [deadly, deadly, deadly, deadly]},
            {"when": "", "then": [{"say": "You said: {text}"}]},
        ]
    }
    with running(script, config=OFTEN) as bot:
        assert ask(bot, "deadly").startswith(HONEST)
        assert ask(bot, "hello") == "You said: hello"
        assert ask(bot, "hello", "other") == "You said: hello"
        assert notes.read_text().split() == ["ran", "ran"]
        check_histories(bot)


def test_many_turns_with_commands_outlive_two_kills_in_a_row(tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    script = {
        "rules": [
            {"when": "", "then": [shell(f"echo {{text}} >> {notes}; sleep 0.3"), {"say": "done {text}"}]}
        ]
    }
    with running(script, config=OFTEN) as bot:
        answers: dict[str, str] = {}

        def person(name: str) -> None:
            answers[name] = ask(bot, name, name)

        people = [threading.Thread(target=person, args=(f"m{n}",), daemon=True) for n in range(32)]
        for thread in people:
            thread.start()
        wait_for("the first commands", notes.exists)
        bot.kill(bot.worker)
        wait_for("the next worker", bot.is_ready)
        bot.kill(bot.worker)
        for thread in people:
            thread.join(60)

        assert len(answers) == len(people)
        for name, text in answers.items():
            assert words_of(text) == f"done {name}" or text.startswith(HONEST), f"{name}: {text!r}"
        assert max(Counter(notes.read_text().split()).values()) == 1
        check_histories(bot)
        wait_for(
            "all to be committed", lambda: rows(bot, "SELECT DISTINCT state FROM inbox") == [("committed",)]
        )
