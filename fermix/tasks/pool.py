"""A bounded pool of real threads for C that blocks but lets go of the GIL."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar, cast

import gevent.threadpool

Result = TypeVar("Result")


class ThreadPool:
    """Runs blocking calls off the hub; at most `size` at once, the rest wait their turn."""

    def __init__(self, size: int) -> None:
        self._pool = gevent.threadpool.ThreadPool(size)

    def run(self, work: Callable[[], Result], *, timeout_s: float) -> Result:
        """What `work` returned or raised; the hub goes on meanwhile.

        Raises: gevent.Timeout after `timeout_s`; the thread is then left to finish by itself.
        """
        return cast(Result, self._pool.spawn(work).get(timeout=timeout_s))

    def stop(self) -> None:
        """Wait for nothing new; running calls finish by themselves."""
        self._pool.kill()
