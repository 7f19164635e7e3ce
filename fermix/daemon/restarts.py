"""When the next worker may start after one has died: at once, unless workers keep dying."""

from __future__ import annotations

from collections import deque

_FREE_EARLY_DEATHS = 2
_FIRST_PAUSE_S = 0.5
_LONGEST_PAUSE_S = 60.0


class RestartPauses:
    """A circuit breaker: the first deaths cost nothing, a loop of them backs off exponentially.

    Two loops are told apart. A worker that dies before it was ready, several times in a row, cannot start
    at all. One that dies later has served meanwhile, and most deaths have a cause that is gone
    afterwards; only more than `limit` of them within `window_s` make pauses.
    """

    def __init__(self, *, limit: int, window_s: float) -> None:
        self._limit = limit
        self._window_s = window_s
        self._deaths: deque[float] = deque()
        self._early = 0

    def limit(self, limit: int, window_s: float) -> None:
        """Go by these limits from the next death on."""
        self._limit = limit
        self._window_s = window_s

    def after_death(self, now_s: float, *, was_ready: bool) -> float:
        """Seconds until the next start."""
        self._deaths.append(now_s)
        while self._deaths[0] < now_s - self._window_s:
            self._deaths.popleft()
        self._early = 0 if was_ready else self._early + 1
        over = max(self._early - _FREE_EARLY_DEATHS, len(self._deaths) - self._limit)
        if over <= 0:
            return 0.0
        return float(min(_LONGEST_PAUSE_S, _FIRST_PAUSE_S * 2 ** min(over - 1, 16)))
