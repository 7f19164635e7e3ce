"""Every setting has a test that exists and shows that changing it changes what fermix does."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

from fermix.daemon.sections import SCHEMA

CHECKOUT = Path(__file__).resolve().parent.parent


def test_every_setting_names_its_test() -> None:
    names = {each.name: ["NAME"] for each in SCHEMA.sections if each.is_named}
    settings = {located.key for located in SCHEMA.keys(names)}

    assert sorted(settings - named().keys()) == [], "add a test and name it in tests/settings.toml"
    assert sorted(named().keys() - settings) == [], "no such setting: take it out of tests/settings.toml"


def test_every_test_of_a_setting_is_collected() -> None:
    tests = set(named().values())
    files = sorted({test.partition("::")[0] for test in tests})
    assert [file for file in files if not (CHECKOUT / file).exists()] == []
    # A process of its own, so that the check also holds when only part of the tests is run.
    listed = subprocess.run(
        [sys.executable, "-m", "pytest", "--collect-only", "-q", *files],
        cwd=CHECKOUT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert listed.returncode == 0, listed.stdout[-2000:] + listed.stderr[-2000:]
    collected = {line.partition("[")[0] for line in listed.stdout.splitlines() if "::" in line}
    assert sorted(tests - collected) == []


def named() -> dict[str, str]:
    """Key of a setting -> its test, from tests/settings.toml."""
    return dict(_leaves(tomllib.loads((CHECKOUT / "tests/settings.toml").read_text()), ""))


def _leaves(table: dict[str, object], path: str) -> Iterator[tuple[str, str]]:
    for name, value in table.items():
        if isinstance(value, dict):
            yield from _leaves(value, f"{path}{name}.")
        else:
            yield f"{path}{name}", str(value)
