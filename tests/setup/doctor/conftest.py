"""A home as the first start leaves it, and the scene a check is handed."""

from __future__ import annotations

import socket
import sqlite3
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from fermix.config.decoding import decode
from fermix.config.home import prepare_home
from fermix.config.source import parse_source
from fermix.daemon.sections import SCHEMA, find_problems
from fermix.db import migrate
from fermix.errors import ConfigError
from fermix.paths import Home
from fermix.setup.doctor.finding import Finding, State
from fermix.setup.doctor.scene import Scene, Wanted

NOW_MS = 1_796_000_000_000
"""A day in November 2026."""


class FixedClock:
    """Stands still."""

    def __init__(self, now_ms: int = NOW_MS) -> None:
        self._now_ms = now_ms

    def now_ms(self) -> int:
        return self._now_ms

    def monotonic_s(self) -> float:
        return 0.0


def make_scene(place: Home, **changes: Any) -> Scene:
    """An examination of this home in which nothing is wrong but what the test breaks."""
    home: Home = changes.pop("home", place)
    environment: Mapping[str, str] = changes.pop(
        "environment", {"HOME": str(home.root.parent), "PATH": "/usr/bin:/bin"}
    )
    facts: dict[str, Any] = {
        "home": home,
        "environment": environment,
        "clock": FixedClock(changes.pop("now_ms", NOW_MS)),
        "version": "0.1.0",
        "command": ("/opt/fermix",),
        "is_full": False,
        "problems": lambda: find_problems(home, environment),
        "problems_in": lambda raw: problems_in(home, raw),
        "wanted": lambda: Wanted(http_port=0),
        **changes,
    }
    return Scene(**facts)


def problems_in(home: Home, raw: bytes) -> list[ConfigError]:
    try:
        return decode(SCHEMA, parse_source(home.config, raw), user_home="/").problems
    except ConfigError as error:
        return [error]


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """A private home with its folders."""
    made = Home(tmp_path / "home")
    prepare_home(made)
    return made


@pytest.fixture
def scene(home: Home) -> Callable[..., Scene]:
    """Makes the scene of `home`."""
    return lambda **changes: make_scene(home, **changes)


def make_database(home: Home) -> None:
    """A database of the newest schema, closed properly."""
    with closing(sqlite3.connect(home.database, isolation_level=None)) as connection:
        migrate.migrate(connection, migrate.find())
    home.database.chmod(0o600)


def one(findings: list[Finding], state: State) -> Finding:
    """The only finding of this state."""
    found = [each for each in findings if each.state is state]
    assert len(found) == 1, findings
    return found[0]


def repair(finding: Finding) -> str:
    """Do what the finding offers, twice: repairing again must not fail."""
    assert finding.fix is not None, finding
    said = finding.fix()
    finding.fix()
    return said


def leave_socket(path: Path) -> None:
    """A socket file nobody listens on."""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
    path.chmod(0o600)
