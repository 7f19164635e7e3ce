"""`fermix status` and `fermix sessions` against a scripted daemon."""

from __future__ import annotations

import json
import socket
import time
from typing import Any

import pytest

from fermix.cli.status_report import duration
from tests.cli.conftest import status


def test_status_tells_how_the_daemon_is(fermix: Any, daemon: Any) -> None:
    done = fermix("status")

    assert done.exit_code == 0
    assert done.stdout.splitlines()[0] == "fermix: running (pid 4320, version 0.1.0, up 3 min)"
    assert "model  local / smollm2" in done.stdout
    assert "turns  1 running, 2 waiting" in done.stdout
    assert "! gateway: running, 2 restarts, it broke" in done.stdout
    assert done.stderr == ""


@pytest.mark.parametrize(("is_https", "scheme"), [(False, "http"), (True, "https")])
def test_status_names_the_address_as_a_browser_takes_it(
    fermix: Any, daemon: Any, is_https: bool, scheme: str
) -> None:
    daemon.on["status"] = lambda request: request.result(**status(https=is_https))

    assert f"  http   {scheme}://127.0.0.1:4030\n" in fermix("status").stdout


def test_status_says_what_is_not_well(fermix: Any, daemon: Any) -> None:
    checks = [
        {"name": "database", "is_ok": False, "detail": "No room left on the disk."},
        {"name": "other", "is_ok": True, "detail": "fine"},
    ]
    daemon.on["status"] = lambda request: request.result(**status(state="degraded", checks=checks))

    shown = fermix("status").stdout

    assert shown.startswith("fermix: degraded (pid ")
    assert "  ! database: No room left on the disk.\n" in shown
    assert "other" not in shown


def test_status_as_json_is_what_the_daemon_said(fermix: Any, daemon: Any) -> None:
    assert json.loads(fermix("status", "--json").stdout) == status()


def test_status_of_nothing_is_exit_code_3(fermix: Any) -> None:
    done = fermix("status")
    as_json = fermix("status", "--json")

    assert (done.exit_code, done.stdout) == (3, "")
    assert done.stderr == "fermix: The daemon is not running.\n  try: fermix start\n"
    assert as_json.exit_code == 3
    assert json.loads(as_json.stdout)["error"]["code"] == "not_running"


def test_stale_socket_is_exit_code_3(fermix: Any) -> None:
    fermix.home.mkdir()
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(fermix.home / "daemon.sock"))

    assert fermix("status").exit_code == 3


def test_status_warns_of_another_version(fermix: Any, daemon: Any) -> None:
    daemon.on["status"] = lambda request: request.result(**status(version="0.0.9"))

    done = fermix("status")

    assert done.exit_code == 0
    assert "The daemon is version 0.0.9, this program is" in done.stderr
    assert "fermix restart" in done.stderr


def test_daemon_of_another_protocol_hints_at_a_restart(fermix: Any, daemon: Any) -> None:
    daemon.on["status"] = lambda request: request.error("client_too_old", "Protocol 1 is no longer served.")

    done = fermix("status", "--json")

    assert done.exit_code == 1
    error = json.loads(done.stdout)["error"]
    assert (error["code"], error["hint"]) == ("client_too_old", "fermix restart")


def test_hanging_daemon_is_told_in_time(fermix: Any, daemon: Any) -> None:
    daemon.on["status"] = lambda request: None
    began = time.monotonic()

    done = fermix("status")

    assert done.exit_code == 1
    assert "did not answer 'status' within 5 s" in done.stderr
    assert time.monotonic() - began < 10


@pytest.mark.parametrize(
    ("milliseconds", "words"),
    [(0, "0 s"), (59_999, "59 s"), (60_000, "1 min"), (3_720_000, "1 h 2 min"), (90_000_000, "1 d 1 h")],
)
def test_duration_is_said_as_people_do(milliseconds: int, words: str) -> None:
    assert duration(milliseconds) == words


SESSIONS = [
    {
        "session": "main",
        "title": "Trip",
        "updated_ms": 1_700_000_000_000,
        "message_count": 4,
        "last_text": "ok",
    },
    {
        "session": "work",
        "title": None,
        "updated_ms": 1_600_000_000_000,
        "message_count": 1,
        "last_text": "a\x1bb",
    },
]


def test_sessions_are_listed(fermix: Any, daemon: Any) -> None:
    daemon.on["sessions.list"] = lambda request: request.result(sessions=SESSIONS)

    done = fermix("sessions", "list", "--limit", "7")

    assert done.exit_code == 0
    assert done.stdout.splitlines() == [
        "main  2023-11-14     4 messages  Trip",
        "work  2020-09-13     1 messages  a\\x1bb",
    ]
    assert daemon.asked("sessions.list") == [{"limit": 7}]
    assert json.loads(fermix("sessions", "list", "--json").stdout)["sessions"] == SESSIONS


def test_no_sessions_yet_says_how_to_begin(fermix: Any, daemon: Any) -> None:
    assert "fermix ask" in fermix("sessions", "list").stdout


def test_session_is_shown(fermix: Any, daemon: Any) -> None:
    messages = [
        {"role": "user", "text": "Hi", "created_ms": 1_700_000_000_000},
        {"role": "assistant", "text": "Hello.", "created_ms": 1_700_000_000_001},
    ]
    daemon.on["sessions.messages"] = lambda request: request.result(messages=messages)

    assert (
        fermix("sessions", "show", "main").stdout == "you  2023-11-14\nHi\n\nfermix  2023-11-14\nHello.\n\n"
    )


@pytest.mark.parametrize("verb", ["show", "resume"])
def test_unknown_session_is_answered_with_the_nearest(fermix: Any, daemon: Any, verb: str) -> None:
    daemon.on["sessions.list"] = lambda request: request.result(sessions=SESSIONS)

    done = fermix("sessions", verb, "wrok")

    assert done.exit_code == 1
    assert done.stderr.startswith("fermix: No session named 'wrok'. Did you mean 'work'?\n")
    assert "Traceback" not in done.stderr
