"""The hub's heartbeat: tells the arbiter it turns, and has C log the stacks when it does not.

A Python thread could not: C code that keeps the GIL would stop it together with the hub. faulthandler's
watchdog is a C thread that needs no GIL; each beat winds it up again.
"""

from __future__ import annotations

import faulthandler
import logging
import time
from collections.abc import Callable

from fermix.tasks import TaskGroup, sleep

log = logging.getLogger(__name__)

BEAT_S = 0.25


class Heartbeat:
    """Beats four times a second while the hub turns."""

    def __init__(
        self, notify: Callable[[], None], *, blocked_log_ms: int, log_fd: Callable[[], int]
    ) -> None:
        """`notify` tells the arbiter; stacks of a blocked hub are written to what `log_fd` gives."""
        self._notify = notify
        self._blocked_s = blocked_log_ms / 1000
        self._log_fd = log_fd
        self._tasks = TaskGroup("heartbeat")
        self._is_wound = True

    def start(self) -> None:
        faulthandler.enable(file=self._log_fd())  # a crash in C says where, too
        self._tasks.start(self._run, name="beat")

    def stop(self) -> None:
        self._tasks.stop(1.0)
        faulthandler.cancel_dump_traceback_later()

    def _run(self) -> None:
        while True:
            self._notify()
            wound_s = time.monotonic()
            self._wind()
            sleep(min(BEAT_S, self._blocked_s / 2))
            silence_s = time.monotonic() - wound_s
            if silence_s >= self._blocked_s:
                log.warning("The hub did not turn for %d ms; the stacks above say where", silence_s * 1000)

    def _wind(self) -> None:
        """A machine out of processes or memory starts no thread for this: the beat goes on without it."""
        was_wound, self._is_wound = self._is_wound, True
        try:
            faulthandler.dump_traceback_later(self._blocked_s, file=self._log_fd())
        except RuntimeError as error:
            self._is_wound = False
            if was_wound:
                log.warning("What blocks the hub is not logged for now: %s", error)
