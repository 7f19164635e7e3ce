"""What a supervisor must know to start a part, watch it and stop it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol


class Restart(StrEnum):
    """When a part that ended is started again."""

    PERMANENT = "permanent"
    """Always."""
    TRANSIENT = "transient"
    """Only when it failed."""
    TEMPORARY = "temporary"
    """Never."""


class Strategy(StrEnum):
    """Which siblings are restarted with a part that failed."""

    ONE_FOR_ONE = "one_for_one"
    ONE_FOR_ALL = "one_for_all"
    REST_FOR_ONE = "rest_for_one"


class Child(Protocol):
    """A part that runs."""

    def wait(self, timeout_s: float) -> bool:
        """Whether it ended within `timeout_s`; raises what made it fail."""
        ...

    def stop(self, timeout_s: float) -> None:
        """End it; returns when it is gone or the time is over."""
        ...


@dataclass(frozen=True, slots=True)
class ChildSpec:
    """How to start one part and what to do when it ends."""

    name: str
    start: Callable[[], Child]
    """Returns when the part is ready for those that rest on it; raises when it cannot start."""
    restart: Restart = Restart.PERMANENT
    shutdown_timeout_s: float = 5.0
