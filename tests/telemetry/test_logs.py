"""The log file: one event a line, rotated, shared, redacted, and never a reason to fail."""

from __future__ import annotations

import faulthandler
import logging
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from fermix.events import turn_id
from fermix.telemetry.lines import redacted, set_redaction
from fermix.telemetry.logs import LogFile, start_logs
from fermix.telemetry.settings import LogSettings

log = logging.getLogger("fermix.some.module")


@pytest.fixture
def folder(tmp_path) -> Iterator[Path]:
    """A folder for logs; the root logger is put back afterwards."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield tmp_path
    for handler in root.handlers:
        if isinstance(handler, LogFile):
            handler.close()
    root.handlers[:] = handlers
    root.setLevel(level)
    logging.captureWarnings(False)
    set_redaction(None)


def start(folder: Path, **settings) -> LogFile:
    return start_logs(folder / "fermix.log", LogSettings(**settings), is_terminal=False)


def lines(folder: Path) -> list[str]:
    return (folder / "fermix.log").read_text().splitlines()


def test_a_line_says_when_how_bad_where_who_and_for_which_turn(folder):
    start(folder)
    turn_id.set("01TURN")

    log.warning("sent %d of %s", 3, "five")
    turn_id.set("-")

    (line,) = lines(folder)
    time_pattern = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"
    assert re.fullmatch(
        time_pattern + r" WARNING fermix\.some\.module \[\d+\] \[01TURN\] sent 3 of five", line
    )
    assert (folder / "fermix.log").stat().st_mode & 0o777 == 0o600


def test_less_important_lines_than_asked_for_are_left_out(folder):
    start(folder, level="warning")

    log.info("nobody asked")

    assert lines(folder) == []


def test_secrets_are_redacted_in_text_and_traceback(folder):
    start(folder)
    set_redaction(lambda text: text.replace("hunter2", "***"))

    try:
        raise ValueError("bad key hunter2")
    except ValueError:
        log.exception("login with %s failed", "hunter2")

    text = (folder / "fermix.log").read_text()
    assert "hunter2" not in text
    assert "login with *** failed" in text
    assert "ValueError: bad key ***" in text
    assert redacted("hunter2") == "***"


def test_a_redaction_that_fails_withholds_the_line(folder):
    start(folder)

    def broken(text: str) -> str:
        raise RuntimeError

    set_redaction(broken)
    log.info("maybe a secret")

    assert lines(folder) == ["(withheld: redaction failed)"]


def test_hostile_text_stays_one_line_of_bounded_length(folder):
    start(folder)

    log.info("from %s", "a\nFAKE\x1b[2J\u2028\udcff" + "x" * 100_000)
    log.info("wrong %d", "not a number")

    first, second = lines(folder)
    assert r"from a\nFAKE\x1b[2J\u2028\udcff" in first
    assert len(first) < 9_000
    assert "wrong %d ('not a number',)" in second


def test_a_full_file_is_put_aside_and_the_oldest_one_dropped(folder):
    start(folder, size_bytes=10_000, files=3)

    for number in range(100):
        log.info("%d %s", number, "x" * 1000)

    names = sorted(path.name for path in folder.iterdir())
    assert names == ["fermix.log", "fermix.log.1", "fermix.log.2"]
    assert all(path.stat().st_size <= 11_200 for path in folder.iterdir())
    text = "".join((folder / name).read_text() for name in reversed(names))
    numbers = [int(number) for number in re.findall(r"\] (\d+) x", text)]
    assert numbers == list(range(numbers[0], 100))


def test_a_single_file_is_begun_anew_when_full(folder):
    start(folder, size_bytes=10_000, files=1)

    for _ in range(30):
        log.info("x" * 1000)

    assert [path.name for path in folder.iterdir()] == ["fermix.log"]
    assert (folder / "fermix.log").stat().st_size <= 11_200


WRITER = """
import logging, sys
from pathlib import Path
from fermix.telemetry.logs import start_logs
from fermix.telemetry.settings import LogSettings
start_logs(Path(sys.argv[1]), LogSettings(size_bytes=20_000, files=100), is_terminal=False)
for number in range(300):
    logging.getLogger("w").info("%s:%d %s", sys.argv[2], number, "x" * 500)
"""


def test_processes_that_share_the_file_lose_and_mix_no_line_through_rotations(folder):
    writers = [
        subprocess.Popen([sys.executable, "-c", WRITER, str(folder / "fermix.log"), name]) for name in "abc"
    ]

    assert [writer.wait(timeout=60) for writer in writers] == [0, 0, 0]

    text = "".join(path.read_text() for path in folder.iterdir())
    assert sorted(re.findall(r"\] ([abc]:\d+) x{500}\n", text)) == sorted(
        f"{name}:{number}" for name in "abc" for number in range(300)
    )
    assert len(list(folder.iterdir())) > 10


def test_threads_lose_no_line_through_rotations(folder):
    start(folder, size_bytes=10_000, files=100)

    threads = [
        threading.Thread(target=lambda t=t: [log.info("%d:%d %s", t, n, "x" * 300) for n in range(100)])
        for t in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=30)

    text = "".join(path.read_text() for path in folder.iterdir())
    assert len(set(re.findall(r"\] (\d:\d+) x{300}\n", text))) == 400


def test_c_code_writes_to_the_present_file_after_rotations(folder):
    handler = start(folder, size_bytes=10_000)
    fd = handler.fileno()
    for _ in range(30):
        log.info("x" * 1000)

    assert handler.present_fd() == fd
    faulthandler.dump_traceback(file=fd)

    assert "test_c_code_writes_to_the_present_file" in (folder / "fermix.log").read_text()


def test_c_code_is_led_to_the_present_file_after_another_process_rotated_it(folder):
    handler = start(folder)
    log.info("before")
    (folder / "fermix.log").rename(folder / "fermix.log.1")

    faulthandler.dump_traceback(file=handler.present_fd())

    assert "test_c_code_is_led_to_the_present_file" in (folder / "fermix.log").read_text()


@pytest.mark.parametrize("harm", ["file removed", "folder removed", "home removed", "file replaced"])
def test_the_file_comes_back_after_someone_took_it_away(folder, harm):
    home = folder / "home"
    logs = home / "logs"
    logs.mkdir(parents=True)
    start(logs)
    log.info("before")
    (logs / "fermix.log").unlink()
    if harm in ("folder removed", "home removed"):
        logs.rmdir()
    if harm == "home removed":
        home.rmdir()
        log.info("lost")
        log.info("lost")
        home.mkdir()
        time.sleep(1.1)  # it tries again once a second
    if harm == "file replaced":
        (logs / "fermix.log").touch()

    log.info("after")

    assert lines(logs)[-1].endswith("after")
    if harm == "home removed":
        assert lines(logs)[0] == "(2 lines could not be written here)"


def test_a_file_that_cannot_be_opened_costs_lines_and_nothing_else(folder):
    (folder / "fermix.log").symlink_to("/dev/full")  # a link is not followed

    handler = start(folder)
    log.info("lost")

    assert not handler.is_open
    assert os.fstat(handler.fileno()).st_rdev == Path("/dev/null").stat().st_rdev


def test_writes_that_fail_are_counted_and_reported_when_there_is_room_again(folder):
    handler = start(folder)
    full = os.open("/dev/full", os.O_WRONLY)
    kept = os.dup(handler.fileno())
    os.dup2(full, handler.fileno())
    log.info("no room")
    log.info("no room")

    os.dup2(kept, handler.fileno())
    log.info("room again")

    assert lines(folder)[0] == "(2 lines could not be written here)"
    assert lines(folder)[1].endswith("room again")
    os.close(full)
    os.close(kept)
