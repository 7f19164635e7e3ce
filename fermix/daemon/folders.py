"""Where a turn works and how far its file tools reach, by who is behind it."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from fermix.gateway.inbox import InboxEntry
from fermix.paths import Home
from fermix.trust import Trust

LONGEST_NAME = 120


def folder_of(entry: InboxEntry, home: Home) -> Path:
    """Where relative paths start: the operator's own folder on the command line, a guest's folder."""
    root = root_of(entry, home)
    if root is not None:
        return root
    cwd = entry.inbound.cwd
    if cwd is not None and os.path.isdir(cwd):  # noqa: PTH112 - never raises, whatever was sent
        return Path(cwd)
    return home.workspace


def root_of(entry: InboxEntry, home: Home) -> Path | None:
    """The folder file tools stay below; None for the operator, whom only the checks of effects bind."""
    if entry.standing.trust is Trust.OPERATOR:
        return None
    return home.workspace / "people" / entry.key.channel / folder_name(entry.inbound.sender_id)


def folder_name(sender_id: str) -> str:
    """A name for a person's folder that no other id gets, whatever the platform's ids look like."""
    name = "".join(
        char if char.isascii() and (char.islower() or char.isdigit()) else f"_{ord(char):x}_"
        for char in sender_id
    )
    if len(name) > LONGEST_NAME:
        return f"_{hashlib.sha256(name.encode()).hexdigest()}"
    return name or "_"
