"""A bounded pool of real threads for C that blocks but lets go of the GIL."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar, cast

import gevent.threadpool

from fermix.tasks.deadline import at_most, time_limit

Result = TypeVar("Result")


class ThreadPool:
    """Runs blocking calls off the hub; at most `size` at once, the rest wait their turn."""

    def __init__(self, size: int) -> None:
        self._pool = gevent.threadpool.ThreadPool(size)

    def run(self, work: Callable[[], Result], *, timeout_s: float) -> Result:
        """What `work` returned or raised; the hub goes on meanwhile.

        Raises: DeadlineExceeded after `timeout_s`; the thread is then left to finish by itself.
        """
        with time_limit(timeout_s, "Blocking work"):
            outcome = self._pool.spawn(_Outcome, work).get()
        return cast(_Outcome[Result], outcome).value()

    def stop(self, timeout_s: float = 5.0) -> bool:
        """End the threads; whether all calls had finished in time. One that still runs keeps its thread."""
        with at_most(timeout_s) as limit:
            self._pool.kill()
        return not limit.is_over


class _Outcome(Generic[Result]):
    """What a call came to, made on the thread: gevent prints what a thread lets fly."""

    def __init__(self, work: Callable[[], Result]) -> None:
        self._error: BaseException | None = None
        try:
            self._result = work()
        except BaseException as error:  # the thread's boundary; raised again by `value`
            self._error = error

    def value(self) -> Result:
        if self._error is not None:
            raise self._error
        return self._result
