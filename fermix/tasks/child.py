"""What a supervisor must know to start a part, watch it and stop it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from gevent.event import Event


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


class Service:
    """A part without a loop of its own: it is there from its start until it is stopped."""

    def __init__(self, stop: Callable[[float], None] = lambda timeout_s: None) -> None:
        self._stop = stop
        self._ended = Event()

    def wait(self, timeout_s: float) -> bool:
        return bool(self._ended.wait(timeout_s))

    def stop(self, timeout_s: float) -> None:
        self._stop(timeout_s)
        self._ended.set()


@dataclass(frozen=True, slots=True)
class ChildSpec:
    """How to start one part and what to do when it ends."""

    name: str
    start: Callable[[], Child]
    """Returns when the part is ready for those that rest on it; raises when it cannot start."""
    restart: Restart = Restart.PERMANENT
    shutdown_timeout_s: float = 5.0
