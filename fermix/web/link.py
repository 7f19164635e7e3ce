"""The connection a request came on, as far as its answer cares."""

from __future__ import annotations

import socket
from collections.abc import Callable
from dataclasses import dataclass, field

from fermix.tasks import Deadline

KEY = "fermix.link"
"""Where the WSGI environment has it."""
_ESTABLISHED = 1
"""Source: linux/tcp.h, `tcpi_state` is the first byte of TCP_INFO and TCP_ESTABLISHED is 1."""


@dataclass(slots=True)
class Link:
    """One request's connection; a default one stands for a client that never leaves."""

    sock: socket.socket | None = None
    peer: tuple[str, int] = ("", 0)
    """The client's address and port when it connected; a socket that was reset has forgotten them."""
    deadline: Deadline = field(default_factory=lambda: Deadline.after(3600.0))
    """By when the whole request must have come."""
    was_there: bool = True
    """Whether the client had not hung up when the last piece was handed over."""
    _on_sent: list[Callable[[], object]] = field(default_factory=list)

    def is_there(self) -> bool:
        """Whether the other side still holds the connection open.

        A client that has sent all it wants and closed that half counts as gone: HTTP clients do not.
        """
        if self.sock is None or not hasattr(socket, "TCP_INFO"):
            return True
        try:
            return self.sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)[0] == _ESTABLISHED
        except OSError:
            return False

    def own_address(self) -> str:
        """The address of this machine that the client connected to; empty when unknown."""
        try:
            text = str(self.sock.getsockname()[0]).partition("%")[0] if self.sock is not None else ""
        except OSError:
            return ""
        # A listener for both kinds shows an IPv4 address as `::ffff:192.0.2.1`, which no client writes.
        return text.removeprefix("::ffff:") if "." in text else text

    def ends(self) -> tuple[tuple[str, int], tuple[str, int]] | None:
        """The client's address and port as it connected, and ours; None where there is no connection.

        Raises: OSError when the connection is gone for good.
        """
        if self.sock is None:
            return None
        own = self.sock.getsockname()
        return self.peer, (own[0], own[1])

    def on_sent(self, act: Callable[[], object]) -> None:
        """Do this once the answer's last byte was handed to a client that was there."""
        self._on_sent.append(act)

    def sent(self) -> None:
        """The answer's last byte was handed over."""
        acts, self._on_sent = self._on_sent, []
        for act in acts:
            if self.was_there:
                act()
