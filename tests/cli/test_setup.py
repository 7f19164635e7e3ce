"""`fermix setup`: a person is led to a working chat, a script says all by flags, nothing is ever lost."""

from __future__ import annotations

import json
import stat
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.bot import Model, wait_for

from .conftest import Person

KEY = "sk-good-0123456789"
WRONG = "sk-wrong-0123456789"
CTRL_C = "\x03"
PROVIDER = "Who should answer?"
HAND_WRITTEN = """\
# by hand
[logs]
level = "debug"  # for now

[providers.box]
# in the cellar
model = "big"
base_url = "{url}"
"""


@pytest.fixture
def model() -> Iterator[Model]:
    made = Model({"models": ["big", "bigger"], "keys": [KEY], "default": {"say": "You said {text}."}})
    yield made
    made.close()


@pytest.fixture
def scratch(fermix: Any) -> Iterator[Path]:
    """Where private homes are made; must be empty in the end."""
    folder = fermix.root / "tmp"
    folder.mkdir()
    fermix.environment["TMPDIR"] = str(folder)
    yield folder
    left = [path for path in folder.iterdir() if path.name.startswith("fermix-setup-")]
    assert left == []


def flags(model: Model, *more: str) -> list[str]:
    return ["setup", "--base-url", model.base_url, "--key-env", "KEY", "--name", "Ada", "--yes", *more]


def config_of(fermix: Any) -> str:
    return (fermix.home / "config.toml").read_text()


def test_person_is_led_from_nothing_to_an_answer(
    fermix: Any, model: Model, scratch: Path, person: Callable[..., Any]
) -> None:
    someone = person("setup")
    someone.sees(PROVIDER)
    someone.sees("Number")
    number = someone.shown.partition("Another server")[0].split()[-1]
    someone.type(f"{number}\r")
    someone.sees("Its address")
    someone.type(f"{model.base_url}\r")
    someone.sees("Key for mine (not shown)", 60)
    someone.type(f"{KEY}\r")
    someone.sees("answers with big", 60)
    someone.sees("Your name")
    someone.type("Ada Lovelace\r")
    someone.sees("in the background")
    someone.type("n\r")
    someone.sees("Next: fermix chat")

    assert someone.leaves() == 0
    assert KEY not in someone.raw
    done = fermix("ask", "hello")
    assert done.stdout == "You said hello.\n", done.stderr
    assert "Your owner is Ada Lovelace." in model.requests()[-1]["body"]["messages"][0]["content"]


def test_flags_alone_do_it_and_the_key_is_in_nothing_but_its_file(
    fermix: Any, model: Model, scratch: Path
) -> None:
    done = fermix(*flags(model, "--json"), environment={"KEY": KEY})

    told = json.loads(done.stdout)
    assert done.exit_code == 0, done.stderr
    assert (told["provider"], told["model"], told["probe"]["status"]) == ("mine", "big", "ok")
    assert told["secret"] == {"name": "mine", "store": "files"}
    assert told["next"] == "fermix chat"
    assert KEY not in done.stdout + done.stderr + config_of(fermix)
    assert (fermix.home / "secrets/mine").read_text() == KEY
    assert stat.S_IMODE((fermix.home / "config.toml").stat().st_mode) == 0o600
    assert fermix("ask", "hello").stdout == "You said hello.\n"


def test_key_from_standard_input(fermix: Any, model: Model, scratch: Path) -> None:
    done = fermix("setup", "--base-url", model.base_url, "--key-file", "-", "--yes", stdin=f"{KEY}\n")

    assert done.exit_code == 0, done.stderr
    assert "Next: fermix chat" in done.stdout
    assert (fermix.home / "secrets/mine").read_text() == KEY


@pytest.mark.parametrize(
    ("more", "key", "code", "word"),
    [
        ([], WRONG, "provider_auth", "Incorrect API key"),
        (["--model", "bgi"], KEY, "provider_model_unknown", "bgi"),
        (["--base-url", "http://127.0.0.1:1/v1"], KEY, "provider_address", "refused"),
        (["--base-url", "nonsense"], KEY, "provider_address", "http"),
    ],
)
def test_what_is_wrong_has_its_own_code_and_nothing_is_written(
    fermix: Any, model: Model, scratch: Path, more: list[str], key: str, code: str, word: str
) -> None:
    done = fermix(*flags(model, "--json", *more), environment={"KEY": key})

    error = json.loads(done.stdout)["error"]
    assert (done.exit_code, error["code"]) == (1, code)
    assert word in error["message"] and error["hint"]
    assert key not in done.stdout + done.stderr
    assert not fermix.home.exists()


def test_account_without_credit_is_told_apart(fermix: Any, model: Model, scratch: Path) -> None:
    empty = {"status": 429, "error": {"code": "insufficient_quota", "message": "You exceeded your quota."}}
    model.script({"default": empty})

    done = fermix(*flags(model, "--json"), environment={"KEY": KEY})

    assert json.loads(done.stdout)["error"]["code"] == "provider_quota"
    assert not fermix.home.exists()


def test_skipping_the_probe_writes_without_asking_anybody(fermix: Any, model: Model) -> None:
    done = fermix(*flags(model, "--skip-probe", "--model", "big"), environment={"KEY": WRONG})

    assert done.exit_code == 0, done.stderr
    assert model.requests() == []
    assert 'model = "big"' in config_of(fermix)


def test_hand_written_config_keeps_every_other_character(fermix: Any, model: Model, scratch: Path) -> None:
    written = HAND_WRITTEN.format(url=model.base_url)
    fermix.home.mkdir(mode=0o700)
    (fermix.home / "config.toml").write_text(written)

    done = fermix("setup", "--provider", "box", "--key-env", "KEY", "--yes", environment={"KEY": KEY})

    assert done.exit_code == 0, done.stderr
    added = 'api_key = "@secret:box"\n'
    assert config_of(fermix) == f'{written}{added}\n[provider]\nname = "box"\n'
    assert (fermix.home / "config.toml.bak").read_text() == written


def test_second_run_proposes_what_is_set_and_enter_keeps_it(
    fermix: Any, model: Model, scratch: Path, person: Callable[..., Any]
) -> None:
    fermix(*flags(model), environment={"KEY": KEY})
    before = config_of(fermix)

    someone = person("setup", "--no-service")
    for question in ("Number", model.base_url, "Your name [Ada]"):
        someone.sees(question, 60)
        someone.forget()
        someone.type("\r")

    someone.sees("nothing is changed")
    assert someone.leaves() == 0
    assert config_of(fermix) == before


@pytest.mark.parametrize("last", ["Number", "Its address", "answers with", "in the background"])
def test_ctrl_c_at_any_question_leaves_everything_as_it_was(
    fermix: Any, model: Model, scratch: Path, person: Callable[..., Any], last: str
) -> None:
    fermix.home.mkdir(mode=0o700)
    written = HAND_WRITTEN.format(url=model.base_url) + '[provider]\nname = "box"\n'
    (fermix.home / "config.toml").write_text(written)
    model.script({"default": {"say": "ok"}})
    someone = person("setup")
    for question in ("Number", "Its address", "answers with", "in the background"):
        someone.sees(question, 60)
        if question == last:
            break
        someone.type("Ada\r" if question == "answers with" else "\r")
    someone.type(CTRL_C)

    assert someone.leaves(30) == 130
    assert someone.echoes()
    assert config_of(fermix) == written
    assert sorted(path.name for path in fermix.home.iterdir()) == ["config.toml"]


def test_ctrl_c_pressed_again_and_again_leaves_nothing_behind(
    fermix: Any, model: Model, scratch: Path, person: Callable[..., Any]
) -> None:
    model.script({"default": {"hang": True}})
    someone = person("setup", "--base-url", model.base_url)
    wait_for("the question to the model", lambda: bool(model.requests()), 60)
    someone.type(CTRL_C)
    time.sleep(0.02)  # while it ends its private daemon
    someone.type(CTRL_C)

    assert someone.leaves(30) == 130
    wait_for("the private daemon's end", lambda: not list(scratch.iterdir()), 30)


def test_ctrl_c_during_a_probe_leaves_nothing_behind(
    fermix: Any, model: Model, scratch: Path, person: Callable[..., Any]
) -> None:
    model.script({"default": {"hang": True}})
    someone = person("setup", "--base-url", model.base_url)
    wait_for("the question to the model", lambda: bool(model.requests()), 60)
    someone.type(CTRL_C)

    assert someone.leaves(30) == 130
    assert not fermix.home.exists()


def test_broken_config_is_left_alone_and_named(fermix: Any, model: Model) -> None:
    fermix.home.mkdir(mode=0o700)
    (fermix.home / "config.toml").write_text("[http\nport = 1\n")

    done = fermix(*flags(model), environment={"KEY": KEY})

    assert done.exit_code == 1
    assert "line 1" in done.stderr
    assert config_of(fermix) == "[http\nport = 1\n"


def test_config_that_keeps_a_daemon_from_starting_can_be_mended(
    fermix: Any, model: Model, scratch: Path
) -> None:
    fermix.home.mkdir(mode=0o700)
    (fermix.home / "config.toml").write_text('[provider]\nname = "gone"\n')

    done = fermix(*flags(model), environment={"KEY": KEY})

    assert done.exit_code == 0, done.stderr
    assert fermix("ask", "hi").stdout == "You said hi.\n"


def test_running_daemon_takes_the_new_provider_up(fermix: Any, model: Model) -> None:
    fermix("config", "set", "http.enabled", "false")
    fermix("config", "set", "local_model.ollama_url", "")
    assert fermix("start").exit_code == 0

    done = fermix(*flags(model, "--json"), environment={"KEY": KEY})

    assert json.loads(done.stdout)["daemon"]["state"] == "reloaded", done.stdout
    assert fermix("ask", "hi").stdout == "You said hi.\n"


@pytest.mark.parametrize(
    ("words", "flag"),
    [
        (["setup"], "--provider"),
        (["setup", "--provider", "openai"], "--key-file"),
        (["setup", "--provider", "opnai"], "openai"),
        (["setup", "--provider", "zzz"], "xai, anthropic, other."),  # each once
        (["setup", "--provider", "openai_codex"], "fermix auth login openai_codex"),
        (["setup", "--key-file", "a", "--key-env", "B"], "exclude"),
        (["setup", "--key-env", "MISSING"], "MISSING"),
        (["setup", "--key-file", "/nowhere"], "/nowhere"),
        (["setup", "--provider", "openai", "--key-file", "-"], "empty"),
    ],
)
def test_without_a_terminal_what_is_missing_is_a_usage_error(
    fermix: Any, words: list[str], flag: str
) -> None:
    done = fermix(*words)

    assert done.exit_code == 2
    assert flag in done.stderr
    assert not fermix.home.exists()


def test_service_that_cannot_be_installed_is_told_and_the_rest_is_done(
    fermix: Any, model: Model, scratch: Path
) -> None:
    (fermix.root / ".config").write_text("")  # where a unit would go; root is refused anyway

    done = fermix(*flags(model, "--service", "--json"), environment={"KEY": KEY})

    assert done.exit_code == 1
    assert json.loads(done.stdout)["error"]["code"] == "service_failed"
    assert 'name = "mine"' in config_of(fermix)


def test_daemon_that_is_too_old_to_be_asked_is_left_alone_and_told_to_be_restarted(
    fermix: Any, daemon: Any, model: Model, scratch: Path
) -> None:
    for method in ("provider.probe", "reload"):
        daemon.on[method] = lambda request: request.error(
            "method_unknown", f"No method {request.method!r}."
        )

    done = fermix(*flags(model), environment={"KEY": KEY})

    assert done.exit_code == 0, done.stderr
    assert "fermix restart" in done.stdout
    assert daemon.asked("provider.probe")[0]["base_url"] == model.base_url
    assert 'name = "mine"' in config_of(fermix)


def test_what_a_provider_says_cannot_steer_the_terminal(
    fermix: Any, daemon: Any, person: Callable[..., Any]
) -> None:
    evil = "\x1b]0;owned\x07\x9b2J"
    daemon.on["provider.probe"] = lambda request: request.result(
        status="model_unknown", message=evil, hint=evil, models=[evil], model=evil, latency_ms=1
    )
    someone = person("setup", "--base-url", "http://127.0.0.1:1/v1")
    someone.sees("What now?")
    someone.type("\r")
    someone.sees("Model")
    someone.type(CTRL_C)

    assert someone.leaves() == 130
    assert "\x1b]0;owned" not in someone.raw and not set("\x9b\x07") & set(someone.raw)


def test_ollama_on_this_machine_needs_no_answer_but_itself(
    fermix: Any, model: Model, scratch: Path
) -> None:
    model.script({"ollama": {"nomic-embed-text": [], "qwen:4b": ["tools"]}, "default": {"say": "ok"}})
    fermix("config", "set", "local_model.ollama_url", model.base_url.removesuffix("/v1"))

    done = fermix("setup", "--provider", "ollama", "--yes", "--json")

    told = json.loads(done.stdout)
    assert (told["base_url"], told["model"]) == (model.base_url.removesuffix("/v1"), "qwen:4b"), told
    assert "api_key" not in config_of(fermix)


def test_the_model_on_this_machine_needs_nothing_written_but_the_name(fermix: Any) -> None:
    done = fermix("setup", "--provider", "local", "--skip-probe", "--name", "Ada", "--yes", "--json")

    told = json.loads(done.stdout)
    assert (told["provider"], told["changed"]) == ("local", ["agent.owner_name"])


def test_ctrl_c_at_the_keyrings_own_question_writes_nothing(source: Any) -> None:
    program = source.root / "keyring"
    fake = Path(__file__).parent.parent / "secrets/fake_keyring.py"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} {fake} "$@"\n')
    program.chmod(0o700)
    source("config", "set", "secrets.store", "keyring")
    before = config_of(source)
    source.environment |= {
        "FERMIX_EXE": str(program),
        "FAKE_KEYRING": str(source.root / "ring"),
        "FAKE_KEYRING_MOOD": "hang",
        "DBUS_SESSION_BUS_ADDRESS": "unix:path=/nowhere",
        "KEY": KEY,
    }
    words = ("setup", "--provider", "openai", "--key-env", "KEY", "--name", "Ada", "--skip-probe")
    someone = Person(source, (*words, "--no-service"), columns=80, lines=24)
    try:
        wait_for("the keyring to be asked", (source.root / "ring.log").exists)
        someone.type(CTRL_C)
        assert someone.leaves() == 1
    finally:
        someone.close()

    assert config_of(source) == before
