"""The state of the daemon as one value."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum


class DaemonState(StrEnum):
    """How far the daemon is able to work."""

    STARTING = "starting"
    READY = "ready"
    DEGRADED = "degraded"
    """It works, but a part of it has failed or a check does not hold."""
    DRAINING = "draining"


@dataclass(frozen=True, slots=True)
class PartHealth:
    """One part of the supervision tree."""

    name: str
    """Path in the tree, `channels/telegram`."""
    state: str
    """starting, running, backoff, failed or stopped."""
    restarts: int = 0
    last_error: str | None = None
    """Why it last failed; None when it never did."""
    since_ms: int = 0
    """When it came into this state, UTC."""


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was looked at, such as room on the disk."""

    name: str
    is_ok: bool
    detail: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthReport:
    """What `GET /health` shows."""

    status: DaemonState
    version: str
    uptime_ms: int
    pid: int
    children: tuple[PartHealth, ...] = ()
    checks: tuple[Check, ...] = field(default=())

    @property
    def is_ready(self) -> bool:
        """Whether messages are taken in now."""
        return self.status in (DaemonState.READY, DaemonState.DEGRADED)
