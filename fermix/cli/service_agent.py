"""The service on macOS: writes the launchd agent and names what has launchd read it."""

from __future__ import annotations

import os
from pathlib import Path

from fermix.cli.options import print_json
from fermix.errors import UsageError
from fermix.setup.service.launchd import LABEL, install_agent, plist_text, remove_agent
from fermix.setup.service.service import Service


def install(service: Service, scope: str | None, *, as_json: bool) -> None:
    """Write the agent of the person who asks."""
    if scope == "system":
        raise UsageError("On macOS fermix is a user's agent only.", hint="fermix service install --user")
    text = plist_text(service.facts, os.environ.get("PATH", "/usr/bin:/bin"))
    path = install_agent(Path.home(), text)
    _say(path, "installed", f"launchctl bootstrap gui/{os.getuid()} '{path}'", as_json)


def uninstall(*, as_json: bool) -> None:
    """Remove the agent."""
    path = remove_agent(Path.home())
    _say(path, "removed", f"launchctl bootout gui/{os.getuid()}/{LABEL}", as_json)


def _say(path: Path, verb: str, command: str, as_json: bool) -> None:
    if as_json:
        print_json({"agent": str(path), verb: True, "next": command})
    else:
        print(f"fermix: {verb} the agent ({path})\n  It counts after: {command}")
