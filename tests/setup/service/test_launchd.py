"""The property list for macOS is well-formed and says the same as the unit."""

from __future__ import annotations

import plistlib
from pathlib import Path

import pytest

from fermix.errors import ServiceMissing
from fermix.setup.service.launchd import LABEL, install_agent, plist_text, remove_agent
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


def test_the_agent_is_written_where_launchd_looks_and_removed(tmp_path: Path) -> None:
    path = install_agent(tmp_path, plist_text(FACTS, "/usr/bin"))
    again = install_agent(tmp_path, plist_text(FACTS, "/bin"))

    assert path == again == tmp_path / "Library/LaunchAgents/dev.fermix.plist"
    assert plistlib.loads(path.read_bytes())["EnvironmentVariables"]["PATH"] == "/bin"
    assert remove_agent(tmp_path) == path
    assert not path.exists()
    with pytest.raises(ServiceMissing):
        remove_agent(tmp_path)
