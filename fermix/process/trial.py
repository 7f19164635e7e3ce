"""Tries in a child process what would change this one, such as leaving its namespaces."""

from __future__ import annotations

import os
import select
import signal
from collections.abc import Callable
from contextlib import suppress
from posix import fork, waitpid  # os' are gevent's where it has patched, and wait for its hub

_CHILD_S = 2.0


def succeeds_in_child(does: Callable[[], bool]) -> bool:
    """Whether `does` is true there; False also when the child does not come to its end within 2 s.

    Contract: `does` only calls the system. Where gevent has patched, a wait of its would turn the parent's
    hub in the child: both share its epoll set, and the parent then misses what happens to it.
    It answers through a pipe: where gevent has patched, its hub may be the one that gets to know how a
    child ended.
    """
    reading, writing = os.pipe()
    child = fork()
    if child == 0:
        # Nothing but the one call: no handlers, no buffers of the parent are touched.
        try:
            if does():
                os.write(writing, b"1")
        finally:  # also when it raises: the parent's stack must never be run here
            os._exit(0)
    os.close(writing)
    try:
        ready, _, _ = select.select([reading], [], [], _CHILD_S)
        if not ready:
            os.kill(child, signal.SIGKILL)
        return bool(ready) and os.read(reading, 1) == b"1"
    finally:
        os.close(reading)
        with suppress(ChildProcessError):
            waitpid(child, 0)
