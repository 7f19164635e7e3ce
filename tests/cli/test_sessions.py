"""`fermix sessions title, archive, export, delete`, with a real daemon and a scripted model."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fermix.testing.model_script import read_script
from fermix.testing.model_server import ModelServer


@pytest.fixture
def model() -> Iterator[ModelServer]:
    """A model that repeats what it hears."""
    script = read_script(b'{"default": {"say": "You said: {text}"}}')
    with ModelServer(script=script) as server:
        yield server


@pytest.fixture
def wired(fermix: Any, model: ModelServer) -> Any:
    fermix.home.mkdir(mode=0o700)
    (fermix.home / "config.toml").write_text(
        "[http]\nport = 0\n"
        '[provider]\nname = "mine"\n'
        f'[providers.mine]\nbase_url = "http://127.0.0.1:{model.port}/v1"\nmodel = "scripted"\n'
    )
    return fermix


def listed(wired: Any, *words: str) -> list[str]:
    answer = json.loads(wired("sessions", "list", "--json", *words).stdout)
    return [each["session"] for each in answer["sessions"]]


def words_on_disk(home: Path, words: str) -> list[str]:
    return [str(path) for path in home.rglob("*") if path.is_file() and words.encode() in path.read_bytes()]


def test_session_is_titled_put_away_and_taken_back(wired: Any) -> None:
    wired("ask", "--session", "work", "hello")

    titled = wired("sessions", "title", "work", "The plan")
    assert (titled.exit_code, titled.stdout) == (0, "work: The plan\n")
    assert "fermix sessions archive work --undo" in wired("sessions", "archive", "work").stdout
    assert (listed(wired), listed(wired, "--archived")) == ([], ["work"])
    assert wired("sessions", "list").stdout.startswith("No conversations yet")
    assert wired("sessions", "archive", "work", "--undo").exit_code == 0
    assert listed(wired) == ["work"]
    assert "The plan" in wired("sessions", "list").stdout


def test_command_that_takes_a_session_back_can_be_pasted(wired: Any) -> None:
    wired("ask", "--session", "summer plan", "hello")

    told = wired("sessions", "archive", "summer plan").stdout

    assert told.endswith("back with: fermix sessions archive 'summer plan' --undo\n")


def test_deleted_session_leaves_no_word_in_the_home(wired: Any) -> None:
    (wired.root / "note.txt").write_text("belladonna")
    assert wired("ask", "--session", "garden", "--attach", "note.txt", "mandragora").exit_code == 0
    wired("ask", "--session", "kept", "rosemary")
    assert words_on_disk(wired.home, "mandragora")
    assert words_on_disk(wired.home, "belladonna")

    refused = wired("sessions", "delete", "garden")
    assert (refused.exit_code, listed(wired)) == (2, ["kept", "garden"])
    assert "fermix sessions delete garden --yes" in refused.stderr
    deleted = wired("sessions", "delete", "garden", "--yes")

    assert (deleted.exit_code, deleted.stdout) == (0, "Deleted garden: 2 messages and 1 file.\n")
    assert listed(wired) == ["kept"]
    assert words_on_disk(wired.home, "mandragora") == []
    assert words_on_disk(wired.home, "belladonna") == []
    assert words_on_disk(wired.home, "rosemary")


def test_what_was_typed_in_a_deleted_chat_is_forgotten_too(wired: Any, person: Any) -> None:
    someone = person("chat", "--session", "garden")
    someone.sees("fermix")
    someone.type("mandragora\r")
    someone.sees("You said: mandragora")
    someone.type("\x04")
    assert someone.leaves() == 0
    assert [Path(path).name for path in words_on_disk(wired.home, "mandragora") if "chat" in path]

    assert wired("sessions", "delete", "garden", "--yes").exit_code == 0

    assert words_on_disk(wired.home, "mandragora") == []


@pytest.mark.parametrize(("key", "is_gone"), [("n", False), ("y", True)])
def test_person_is_asked_before_a_session_is_deleted(
    wired: Any, person: Any, key: str, is_gone: bool
) -> None:
    wired("ask", "--session", "garden", "hello")

    someone = person("sessions", "delete", "garden")
    someone.sees("Delete garden (2 messages; hello) for good? [y/N]")
    someone.type(f"{key}\n")

    assert someone.leaves() == (0 if is_gone else 130)
    assert listed(wired) == ([] if is_gone else ["garden"])


@pytest.mark.parametrize("words", [("title", "gardn", "x"), ("archive", "gardn"), ("export", "gardn")])
def test_mistyped_session_is_answered_with_the_nearest(wired: Any, words: tuple[str, ...]) -> None:
    wired("ask", "--session", "garden", "hello")

    done = wired("sessions", *words, "--json")

    assert done.exit_code == 1
    told = json.loads(done.stdout)["error"]
    assert (told["code"], told["message"]) == (
        "session_unknown",
        "No session named 'gardn'. Did you mean 'garden'?",
    )


def test_export_is_a_private_file_with_everything(wired: Any) -> None:
    wired("ask", "--session", "work", "one")
    wired("ask", "--session", "work", "two")

    done = wired("sessions", "export", "work", "--out", "work.json")

    path = wired.root / "work.json"
    assert (done.exit_code, done.stdout) == (0, "4 messages are in work.json\n")
    assert path.stat().st_mode & 0o777 == 0o600
    document = json.loads(path.read_text())
    assert document["session"] == "work"
    assert [(each["role"], each["text"]) for each in document["messages"]] == [
        ("user", "one"),
        ("assistant", "You said: one"),
        ("user", "two"),
        ("assistant", "You said: two"),
    ]
    assert wired("sessions", "export", "work").stdout == path.read_text()
    shown = wired("sessions", "export", "work", "--format", "markdown").stdout
    assert shown.startswith("# one\n\nSession `work`")
    assert "## You," in shown


def test_export_writes_over_a_file_only_when_told_to(wired: Any) -> None:
    wired("ask", "--session", "work", "one")
    path = wired.root / "work.json"
    path.write_text("mine")

    refused = wired("sessions", "export", "work", "--out", "work.json")
    assert (refused.exit_code, path.read_text()) == (2, "mine")
    assert "fermix sessions export work --out work.json --force" in refused.stderr

    assert wired("sessions", "export", "work", "--out", "work.json", "--force").exit_code == 0
    assert path.read_text() != "mine"


def test_export_into_a_folder_that_is_not_there_says_so(wired: Any) -> None:
    wired("ask", "--session", "work", "one")

    done = wired("sessions", "export", "work", "--out", "nowhere/work.json")

    assert done.exit_code == 1
    assert "Cannot write" in done.stderr
    assert list(wired.root.glob("**/.work*")) == []


def test_big_session_is_exported_whole(wired: Any) -> None:
    wired("ask", "--session", "work", "one")
    wired("stop")
    with sqlite3.connect(wired.home / "memory.db") as connection:
        found = connection.execute("SELECT id FROM conversations").fetchone()[0]
        connection.executemany(
            "INSERT INTO messages VALUES (?, ?, 'T', ?, 'user', ?, 1)",
            [
                (f"M{at}", found, at, json.dumps({"role": "user", "text": f"é{at}"}))
                for at in range(3, 20_001)
            ],
        )
    connection.close()

    done = wired("sessions", "export", "work", "--out", "work.json", "--json")

    assert json.loads(done.stdout)["messages"] == 20_000
    messages = json.loads((wired.root / "work.json").read_text())["messages"]
    assert [each["position"] for each in messages] == list(range(1, 20_001))
    assert messages[-1]["text"] == "é20000"
