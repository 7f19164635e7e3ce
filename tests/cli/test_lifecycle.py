"""Starting and stopping: the real daemon, and stand-ins for one that misbehaves."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from_source = pytest.mark.parametrize("fermix", ["source"], indirect=True)
"""A binary starts itself and nothing else."""


def stand_in(fermix: Any, script: str) -> dict[str, str]:
    """An environment in which the daemon is a shell script."""
    path = fermix.root / "stand-in"
    path.write_text("#!/bin/sh\n" + script)
    path.chmod(0o700)
    return {"FERMIX_EXE": str(path)}


@pytest.fixture
def homely(fermix: Any) -> Any:
    """The command with a home whose daemon takes any free port."""
    fermix.home.mkdir(mode=0o700)
    (fermix.home / "config.toml").write_text("[http]\nport = 0\n")
    return fermix


def told(done: Any) -> str:
    """What stderr says but for the sign of life that a slow machine gets."""
    return done.stderr.removeprefix("fermix: starting fermix ...\n")


def daemon_pid(fermix: Any) -> int:
    return int((fermix.home / "fermix.pid").read_text())


def test_daemon_is_started_once_asked_and_stopped(homely: Any) -> None:
    started = homely("start")
    again = homely("start")
    pid = daemon_pid(homely)
    status = homely("status", "--json")
    stopped = homely("stop")

    assert started.exit_code == again.exit_code == stopped.exit_code == 0, started.stderr
    assert started.stdout == f"fermix: running (pid {pid}, version 0.1.0)\n"
    assert again.stdout == f"fermix: already running (pid {pid}, version 0.1.0)\n"
    assert json.loads(status.stdout)["mode"] == "full"
    assert stopped.stdout == f"fermix: stopped (pid {pid})\n"
    assert homely("status").exit_code == 3
    assert homely("stop").exit_code == 3
    assert stat.S_IMODE(homely.home.stat().st_mode) == 0o700
    assert stat.S_IMODE((homely.home / "logs/fermix.log").stat().st_mode) == 0o600


def test_started_daemon_holds_nothing_of_the_terminal(homely: Any) -> None:
    homely("start")
    pid = daemon_pid(homely)

    assert os.getsid(pid) == pid
    assert Path(f"/proc/{pid}/cwd").resolve() == homely.home
    opened = {Path(f"/proc/{pid}/fd/{number}").resolve() for number in range(3)}
    assert opened == {Path("/dev/null"), homely.home / "logs/fermix.log"}


def test_restart_gives_a_new_daemon_also_when_none_ran(homely: Any) -> None:
    assert homely("restart").exit_code == 0
    before = daemon_pid(homely)
    assert homely("restart", "--json").exit_code == 0

    assert daemon_pid(homely) != before
    assert homely("status").exit_code == 0


def test_two_starts_at_once_give_one_daemon(homely: Any) -> None:
    racers = [homely.start("start") for _ in range(3)]
    said = {racer.communicate(timeout=60)[0] for racer in racers}

    assert {racer.returncode for racer in racers} == {0}, said
    assert all(f"running (pid {daemon_pid(homely)}".encode() in line for line in said), said


def test_private_daemon_answers_and_gives_way(homely: Any) -> None:
    asked = homely("sessions", "list", "--json")
    private = json.loads(homely("status", "--json").stdout)
    started = homely("start")
    full = json.loads(homely("status", "--json").stdout)

    assert (asked.exit_code, json.loads(asked.stdout)) == (0, {"sessions": []})
    assert (private["mode"], private["http"]) == ("private", None)
    assert started.exit_code == 0, started.stderr
    assert full["mode"] == "full"
    assert full["arbiter_pid"] != private["arbiter_pid"]


def test_two_commands_at_once_share_one_private_daemon(fermix: Any) -> None:
    racers = [fermix.start("sessions", "list", "--json") for _ in range(4)]
    said = [racer.communicate(timeout=60)[0] for racer in racers]

    assert [racer.returncode for racer in racers] == [0] * 4, said
    assert json.loads(fermix("status", "--json").stdout)["arbiter_pid"] == daemon_pid(fermix)


@pytest.mark.parametrize("words", [("start",), ("ask", "hi"), ("sessions", "list")])
def test_daemon_that_cannot_start_is_told_in_its_own_words(fermix: Any, words: tuple[str, ...]) -> None:
    fermix.home.mkdir(mode=0o700)
    (fermix.home / "config.toml").write_text("[gatway]\nrunning_turns = 3\n")

    done = fermix(*words)
    as_json = json.loads(fermix(*words, "--json").stdout)

    assert done.exit_code == 1
    assert told(done).startswith("fermix: The daemon ended while it started (exit code ")
    said = told(done).splitlines()
    assert said[1].startswith("  No section named 'gatway'")
    assert said[2:] == ["  try: fermix config show --defaults"]
    assert "Traceback" not in done.stderr
    assert as_json["error"]["code"] == "start_failed"


@from_source
def test_last_lines_are_shown_of_a_daemon_that_dies(fermix: Any) -> None:
    environment = stand_in(fermix, "echo first; echo 'no such library' >&2; kill -9 $$\n")

    done = fermix("ask", "hi", environment=environment)

    assert done.exit_code == 1
    assert told(done).splitlines()[:3] == [
        "fermix: The daemon ended while it started (signal 9).",
        "  first",
        "  no such library",
    ]


@from_source
def test_program_that_cannot_be_run_is_told(fermix: Any) -> None:
    done = fermix("start", environment={"FERMIX_EXE": str(fermix.root / "gone")})

    assert done.exit_code == 1
    assert "cannot be started: No such file or directory" in done.stderr


@from_source
def test_waiting_for_a_slow_start_is_told_after_a_second(fermix: Any) -> None:
    done = fermix("ask", "hi", environment=stand_in(fermix, "sleep 1.5; exit 1\n"))

    assert done.stderr.startswith("fermix: starting fermix ...\n")


def test_home_that_is_a_file_is_told(fermix: Any) -> None:
    done = fermix("ask", "hi", environment={"FERMIX_HOME": "/etc/passwd"})

    assert done.stderr.startswith(
        "fermix: The home '/etc/passwd' cannot be written: '/etc/passwd' is not a folder.\n  try: "
    )


def test_file_where_the_logs_belong_is_to_be_put_aside(fermix: Any) -> None:
    fermix.home.mkdir(mode=0o700)
    (fermix.home / "logs").touch()

    done = fermix("ask", "hi")

    assert f"  try: mv {fermix.home}/logs {fermix.home}/logs.aside\n" in done.stderr


def test_home_that_cannot_be_made_is_told(fermix: Any) -> None:
    done = fermix("ask", "hi", environment={"FERMIX_HOME": "/proc/nowhere"})

    assert done.exit_code == 1
    assert "The home '/proc/nowhere' cannot be written" in done.stderr
    assert "FERMIX_HOME" in done.stderr


def test_daemon_that_does_not_end_is_told_and_killed_only_when_forced(fermix: Any) -> None:
    deaf = subprocess.Popen(
        [*DEAF, str(fermix.home / "daemon.sock")], stdout=subprocess.PIPE, env=fermix.environment
    )
    try:
        fermix.home.mkdir(exist_ok=True)
        assert deaf.stdout is not None
        assert deaf.stdout.readline() == b"ready\n"

        patient = fermix("stop", "--timeout", "1")
        assert patient.exit_code == 1
        assert f"The daemon (pid {deaf.pid}) still runs after 1 s" in patient.stderr
        assert deaf.poll() is None

        forced = fermix("stop", "--timeout", "1", "--force")
        assert forced.exit_code == 0
        assert f"killing it (pid {deaf.pid})" in forced.stderr
        assert deaf.wait(5) == -signal.SIGKILL
    finally:
        if deaf.poll() is None:
            deaf.kill()
            deaf.wait(5)
        assert deaf.stdout is not None
        deaf.stdout.close()


DEAF = (
    "/usr/bin/env",
    "python3",
    "-c",
    """
import os, signal, socket, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
os.makedirs(os.path.dirname(sys.argv[1]), 0o700, exist_ok=True)
listener = socket.socket(socket.AF_UNIX)
listener.bind(sys.argv[1])
listener.listen()
print("ready", flush=True)
while True:
    link, _ = listener.accept()
    link.recv(65536)
    link.close()
""",
)


def test_stop_signals_a_daemon_that_does_not_answer(fermix: Any, daemon: Any) -> None:
    began = time.monotonic()
    daemon.on["stop"] = lambda request: None
    held = signal.signal(signal.SIGTERM, lambda *_: None)  # the scripted daemon is this very process
    try:
        done = fermix("stop", "--timeout", "6")
    finally:
        signal.signal(signal.SIGTERM, held)

    assert done.exit_code == 1
    assert f"sending SIGTERM to its supervisor (pid {os.getpid()})" in done.stderr
    assert time.monotonic() - began < 20
