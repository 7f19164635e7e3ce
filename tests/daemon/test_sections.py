"""The whole schema loads a home's settings, or says everything that is wrong with them."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import pytest

from fermix.daemon.sections import SCHEMA, Settings, find_problems, load_settings
from fermix.errors import ConfigError, HomeUnsafe, SettingUnknown
from fermix.paths import Home


@pytest.fixture
def home(tmp_path: Path) -> Home:
    root = tmp_path / "home"
    root.mkdir(mode=0o700)
    return Home(root)


def test_every_section_is_a_field_of_the_settings() -> None:
    assert {each.name for each in SCHEMA.sections} == {each.name for each in fields(Settings)}


def test_every_settings_file_is_in_the_schema() -> None:
    package = Path(__file__).resolve().parent.parent.parent / "fermix"
    modules = {each.make.__module__ for each in SCHEMA.sections}

    assert modules == {f"fermix.{path.parent.name}.settings" for path in package.glob("*/settings.py")}


def test_a_home_without_config_has_all_defaults(home: Home) -> None:
    settings = load_settings(home, {})

    assert settings.gateway.running_turns == 64
    assert settings.providers == {}


def test_what_the_owner_wrote_counts(home: Home) -> None:
    home.config.write_text('[gateway]\nrunning_turns = 2\n[providers.mine]\nmodel = "m"\n')

    settings = load_settings(home, {})

    assert settings.gateway.running_turns == 2
    assert settings.providers["mine"].model == "m"


def test_a_bad_file_never_yields_defaults_in_silence(home: Home) -> None:
    home.config.write_bytes(b"[gateway]\n\xef\xbb\xbfrunning_turns = 2\n")
    with pytest.raises(ConfigError, match=f"{home.config}, line 2"):
        load_settings(home, {})

    home.config.write_text("[gateway]\nspeed = 2\n")
    with pytest.raises(SettingUnknown, match="line 2"):
        load_settings(home, {})


def test_a_named_secret_nobody_keeps_is_a_problem(home: Home) -> None:
    home.config.write_text('[providers.mine]\napi_key = "@secret:mine"\n')

    assert [each.code for each in find_problems(home, {})] == ["secret_missing"]
    assert find_problems(home, {"FERMIX_SECRET_MINE": "value"}) == []


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ('base_url = "http://127.0.0.1:1/v1"', ["has no model"]),
        ('model = "m"', ["has no address"]),
        ("takes_tools = true", ["has no address", "has no model"]),
        ('model = "m"\nbase_url = "http://127.0.0.1:1/v1"', []),
    ],
)
def test_what_the_chosen_provider_lacks_is_a_problem(home: Home, table: str, said: list[str]) -> None:
    home.config.write_text(f'[provider]\nname = "mine"\n[providers.mine]\n{table}\n')

    found = find_problems(home, {})

    assert [each.message for each in found] == [f"The provider 'mine' {words}." for words in said]
    assert all(str(each.hint).startswith("fermix config set providers.mine.") for each in found)


def test_an_open_home_is_a_problem(home: Home) -> None:
    home.root.chmod(0o750)

    assert [type(each) for each in find_problems(home, {})] == [HomeUnsafe]
