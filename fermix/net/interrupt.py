"""Ends a wait on the network from outside: by a cancel set in another greenlet, or by time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import gevent

from fermix.errors import Cancelled, DeadlineExceeded
from fermix.tasks import Cancel


@contextmanager
def interruptible(cancel: Cancel, seconds: float, *, what: str) -> Iterator[None]:
    """Run the block until it is done, `cancel` is set, or `seconds` are over.

    The exception is thrown into the waiting greenlet, so name look-up, connecting, TLS and
    reading all end at once; closing the socket alone would reach only the last of them.

    Raises: Cancelled, DeadlineExceeded naming `what`, from inside the block at its next switch.
    """
    cancel.check()
    greenlet = gevent.getcurrent()
    loop = gevent.get_hub().loop
    is_inside = True

    def throw() -> None:
        if is_inside:
            greenlet.throw(Cancelled(f"Stopped: {cancel.reason}."))

    def interrupt() -> None:
        loop.run_callback(throw)

    forget = cancel.on_set(interrupt)
    shown = round(seconds, 1 if seconds >= 1 else 3)  # often what is left of a longer time
    try:
        with gevent.Timeout(max(seconds, 0.001), DeadlineExceeded(f"{what} took longer than {shown:g} s.")):
            yield
    finally:
        is_inside = False
        forget()
