"""The way to the daemon of a home; starts a private one where nobody answers."""

from __future__ import annotations

import time

from fermix.cli.launch import START_TIMEOUT_S, launch, wait_until_ready
from fermix.cli.waiting import Waiting
from fermix.errors import NotRunning
from fermix.ipc.client import Connection, open_connection
from fermix.paths import Home

_COMES_BACK_S = 1.0
"""A daemon that answered before gets this long to be restarted by whoever supervises it."""


class Door:
    """Opens connections.

    starts_private: whether a private daemon is started when nobody answers.
    is_silent: whether a person may not be told that it takes a while.
    patience_s: how long a private daemon may take to start.
    """

    def __init__(
        self,
        home: Home,
        *,
        starts_private: bool,
        is_silent: bool = False,
        patience_s: float = START_TIMEOUT_S,
    ) -> None:
        self._home = home
        self._starts_private = starts_private
        self._is_silent = is_silent
        self._patience_s = patience_s
        self._absent_since: float | None = None
        self._has_answered = False

    def open(self) -> Connection:
        """A connection.

        Raises: NotRunning when nobody answers and no private daemon is wanted (yet), OwnerError
        when one could not be started.
        """
        try:
            connection = open_connection(self._home.socket)
        except NotRunning:
            if not self._starts_private or self._may_come_back():
                raise
            self._start_private()
            connection = open_connection(self._home.socket)
        self._absent_since = None
        self._has_answered = True
        return connection

    def _may_come_back(self) -> bool:
        now = time.monotonic()
        if self._absent_since is None:
            self._absent_since = now
        return self._has_answered and now - self._absent_since < _COMES_BACK_S

    def _start_private(self) -> None:
        with Waiting("starting fermix", is_silent=self._is_silent) as waiting:
            launched = launch(self._home, "--private")
            wait_until_ready(self._home, launched, waiting, timeout_s=self._patience_s)
