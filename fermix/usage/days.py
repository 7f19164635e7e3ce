"""Where a day of the machine's own time zone begins and ends."""

from __future__ import annotations

import time


def day_of(ms: int) -> tuple[int, int]:
    """First millisecond of the day `ms` lies in, and of the next.

    They lie 23 to 25 hours apart where clocks are changed.
    """
    year, month, day, *_ = time.localtime(ms / 1000)
    return _midnight_ms(year, month, day), _midnight_ms(year, month, day + 1)


def _midnight_ms(year: int, month: int, day: int) -> int:
    # The last -1 lets the system find out about summer time; a 32nd day is the next month's first.
    return round(time.mktime((year, month, day, 0, 0, 0, 0, 0, -1)) * 1000)
