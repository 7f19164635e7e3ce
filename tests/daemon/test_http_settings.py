"""The settings of HTTP that no other test needs."""

from __future__ import annotations

import socket
from urllib.parse import urlsplit


def test_without_http_the_daemon_serves_its_socket_alone(daemon) -> None:
    daemon.configure(http={"enabled": False})

    daemon.start()

    assert daemon.ping()
    assert "http://" not in daemon.log()


def test_client_that_does_not_finish_its_request_is_hung_up_on_in_time(daemon) -> None:
    daemon.configure(http={"port": 0, "idle_s": 1})
    daemon.start()
    address = urlsplit(daemon.url())

    with socket.create_connection((address.hostname, address.port), timeout=4) as slow:
        slow.sendall(b"GET /health/live HTTP/1.1\r\nHost: local")
        assert slow.recv(100) == b""
    assert daemon.get("/health/live")[0] == 200
