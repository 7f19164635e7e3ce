"""The clock tool."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from fermix.tools.time import current_time
from tests.fakes import tool_context, turn_facts


def test_time_is_told_in_the_owners_zone_and_in_utc(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "America/New_York")
    time.tzset()
    try:
        said = current_time.run(tool_context(turn_facts(Path("/"))), {})
    finally:
        monkeypatch.undo()
        time.tzset()

    assert said == "Tuesday, 2023-11-14 17:13:20 -0500 (EST); UTC 2023-11-14T22:13:20Z"
