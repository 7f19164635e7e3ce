"""`fermix secrets`: keys go in unseen and never come out again."""

from __future__ import annotations

import json
import stat
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.bot import SOURCE, Bot, Model

FAKE = Path(__file__).parent.parent / "secrets/fake_keyring.py"
KEY = "sk-secret-0123456789"


@pytest.fixture
def keyring(source: Any) -> dict[str, str]:
    """The environment of a desktop whose keyring is a file; the binary only ever asks itself."""
    program = source.root / "keyring"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} {FAKE} "$@"\n')
    program.chmod(0o700)
    return {
        "FERMIX_EXE": str(program),
        "FAKE_KEYRING": str(source.root / "keyring.json"),
        "DBUS_SESSION_BUS_ADDRESS": "unix:path=/nowhere",
    }


def test_secret_from_standard_input_is_kept_private(fermix: Any) -> None:
    done = fermix("secrets", "set", "mine", stdin=f"{KEY}\n")

    assert done.exit_code == 0, done.stderr
    path = fermix.home / "secrets/mine"
    assert path.read_text() == KEY
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert str(fermix.home / "secrets") in done.stdout
    assert KEY not in done.stdout + done.stderr


def test_secret_from_a_file(fermix: Any) -> None:
    (fermix.root / "key.txt").write_bytes(f"\ufeff{KEY}\r\n".encode())

    assert fermix("secrets", "set", "mine", "--from-file", "key.txt").exit_code == 0
    assert (fermix.home / "secrets/mine").read_text() == KEY


def test_secret_is_asked_for_without_showing_it(fermix: Any, person: Callable[..., Any]) -> None:
    someone = person("secrets", "set", "mine")
    someone.sees("Secret mine (not shown)")
    someone.type(f"{KEY}\r")

    assert someone.leaves() == 0
    assert KEY not in someone.raw
    assert someone.echoes()
    assert (fermix.home / "secrets/mine").read_text() == KEY


@pytest.mark.parametrize("keys", ["\x03", "\x04"])
def test_leaving_the_question_changes_nothing(fermix: Any, person: Callable[..., Any], keys: str) -> None:
    someone = person("secrets", "set", "mine")
    someone.sees("(not shown)")
    someone.type(keys)

    assert someone.leaves() == 130
    assert someone.echoes()
    assert not fermix.home.exists()


@pytest.mark.parametrize("stdin", ["", "\n", "  \n"])
def test_empty_secret_is_refused(fermix: Any, stdin: str) -> None:
    done = fermix("secrets", "set", "mine", stdin=stdin)

    assert done.exit_code == 2
    assert "is empty" in done.stderr
    assert not (fermix.home / "secrets/mine").exists()


@pytest.mark.parametrize("name", ["../mine", "MINE", "a b", "x" * 65])
def test_what_cannot_be_a_name_is_refused(fermix: Any, name: str) -> None:
    done = fermix("secrets", "set", "--json", name, stdin=KEY)

    assert done.exit_code == 2
    assert json.loads(done.stdout)["error"]["code"] == "usage"
    assert KEY not in done.stdout


def test_secret_is_never_taken_from_the_command_line(fermix: Any) -> None:
    done = fermix("secrets", "set", "mine", KEY)

    assert done.exit_code == 2
    assert not fermix.home.exists()


def test_names_are_listed_with_their_store_and_never_a_value(source: Any, keyring: dict[str, str]) -> None:
    source("secrets", "set", "in-file", stdin=KEY)
    set_it = source("secrets", "set", "in-ring", "--json", stdin=KEY, environment=keyring)
    everywhere = {**keyring, "FERMIX_SECRET_OUTSIDE": KEY}

    done = source("secrets", "list", environment=everywhere)
    listed = source("secrets", "list", "--json", environment=everywhere)

    assert json.loads(set_it.stdout) == {"name": "in-ring", "store": "keyring"}
    assert done.stdout.split() == ["in-file", "files", "in-ring", "keyring", "outside", "environment"]
    assert {"name": "in-ring", "store": "keyring"} in json.loads(listed.stdout)["secrets"]
    assert KEY not in done.stdout + listed.stdout


def test_store_setting_decides_where_a_new_secret_goes(source: Any, keyring: dict[str, str]) -> None:
    for store, kept in (("files", "files"), ("keyring", "keyring"), ("auto", "keyring")):
        assert source("config", "set", "secrets.store", store).exit_code == 0
        done = source("secrets", "set", "mine", "--json", stdin=KEY, environment=keyring)
        assert json.loads(done.stdout)["store"] == kept

    refused = source("config", "set", "secrets.store", "vault")
    assert refused.exit_code == 1 and "auto, keyring, files" in refused.stderr


def test_desktop_without_a_keyring_keeps_secrets_in_files(fermix: Any) -> None:
    desktop = {"DBUS_SESSION_BUS_ADDRESS": "unix:path=/nowhere"}

    asked = fermix("_keyring", "check", "fermix", "-", environment=desktop)
    done = fermix("secrets", "set", "mine", "--json", stdin=KEY, environment=desktop)

    assert asked.exit_code == 5
    assert "No such file" in asked.stderr  # the bus, and not one of the libraries
    assert json.loads(done.stdout)["store"] == "files"


def test_keyring_that_is_asked_for_and_not_there_is_an_error(fermix: Any) -> None:
    fermix("config", "set", "secrets.store", "keyring")

    done = fermix("secrets", "set", "mine", "--json", stdin=KEY)

    assert done.exit_code == 1
    assert json.loads(done.stdout)["error"]["code"] == "config"
    assert KEY not in done.stdout
    assert not (fermix.home / "secrets/mine").exists()


def test_removed_secret_is_gone_and_removing_it_again_is_an_error(fermix: Any) -> None:
    fermix("secrets", "set", "mine", stdin=KEY)

    assert fermix("secrets", "remove", "mine").exit_code == 0
    assert fermix("secrets", "list").stdout.startswith("No secrets.")
    again = fermix("secrets", "remove", "mine", "--json")
    assert again.exit_code == 1
    assert json.loads(again.stdout)["error"]["code"] == "secret_missing"


def test_unsafe_folder_is_refused_with_its_repair(fermix: Any) -> None:
    fermix("secrets", "set", "mine", stdin=KEY)
    (fermix.home / "secrets").chmod(0o755)

    done = fermix("secrets", "set", "mine", stdin="other")

    assert done.exit_code == 1
    assert "chmod 700" in done.stderr


def test_changed_secret_counts_at_once_in_a_running_daemon(source: Any) -> None:
    model = Model({"keys": ["sk-new-0123456789"], "default": {"say": "ok"}})
    bot = Bot(model, argv=SOURCE)
    config = bot.home / "config.toml"
    config.write_text(config.read_text().replace("[http]", 'api_key = "@secret:mine"\n[http]'))
    mine = {"FERMIX_HOME": str(bot.home)}
    try:
        source("secrets", "set", "mine", stdin="sk-old-0123456789", environment=mine)
        bot.start()
        before = bot.say("hi").result
        source("secrets", "set", "mine", stdin="sk-new-0123456789", environment=mine)
        after = bot.say("hi").result
    finally:
        bot.close()
        model.close()

    assert (before["status"], before["error"]["code"]) == ("failed", "auth")
    assert (after["status"], after["text"]) == ("completed", "ok")
