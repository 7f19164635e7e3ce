"""HTTPS: wraps connections, with a renewed certificate as soon as its file has changed."""

from __future__ import annotations

import logging
import socket
import ssl
from pathlib import Path

from fermix.web.exposure import tls_context

log = logging.getLogger(__name__)


class Tls:
    """The certificate that counts now."""

    def __init__(self, certificate: Path, key: Path) -> None:
        """Raises: ssl.SSLError, OSError when the files cannot be used."""
        self._paths = (certificate, key)
        self._seen = self._look()
        self._context = tls_context(certificate, key)

    def wrap(self, client: socket.socket) -> ssl.SSLSocket:
        """The connection, before its handshake; `client` is not to be used any more."""
        self._renew()
        return self._context.wrap_socket(client, server_side=True, do_handshake_on_connect=False)

    def _renew(self) -> None:
        """Take a new certificate up; one that cannot be used, or is half there, leaves the old one."""
        try:
            seen = self._look()
            if seen == self._seen:
                return
            self._seen = seen
            self._context = tls_context(*self._paths)
            log.info("Took up the certificate %s", self._paths[0])
        except OSError as error:
            log.error("The certificate %s stays the one from before: %s", self._paths[0], error)

    def _look(self) -> tuple[tuple[int, int, int], ...]:
        found = (path.stat() for path in self._paths)
        return tuple((each.st_ino, each.st_mtime_ns, each.st_size) for each in found)
