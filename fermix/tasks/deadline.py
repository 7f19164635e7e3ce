"""The moment by which something must be done."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import gevent

from fermix.errors import DeadlineExceeded


@dataclass(frozen=True, slots=True)
class Deadline:
    """A point on the monotonic clock, handed down so that many waits share one limit."""

    at_s: float

    @staticmethod
    def after(seconds: float) -> Deadline:
        return Deadline(time.monotonic() + seconds)

    def remaining_s(self) -> float:
        """Seconds left, never below zero."""
        return max(0.0, self.at_s - time.monotonic())

    def is_over(self) -> bool:
        return time.monotonic() >= self.at_s

    def check(self, what: str) -> None:
        """Raises: DeadlineExceeded naming `what` when the time is over."""
        if self.is_over():
            raise DeadlineExceeded(f"{what} ran out of time.")

    def sooner(self, seconds: float) -> Deadline:
        """This deadline or `seconds` from now, whichever comes first."""
        return Deadline(min(self.at_s, time.monotonic() + seconds))


@contextmanager
def time_limit(seconds: float, what: str) -> Iterator[None]:
    """Run the block for at most `seconds`.

    Raises: DeadlineExceeded naming `what`, from inside the block at its next switch.
    """
    with gevent.Timeout(seconds, DeadlineExceeded(f"{what} took longer than {seconds:g} s.")):
        yield


@dataclass(slots=True)
class Limit:
    """How `at_most` went."""

    is_over: bool = False
    """Whether the block was ended before its end."""


@contextmanager
def at_most(seconds: float) -> Iterator[Limit]:
    """Run the block for at most `seconds`; then it ends at its next switch, without an error."""
    limit, timeout = Limit(), gevent.Timeout(seconds)
    try:
        with timeout:
            yield limit
    except gevent.Timeout as over:
        if over is not timeout:  # one around us
            raise
        limit.is_over = True
