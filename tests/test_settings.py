"""Every setting has a test that exists and shows that changing it changes what fermix does."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator

from fermix.daemon.sections import SCHEMA
from tests.collected import CHECKOUT, missing_of


def test_every_setting_names_its_test() -> None:
    names = {each.name: ["NAME"] for each in SCHEMA.sections if each.is_named}
    settings = {located.key for located in SCHEMA.keys(names)}

    assert sorted(settings - named().keys()) == [], "add a test and name it in tests/settings.toml"
    assert sorted(named().keys() - settings) == [], "no such setting: take it out of tests/settings.toml"


def test_every_test_of_a_setting_is_collected() -> None:
    assert missing_of(set(named().values())) == []


def named() -> dict[str, str]:
    """Key of a setting -> its test, from tests/settings.toml."""
    return dict(_leaves(tomllib.loads((CHECKOUT / "tests/settings.toml").read_text()), ""))


def _leaves(table: dict[str, object], path: str) -> Iterator[tuple[str, str]]:
    for name, value in table.items():
        if isinstance(value, dict):
            yield from _leaves(value, f"{path}{name}.")
        else:
            yield f"{path}{name}", str(value)
