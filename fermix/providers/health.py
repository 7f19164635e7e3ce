"""Whether a provider may be asked now: closed, open after failures, half-open for one question that tells.

A closed gate lets every question through, an open one none until its time is over; then one question goes
through, and how it ends opens or closes the gate. No clock of its own, no waiting: the chain asks.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from fermix.clock import Clock
from fermix.providers.port import Failed, FailureKind

AT_ONCE = frozenset(
    {FailureKind.AUTH, FailureKind.QUOTA, FailureKind.MODEL_UNKNOWN, FailureKind.RATE_LIMITED}
)
"""One of these is enough: asking again cannot help before something changes."""
COUNTED = frozenset(
    {
        FailureKind.PROVIDER_UNAVAILABLE,
        FailureKind.TIMEOUT,
        FailureKind.TRANSPORT,
        FailureKind.PROTOCOL,
    }
)
"""Each of these came after its own retries; what is neither here nor above is the question's fault."""
COUNT = 2
FIRST_REST_S = 15.0
LONG_REST_S = 300.0
"""After a refusal that a person must repair."""
LONGEST_REST_S = 3600.0


class GateState(StrEnum):
    """As `fermix status` shows it."""

    CLOSED = "closed"
    OPEN = "open"
    HALF_OPEN = "half-open"


@dataclass(slots=True)
class Gate:
    """The health of one provider, fed with how its questions ended."""

    clock: Clock
    reason: Failed | None = None
    """Why it is open; None while it is closed."""
    _failures: int = 0
    _rests: int = 0
    """How often in a row it opened."""
    _until_s: float = 0.0
    _has_to_wait: bool = False
    """Whether the provider itself named the time."""
    _is_probed: bool = False

    @property
    def state(self) -> GateState:
        if self.reason is None:
            return GateState.CLOSED
        return GateState.HALF_OPEN if self._is_probed or self.rest_s <= 0 else GateState.OPEN

    @property
    def rest_s(self) -> float:
        """Seconds until it may be asked again; 0 when it may now."""
        return 0.0 if self.reason is None else max(0.0, self._until_s - self.clock.monotonic_s())

    @property
    def has_to_wait(self) -> bool:
        """Whether the provider asked us not to come back yet, which nothing may undercut."""
        return self._has_to_wait and self.rest_s > 0

    def enter(self) -> bool:
        """Whether a question may go through now; through a half-open gate goes only one at a time."""
        if self.reason is None:
            return True
        if self.rest_s > 0 or self._is_probed:
            return False
        self._is_probed = True
        return True

    def leave(self, failed: Failed | None) -> None:
        """A question has ended: None when it was answered."""
        self._is_probed = False
        if failed is None:
            self.reset()
            return
        if failed.kind not in AT_ONCE and failed.kind not in COUNTED:
            return  # the question's own fault, or it was stopped: nothing is known of the provider
        self._failures += 1
        is_second_time = self.reason is not None
        if failed.kind in AT_ONCE or failed.retry_after_s or is_second_time or self._failures >= COUNT:
            self._open(failed)

    def abandon(self) -> None:
        """A question was given up by whoever asked; it tells nothing."""
        self._is_probed = False

    def reset(self) -> None:
        """Closed as new."""
        self.reason = None
        self._failures = self._rests = 0
        self._has_to_wait = False

    def _open(self, failed: Failed) -> None:
        """Rest: as long as the provider said, or else longer each time."""
        has_to_be_repaired = failed.kind in (FailureKind.AUTH, FailureKind.QUOTA, FailureKind.MODEL_UNKNOWN)
        first_s = LONG_REST_S if has_to_be_repaired else FIRST_REST_S
        own_s: float = min(first_s * 2**self._rests, LONGEST_REST_S)
        self._has_to_wait = bool(failed.retry_after_s)
        self._until_s = self.clock.monotonic_s() + (failed.retry_after_s or own_s)
        self._rests = min(self._rests + 1, 12)
        self.reason = failed
