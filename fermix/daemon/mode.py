"""Whether the daemon serves everything or only the command that started it."""

from __future__ import annotations

from enum import StrEnum


class Mode(StrEnum):
    """What a daemon is for."""

    FULL = "full"
    PRIVATE = "private"
    """No channels, jobs or HTTP; leaves when idle and gives way to a full one."""
