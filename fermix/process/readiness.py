"""One greenlet waiting for several descriptors and for wake-ups by others."""

from __future__ import annotations

import os
from contextlib import suppress
from posix import close  # not os.close: gevent's puts it off to a hub that has no watcher of ours any more
from typing import Any

import gevent
from gevent.event import Event

READ, WRITE = 1, 2


class Readiness:
    """Wakes its waiter when a watched descriptor is ready, or when told to; it owns the descriptors."""

    def __init__(self) -> None:
        self._event = Event()
        self._watchers: dict[int, Any] = {}  # Any: gevent's watchers have no public type

    def watch(self, fd: int, events: int) -> None:
        """Wake up when `fd` can be read or written; it becomes nonblocking and ours to close."""
        os.set_blocking(fd, False)
        watcher = gevent.get_hub().loop.io(fd, events)
        self._watchers[fd] = watcher
        watcher.start(self._event.set)

    def wake(self) -> None:
        """End the current or next wait."""
        self._event.set()

    def wait(self, timeout_s: float) -> None:
        """Until something is ready, someone woke us or the time is over; it does not say which."""
        self._event.wait(timeout_s)
        self._event.clear()

    def close(self, fd: int) -> None:
        """Stop watching and close one descriptor; nothing when that was done already."""
        watcher = self._watchers.pop(fd, None)
        if watcher is not None:
            watcher.stop()
            watcher.close()
            with suppress(OSError):
                close(fd)

    def close_all(self) -> None:
        for fd in list(self._watchers):
            self.close(fd)


def read_ready(fd: int, size: int) -> bytes | None:
    """What can be read now, b"" at the end of the file, None when there is nothing yet."""
    try:
        return os.read(fd, size)
    except BlockingIOError:
        return None
