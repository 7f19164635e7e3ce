"""[logs]: what is written and kept, from the next line on, in worker and arbiter."""

from __future__ import annotations

import os
import signal

from tests.bot import wait_for
from tests.settings.conftest import Lab


def log_files(lab: Lab) -> set[str]:
    return {path.name for path in (lab.bot.home / "logs").iterdir()}


def test_lines_of_the_level_the_setting_says_are_written(lab: Lab) -> None:
    mark = len(lab.bot.log_text())
    lab.say()
    before = "DEBUG" in lab.bot.log_text()[mark:]

    lab.put(logs={"level": "debug"})
    lab.say()
    arbiter = f"[{lab.bot.arbiter}]"

    assert not before
    lines = [line for line in lab.bot.log_text().splitlines() if " DEBUG " in line]
    assert any("inbox.received" in line for line in lines)
    # The reload has reached the arbiter a moment later.
    os.kill(lab.bot.arbiter, signal.SIGHUP)
    wait_for(
        "the arbiter to write them too",
        lambda: any(arbiter in line and " DEBUG " in line for line in lab.bot.log_text().splitlines()),
    )


def test_files_are_as_large_and_as_many_as_the_settings_say(lab: Lab) -> None:
    before = log_files(lab)

    lab.put(logs={"level": "debug", "size_bytes": 10_000, "files": 2})
    fill(lab, "fermix.log.1")
    for _ in range(6):
        os.kill(lab.bot.worker, signal.SIGUSR1)  # stacks of all greenlets: some kilobytes
        lab.say()
    two = log_files(lab)
    lab.put(logs={"level": "debug", "size_bytes": 10_000, "files": 4})
    fill(lab, "fermix.log.3")

    assert before == {"fermix.log"}
    assert two == {"fermix.log", "fermix.log.1"}
    assert log_files(lab) == {"fermix.log", *(f"fermix.log.{number}" for number in (1, 2, 3))}


def fill(lab: Lab, name: str) -> None:
    """Have lines written until there is a file of this name."""

    def is_there() -> bool:
        lab.say()
        return name in log_files(lab)

    wait_for(name, is_there, 30.0)
