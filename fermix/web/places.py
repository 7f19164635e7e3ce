"""The connections there may be at once, and whose place a newcomer takes when there are no more."""

from __future__ import annotations

import logging
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager

log = logging.getLogger(__name__)


class Places:
    """One is kept free as long as anybody keeps us waiting: a newcomer may want something."""

    def __init__(self, limit: Callable[[], int]) -> None:
        """`limit`: how many connections there may be, asked each time."""
        self._limit = limit
        self._taken = 0
        """Without those that were hung up on and are about to go."""
        self._awaited: dict[socket.socket, None] = {}
        """Those whose client is to send or take something, the one that waits the longest first."""
        self._hung_up: set[socket.socket] = set()

    def take(self) -> None:
        """Somebody has come."""
        self._taken += 1
        self._keep_one_free()

    def give_back(self, client: socket.socket) -> None:
        """Somebody has gone."""
        if client in self._hung_up:
            self._hung_up.discard(client)
        else:
            self._taken -= 1

    @contextmanager
    def awaiting(self, client: socket.socket) -> Iterator[None]:
        """While this goes on it is for the client to do something, and its place may be given away."""
        # Others first: this one may do at once what is expected.
        self._keep_one_free()
        if client not in self._hung_up:
            self._awaited[client] = None
        try:
            yield
        finally:
            self._awaited.pop(client, None)

    def _keep_one_free(self) -> None:
        if self._taken < self._limit() or not self._awaited:
            return
        client = next(iter(self._awaited))
        del self._awaited[client]
        self._hung_up.add(client)
        self._taken -= 1
        try:
            client.shutdown(socket.SHUT_RDWR)
        except OSError:
            log.debug("A client that kept us waiting had left already")
