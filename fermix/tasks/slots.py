"""A number of places that may change while they are taken."""

from __future__ import annotations

from collections import deque

from gevent.event import Event


class Slots:
    """Lets `size` callers in at once; who waits longest is next."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._taken = 0
        self._waiting: deque[Event] = deque()

    def acquire(self, timeout_s: float) -> bool:
        """Whether there was a place within `timeout_s`; then it is the caller's until `release`."""
        if self._taken < self._size and not self._waiting:
            self._taken += 1
            return True
        turn = Event()
        self._waiting.append(turn)
        is_kept = False
        try:
            is_kept = bool(turn.wait(timeout_s))
        finally:
            if not is_kept:
                self._leave(turn)
        return is_kept

    def release(self) -> None:
        """Give a place back."""
        self._taken -= 1
        self._let_in()

    def resize(self, size: int) -> None:
        """Have `size` places from now on; taken ones beyond that stay taken until they are given back."""
        self._size = size
        self._let_in()

    def _let_in(self) -> None:
        while self._waiting and self._taken < self._size:
            self._taken += 1
            self._waiting.popleft().set()

    def _leave(self, turn: Event) -> None:
        """Wait no more; a place that was given at the same moment goes to the next one."""
        if turn.is_set():
            self.release()
        else:
            self._waiting.remove(turn)
