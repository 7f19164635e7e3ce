"""The text of the launchd agent for macOS, where fermix runs from source.

Source: launchd.plist(5) (keys), https://www.apple.com/DTDs/PropertyList-1.0.dtd (form).
"""

from __future__ import annotations

import plistlib
from pathlib import Path

from fermix.errors import ServiceMissing
from fermix.setup.service.files import make_folders, remove, write_whole
from fermix.setup.service.systemd import RESTART_S, STOP_MARGIN_S, UnitFacts

LABEL = "dev.fermix"
"""The agent's name; its file is ~/Library/LaunchAgents/dev.fermix.plist."""


def plist_text(facts: UnitFacts, path: str) -> str:
    """The whole property list; `path` is the PATH its commands get, launchd reads no environment file.

    launchd knows no exit status that forbids a restart, so it restarts after crashes only: an agent that
    ended with any status, 78 too, stays down until it is started.
    """
    agent = {
        "Label": LABEL,
        "ProgramArguments": [*facts.command, "run"],
        "EnvironmentVariables": {"FERMIX_HOME": str(facts.home), "PATH": path, **facts.variables},
        "WorkingDirectory": str(facts.home),
        "RunAtLoad": True,
        "KeepAlive": {"Crashed": True},
        "ThrottleInterval": RESTART_S,
        "ExitTimeOut": round(facts.longest_stop_s + STOP_MARGIN_S),
        # commands are ended by the daemon's own monitors, which a kill of the group would come before
        "AbandonProcessGroup": True,
        "ProcessType": "Interactive",
    }
    return plistlib.dumps(agent, sort_keys=False).decode()


def install_agent(user_home: Path, text: str) -> Path:
    """Write the agent where launchd looks at the next login; its file. Raises: OSError."""
    path = _path(user_home)
    make_folders(path.parent, 0o755)
    if not path.exists() or path.read_text("utf-8", "replace") != text:
        write_whole(path, text, 0o644)
    return path


def remove_agent(user_home: Path) -> Path:
    """Remove the agent's file, which it returns. Raises: ServiceMissing, OSError."""
    path = _path(user_home)
    if not remove(path):
        raise ServiceMissing(f"There is no '{path}'.", hint="fermix service install")
    return path


def _path(user_home: Path) -> Path:
    return user_home / f"Library/LaunchAgents/{LABEL}.plist"
