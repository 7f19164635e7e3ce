"""The hub's heartbeat: tells the arbiter it turns, and has C log the stack when it does not.

A Python thread could not: C code that keeps the GIL would stop it together with the hub. A timer of the
kernel's interrupts whatever the hub's thread does, and faulthandler's handler writes, in C, the stack of
the thread it interrupted; each beat winds the timer up again. Not faulthandler's own watchdog thread: it
reads frames while they change when the hub comes back in that moment, as after a pause of the machine,
and the worker then ended by SIGSEGV.
"""

from __future__ import annotations

import faulthandler
import logging
import signal
import time
from collections.abc import Callable

from fermix.tasks import TaskGroup, sleep

log = logging.getLogger(__name__)

BEAT_S = 0.25


class Heartbeat:
    """Beats four times a second while the hub turns."""

    def __init__(
        self, notify: Callable[[], None], *, blocked_log_ms: Callable[[], int], log_fd: Callable[[], int]
    ) -> None:
        """`notify` tells the arbiter; the stack of a hub blocked for `blocked_log_ms`, asked at each beat,
        is written to the descriptor `log_fd` gives.

        Contract: `log_fd` gives the same number each time; each beat asks it, to follow a rotation.
        """
        self._notify = notify
        self._blocked_log_ms = blocked_log_ms
        self._log_fd = log_fd
        self._tasks = TaskGroup("heartbeat")

    def start(self) -> None:
        """Call in the main thread: the kernel gives it a process's signals first."""
        faulthandler.enable(file=self._log_fd())  # a crash in C says where, too
        faulthandler.register(signal.SIGALRM, file=self._log_fd(), all_threads=False)
        self._tasks.start(self._run, name="beat")

    def stop(self) -> None:
        self._tasks.stop(1.0)
        signal.setitimer(signal.ITIMER_REAL, 0)

    def _run(self) -> None:
        while True:
            self._notify()
            self._log_fd()
            blocked_s = self._blocked_log_ms() / 1000
            wound_s = time.monotonic()
            signal.setitimer(signal.ITIMER_REAL, blocked_s)
            sleep(min(BEAT_S, blocked_s / 2))
            silence_s = time.monotonic() - wound_s
            if silence_s >= blocked_s:
                log.warning("The hub did not turn for %d ms; the stack above says where", silence_s * 1000)
