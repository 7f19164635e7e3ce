"""`fermix config` works without a daemon and never breaks config.toml."""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import CHECKOUT, Fermix, Finished

REACHED = 'base_url = "http://127.0.0.1:1/v1"\nmodel = "m"\n'


def answer(done: Finished) -> dict[str, Any]:
    told: dict[str, Any] = json.loads(done.stdout)
    return told


def write_config(fermix: Fermix, text: str) -> None:
    fermix.home.mkdir(mode=0o700, exist_ok=True)
    (fermix.home / "config.toml").write_text(text)


@pytest.mark.parametrize("name", ["", "get", "set", "unset", "show", "check", "path"])
def test_every_command_helps_with_an_example(fermix: Fermix, name: str) -> None:
    done = fermix("config", *name.split(), "--help")

    assert done.exit_code == 0
    assert "Examples:\n    fermix config" in done.stdout


def test_a_setting_is_set_read_and_taken_out(fermix: Fermix) -> None:
    assert fermix("config", "set", "gateway.running_turns", "16").stdout == "gateway.running_turns = 16\n"
    assert fermix("config", "get", "gateway.running_turns").stdout == "16\n"
    assert fermix("config", "show").stdout == "[gateway]\nrunning_turns = 16\n"
    assert fermix("config", "unset", "gateway.running_turns").exit_code == 0
    assert fermix("config", "get", "gateway.running_turns").stdout == "64\n"


def test_reading_makes_no_home_and_setting_makes_a_private_one(fermix: Fermix) -> None:
    fermix("config", "show")
    assert not fermix.home.exists()

    fermix("config", "set", "logs.level", "debug")
    assert fermix.home.stat().st_mode & 0o777 == 0o700
    assert (fermix.home / "config.toml").stat().st_mode & 0o777 == 0o600


def test_json_tells_value_default_and_help(fermix: Fermix) -> None:
    fermix("config", "set", "http.names", "a.lan,b.lan")

    told = answer(fermix("config", "get", "http.names", "--json"))

    assert told["value"] == ["a.lan", "b.lan"]
    assert (told["default"], told["is_set"]) == ([], True)
    assert told["help"].endswith(".")


def test_show_with_defaults_lists_every_setting_and_is_toml_itself(fermix: Fermix) -> None:
    fermix("config", "set", "gateway.running_turns", "16")

    text = fermix("config", "show", "--defaults").stdout
    listed = answer(fermix("config", "show", "--defaults", "--json"))["settings"]

    assert tomllib.loads(text)["gateway"] == {"running_turns": 16}
    assert "# port = 4030" in text
    assert {"http.port", "agent.steps_per_turn", "logs.level"} <= {each["key"] for each in listed}


@pytest.mark.parametrize(
    ("words", "code", "part"),
    [
        (("set", "gateway.running_trns", "1"), "setting_unknown", "Did you mean 'gateway.running_turns'?"),
        (("set", "gateway.running_turns", "many"), "setting_invalid", "cannot be 'many'"),
        (("set", "gateway.running_turns", "-3"), "setting_invalid", "cannot be -3"),
        (("get", "gatway.running_turns"), "setting_unknown", "Did you mean 'gateway.running_turns'?"),
        (("get", "gateway"), "setting_unknown", "is a section"),
        (("get", "providers.nobody.model"), "setting_unknown", "no table [providers.nobody]"),
        (("unset", "gateway.running_turns"), "setting_unknown", "is not set"),
    ],
)
def test_mistakes_are_named_with_a_stable_code(
    fermix: Fermix, words: tuple[str, ...], code: str, part: str
) -> None:
    plain = fermix("config", *words)
    told = answer(fermix("config", *words, "--json"))

    assert plain.exit_code == 1
    assert part in plain.stderr
    assert told["error"]["code"] == code
    assert part in told["error"]["message"]


def test_a_bad_command_line_is_a_usage_error(fermix: Fermix) -> None:
    assert fermix("config", "set", "gateway.running_turns").exit_code == 2
    assert fermix("config", "sett").exit_code == 2


def test_a_secret_is_never_written_only_named(fermix: Fermix) -> None:
    refused = fermix("config", "set", "providers.mine.api_key", "sk-abcdef123456")
    accepted = fermix("config", "set", "providers.mine.api_key", "@secret:mine")

    assert refused.exit_code == 1
    assert "sk-abcdef123456" not in refused.stdout + refused.stderr
    assert "fermix secrets set api-key" in refused.stderr
    assert accepted.exit_code == 0
    assert fermix("config", "get", "providers.mine.api_key").stdout == "@secret:mine\n"


def test_check_says_everything_that_is_wrong_at_once(fermix: Fermix) -> None:
    write_config(
        fermix,
        '[gateway]\nrunning_turns = 0\nspeed = 1\n[provider]\nname = "mine"\n'
        f'[providers.mine]\napi_key = "@secret:nowhere"\n{REACHED}',
    )

    done = fermix("config", "check")
    told = answer(fermix("config", "check", "--json"))

    assert done.exit_code == 1
    assert "line 2" in done.stderr
    assert [each["code"] for each in told["problems"]] == [
        "setting_unknown",
        "setting_invalid",
        "secret_missing",
    ]
    assert told["error"] == told["problems"][0]


def test_check_of_a_good_file_is_silent_success(fermix: Fermix) -> None:
    write_config(
        fermix, f'\ufeff[provider]\nname = "mine"\n[providers.mine]\napi_key = "@secret:mine"\n{REACHED}'
    )

    done = fermix("config", "check", environment={"FERMIX_SECRET_MINE": "value"})

    assert (done.exit_code, done.stderr) == (0, "")
    assert done.stdout == f"{fermix.home}/config.toml is good.\n"


def test_check_names_a_provider_nobody_declared(fermix: Fermix) -> None:
    write_config(fermix, '[provider]\nname = "mnie"\n[providers.mine]\n')

    assert "Did you mean 'mine'?" in fermix("config", "check").stderr


def test_check_names_a_home_others_can_enter(fermix: Fermix) -> None:
    write_config(fermix, "")
    fermix.home.chmod(0o755)

    assert f"chmod 700 {fermix.home}" in fermix("config", "check").stderr
    assert f"chmod 700 {fermix.home}" in fermix("config", "set", "logs.level", "debug").stderr


def test_a_broken_file_is_repaired_by_taking_the_bad_keys_out(fermix: Fermix) -> None:
    write_config(fermix, "# mine\n[gateway]\nspeed = 1\nrunning_turns = 3\ncolour = 2\n")

    refused = fermix("config", "set", "gateway.running_turns", "4")
    repaired = fermix("config", "unset", "gateway.speed", "gateway.colour")

    assert "gateway.speed" in refused.stderr
    assert repaired.exit_code == 0
    assert (fermix.home / "config.toml").read_text() == "# mine\n[gateway]\nrunning_turns = 3\n"


def test_path_is_printed_for_an_editor(fermix: Fermix) -> None:
    assert fermix("config", "path").stdout == f"{fermix.home}/config.toml\n"


def test_the_client_loads_nothing_of_the_daemon(tmp_path: Path) -> None:
    heavy = ("gevent", "peewee", "flask", "gunicorn", "requests", "msgspec", "tomlkit")
    program = (
        "import sys; from fermix.cli.main import main; main(['config', 'show']);"
        f"print([name for name in {heavy} if name in sys.modules])"
    )

    done = subprocess.run(
        [sys.executable, "-c", program],
        env={"FERMIX_HOME": str(tmp_path), "PYTHONPATH": str(CHECKOUT)},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )

    assert done.stdout.splitlines()[-1] == "[]"


def test_broken_config_names_the_way_back_and_it_works(fermix: Any) -> None:
    fermix("config", "set", "gateway.running_turns", "16")
    fermix("config", "set", "gateway.running_turns", "17")
    path = fermix.home / "config.toml"
    path.write_text("[gateway\n")

    broken = fermix("config", "get", "gateway.running_turns")
    assert "fermix config restore" in broken.stderr
    listed = json.loads(fermix("config", "restore", "--list", "--json").stdout)["backups"]
    assert [(each["number"], each["problem"]) for each in listed] == [(0, None)]
    done = fermix("config", "restore")

    assert (done.exit_code, "is again as it was until" in done.stdout) == (0, True)
    assert fermix("config", "get", "gateway.running_turns").stdout == "16\n"
    assert "is not TOML" in fermix("config", "restore", "--list").stdout


def test_restore_before_there_is_a_home_says_so_and_makes_none(fermix: Any) -> None:
    for words in ((), ("2",)):
        done = fermix("config", "restore", *words)
        assert done.exit_code == 1
        assert "ackup" in done.stderr and "Cannot write" not in done.stderr
    assert not fermix.home.exists()


def test_restore_without_any_backup_says_so(fermix: Any) -> None:
    fermix.home.mkdir(mode=0o700)
    done = fermix("config", "restore", "--json")
    assert done.exit_code == 1
    assert "No backup of" in json.loads(done.stdout)["error"]["message"]
    assert fermix("config", "restore", "--list").stdout == "Nothing was replaced yet.\n"
