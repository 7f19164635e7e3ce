"""The command line, the real daemon and a scripted model: what a person gets in the end."""

from __future__ import annotations

import json
import os
import select
import signal
import time
from collections.abc import Iterator
from typing import Any

import pytest

from fermix.testing.model_script import Script, read_script
from fermix.testing.model_server import ModelServer

WORDS = [f"word{number} " for number in range(40)]


def script(rules: dict[str, list[dict[str, Any]]]) -> Script:
    listed = [{"when": when, "then": then} for when, then in rules.items()]
    return read_script(json.dumps({"rules": listed, "default": {"say": "You said: {text}"}}).encode())


@pytest.fixture
def model() -> Iterator[ModelServer]:
    """A model that counts slowly, works with tools, or repeats what it hears."""
    rules = {
        "count": [{"say": "".join(WORDS).strip(), "chunks": 40, "delay_ms": 50}],
        "work": [
            {
                "say": "I write it down.",
                "tool_calls": [
                    {"name": "file_write", "arguments": {"path": "note.txt", "content": "done"}}
                ],
            },
            {
                "say": "Then I look.",
                "tool_calls": [{"name": "shell", "arguments": {"script": "cp note.txt seen.txt"}}],
            },
            {"say": "It is there."},
        ],
    }
    with ModelServer(script=script(rules)) as server:
        yield server


@pytest.fixture
def wired(fermix: Any, model: ModelServer) -> Any:
    """The command with a home that asks the scripted model."""
    fermix.home.mkdir(mode=0o700)
    (fermix.home / "config.toml").write_text(
        "[http]\nport = 0\n"
        '[provider]\nname = "mine"\n'
        f'[providers.mine]\nbase_url = "http://127.0.0.1:{model.port}/v1"\nmodel = "scripted"\n'
    )
    return fermix


def pids(fermix: Any) -> tuple[int, int]:
    """Worker and arbiter."""
    status = json.loads(fermix("status", "--json").stdout)
    return status["pid"], status["arbiter_pid"]


def read_until(process: Any, text: bytes, timeout_s: float = 20) -> bytes:
    """What a command printed until `text` came."""
    data = b""
    deadline = time.monotonic() + timeout_s
    while text not in data:
        ready, _, _ = select.select([process.stdout], [], [], max(0.0, deadline - time.monotonic()))
        assert ready, f"{text!r} did not come, only {data!r}"
        piece = os.read(process.stdout.fileno(), 65536)
        assert piece, f"{text!r} did not come, only {data!r}"
        data += piece
    return data


def test_first_question_starts_a_private_daemon_and_is_answered(wired: Any) -> None:
    done = wired("ask", "hello there", "--json")

    assert done.exit_code == 0, done.stdout
    assert json.loads(done.stdout)["text"] == "You said: hello there"
    assert json.loads(wired("status", "--json").stdout)["mode"] == "private"


def test_tools_work_and_the_steps_are_told(wired: Any) -> None:
    done = wired("ask", "work")

    assert done.exit_code == 0, done.stderr
    assert done.stdout == "I write it down.\n\nThen I look.\n\nIt is there.\n"
    assert (wired.root / "seen.txt").read_text() == "done"


@pytest.mark.parametrize("killed", ["worker", "everything"])
def test_answer_is_whole_though_the_daemon_was_killed_while_it_came(wired: Any, killed: str) -> None:
    wired("start")
    worker, arbiter = pids(wired)
    process = wired.start("ask", "count")
    said = read_until(process, b"word5 ")
    for pid in (arbiter, worker) if killed == "everything" else (worker,):
        os.kill(pid, signal.SIGKILL)

    rest, _ = process.communicate(timeout=60)

    assert process.returncode == 0, rest
    assert (said + rest).decode().split() == "".join(WORDS).split()


def test_sessions_are_kept_apart_and_listed(wired: Any) -> None:
    wired("ask", "--session", "one", "first")
    wired("ask", "--session", "two", "second")

    listed = json.loads(wired("sessions", "list", "--json").stdout)["sessions"]
    shown = json.loads(wired("sessions", "show", "one", "--json").stdout)["messages"]

    assert {each["session"] for each in listed} == {"one", "two"}
    assert [(each["role"], each["text"]) for each in shown] == [
        ("user", "first"),
        ("assistant", "You said: first"),
    ]


def test_what_was_asked_is_on_the_bill_and_its_bytes_are_shown(wired: Any) -> None:
    wired("ask", "--session", "one", "first")
    wired("ask", "--session", "two", "work")

    of_one = json.loads(wired("usage", "--by", "model", "--session", "one", "--json").stdout)
    shown = wired("usage", "--by", "conversation", "--since", "1h").stdout
    told = wired("ask", "--session", "one", "/usage").stdout
    parts = json.loads(wired("prompt-size", "--json").stdout)["parts"]

    assert [(line["name"], line["calls"]) for line in of_one["lines"]] == [("mine/scripted", 1)]
    assert of_one["total"]["cost_micro_usd"] is None
    assert [line.split()[:2] for line in shown.splitlines()[1:]] == [
        ["local:two", "3"],
        ["local:one", "1"],
        ["total", "4"],
    ]
    assert "today: 1 call" in told and "cost unknown" in told
    assert {part["kind"] for part in parts} == {"instructions", "tool", "message", "framing"}


def test_attached_file_arrives(wired: Any) -> None:
    content = os.urandom(1_500_000)
    (wired.root / "data.bin").write_bytes(content)

    assert wired("ask", "--attach", "data.bin", "look").exit_code == 0

    arrived = list((wired.home / "workspace").rglob("data.bin"))
    assert [path.read_bytes() == content for path in arrived] == [True]


def test_timeout_ends_the_turn_in_the_daemon_too(wired: Any) -> None:
    wired("start")
    done = wired("ask", "--timeout", "0.5", "count")
    deadline = time.monotonic() + 5
    while json.loads(wired("status", "--json").stdout)["turns"]["running"]:
        assert time.monotonic() < deadline

    assert done.exit_code == 1
    assert "the turn was cancelled" in done.stderr


def test_unreachable_model_is_told(wired: Any, model: ModelServer) -> None:
    (wired.home / "config.toml").write_text(
        '[provider]\nname = "mine"\n[providers.mine]\nbase_url = "http://127.0.0.1:9/v1"\nmodel = "m"\n'
    )

    done = wired("ask", "hello")

    told = [line for line in done.stderr.splitlines() if not line.endswith(" ...")]
    assert (done.exit_code, done.stdout) == (1, "")
    assert told == ["fermix: mine: Cannot connect to http://127.0.0.1:9: Connection refused."]


def test_what_keeps_a_daemon_from_starting_is_named(wired: Any) -> None:
    (wired.home / "run.groups").mkdir()

    done = wired("start")

    assert done.exit_code == 1
    assert (
        f"It could not start: IsADirectoryError: [Errno 21] Is a directory: '{wired.home}/run.groups'"
        in (done.stderr)
    )


def test_chat_goes_on_over_a_killed_worker(wired: Any, person: Any) -> None:
    someone = person("chat", "--session", "talk")
    someone.sees("›", 30)
    someone.type("hello\r")
    someone.sees("You said: hello")
    someone.type("count\r")
    someone.sees("word5 ")
    os.kill(pids(wired)[0], signal.SIGKILL)
    someone.sees("word39", 30)
    someone.type("still there?\r")
    someone.sees("You said: still there?")
    someone.type("\x04")

    assert someone.leaves() == 0


def test_ctrl_c_stops_the_answer_and_the_next_one_comes(wired: Any, person: Any) -> None:
    someone = person("chat")
    someone.sees("›", 30)
    someone.type("count\r")
    someone.sees("word3 ")
    someone.type("\x03")
    someone.sees("stopped")
    someone.type("again\r")
    someone.sees("You said: again")
    someone.type("\x04")

    assert someone.leaves() == 0
