"""A document becomes settings, or a list of what is wrong with it."""

from __future__ import annotations

from pathlib import Path

import pytest

from fermix.config.decoding import PROBLEMS_LIMIT, Decoded, decode
from fermix.config.source import parse_source
from fermix.errors import ConfigError, SettingInvalid, SettingUnknown
from tests.config.settings import SCHEMA, GatewaySettings, NamedProviderSettings, TelegramSettings


def read(text: str) -> Decoded:
    return decode(SCHEMA, parse_source(Path("c.toml"), text.encode()), user_home="/home/me")


def only_problem(text: str) -> ConfigError:
    (problem,) = read(text).problems
    return problem


def test_values_of_every_kind_are_read() -> None:
    decoded = read(
        '[gateway]\nrunning_turns = 3\npause_s = 2\nis_open = false\nlevel = "debug"\n'
        'folder = "~/work"\nnames = ["a", "b"]\n'
    )

    assert decoded.problems == []
    assert decoded.one(GatewaySettings) == GatewaySettings(
        3, 2.0, False, "debug", Path("/home/me/work"), ("a", "b")
    )


def test_what_is_left_out_has_its_default() -> None:
    assert read("").one(TelegramSettings) == TelegramSettings()


def test_ids_are_accepted_as_text_or_whole_number() -> None:
    decoded = read('[channels.telegram]\nowner = 12345\nallowed = [1, "2", -100]\n')

    assert decoded.one(TelegramSettings).owner == "12345"
    assert decoded.one(TelegramSettings).allowed == ("1", "2", "-100")


def test_named_tables_are_read_under_the_owners_names() -> None:
    named = read('[providers.mine]\nbase_url = "http://x"\n[providers.other]\n').named(
        NamedProviderSettings
    )

    assert named == {"mine": NamedProviderSettings(base_url="http://x"), "other": NamedProviderSettings()}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "[gateway]\n\nrunning_trns = 1",
            "No setting named 'gateway.running_trns' (c.toml, line 3). "
            "Did you mean 'gateway.running_turns'?",
        ),
        ("[gatway]", "No section named 'gatway' (c.toml, line 1). Did you mean 'gateway'?"),
        (
            "[channels.telegramm]\nowner = 1",
            "No setting named 'channels.telegramm' (c.toml, line 1). Did you mean 'channels.telegram'?",
        ),
        (
            "[providers.mine]\nbaseurl = ''",
            "No setting named 'providers.mine.baseurl' (c.toml, line 2). "
            "Did you mean 'providers.mine.base_url'?",
        ),
        (
            "zzz = 1",
            "No section named 'zzz' (c.toml, line 1). Sections: channels.telegram, gateway, providers.",
        ),
    ],
)
def test_an_unknown_key_names_the_nearest_one(text: str, message: str) -> None:
    problem = only_problem(text)

    assert isinstance(problem, SettingUnknown)
    assert problem.message == message


@pytest.mark.parametrize(
    ("line", "value"),
    [
        ("running_turns = 0", "0"),
        ("running_turns = 1001", "1001"),
        ("running_turns = 1.0", "1.0"),
        ("running_turns = true", "true"),
        ('running_turns = "3"', "'3'"),
        ("running_turns = 99999999999999999999", "99999999999999999999"),
        ("running_turns = []", "[]"),
        ("running_turns = {a = 1}", "{'a': 1}"),
        ("running_turns = 2020-01-01", "datetime.date(2020, 1, 1)"),
        ("pause_s = nan", "nan"),
        ("pause_s = inf", "inf"),
        ("pause_s = -1", "-1"),
        ('pause_s = "1"', "'1'"),
        ("is_open = 1", "1"),
        ('level = "loud"', "'loud'"),
        ("level = 3", "3"),
        ('folder = "work"', "'work'"),
        ('folder = "/a\\u0000b"', "'/a\\x00b'"),
        ("names = 'a'", "'a'"),
        ("names = [1]", "[1]"),
    ],
)
def test_a_wrong_value_is_named_with_its_place_and_what_was_expected(line: str, value: str) -> None:
    problem = only_problem(f"[gateway]\n{line}\n")

    assert isinstance(problem, SettingInvalid)
    assert f"cannot be {value} (c.toml, line 2). Expected " in problem.message


@pytest.mark.parametrize(
    "text", [f"{'x' * 200_000} = 1", f"[gateway]\n{'x' * 200_000} = 1", f"[providers.{'x' * 99_000}]"]
)
def test_a_long_key_is_cut_in_the_message(text: str) -> None:
    assert len(only_problem(text).message) < 400


def test_a_long_value_is_cut_in_the_message() -> None:
    problem = only_problem(f'[gateway]\nlevel = "{"x" * 10_000}"\n')

    assert len(problem.message) < 200


def test_a_secret_written_out_is_refused_and_not_shown() -> None:
    problem = only_problem('[channels.telegram]\ntoken = "123:AAE-very-secret"\n')

    assert "very-secret" not in problem.message + str(problem.hint)
    assert "@secret:NAME" in problem.message
    assert "fermix secrets set token" in str(problem.hint)


@pytest.mark.parametrize("value", ["@secret:", "@secret:a b", "@secret:../x", "secret:a", "@secret:A"])
def test_only_a_whole_reference_names_a_secret(value: str) -> None:
    assert "@secret:NAME" in only_problem(f'[channels.telegram]\ntoken = "{value}"\n').message


def test_settings_are_checked_against_each_other() -> None:
    problem = only_problem("[channels.telegram]\nlow = 9\n")

    assert problem.message == "[channels.telegram] (c.toml, line 1): low (9) must not be above high (2)."


@pytest.mark.parametrize("text", ["gateway = 1", "[[gateway]]\nrunning_turns = 1", "providers.mine = 'x'"])
def test_a_section_must_be_a_table(text: str) -> None:
    assert "must be a table" in only_problem(text).message


def test_a_named_table_must_have_a_plain_name() -> None:
    assert "'a b' cannot be a name in [providers.NAME]" in only_problem('[providers."a b"]\n').message


def test_all_problems_are_found_but_not_without_end() -> None:
    few = read("[gateway]\nrunning_turns = 0\npause_s = -1\nx = 1\n[nothing]\n").problems
    many = read("".join(f"[section{number}]\n" for number in range(5000))).problems

    assert len(few) == 4
    assert len(many) == PROBLEMS_LIMIT


def test_a_table_with_a_problem_holds_its_defaults_never_half_of_the_file() -> None:
    decoded = read("[gateway]\nrunning_turns = 3\npause_s = -1\n")

    assert decoded.one(GatewaySettings) == GatewaySettings()
