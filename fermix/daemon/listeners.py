"""The two listening sockets the arbiter owns, so that a worker's death drops nothing in their backlogs.

They are plain `_socket` objects: gevent's would open the hub in the arbiter, which needs none.
"""

from __future__ import annotations

import _socket
import contextlib
import errno
import ipaddress
import os
import stat
from dataclasses import dataclass
from pathlib import Path

from fermix.errors import AddressUnavailable
from fermix.ipc.address import socket_address

_BACKLOG = 512
"""Connections the kernel keeps while no worker accepts; it also cuts this at net.core.somaxconn."""


class HttpListener:
    """A TCP socket in the shape gunicorn's worker takes over."""

    def __init__(self, host: str, port: int) -> None:
        """Raises: AddressUnavailable when it cannot be bound."""
        address = ipaddress.ip_address("127.0.0.1" if host == "localhost" else host)
        self.FAMILY = _socket.AF_INET if address.version == 4 else _socket.AF_INET6
        try:
            self.sock = _socket.socket(self.FAMILY, _socket.SOCK_STREAM)
            self.sock.setsockopt(_socket.SOL_SOCKET, _socket.SO_REUSEADDR, 1)
            self.sock.setsockopt(_socket.IPPROTO_TCP, _socket.TCP_NODELAY, 1)
            self.sock.bind((str(address), port))
            self.sock.listen(_BACKLOG)
        except OSError as exc:
            raise AddressUnavailable(
                f"Cannot listen on '{host}:{port}': {exc.strerror}.",
                hint=f"Take another port with: fermix config set http.port {port + 1 if port else 4031}",
            ) from exc
        self.sock.setblocking(False)
        bound_host, bound_port = self.sock.getsockname()[:2]
        is_v4 = self.FAMILY == _socket.AF_INET
        self.address = f"{bound_host}:{bound_port}" if is_v4 else f"[{bound_host}]:{bound_port}"
        """As in a URL, with the port the system chose when 0 was asked for."""

    def fileno(self) -> int:
        return self.sock.fileno()

    def close(self) -> None:
        self.sock.close()

    def __str__(self) -> str:
        return self.address


@dataclass(frozen=True, slots=True)
class ControlListener:
    """The Unix socket on which clients of the same user reach the daemon."""

    path: Path
    sock: _socket.socket
    identity: tuple[int, int]
    """Device and inode of the socket file, so that only our own is removed."""

    @staticmethod
    def open(path: Path) -> ControlListener:
        """A listening socket with mode 0600 at `path`.

        Contract: the caller holds the lease, so a socket file nobody answers on is a leftover.
        Raises: AddressUnavailable when something else is there, or it cannot be bound.
        """
        sock = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
        before = os.umask(0o177)
        try:
            with socket_address(path) as address:
                _remove_leftover(path, address)
                sock.bind(address)
            sock.listen(_BACKLOG)
        except OSError as exc:
            sock.close()
            raise AddressUnavailable(
                f"Cannot listen on '{path}': {exc.strerror}.", hint=f"Look at it with: ls -l '{path}'"
            ) from exc
        except AddressUnavailable:
            sock.close()
            raise
        finally:
            os.umask(before)
        sock.setblocking(False)
        found = path.lstat()
        return ControlListener(path, sock, (found.st_dev, found.st_ino))

    def close(self) -> None:
        """Stop listening and remove the socket file, unless someone else's is there by now."""
        self.sock.close()
        with contextlib.suppress(OSError):
            found = self.path.lstat()
            if (found.st_dev, found.st_ino) == self.identity:
                self.path.unlink()


def _remove_leftover(path: Path, address: str) -> None:
    """Raises: AddressUnavailable when `path` is no socket, or someone answers there."""
    try:
        found = path.lstat()
    except FileNotFoundError:
        return
    hint = f"Look at it with: ls -l '{path}'"
    if not stat.S_ISSOCK(found.st_mode):
        raise AddressUnavailable(f"'{path}' is in the way. Expected a socket or nothing.", hint=hint)
    probe = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    probe.setblocking(False)
    try:
        refusal = probe.connect_ex(address)
    finally:
        probe.close()
    if refusal != errno.ECONNREFUSED:
        raise AddressUnavailable(f"Another program answers on '{path}'.", hint=hint)
    path.unlink()
