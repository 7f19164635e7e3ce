"""The owner's door: requests that go exactly to the scheme, host and port the owner wrote."""

from __future__ import annotations

import socket
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING

from fermix.errors import RedirectRefused
from fermix.net.address import parse_base
from fermix.net.response import Response
from fermix.net.sending import connections, send_on
from fermix.net.tls import tls_context
from fermix.tasks import Cancel, Deadline

if TYPE_CHECKING:
    from urllib3 import HTTPConnectionPool

_KEPT_S = 50.0
"""Connections unused for longer are replaced: routers forget them silently, servers close them at 60 s."""
_LIMIT_BYTES = 64 * 1024 * 1024


class OwnerDoor:
    """Pooled connections to one address from the config, loopback and LAN included.

    Proxies named in the environment are ignored and redirects refused, so that a request (and
    the key in it) reaches the place the owner wrote and no other.
    """

    def __init__(
        self, base_url: str, *, connect_timeout_s: float = 10.0, kept_connections: int = 64
    ) -> None:
        """Raises: AddressRefused when `base_url` is not a plain http(s) address."""
        self.address = parse_base(base_url)
        if self.address.scheme == "https":
            tls_context()  # now, and not when the unpacked certificates may be gone
        self._connect_timeout_s = connect_timeout_s
        self._kept_connections = kept_connections
        self._pool: HTTPConnectionPool | None = None
        self._used_s = 0.0

    def send(
        self,
        method: str,
        path: str,
        body: bytes | None,
        *,
        headers: Mapping[str, str],
        cancel: Cancel,
        deadline: Deadline,
        idle_timeout_s: float = 60.0,
        limit_bytes: int = _LIMIT_BYTES,
    ) -> Response:
        """Send `body`; returns when the response's headers are there.

        `path` is put behind the base's own. `idle_timeout_s` is the longest silence, before the
        headers and between pieces of the body; `deadline` ends the whole.

        Raises: Unreachable (nothing was sent), ConnectionLost, RedirectRefused, Cancelled,
        DeadlineExceeded.
        """
        raw = send_on(
            self._connections(),
            method,
            self.address.path + path,
            body,
            headers=headers,
            origin=self.address.origin,
            cancel=cancel,
            wait_s=min(idle_timeout_s, deadline.remaining_s()),
        )
        if 300 <= raw.status < 400:
            raw.close()
            raise RedirectRefused(
                f"{self.address.origin} answered {raw.status} with a redirect to "
                f"{raw.headers.get('location', '')[:200]!r}; redirects are not followed."
            )
        return Response(
            raw, cancel=cancel, deadline=deadline, idle_timeout_s=idle_timeout_s, limit_bytes=limit_bytes
        )

    def is_listening(self, *, timeout_s: float) -> bool:
        """Whether something takes connections there, without loading what requests need."""
        try:
            socket.create_connection((self.address.host, self.address.port), timeout=timeout_s).close()
        except OSError:
            return False
        return True

    def close(self) -> None:
        """End the kept connections; the next request opens new ones."""
        if self._pool is not None:
            self._pool.close()
            self._pool = None

    def _connections(self) -> HTTPConnectionPool:
        now_s = time.monotonic()
        if now_s - self._used_s > _KEPT_S:
            self.close()
        self._used_s = now_s
        if self._pool is None:
            self._pool = connections(
                self.address,
                to=self.address.host,
                connect_timeout_s=self._connect_timeout_s,
                kept=self._kept_connections,
            )
        return self._pool


def warm() -> None:
    """Pay for the slow imports and the certificates now: about 170 ms, once."""
    import urllib3  # noqa: F401  (importing it is the point)

    tls_context()
