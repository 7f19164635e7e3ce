"""One request on a pool, up to the response's headers; what both doors share."""

from __future__ import annotations

import logging
import socket
from collections.abc import Mapping
from typing import TYPE_CHECKING

from fermix import __version__
from fermix.errors import ConnectionLost, Unreachable
from fermix.net.address import Address
from fermix.net.interrupt import interruptible
from fermix.net.response import describe
from fermix.net.tls import tls_context
from fermix.tasks import Cancel

if TYPE_CHECKING:
    from urllib3 import BaseHTTPResponse, HTTPConnectionPool


_KEEP_ALIVE = (
    (socket.IPPROTO_TCP, socket.TCP_NODELAY, 1),
    # A model may think for minutes without a byte: probes keep the path open and notice a dead peer.
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
    (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 30),
    (socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 10),
    (socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 3),
    (socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, 30_000),
)


def connections(address: Address, *, to: str, connect_timeout_s: float, kept: int) -> HTTPConnectionPool:
    """A pool whose connections go to `to`, a name or IP, and prove over TLS to be `address.host`."""
    import urllib3  # lazy: takes 130 ms, and a daemon must be ready before that

    # It warns of every connection that is not kept, which in a burst is what we want.
    logging.getLogger("urllib3.connectionpool").setLevel(logging.ERROR)
    timeout = urllib3.Timeout(connect=connect_timeout_s, read=None)
    if address.scheme == "http":
        return urllib3.HTTPConnectionPool(
            to, address.port, timeout=timeout, maxsize=kept, socket_options=_KEEP_ALIVE
        )
    return urllib3.HTTPSConnectionPool(
        to,
        address.port,
        timeout=timeout,
        maxsize=kept,
        socket_options=_KEEP_ALIVE,
        ssl_context=tls_context(),
        # Not `assert_hostname`: that would switch the name check of the shared context off.
        server_hostname=address.host,
    )


def send_on(
    pool: HTTPConnectionPool,
    method: str,
    target: str,
    body: bytes | None,
    *,
    headers: Mapping[str, str],
    origin: str,
    cancel: Cancel,
    wait_s: float,
) -> BaseHTTPResponse:
    """The response with its headers read and its body still to come; redirects are not followed.

    Raises: Unreachable (nothing was sent), ConnectionLost, Cancelled, DeadlineExceeded after `wait_s`.
    """
    from urllib3.exceptions import (  # lazy, as above
        ConnectTimeoutError,
        HTTPError,
        NameResolutionError,
        NewConnectionError,
        SSLError,
    )

    try:
        with interruptible(cancel, wait_s, what=f"The first word of {origin}"):
            return pool.urlopen(
                method,
                target,
                body,
                headers={"Accept-Encoding": "identity", "User-Agent": f"fermix/{__version__}", **headers},
                retries=False,
                redirect=False,
                preload_content=False,
            )
    except (NewConnectionError, NameResolutionError, ConnectTimeoutError) as error:
        raise Unreachable(f"Cannot connect to {origin}: {describe(error)}.") from error
    except SSLError as error:
        raise Unreachable(f"No safe connection to {origin}: {describe(error)}.") from error
    except (HTTPError, OSError) as error:
        raise ConnectionLost(f"The connection to {origin} broke: {describe(error)}.") from error
