"""Counts wrong tokens per peer, so that whoever tries many is told to wait."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass

from fermix.clock import Clock

WINDOW_S = 60.0
MOST_PEERS = 4_096


@dataclass(slots=True)
class _Count:
    since_s: float
    failures: int = 0


class FailedTokens:
    """One per process. A right token is always served: otherwise any program here could lock its owner out,
    and nobody comes upon 256 random bits by trying."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._counts: OrderedDict[str, _Count] = OrderedDict()

    def add(self, peer: str) -> int:
        """One more; how many this peer has had within the window."""
        now_s = self._clock.monotonic_s()
        count = self._counts.get(peer)
        if count is None or now_s - count.since_s >= WINDOW_S:
            count = self._counts[peer] = _Count(now_s)
            self._counts.move_to_end(peer)
            while len(self._counts) > MOST_PEERS:
                self._counts.popitem(last=False)
        count.failures += 1
        return count.failures

    def wait_s(self, peer: str) -> int:
        """Whole seconds until the peer's window is over, at least 1."""
        count = self._counts.get(peer)
        since_s = count.since_s if count is not None else self._clock.monotonic_s()
        return max(1, round(since_s + WINDOW_S - self._clock.monotonic_s()))
