"""Waits until a process has ended that is no child of this one."""

from __future__ import annotations

import time
from collections.abc import Callable

from fermix.process.proc import look

_PAUSE_S = 0.05


def wait_until_gone(pid: int, timeout_s: float, *, tick: Callable[[], None] = lambda: None) -> bool:
    """Whether the process ended within `timeout_s`; one that its parent has not yet collected has.

    `tick` is called again and again meanwhile.
    """
    end = time.monotonic() + timeout_s
    while (found := look(pid)) is not None and not found.is_zombie:
        if time.monotonic() >= end:
            return False
        tick()
        time.sleep(_PAUSE_S)
    return True
