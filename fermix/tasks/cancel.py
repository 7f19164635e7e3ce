"""A wish to stop, shared by everything that works for one turn."""

from __future__ import annotations

from collections.abc import Callable

from gevent.event import Event

from fermix.errors import Cancelled


class Cancel:
    """Set once, seen by all; whoever waits on a foreign thing registers a `callback` to end it."""

    def __init__(self) -> None:
        self._event = Event()
        self._callbacks: list[Callable[[], None]] = []
        self.reason = ""

    def set(self, reason: str) -> None:
        """Ask everything to stop; the first reason stays."""
        if self._event.is_set():
            return
        self.reason = reason
        self._event.set()
        callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            callback()

    def is_set(self) -> bool:
        return self._event.is_set()

    def wait(self, timeout_s: float) -> bool:
        """Whether it was set within `timeout_s`."""
        return bool(self._event.wait(timeout_s))

    def check(self) -> None:
        """Raises: Cancelled when it is set."""
        if self._event.is_set():
            raise Cancelled(f"Stopped: {self.reason}.")

    def on_set(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Call `callback` when set, at once if it is already; returns how to take it back.

        Contract: `callback` neither blocks nor raises.
        """
        if self._event.is_set():
            callback()
            return lambda: None
        self._callbacks.append(callback)

        def forget() -> None:
            if callback in self._callbacks:
                self._callbacks.remove(callback)

        return forget
