"""Settings are declared whole, or not at all."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from fermix.config import section, setting
from fermix.config.declare import Kind, section_of
from tests.config.settings import GatewaySettings, TelegramSettings


def test_a_settings_class_works_with_all_defaults() -> None:
    settings = GatewaySettings()

    assert settings.running_turns == 64
    assert settings.names == ()


def test_the_field_type_decides_the_kind() -> None:
    kinds = {each.name: each.kind for each in section_of(GatewaySettings).settings}

    assert kinds == {
        "running_turns": Kind.INTEGER,
        "pause_s": Kind.NUMBER,
        "is_open": Kind.BOOLEAN,
        "level": Kind.TEXT,
        "folder": Kind.PATH,
        "names": Kind.TEXTS,
    }


def test_ids_and_secrets_are_kinds_of_their_own() -> None:
    kinds = {each.name: each.kind for each in section_of(TelegramSettings).settings}

    assert (kinds["owner"], kinds["allowed"], kinds["token"]) == (Kind.ID, Kind.IDS, Kind.REFERENCE)


def test_a_field_without_setting_is_refused_at_once() -> None:
    @dataclass(frozen=True)
    class Half:
        size: int = 3

    with pytest.raises(TypeError, match=r"Half\.size is not declared"):
        section("half")(Half)


def test_a_type_no_file_can_hold_is_refused_at_once() -> None:
    with pytest.raises(TypeError, match="not a type a setting can have"):
        section("odd")(_odd_class())


@pytest.mark.parametrize("name", ["", "Gateway", "a..b", "a b", ".a"])
def test_a_bad_section_name_is_refused_at_once(name: str) -> None:
    with pytest.raises(TypeError, match="not a section name"):
        section(name)


def test_what_is_expected_is_said_with_range_and_unit() -> None:
    turns = section_of(GatewaySettings).settings[0]

    assert turns.expected() == "a whole number from 1 to 1000 (turns)"


def _odd_class() -> type:
    @dataclass(frozen=True)
    class Odd:
        """Odd."""

        call: Callable[[], None] | None = setting(None, "A function.")

    Odd.__annotations__["call"] = Callable[[], None] | None
    return Odd
