"""`fermix logs` reads files only; no daemon is needed."""

from __future__ import annotations

import itertools
import json
import os
import select
import time
from pathlib import Path
from typing import Any

import pytest

from fermix.cli.log_file import follow

LINE = "2026-11-30T18:00:00.123Z INFO    fermix.x [42] [{turn}] : {text}\n"


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


def test_json_is_one_object_for_each_entry(fermix: Any) -> None:
    log = fermix.home / "logs/fermix.log"
    written(fermix.home, "fermix.log", "a", turn="01TURN")
    with log.open("a") as file:
        file.write("Traceback\n  deep\n")
    written(fermix.home, "fermix.log", "b")

    first, second = map(json.loads, fermix("logs", "--json").stdout.splitlines())

    assert first == {
        "time": "2026-11-30T18:00:00.123Z",
        "level": "info",
        "logger": "fermix.x",
        "pid": 42,
        "turn": "01TURN",
        "text": ": a\nTraceback\n  deep",
    }
    assert (second["text"], second["turn"]) == (": b", None)


def mixed(home: Path) -> None:
    """Four entries of different levels and ages, one with a stack."""
    now_s = time.time()
    lines = (
        (7200, "INFO", "old start"),
        (300, "WARNING", "The model does not answer"),
        (200, "ERROR", "Turn 01X broke\nTraceback:\n  ValueError: Flugzeug"),
        (5, "INFO", "fresh"),
    )
    log = home / "logs/fermix.log"
    log.parent.mkdir(parents=True)
    with log.open("w") as file:
        for age_s, level, text in lines:
            when = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(now_s - age_s))
            file.write(f"{when}.000Z {level:<7} fermix.y [7] [-] {text}\n")


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("--level", "warning"), ["The model does not answer", "Turn 01X broke"]),
        (("--level", "error"), ["Turn 01X broke"]),
        (("--since", "10m"), ["The model does not answer", "Turn 01X broke", "fresh"]),
        (("--since", "1m"), ["fresh"]),
        (("--since", "3h", "--level", "info"), None),
        (("--grep", "flugZEUG"), ["Turn 01X broke"]),
        (("--grep", ".*"), []),
        (("--turn", "01X"), ["Turn 01X broke"]),
        (("-n", "2"), ["Turn 01X broke", "fresh"]),
        (("-n", "1", "--level", "warning"), ["Turn 01X broke"]),
    ],
)
def test_entries_are_found_by_what_they_are(
    fermix: Any, words: tuple[str, ...], expected: list[str] | None
) -> None:
    mixed(fermix.home)
    done = fermix("logs", *words)

    heads = [line.partition("[-] ")[2] for line in done.stdout.splitlines() if "[-]" in line]
    assert done.exit_code == 0
    assert heads == (
        ["old start", "The model does not answer", "Turn 01X broke", "fresh"]
        if expected is None
        else expected
    )
    assert ("Flugzeug" in done.stdout) == ("Turn 01X broke" in heads)


@pytest.mark.parametrize("words", [("--since", "soon"), ("--since", "10"), ("--grep", "x" * 1001)])
def test_filter_that_is_none_is_refused(fermix: Any, words: tuple[str, ...]) -> None:
    mixed(fermix.home)
    assert fermix("logs", *words).exit_code == 2


def test_following_shows_an_entry_with_its_stack_and_leaves_others_out(fermix: Any) -> None:
    written(fermix.home, "fermix.log", "first")
    process = fermix.start("logs", "-f", "-n", "0", "--grep", "deep", "--json")
    log = fermix.home / "logs/fermix.log"
    try:
        head = LINE.format(turn="-", text="broke")
        until_follows(process, log)
        with log.open("a") as file:
            file.write(head + "  deep inside\n" + LINE.format(turn="-", text="other"))
        log.rename(log.with_name("fermix.log.1"))
        log.write_text(head + "  deep again\n")

        assert json.loads(next_line(process))["text"] == ": broke\n  deep inside"
        assert json.loads(next_line(process))["text"] == ": broke\n  deep again"
    finally:
        process.kill()
        process.wait(10)
        process.stdout.close()


def until_follows(process: Any, log: Path) -> None:
    """Write entries that are shown until the first one is."""
    deadline = time.monotonic() + 10
    while not select.select([process.stdout], [], [], 0.1)[0]:
        assert time.monotonic() < deadline
        with log.open("a") as file:
            file.write(LINE.format(turn="-", text="deep"))
    while select.select([process.stdout], [], [], 1.0)[0]:
        next_line(process)


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


class Busy(type(Path())):  # type: ignore[misc]  # the class behind Path
    """A log in which a line is written whenever somebody looks whether it was replaced."""

    def stat(self, **options: Any) -> os.stat_result:
        with self.open("a") as log:
            log.write("late\n")
        return super().stat(**options)


def test_following_loses_no_line_that_is_written_while_it_looks_around(tmp_path: Path) -> None:
    (tmp_path / "fermix.log").write_text("first\n")

    lines = follow(Busy(tmp_path / "fermix.log"), 0)

    assert list(itertools.islice(lines, 5)) == ["first", None, "late", None, "late"]


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
