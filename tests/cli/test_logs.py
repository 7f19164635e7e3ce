"""`fermix logs` reads files only; no daemon is needed."""

from __future__ import annotations

import json
import os
import select
import time
from pathlib import Path
from typing import Any

LINE = "2026-11-30 18:00:00,000 INFO {turn} fermix.x: {text}\n"


def written(home: Path, name: str, *texts: str, turn: str = "-") -> None:
    logs = home / "logs"
    logs.mkdir(parents=True, exist_ok=True)
    with (logs / name).open("a") as log:
        log.writelines(LINE.format(turn=turn, text=text) for text in texts)


def shown(done: Any) -> list[str]:
    return [line.rpartition(": ")[2] for line in done.stdout.splitlines()]


def test_last_lines_reach_into_rotated_files(fermix: Any) -> None:
    written(fermix.home, "fermix.log.2", "a", "b")
    written(fermix.home, "fermix.log.1", "c", "d")
    written(fermix.home, "fermix.log", "e")

    assert shown(fermix("logs", "-n", "4")) == ["b", "c", "d", "e"]
    assert shown(fermix("logs", "-n", "1")) == ["e"]
    assert shown(fermix("logs", "-n", "0")) == []
    assert shown(fermix("logs")) == ["a", "b", "c", "d", "e"]


def test_one_turn_is_shown_with_the_rest_of_its_lines(fermix: Any) -> None:
    written(fermix.home, "fermix.log", "other")
    written(fermix.home, "fermix.log", "mine", turn="01TURN")
    with (fermix.home / "logs/fermix.log").open("a") as log:
        log.write("Traceback of mine\n")
    written(fermix.home, "fermix.log", "another")

    assert shown(fermix("logs", "--turn", "01TURN")) == ["mine", "Traceback of mine"]


def test_turn_nobody_wrote_of_is_told(fermix: Any) -> None:
    written(fermix.home, "fermix.log", "other")

    done = fermix("logs", "--turn", "01NONE")

    assert (done.exit_code, done.stdout) == (0, "")
    assert done.stderr == "No line of the log names the turn '01NONE'.\n"


def test_json_is_one_object_a_line(fermix: Any) -> None:
    written(fermix.home, "fermix.log", "a", "b")

    assert [json.loads(line)["line"][-1] for line in fermix("logs", "--json").stdout.splitlines()] == [
        "a",
        "b",
    ]


def test_no_log_yet_is_told(fermix: Any) -> None:
    done = fermix("logs")

    assert done.exit_code == 1
    assert "Nothing was logged yet" in done.stderr


def test_following_goes_on_after_a_rotation(fermix: Any) -> None:
    written(fermix.home, "fermix.log", "first")
    log = fermix.home / "logs/fermix.log"
    process = fermix.start("logs", "-f")
    try:
        assert next_line(process).endswith("first")
        written(fermix.home, "fermix.log", "second")
        assert next_line(process).endswith("second")

        written(fermix.home, "fermix.log", "third")
        log.rename(log.with_name("fermix.log.1"))
        written(fermix.home, "fermix.log", "fourth")

        assert next_line(process).endswith("third")
        assert next_line(process).endswith("fourth")

        process.send_signal(2)
        assert process.wait(10) == 130
    finally:
        process.kill()
        process.wait(10)
        process.stdout.close()


def next_line(process: Any) -> str:
    line = b""
    deadline = time.monotonic() + 10
    while not line.endswith(b"\n"):
        ready, _, _ = select.select([process.stdout], [], [], max(0.0, deadline - time.monotonic()))
        assert ready, f"no line came, only {line!r}"
        line += os.read(process.stdout.fileno(), 1)
    return line.decode().rstrip("\n")


def test_control_characters_of_the_log_do_not_reach_a_terminal(fermix: Any, person: Any) -> None:
    written(fermix.home, "fermix.log", "sender \x1b[2J is unknown")

    someone = person("logs")
    assert someone.leaves() == 0

    assert "\x1b[2J" not in someone.raw
    assert "sender \\x1b[2J is unknown" in someone.shown
