"""A failed request asked again on the same route, while nothing was shown yet."""

from __future__ import annotations

import logging
import random
from collections.abc import Callable, Iterator

from fermix.providers.port import Failed, FailureKind, ReasoningDelta, StreamEvent, TextDelta
from fermix.tasks import Cancel, Deadline

log = logging.getLogger(__name__)

_ATTEMPTS = 3
_BASE_WAIT_S = 0.4


def retried(
    attempt: Callable[[], Iterator[StreamEvent]],
    *,
    cancel: Cancel,
    deadline: Deadline,
    longest_wait_s: float = 20.0,
    jitter: Callable[[], float] = random.random,
) -> Iterator[StreamEvent]:
    """The events of `attempt`, begun again up to twice when it failed before any delta.

    A provider that asks for a longer wait than `longest_wait_s` is left alone: its Failed goes up with
    the time in it. A stall is retried once only.
    """
    for number in range(_ATTEMPTS):
        was_shown = False
        failed: Failed | None = None
        for event in attempt():
            if isinstance(event, Failed):
                failed = event
                break
            was_shown = was_shown or isinstance(event, TextDelta | ReasoningDelta)
            yield event
        if failed is None:
            return
        wait_s = _wait_s(failed, number, jitter(), longest_wait_s)
        is_last = number + 1 >= (2 if failed.kind is FailureKind.TIMEOUT else _ATTEMPTS)
        if (
            was_shown
            or is_last
            or not failed.retryable
            or wait_s is None
            or wait_s >= deadline.remaining_s()
        ):
            yield failed
            return
        log.info("Asking again in %.1f s: %s", wait_s, failed.message)
        if cancel.wait(wait_s):
            yield Failed(FailureKind.CANCELLED, f"Stopped: {cancel.reason}.", retryable=False)
            return


def _wait_s(failed: Failed, number: int, jitter: float, longest_s: float) -> float | None:
    """Seconds until the next attempt; None when it would be too long."""
    own_s: float = _BASE_WAIT_S * 2**number * (0.5 + jitter)
    if failed.retry_after_s is None:
        return own_s
    if failed.retry_after_s > longest_s:
        return None
    return max(failed.retry_after_s, own_s / 4)
