"""One supervised part: its present child, its state and its history."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum

from fermix.clock import Clock
from fermix.tasks import Child, ChildSpec, Restart


class PartState(StrEnum):
    """Where a part is in its life."""

    STARTING = "starting"
    RUNNING = "running"
    BACKOFF = "backoff"
    """It failed, or rests on one that failed, and waits for its next start."""
    FAILED = "failed"
    """It failed and is not started again."""
    STOPPED = "stopped"
    """It was stopped, or ended by itself as it may."""


@dataclass(frozen=True, slots=True)
class PartReport:
    """What health says about one part."""

    name: str
    state: PartState
    restarts: int
    last_error: str | None
    """None when it never failed."""
    since_ms: int

    def below(self, parent: str) -> PartReport:
        """The same, named as a child of `parent`."""
        return replace(self, name=f"{parent}/{self.name}")


class Part:
    """The bookkeeping of one child spec; decisions are the supervisor's."""

    def __init__(self, spec: ChildSpec, clock: Clock) -> None:
        self.spec = spec
        self.child: Child | None = None
        self.generation = 0
        """Grows with each start and stop, so that news of an earlier child is known to be old."""
        self.restarts = 0
        self._clock = clock
        self._state = PartState.STOPPED
        self._since_ms = clock.now_ms()
        self._running_since_s: float | None = None
        self._failures = 0
        self._last_error: str | None = None

    @property
    def name(self) -> str:
        return self.spec.name

    @property
    def state(self) -> PartState:
        return self._state

    @property
    def is_wanted(self) -> bool:
        """Whether it should be there now: running, on its way, or waiting to return."""
        return self._state in (PartState.STARTING, PartState.RUNNING, PartState.BACKOFF)

    def begin(self) -> int:
        """It is being started; the new generation."""
        self.generation += 1
        self.child = None
        self._become(PartState.STARTING)
        return self.generation

    def became_ready(self, child: Child) -> None:
        self.child = child
        self._running_since_s = self._clock.monotonic_s()
        self._become(PartState.RUNNING)

    def ended(self, error: Exception | None) -> None:
        """It ended by itself or could not start."""
        self.generation += 1
        self.child = None
        if error is not None:
            self._last_error = f"{type(error).__name__}: {error}"
        self._become(PartState.STOPPED if error is None else PartState.FAILED)

    def wants_restart(self, error: Exception | None) -> bool:
        return self.spec.restart is Restart.PERMANENT or (
            self.spec.restart is Restart.TRANSIENT and error is not None
        )

    def failed_again(self, healthy_after_s: float) -> int:
        """How often it failed in a row, this time included."""
        since_s = self._running_since_s
        if since_s is not None and self._clock.monotonic_s() - since_s >= healthy_after_s:
            self._failures = 0
        self._running_since_s = None
        self._failures += 1
        return self._failures

    def will_return(self) -> None:
        self._become(PartState.BACKOFF)

    def gave_up(self) -> None:
        self._become(PartState.FAILED)

    def retire(self) -> Child | None:
        """Its child, now the caller's to stop; None when there is none."""
        child, self.child = self.child, None
        self.generation += 1
        if child is None and self._state is not PartState.FAILED:
            self._become(PartState.STOPPED)
        return child

    def stopped(self) -> None:
        self._become(PartState.STOPPED)

    def report(self) -> PartReport:
        return PartReport(self.name, self._state, self.restarts, self._last_error, self._since_ms)

    def _become(self, state: PartState) -> None:
        if state is not self._state:
            self._state = state
            self._since_ms = self._clock.now_ms()
