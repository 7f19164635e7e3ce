"""One turn, watched to its end over as many connections as it takes.

The daemon may die and come back in the middle of an answer. What it accepted it still owes, so
the watcher connects again and asks for the events after the last one it saw.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from fermix.errors import DaemonLost, DeadlineExceeded, FermixError, NotRunning
from fermix.ipc.client import Connection, Event, Result, Stream

_RETRY_PAUSE_S = 0.1
_SEND_TIMEOUT_S = 10.0
_STEADY_S = 2.0
"""A connection that lived this long counts as a daemon that is back."""
_COMING_AND_GOING = frozenset({"starting", "draining", "busy"})
"""Codes of a daemon that is on its way up or down, or full for a moment: worth asking again."""


class TurnWatch:
    """A message sent to the daemon and everything it answers.

    connect: a fresh connection; raises NotRunning while there is no daemon.
    message: the params of `message`; its `client_id` makes sending it again harmless.
    patience_s: how long to go on without a daemon before giving up.
    """

    def __init__(
        self, connect: Callable[[], Connection], message: dict[str, Any], *, patience_s: float
    ) -> None:
        self._connect = connect
        self._message = message
        self._patience_s = patience_s
        self._connection: Connection | None = None
        self._stream: Stream | None = None
        self._lost_at: float | None = None
        self._opened_at = 0.0
        self._last_seq = -1
        self.turn_id: str | None = None
        """None until the daemon has accepted the message."""

    @property
    def is_connected(self) -> bool:
        """False while the daemon is away."""
        return self._lost_at is None

    def read(self, timeout_s: float) -> Event | Result | None:
        """The next event not seen before, or the result; None when none came within `timeout_s`.

        Raises: what the daemon answered, or DaemonLost when it stayed away for `patience_s`.
        """
        deadline = time.monotonic() + timeout_s
        while True:
            try:
                answer = self._open_stream().read(max(0.0, deadline - time.monotonic()))
            except FermixError as error:
                self._lose(error)
                if time.monotonic() >= deadline:
                    return None
                time.sleep(max(0.0, min(_RETRY_PAUSE_S, deadline - time.monotonic())))
                continue
            if answer is None:
                if time.monotonic() - self._opened_at > _STEADY_S:
                    self._lost_at = None
                return None
            self._lost_at = None
            if isinstance(answer, Result):
                return answer
            if self._is_news(answer):
                return answer

    def cancel(self) -> None:
        """Ask the daemon to stop the turn, if it has accepted it; the result still comes through `read`.

        Raises: NotRunning, DaemonLost, DeadlineExceeded.
        """
        if self.turn_id is None:
            return
        with self._connect() as connection:  # its own, since ours is busy with the stream
            connection.call("cancel", {"turn_id": self.turn_id}, _SEND_TIMEOUT_S)

    def acknowledge(self) -> None:
        """Tell the daemon that the whole reply was shown; it then counts as delivered.

        Raises: NotRunning, DaemonLost, DeadlineExceeded.
        """
        if self.turn_id is None:
            return
        try:
            connection = self._connection or self._connect()
            connection.call("ack", {"turn_id": self.turn_id}, _SEND_TIMEOUT_S)
        except (DaemonLost, DeadlineExceeded):
            with self._connect() as connection:
                connection.call("ack", {"turn_id": self.turn_id}, _SEND_TIMEOUT_S)

    def close(self) -> None:
        """Hang up; the turn goes on without a watcher."""
        if self._connection is not None:
            self._connection.close()
        self._connection = self._stream = None

    def _open_stream(self) -> Stream:
        if self._stream is None:
            self._connection = self._connect()
            self._opened_at = time.monotonic()
            if self.turn_id is None:
                self._stream = self._connection.stream("message", self._message, _SEND_TIMEOUT_S)
            else:
                seen = {"turn_id": self.turn_id, "after_seq": self._last_seq}
                self._stream = self._connection.stream("resume", seen, _SEND_TIMEOUT_S)
        return self._stream

    def _lose(self, error: FermixError) -> None:
        """Note that the daemon is away; raises `error` when waiting for it has no sense (any more)."""
        self.close()
        is_away = isinstance(error, (NotRunning, DaemonLost, DeadlineExceeded))
        if not is_away and error.code not in _COMING_AND_GOING:
            raise error
        now = time.monotonic()
        if self._lost_at is None:
            self._lost_at = now
        elif now - self._lost_at > self._patience_s:
            if isinstance(error, NotRunning):
                raise DaemonLost(
                    "The daemon went away in the middle of the answer and did not come back.",
                    hint="fermix start, then fermix sessions show",
                ) from error
            raise error

    def _is_news(self, event: Event) -> bool:
        """Whether `event` was not seen over an earlier connection; remembers it."""
        if event.name == "accepted":
            self.turn_id = str(event.data.get("turn_id") or "") or None
            is_first = self._last_seq < 0
            self._last_seq = max(self._last_seq, event.seq)
            return is_first
        if event.seq <= self._last_seq:
            return False
        self._last_seq = event.seq
        return True
