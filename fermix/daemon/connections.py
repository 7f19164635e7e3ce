"""The connections of one listener: a pool whose size may change while it is in use."""

from __future__ import annotations

from typing import Any

from gevent.lock import Semaphore
from gevent.pool import Pool


class Connections(Pool):
    """Lets `size` connections in at once; what is open beyond a new, smaller size stays open."""

    _semaphore: Semaphore
    """Of gevent's Pool: its free places; a server that was full waits for it."""

    def __init__(self, size: int) -> None:
        super().__init__(size)
        self._owed = 0
        """Places that are taken away as soon as they are given back."""

    def resize(self, size: int) -> None:
        """Let `size` in from now on."""
        grown, self.size = size - (self.size or 0), size
        for _ in range(grown):
            if self._owed:
                self._owed -= 1
            else:
                self._semaphore.release()
        for _ in range(-grown):
            if not self._semaphore.acquire(blocking=False):
                self._owed += 1

    def _discard(self, greenlet: Any) -> None:
        super()._discard(greenlet)  # type: ignore[misc]  # gevent's stubs leave it out
        if self._owed and self._semaphore.acquire(blocking=False):
            self._owed -= 1
