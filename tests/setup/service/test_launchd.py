"""The property list for macOS is well-formed and says the same as the unit."""

from __future__ import annotations

import plistlib
from pathlib import Path

from fermix.setup.service.launchd import LABEL, plist_text
from fermix.setup.service.places import Scope
from fermix.setup.service.systemd import UnitFacts

FACTS = UnitFacts(
    scope=Scope.USER,
    version="0.1.0",
    command=("/opt/my python", "-m", "fermix"),
    variables={"PYTHONPATH": "/src/fermix & co"},
    home=Path("/Users/ann/.fermix <1>"),
    environment_file=Path("/Users/ann/.fermix/service.env"),
    longest_stop_s=40.0,
)


def test_the_agent_is_well_formed_and_complete() -> None:
    agent = plistlib.loads(plist_text(FACTS, "/usr/bin:/bin").encode())

    assert agent["Label"] == LABEL
    assert agent["ProgramArguments"] == ["/opt/my python", "-m", "fermix", "run"]
    assert agent["EnvironmentVariables"] == {
        "FERMIX_HOME": "/Users/ann/.fermix <1>",
        "PATH": "/usr/bin:/bin",
        "PYTHONPATH": "/src/fermix & co",
    }
    assert agent["RunAtLoad"] is True
    assert agent["ExitTimeOut"] > 40


def test_an_agent_that_ended_by_itself_is_not_started_again_for_ever() -> None:
    agent = plistlib.loads(plist_text(FACTS, "/usr/bin").encode())

    assert agent["KeepAlive"] == {"Crashed": True}
    assert agent["ThrottleInterval"] >= 5
